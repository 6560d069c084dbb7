//! Formats the result of a sweep as a table with advice, and applies the best options.

use super::advice::{WORTH, advice};
use super::kept::Sweep;
use super::trial::Try;
use crate::volume::{Bench, sh};
use homing_model::Failure;
use std::fmt::Write;

/// Returns the measurements and the advice.
pub fn table(sweep: &Sweep) -> String {
    let most = sweep.tries.iter().map(|t| t.mean_write().max(t.mean_read())).fold(1e-9, f64::max);
    let mut text =
        format!("{:>10} {:>8} {:>8} {:>9} {:>9}  SETTLED ON\n", "SERVER", "SIZE", "NCONNECT", "WRITE", "READ");
    sweep.tries.iter().for_each(|t| row(&mut text, t, most));
    text.extend(advice(sweep).iter().map(|line| format!("{line}\n")));
    text
}

fn row(text: &mut String, t: &Try, most: f64) {
    let bar = |v: f64| "#".repeat((20.0 * v / most).round() as usize);
    let block = t.setting.block.map_or("as it is".into(), |b| b.to_string());
    let size = if t.setting.size == 0 { "default".into() } else { t.setting.size.to_string() };
    let (write, read) = (t.mean_write(), t.mean_read());
    let connections = t.setting.connections;
    let _ = writeln!(text, "{block:>10} {size:>8} {connections:>8} {write:>9.1} {read:>9.1}  {}", t.settled);
    let _ = writeln!(text, "{:>28} w {:<20} r {:<20}", "", bar(write), bar(read));
}

impl Sweep {
    /// Whether the best setting is worth a change.
    pub fn is_worth_it(&self) -> bool {
        self.gain() >= Some(WORTH)
    }
}

/// Replaces the options of one mount point in fstab that a sweep sets: `$1`: the mount point, `$2`: the new options, `$3`:
/// the file. Fails without a line of it that is in force.
const REWRITTEN: &str = r#"awk -v p="$1" -v o="$2" '$1 !~ /^#/ && $2 == p && $3 ~ /^nfs/ { n = split($4, a, ","); k = "";
    for (i = 1; i <= n; i++)
        if (a[i] !~ /^((rsize|wsize|nconnect|vers|nfsvers|minorversion|port|proto|sec)=|(hard|soft|nolock|v[234](\.[0-9])?)$)/) k = k a[i] ",";
    $4 = k o; f = 1 } {print} END {exit !f}' "$3""#;

/// Mounts with the best options on all hosts, and writes them into fstab. Only the line of this mount point changes. If
/// the folder cannot be mounted with them, the old line is restored and mounted.
pub fn apply(bench: &Bench, sweep: &Sweep) -> Result<(), Failure> {
    let Some(best) = sweep.best() else { return Ok(()) };
    let options = best.setting.options(&sweep.export.base);
    let text = format!(
        r#"
        p=$(findmnt -n -o TARGET --target "$1") || exit
        set -- "$p" "$2" /etc/fstab
        {REWRITTEN} > /etc/fstab.homing || {{ echo "no line of $p in /etc/fstab"; rm -f /etc/fstab.homing; exit 1; }}
        chmod 644 /etc/fstab.homing && cp -p /etc/fstab /etc/fstab.old.homing && mv /etc/fstab.homing /etc/fstab || exit
        umount "$p" && mount "$p" && rm -f /etc/fstab.old.homing && exit
        mv /etc/fstab.old.homing /etc/fstab; mountpoint -q "$p" || mount "$p"
        echo "$p has the options of before again"; exit 1"#
    );
    bench.all(&bench.setup.hosts, |_, _| sh(&text, &[&bench.setup.path, &options]), "applying the options").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Returns fstab with these options for /data; `None` if it has no line of /data in force.
    fn rewritten(fstab: &str) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, fstab).unwrap();
        let mut sh = Command::new("sh");
        let sh = sh.args(["-c", REWRITTEN, "sh", "/data", "hard,vers=4.2"]).arg(file.path()).output().unwrap();
        sh.status.success().then(|| String::from_utf8(sh.stdout).unwrap())
    }

    #[test]
    fn one_line_of_fstab_has_the_new_options_and_none_that_contradicts_them() {
        for (old, new) in [
            ("n1:/x /data nfs4 rw 0 0", Some("n1:/x /data nfs4 rw,hard,vers=4.2 0 0")),
            ("n1:/x /data nfs nfsvers=3,noatime,soft 0 0", Some("n1:/x /data nfs noatime,hard,vers=4.2 0 0")),
            ("n1:/x /data nfs nolock,sec=krb5,proto=tcp,port=2049 0 0", Some("n1:/x /data nfs hard,vers=4.2 0 0")),
            ("n1:/x /data nfs v4.1,rsize=1,nconnect=8 0 0", Some("n1:/x /data nfs hard,vers=4.2 0 0")),
            ("n1:/x /data nfs minorversion=1,softerr 0 0", Some("n1:/x /data nfs softerr,hard,vers=4.2 0 0")),
            ("#n1:/x /data nfs4 rw 0 0", None),
            ("# /data nfs4 rw 0 0", None),
            ("n1:/x /data2 nfs4 rw 0 0", None),
            ("/dev/sda /data ext4 rw 0 0", None),
        ] {
            let around = |line: &str| format!("/dev/sda / ext4 rw 0 1\n{line}\n");
            assert_eq!(rewritten(&around(old)), new.map(around), "{old}");
        }
    }
}
