//! Builds the one script that hosts run. Each line bears the name of its part, because parts run at the same time.

use crate::HostCheck;
use homing_model::text::always_quoted;

/// `put KEY` reads a part's lines, the last of which is its exit status, and prints them with bounds. It writes a
/// line at once, short enough for a pipe to keep it whole.
/// `puts` does the same for many short parts, one after another: each begins with a line `\001KEY` and ends with
/// `\002STATUS`.
/// `first NAME FILE` prints a row with the first line of a file of /sys. A process for each file would cost more than
/// all other work here. A shell reads byte by byte, and numbers of /proc/sys return only one byte to such a reader.
const BEGIN: &str = r#"LC_ALL=C; export LC_ALL; T=$(printf '\t'); export T; PATH=$PATH:/usr/sbin:/sbin; export PATH
umask 077
now() { printf '=now\t%s\n' "$(date +%s.%N)"; }
put() { awk -v k="$1" 'NR > 1 { if (NR < 2000) print "=" k "\t" substr(l, 1, 1000); fflush() } { l = $0 }
  END { if (NR >= 2000) l = "cut"; print "=end\t" k "\t" l }'; }
puts() { awk '/^\001/ { k = substr($0, 2); n = 0; next }
  /^\002/ { print "=end\t" k "\t" (n >= 2000 ? "cut" : substr($0, 2)); fflush(); next }
  { if (n++ < 2000) print "=" k "\t" substr($0, 1, 1000); fflush() }'; }
first() { l=; read -r l < "$2"; printf '%s\t%s\n' "$1" "$l"; }
ahead() { n=$1; while [ "$n" -gt 0 ] && kill -0 $!; do sleep 0.1; n=$((n - 1)); done 2>/dev/null; }
now
printf '=who\t%s\n=end\twho\t0\n' "$(id -u)"
"#;

/// The part that runs before all others, and alone: the look at mounts. A part that waits for a frozen mount runs
/// behind it. On a busy host forty parts at once would take its time away.
const FIRST: &str = "answering";
/// The fraction of a part's time for which it runs alone.
const AHEAD: f64 = 0.25;

/// The fraction of a part's time for a mount or a server; the rest is for its report.
const FOR_A_MOUNT: f64 = 2.0 / 3.0;

/// Returns the script, for `sh -s NAME...`. A part that may wait is killed after `patience` seconds.
pub fn script(checks: &[&HostCheck], patience: f64) -> String {
    let parts = checks.iter().filter(|check| !check.script.is_empty());
    let (mut late, quick): (Vec<&&HostCheck>, Vec<&&HostCheck>) = parts.partition(|check| check.waits);
    late.sort_by_key(|check| check.key != FIRST);
    let waiting = |c: &&&HostCheck| {
        let text = always_quoted(c.script.trim());
        let call = format!("timeout -s KILL {patience:.1} sh -c {text} sh \"$@\" </dev/null");
        let ahead = if c.key == FIRST { format!("ahead {:.0}\n", patience * 10.0 * AHEAD) } else { String::new() };
        format!("{{ {call}; echo $?; }} 2>/dev/null | put {} &\n{ahead}", c.key)
    };
    // Each long part is printed as soon as it ends.
    let (long, short): (Vec<&&HostCheck>, Vec<&&HostCheck>) = quick.iter().copied().partition(|check| check.slow);
    let long =
        long.iter().map(|c| format!("{{ (\n{}\n) </dev/null; echo $?; }} 2>/dev/null | put {}\n", c.script, c.key));
    let short: String = short
        .iter()
        .map(|c| format!("printf '\\001%s\\n' {}\n(\n{}\n)\nprintf '\\002%s\\n' $?\n", c.key, c.script))
        .collect();
    let short = format!("{{ :\n{short}}} </dev/null 2>/dev/null | puts\n");
    let all: String = late.iter().map(waiting).chain([short]).chain(long).collect();
    let [network, own] = homing_mounts::network_patterns();
    let (homes, line) = homing_setup::homes_mark();
    let wait = patience * FOR_A_MOUNT;
    format!(
        "NETWORK='{network}' OWN='{own}' HOMES='{homes}' HOMES_LINE='{line}' WAIT={wait:.1}\n\
         export NETWORK OWN HOMES HOMES_LINE WAIT\n{BEGIN}{all}now\nwait\nnow\nexit 0\n"
    )
}

#[cfg(test)]
mod tests {
    use crate::HostCheck;
    use homing_model::Mount;
    use homing_mounts::{FileSystemKind, network_patterns};
    use std::process::Command;

    const fn part(key: &'static str, waits: bool, slow: bool) -> HostCheck {
        let ask = "seq -f 'row %g of many that are printed at the same time' 500; [ 7 = 8 ]";
        HostCheck { key, script: ask, waits, slow, root: None, codes: &[], judge: |_| Vec::new() }
    }

    #[test]
    fn parts_that_print_at_the_same_time_keep_their_lines_whole() {
        static PARTS: [HostCheck; 5] = [
            part("wait1", true, false),
            part("wait2", true, false),
            part("short1", false, false),
            part("short2", false, false),
            part("long", false, true),
        ];
        let said = Command::new("sh").args(["-c", &super::script(&PARTS.each_ref(), 60.0)]).output().unwrap();
        let host = crate::HostAnswers::read("n1", &[(0.0, said.stdout)]);
        assert_eq!(host.stray, [""; 0]);
        for part in &PARTS {
            let rows = host.rows(part.key).unwrap();
            assert_eq!(rows.len(), 500, "{}", part.key);
            assert!(rows.iter().all(|row| row[0].starts_with("row ") && row[0].ends_with(" time")), "{}", part.key);
        }
    }

    #[test]
    fn hosts_know_a_network_file_system_as_homing_does() {
        let types = "fuse fuse.glusterfs glusterfs fuse.mfs moosefs nfs nfs4 nfsd lustre 9p afs beegfs ceph cifs gfs2 \
                     gpfs ocfs2 orangefs panfs pvfs2 smb3 virtiofs fuse.sshfs fuse.ceph-fuse fuseblk fusectl \
                     fuse.fuse-overlayfs fuse.gvfsd-fuse fuse.lxcfs fuse.portal fuse.snapfuse fuse.squashfuse \
                     fuse-lxcfs ext4 xfs btrfs tmpfs overlay autofs proc";
        let [network, own] = network_patterns();
        let mut awk = Command::new("awk");
        awk.arg(
            r#"BEGIN { for (i = 1; i < ARGC; i++) print (ARGV[i] ~ ENVIRON["NETWORK"] && ARGV[i] !~ ENVIRON["OWN"]) }"#,
        );
        let said = awk.args(types.split_whitespace()).env("NETWORK", network).env("OWN", own).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let mut lines = said.lines();
        for fstype in types.split_whitespace() {
            let mount = Mount { point: "/d".into(), fstype: fstype.into(), source: "s".into() };
            assert_eq!(lines.next() == Some("1"), FileSystemKind::of(&mount).is_network(), "{fstype}");
        }
    }
}
