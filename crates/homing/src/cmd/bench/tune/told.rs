//! What a sweep says in the end: a table, and what to change.

use super::advice::{WORTH, advice};
use super::kept::Sweep;
use super::page;
use super::trial::Try;
use crate::cmd::bench::{Bench, sh, show};
use crate::failure::Failure;

/// Prints table and advice, draws the page, and applies the best where that is wanted.
pub fn tell(bench: &Bench, sweep: &Sweep) -> Result<i32, Failure> {
    if let Some(file) = &bench.args.html {
        show::write(file, page::page(&bench.path, &bench.drop_on, sweep))?;
    }
    if bench.args.json {
        println!("{}", serde_json::to_string(sweep).map_err(Failure::system)?);
    } else {
        table(&sweep.tries);
        tell_advice(bench, sweep);
    }
    let Some(best) = sweep.best().filter(|_| bench.args.apply && sweep.gain() >= Some(WORTH)) else { return Ok(0) };
    apply(bench, &best.setting.options())
}

fn table(tries: &[Try]) {
    let most = tries.iter().map(|t| t.mean_write().max(t.mean_read())).fold(1e-9, f64::max);
    println!("{:>10} {:>8} {:>8} {:>9} {:>9}  SETTLED ON", "SERVER", "SIZE", "NCONNECT", "WRITE", "READ");
    for t in tries {
        let bar = |v: f64| "#".repeat((20.0 * v / most).round() as usize);
        let block = t.setting.block.map_or("as it is".into(), |b| b.to_string());
        let size = if t.setting.size == 0 { "default".into() } else { t.setting.size.to_string() };
        println!(
            "{block:>10} {size:>8} {:>8} {:>9.1} {:>9.1}  {}",
            t.setting.connections,
            t.mean_write(),
            t.mean_read(),
            t.settled
        );
        println!("{:>28} w {:<20} r {:<20}", "", bar(t.mean_write()), bar(t.mean_read()));
    }
}

fn tell_advice(bench: &Bench, sweep: &Sweep) {
    advice(sweep).iter().for_each(|line| println!("{line}"));
    if !bench.args.apply && sweep.gain() >= Some(WORTH) {
        println!(
            "to use it, put these options into the line of {} in /etc/fstab, unmount and mount; or say --apply",
            bench.path
        );
    }
}

/// The line of this mount point is changed, all others stay.
fn apply(bench: &Bench, options: &str) -> Result<i32, Failure> {
    let text = r#"
        p=$(findmnt -n -o TARGET --target "$1") || exit
        awk -v p="$p" -v o="$2" '$2 == p && $3 ~ /^nfs/ { n = split($4, a, ","); k = "";
        for (i = 1; i <= n; i++) if (a[i] !~ /^(rsize|wsize|nconnect|vers|hard|soft)/) k = k a[i] ",";
        $4 = k o; f = 1 } {print} END {exit !f}' /etc/fstab > /etc/fstab.homing || { echo "no line of $p in /etc/fstab"; exit 1; }
        chmod 644 /etc/fstab.homing && mv /etc/fstab.homing /etc/fstab && umount "$p" && mount "$p""#;
    bench.all(&bench.hosts, |_, _| sh(text, &[&bench.path, options]), "applying the options")?;
    println!("applied on {}", bench.hosts.join(", "));
    Ok(0)
}
