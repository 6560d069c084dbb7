//! What admission looks at, cheap enough to be read many times a second.

use crate::parse;
use homing_model::Pulse;
use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::Instant;

/// Takes pulses; remembers the counters of the one before.
#[derive(Debug)]
pub struct Pulser {
    began: Instant,
    before: Option<HashMap<String, u64>>,
    moved: u64,
}

impl Default for Pulser {
    fn default() -> Self {
        Pulser { began: Instant::now(), before: None, moved: 0 }
    }
}

impl Pulser {
    /// The pulse now.
    pub fn take(&mut self) -> Pulse {
        let read = |path: &str| read_to_string(path).ok();
        let stall = |path: &str| read(path).and_then(|t| parse::pressure(&t).some_us);
        let counters = counters(&read("/proc/diskstats"), &read("/proc/net/dev"));
        let known = counters.is_some();
        if let Some(now) = counters {
            if let Some(before) = &self.before {
                let grown = now.iter().filter_map(|(name, bytes)| Some(bytes.saturating_sub(*before.get(name)?)));
                self.moved += grown.max().unwrap_or(0);
            }
            self.before = Some(now);
        }
        Pulse {
            at_us: self.began.elapsed().as_micros() as u64,
            io_some_us: stall("/proc/pressure/io"),
            cpu_some_us: stall("/proc/pressure/cpu"),
            moved: known.then_some(self.moved),
            reread: read("/proc/vmstat").and_then(|t| refaults(&t)).map(|pages| pages * page_bytes()),
        }
    }
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// File pages that came back soon after they were evicted, and pages swapped in.
fn refaults(vmstat: &str) -> Option<u64> {
    let file = parse::row(vmstat, "workingset_refault_file").or_else(|| parse::row(vmstat, "workingset_refault"))?;
    Some(file + parse::row(vmstat, "pswpin").unwrap_or(0))
}

/// Bytes by device and direction of interface.
fn counters(disks: &Option<String>, net: &Option<String>) -> Option<HashMap<String, u64>> {
    let mut all = HashMap::new();
    for line in disks.as_deref().unwrap_or("").lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|w| w.parse::<u64>().ok());
        if let (Some(name), Some(read), Some(written)) = (words.get(2), number(5), number(9)) {
            all.insert((*name).to_string(), (read + written) * 512);
        }
    }
    for (name, (received, sent)) in net.as_deref().map(parse::net_dev).unwrap_or_default() {
        all.insert(format!("{name} in"), received);
        all.insert(format!("{name} out"), sent);
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_below_a_disk_is_counted_once() {
        let disks =
            |n: u64| Some(format!(" 254 0 vda 9 0 {n} 0 9 0 0 0 0 0 0\n 7 0 loop0 9 0 {} 0 9 0 0 0 0 0 0\n", n + 10));
        let (a, b) = (counters(&disks(100), &None).unwrap(), counters(&disks(150), &None).unwrap());
        let most = b.iter().map(|(name, bytes)| bytes - a[name]).max();
        assert_eq!(most, Some(50 * 512));
        assert_eq!(counters(&None, &None), None);
    }

    #[test]
    fn bytes_that_are_read_show_in_the_next_pulse() {
        let mut pulser = Pulser::default();
        let first = pulser.take();
        let later = pulser.take();
        assert!(later.at_us >= first.at_us && later.moved >= first.moved);
        assert_eq!(refaults("workingset_refault_file 7\npswpin 1\n"), Some(8));
    }
}
