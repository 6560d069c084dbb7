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

/// Mounts with the best options on all hosts, and writes them into fstab. Only the line of this mount point changes.
pub fn apply(bench: &Bench, sweep: &Sweep) -> Result<(), Failure> {
    let Some(best) = sweep.best() else { return Ok(()) };
    let options = best.setting.options();
    let text = r#"
        p=$(findmnt -n -o TARGET --target "$1") || exit
        awk -v p="$p" -v o="$2" '$2 == p && $3 ~ /^nfs/ { n = split($4, a, ","); k = "";
        for (i = 1; i <= n; i++) if (a[i] !~ /^(rsize|wsize|nconnect|vers|hard|soft)/) k = k a[i] ",";
        $4 = k o; f = 1 } {print} END {exit !f}' /etc/fstab > /etc/fstab.homing || { echo "no line of $p in /etc/fstab"; exit 1; }
        chmod 644 /etc/fstab.homing && mv /etc/fstab.homing /etc/fstab && umount "$p" && mount "$p""#;
    bench.all(&bench.setup.hosts, |_, _| sh(text, &[&bench.setup.path, &options]), "applying the options").map(drop)
}
