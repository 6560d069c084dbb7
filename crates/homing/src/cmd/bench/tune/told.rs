//! What a sweep says in the end: a table, the curves, and what to change.

use super::kept::Sweep;
use super::trial::Try;
use crate::cmd::bench::plot::{self, Series};
use crate::cmd::bench::{Bench, sh, show};
use crate::failure::Failure;

/// A setting must be this much better than the default to be worth a change; less is noise.
const WORTH: f64 = 1.05;

/// Prints table and advice, draws the page, and applies the best where that is wanted.
pub fn tell(bench: &Bench, sweep: &Sweep) -> Result<i32, Failure> {
    if let Some(file) = &bench.args.html {
        show::write(file, page(bench, &sweep.tries))?;
    }
    if bench.args.json {
        println!("{}", serde_json::to_string(sweep).map_err(Failure::system)?);
    } else {
        table(&sweep.tries);
        advice(bench, sweep);
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

fn advice(bench: &Bench, sweep: &Sweep) {
    let (Some(best), Some(gain)) = (sweep.best(), sweep.gain()) else { return };
    if gain < WORTH {
        println!("the default is best: nothing that was tried is more than {:.0} % ahead of it", (WORTH - 1.0) * 100.0);
        return;
    }
    println!("best: {} ({gain:.2} times the default)", best.setting.options());
    if let Some(block) = best.setting.block {
        let server = sweep.server();
        println!("on {server}, at each boot: rpc.nfsd 0; echo {block} > /proc/fs/nfsd/max_block_size; rpc.nfsd 8");
    }
    if !bench.args.apply {
        println!(
            "to use it, put these options into the line of {} in /etc/fstab, unmount and mount; or say --apply",
            bench.path
        );
    }
}

/// The curves: sizes for each size of the server's, then connections.
fn page(bench: &Bench, tries: &[Try]) -> String {
    let mut body = String::new();
    let mut blocks: Vec<Option<u64>> = tries.iter().map(|t| t.setting.block).collect();
    blocks.dedup();
    for block in blocks {
        let sizes: Vec<&Try> =
            tries.iter().filter(|t| t.setting.block == block && t.setting.connections == 1).collect();
        let title = match block {
            Some(block) => format!("one connection, max_block_size of the server {}", bytes(block)),
            None => "one connection".into(),
        };
        let places: Vec<String> = sizes.iter().map(|t| bytes(t.setting.size)).collect();
        body += &curve(&title, "rsize and wsize", &places, &sizes);
    }
    let several = tries.iter().find(|t| t.setting.connections > 1).map(|t| (t.setting.block, t.setting.size));
    if let Some(size) = several {
        let of_size: Vec<&Try> = tries.iter().filter(|t| (t.setting.block, t.setting.size) == size).collect();
        let places: Vec<String> = of_size.iter().map(|t| t.setting.connections.to_string()).collect();
        body += &curve(&format!("rsize and wsize {}", bytes(size.1)), "nconnect", &places, &of_size);
    }
    let about = [
        format!(
            "{}: {} MB written and read in blocks of 1 MiB, from empty caches",
            bench.hosts[0],
            bench.args.size / 1_000_000
        ),
        "the default and the best are means of two measurements".into(),
    ];
    plot::page(&format!("NFS at {}", bench.path), &about, &body)
}

fn curve(title: &str, below: &str, places: &[String], tries: &[&Try]) -> String {
    let series = |name, colour, value: fn(&Try) -> f64| Series {
        name,
        colour,
        values: tries.iter().map(|t| value(t)).collect(),
    };
    let both = [series("write", plot::DARK, |t| t.mean_write()), series("read", plot::LIGHT, |t| t.mean_read())];
    plot::lines(title, below, places, &both, "MB/s")
}

/// A size of the sweep for a person.
fn bytes(size: u64) -> String {
    match size {
        0 => "default".into(),
        s if s >= 1 << 20 => format!("{} MiB", s >> 20),
        s => format!("{} KiB", s >> 10),
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
