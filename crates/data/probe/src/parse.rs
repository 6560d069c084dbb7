//! Parsers of the text of `/proc`.

use std::collections::BTreeMap;

/// Values of `/proc/pressure/io`. Kernels before 5.13 have no `full` line for some files.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    pub some_us: Option<u64>,
    pub full_us: Option<u64>,
    pub some_avg10: Option<f64>,
}

pub(crate) fn pressure(text: &str) -> Pressure {
    let field = |kind: &str, name: &str| {
        let line = text.lines().find(|l| l.split(' ').next() == Some(kind))?;
        line.split(' ').find_map(|w| w.strip_prefix(name)?.strip_prefix('=')).map(str::to_string)
    };
    Pressure {
        some_us: field("some", "total").and_then(|v| v.parse().ok()),
        full_us: field("full", "total").and_then(|v| v.parse().ok()),
        some_avg10: field("some", "avg10").and_then(|v| v.parse().ok()),
    }
}

/// Returns the first number of the line that starts with `name`.
pub(crate) fn row(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.split_ascii_whitespace().next() == Some(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns total and idle (with I/O wait) processor time of `/proc/stat`, microseconds.
pub(crate) fn cpu_us(text: &str, ticks_per_s: u64) -> Option<(u64, u64)> {
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    let us = |t: u64| t * 1_000_000 / ticks_per_s.max(1);
    // User time already includes guest time.
    Some((us(ticks.iter().take(8).sum()), us(ticks.get(3)? + ticks.get(4).unwrap_or(&0))))
}

/// Returns received and sent bytes per interface, without loopback.
pub(crate) fn net_dev(text: &str) -> BTreeMap<String, (u64, u64)> {
    let rows = text.lines().skip(2).filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let values: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some((name.trim().to_string(), (values.first()?.parse().ok()?, values.get(8)?.parse().ok()?)))
    });
    rows.filter(|(name, _)| name != "lo").collect()
}

/// Returns the 512-byte blocks and the requests of the disks that `whole` accepts, reads and writes together.
pub(crate) fn disks(text: &str, whole: impl Fn(&str) -> bool) -> (u64, u64) {
    let rows = text.lines().map(|l| l.split_ascii_whitespace().collect::<Vec<_>>());
    let told = rows.filter(|r| r.len() > 9 && whole(r[2])).filter_map(|r| {
        let sum = |a: usize, b: usize| Some(r[a].parse::<u64>().ok()? + r[b].parse::<u64>().ok()?);
        Some((sum(5, 9)?, sum(3, 7)?))
    });
    told.fold((0, 0), |(blocks, requests), (b, r)| (blocks + b, requests + r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_without_a_full_line_is_still_pressure() {
        let text = "some avg10=1.50 avg60=0.00 avg300=0.00 total=2938613\n";
        let want = Pressure { some_us: Some(2938613), full_us: None, some_avg10: Some(1.5) };
        assert_eq!(pressure(text), want);
        assert_eq!(pressure(""), Pressure::default());
    }

    #[test]
    fn interfaces_disks_and_processors() {
        let net = "Inter-| Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n host0:10 0 0 0 0 0 0 0 20 0 0 0 0 0 0 0\n";
        assert_eq!(net_dev(net), BTreeMap::from([("host0".to_string(), (10, 20))]));
        let told = " 254 0 vda 9 0 100 0 8 0 50 0 0 0 0\n 254 1 vda1 9 0 100 0 8 0 50 0 0 0 0\n";
        assert_eq!(disks(told, |d| d == "vda"), (150, 17));
        assert_eq!(cpu_us("cpu  1 2 3 4 5 0 0 0 9 9\n", 100), Some((150_000, 90_000)));
    }
}
