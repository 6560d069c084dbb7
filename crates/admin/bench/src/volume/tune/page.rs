//! Shows a sweep as a page: its advice, the curves, and every setting in numbers.

use super::advice::advice;
use super::kept::Sweep;
use super::trial::{TrialOptions, Try};
use homing_report::chart::{self, Series};

/// Draws a sweep; `dropped` are the hosts whose caches were dropped before reads.
pub fn page(path: &str, dropped: &[String], sweep: &Sweep) -> String {
    let tries = &sweep.tries;
    let mut body = chart::list("Recommended settings", &advice(sweep));
    let mut blocks: Vec<Option<u64>> = tries.iter().map(|t| t.setting.block).collect();
    blocks.dedup();
    for block in blocks {
        let mut sizes: Vec<&Try> =
            tries.iter().filter(|t| t.setting.block == block && t.setting.connections == 1).collect();
        // The default has its place in the curve.
        sizes.sort_by_key(|t| settled_size(t));
        let title = match block {
            Some(block) => format!("One connection, max_block_size of the server {}", bytes(block)),
            None => "One connection".into(),
        };
        let places: Vec<String> = sizes.iter().map(|t| size(t)).collect();
        body += &curve(&title, "rsize and wsize", &places, &sizes);
    }
    let several = tries.iter().find(|t| t.setting.connections > 1).map(|t| t.setting);
    if let Some(TrialOptions { block, size: of, .. }) = several {
        let of_size: Vec<&Try> = tries.iter().filter(|t| (t.setting.block, t.setting.size) == (block, of)).collect();
        let places: Vec<String> = of_size.iter().map(|t| t.setting.connections.to_string()).collect();
        body += &curve(
            &format!("Several connections, rsize and wsize {}", size(of_size[0])),
            "nconnect",
            &places,
            &of_size,
        );
    }
    body += &numbers(tries);
    chart::page(&format!("NFS at {path}"), &about(dropped, sweep), &body)
}

fn about(dropped: &[String], sweep: &Sweep) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} mounted on {}: {} MB written, synced and read in blocks of 1 MiB with each setting",
            sweep.export.source,
            sweep.host,
            sweep.size / 1_000_000
        ),
        format!(
            "before each read homing mounts it again and drops the caches of {}; a setting measured more than once \
             counts with its mean",
            dropped.join(", ")
        ),
    ];
    if !sweep.same.is_empty() {
        let each: Vec<String> = sweep.same.iter().map(|s| s.options(&sweep.export.base)).collect();
        lines.push(format!(
            "not measured again, because client and server agreed on sizes already measured: {}",
            each.join("; ")
        ));
    }
    lines
}

fn curve(title: &str, below: &str, places: &[String], tries: &[&Try]) -> String {
    let series = |name, colour, value: fn(&Try) -> f64| Series {
        name,
        colour,
        values: tries.iter().map(|t| value(t)).collect(),
    };
    let both = [series("write", chart::DARK, Try::mean_write), series("read", chart::LIGHT, Try::mean_read)];
    chart::lines(title, below, places, &both, "MB/s")
}

fn numbers(tries: &[Try]) -> String {
    let head = ["rsize and wsize", "nconnect", "server's max_block_size", "write, MB/s", "read, MB/s", "settled on"];
    let each = |values: &[f64], mean: f64| {
        let all: Vec<String> = values.iter().map(|v| format!("{v:.1}")).collect();
        if all.len() > 1 { format!("{mean:.1} ({})", all.join(", ")) } else { format!("{mean:.1}") }
    };
    let rows = tries.iter().map(|t| {
        let block = t.setting.block.map_or("as it was".into(), bytes);
        let (write, read) = (each(&t.write, t.mean_write()), each(&t.read, t.mean_read()));
        vec![size(t), t.setting.connections.to_string(), block, write, read, t.settled.clone()]
    });
    chart::table("In numbers", &head, &rows.collect::<Vec<_>>())
}

/// Returns the size of a setting; for the default, the size that both sides settled on.
fn size(t: &Try) -> String {
    if t.setting.size > 0 {
        return bytes(t.setting.size);
    }
    let told = settled_size(t);
    if told > 0 { format!("{} (default)", bytes(told)) } else { "default".into() }
}

/// Returns the bytes on which both sides settled.
fn settled_size(t: &Try) -> u64 {
    let told = t.settled.split_whitespace().find_map(|w| w.strip_prefix("rsize=")?.parse().ok());
    told.unwrap_or(t.setting.size)
}

fn bytes(size: u64) -> String {
    if size >= 1 << 20 { format!("{} MiB", size >> 20) } else { format!("{} KiB", size >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::tune::trial::Export;

    /// A sweep with made-up numbers.
    fn sweep() -> Sweep {
        let tried = |size: u64, connections, write: &[f64], read: &[f64]| {
            let to = if size == 0 { 131072 } else { size };
            let settled = format!("rsize={to} wsize={to} nconnect={connections}");
            let setting = TrialOptions { block: None, size, connections };
            Try { setting, write: write.into(), read: read.into(), settled }
        };
        let tries = vec![
            tried(0, 1, &[12.0, 14.0], &[15.0, 17.0]),
            tried(4096, 1, &[2.5], &[11.3]),
            tried(16384, 1, &[16.7], &[22.2]),
            tried(65536, 1, &[26.8], &[21.3]),
            tried(65536, 4, &[28.1, 27.5], &[24.0, 25.2]),
            tried(65536, 8, &[27.9], &[22.0]),
        ];
        let same = vec![TrialOptions { block: None, size: 1 << 20, connections: 1 }];
        let mut sweep = Sweep::default();
        sweep.export = Export { source: "n1:/home".into(), base: "vers=4.2,sec=sys".into() };
        (sweep.host, sweep.size) = ("n2".into(), 16_000_000);
        (sweep.tries, sweep.same) = (tries, same);
        sweep
    }

    #[test]
    fn the_page_tells_what_to_use_and_shows_each_setting() {
        let page = page("/home", &["n2".into()], &sweep());
        assert!(
            page.contains("<li>best: hard,vers=4.2,sec=sys,nconnect=4,rsize=65536,wsize=65536 (1.81 times"),
            "{page}"
        );
        assert!(page.contains(">128 KiB (default)<") && page.contains(">64 KiB<"), "{page}");
        assert_eq!(page.matches("<circle").count(), 2 * 4 + 2 * 3, "a point for each setting and direction");
        assert!(page.contains("<td>13.0 (12.0, 14.0)</td>"), "{page}");
        assert!(page.contains(
            "not measured again, because client and server agreed on sizes already measured: \
                 hard,vers=4.2,sec=sys,nconnect=1,rsize=1048576"
        ));
        assert!(page.contains("drops the caches of n2;"));
    }
}
