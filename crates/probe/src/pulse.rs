//! What admission looks at, cheap enough to be read many times a second.

use crate::parse;
use homing_model::Pulse;
use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::Instant;

/// Tasks, and processes of a task, that one pulse looks at: it must stay cheap.
const MOST_TASKS: usize = 64;
const MOST_PROCESSES: usize = 16;
/// What remains of a disk's busy time from one pulse to the next: a memory of some tenths of a second.
const FADE: f64 = 0.9;

/// Takes pulses; remembers the counters of the one before.
#[derive(Debug)]
pub struct Pulser {
    began: Instant,
    before: Option<HashMap<String, Counter>>,
    busy: HashMap<String, f64>,
    moved: u64,
    looked: u64,
    stood: u64,
    cached: u64,
}

/// What a disk or one direction of an interface has done since boot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counter {
    bytes: u64,
    /// Time with a request under way, milliseconds; 0 for interfaces.
    busy_ms: u64,
}

impl Default for Pulser {
    fn default() -> Self {
        Pulser { began: Instant::now(), before: None, busy: HashMap::new(), moved: 0, looked: 0, stood: 0, cached: 0 }
    }
}

impl Pulser {
    /// The pulse now, with a look at the tasks that these processes lead.
    pub fn take(&mut self, leaders: &[i32]) -> Pulse {
        let read = |path: &str| read_to_string(path).ok();
        let stall = |path: &str| read(path).and_then(|t| parse::pressure(&t).some_us);
        let counters = counters(&read("/proc/diskstats"), &read("/proc/net/dev"));
        let known = counters.is_some();
        if let Some(now) = counters {
            self.moved += self.before.as_ref().map_or(0, |before| grown(before, &now, &mut self.busy));
            self.before = Some(now);
        }
        // What has ended is counted with its parent, in the end with this process.
        let mut cached = cached_by("self");
        for leader in leaders.iter().take(MOST_TASKS) {
            self.looked += 1;
            let mut look = Look { left: MOST_PROCESSES, stands: false, cached: 0 };
            look.at(*leader);
            self.stood += u64::from(look.stands);
            cached += look.cached;
        }
        // Read-ahead is counted before it is read, and a zombie not at all: neither takes back what was seen.
        self.cached = self.cached.max(cached.max(0) as u64);
        Pulse {
            at_us: self.began.elapsed().as_micros() as u64,
            io_some_us: stall("/proc/pressure/io"),
            cpu_some_us: stall("/proc/pressure/cpu"),
            looked: self.looked,
            stood: self.stood,
            moved: known.then_some(self.moved),
            cached: self.cached,
            reread: read("/proc/vmstat").and_then(|t| refaults(&t)).map(|pages| pages * page_bytes()),
        }
    }
}

/// Bytes that the bottleneck moved between two looks: the disk that was busy most
/// of late. Where no disk is busy, whatever moved most: a network, or a disk
/// whose kernel keeps no such time. A disk below a disk moves the same bytes, so
/// the sum would count them twice.
fn grown(before: &HashMap<String, Counter>, now: &HashMap<String, Counter>, busy: &mut HashMap<String, f64>) -> u64 {
    let (mut most, mut busiest) = (0, (0.0, 0));
    for (name, counter) in now {
        let Some(was) = before.get(name) else { continue };
        let bytes = counter.bytes.saturating_sub(was.bytes);
        most = bytes.max(most);
        let ms = counter.busy_ms.saturating_sub(was.busy_ms) as f64;
        let score = busy.entry(name.clone()).or_default();
        *score = *score * FADE + ms;
        // A loop device and the disk below it are busy alike: then the one that moves more.
        if (*score, bytes) > busiest {
            busiest = (*score, bytes);
        }
    }
    if busiest.0 > 1.0 { busiest.1 } else { most }
}

/// A look at a process and those below it.
struct Look {
    left: usize,
    stands: bool,
    cached: i64,
}

impl Look {
    fn at(&mut self, pid: i32) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let Ok(stat) = read_to_string(format!("/proc/{pid}/stat")) else { return };
        let Some((_, rest)) = stat.rsplit_once(')') else { return };
        let mut fields = rest.split_ascii_whitespace();
        // Field 3 is the state, where D stands still for I/O; field 20 the number of threads.
        let (state, threads) = (fields.next(), fields.nth(16));
        self.stands |= state == Some("D") || (threads != Some("1") && a_thread_stands(pid, &mut self.left));
        self.cached += cached_by(&pid.to_string());
        let children = read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_ascii_whitespace().filter_map(|c| c.parse().ok()).for_each(|child| self.at(child));
    }
}

/// Bytes that a process and its children that ended read, less those that came from disks.
fn cached_by(pid: &str) -> i64 {
    let io = read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name: &str| io.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<i64>().ok()).unwrap_or(0);
    field("rchar:") - field("read_bytes:")
}

fn a_thread_stands(pid: i32, left: &mut usize) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads.take(*left) {
        *left -= 1;
        let stat = read_to_string(thread.path().join("stat")).unwrap_or_default();
        if stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('D')) {
            return true;
        }
    }
    false
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// File pages that came back soon after they were evicted, and pages swapped in.
fn refaults(vmstat: &str) -> Option<u64> {
    let file = parse::row(vmstat, "workingset_refault_file").or_else(|| parse::row(vmstat, "workingset_refault"))?;
    Some(file + parse::row(vmstat, "pswpin").unwrap_or(0))
}

/// Counters by device and direction of interface.
fn counters(disks: &Option<String>, net: &Option<String>) -> Option<HashMap<String, Counter>> {
    let mut all = HashMap::new();
    for line in disks.as_deref().unwrap_or("").lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|w| w.parse::<u64>().ok());
        if let (Some(name), Some(read), Some(written)) = (words.get(2), number(5), number(9)) {
            let counter = Counter { bytes: (read + written) * 512, busy_ms: number(12).unwrap_or(0) };
            all.insert((*name).to_string(), counter);
        }
    }
    for (name, (received, sent)) in net.as_deref().map(parse::net_dev).unwrap_or_default() {
        all.insert(format!("{name} in"), Counter { bytes: received, busy_ms: 0 });
        all.insert(format!("{name} out"), Counter { bytes: sent, busy_ms: 0 });
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(of: &[(&str, u64, u64)]) -> HashMap<String, Counter> {
        let line = |(name, sectors, ms): &(&str, u64, u64)| format!(" 7 0 {name} 9 0 {sectors} 0 9 0 0 0 0 {ms} 0\n");
        counters(&Some(of.iter().map(line).collect()), &None).unwrap()
    }

    #[test]
    fn the_disk_that_is_busy_counts_and_not_the_one_that_is_fast() {
        let before = disks(&[("vda", 100, 0), ("loop0", 100, 0)]);
        let now = disks(&[("vda", 900, 4), ("loop0", 150, 20)]);
        let mut busy = HashMap::new();
        assert_eq!(grown(&before, &now, &mut busy), 50 * 512);
        // Between two files of ours it is still the disk that matters.
        let later = disks(&[("vda", 2000, 6), ("loop0", 150, 20)]);
        assert_eq!(grown(&now, &later, &mut busy), 0);
        assert_eq!(counters(&None, &None), None);
    }

    #[test]
    fn without_a_busy_disk_what_moves_most_counts() {
        let net = |n: u64| counters(&None, &Some(format!("h\nh\n eth0: {n} 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n"))).unwrap();
        assert_eq!(grown(&net(5), &net(1005), &mut HashMap::new()), 1000);
    }

    #[test]
    fn bytes_that_are_read_show_in_the_next_pulse() {
        let mut pulser = Pulser::default();
        let own = std::process::id() as i32;
        let first = pulser.take(&[own]);
        let later = pulser.take(&[own, i32::MAX]);
        assert!(later.at_us >= first.at_us && later.moved >= first.moved);
        assert_eq!((first.looked, later.looked), (1, 3));
        assert_eq!(refaults("workingset_refault_file 7\npswpin 1\n"), Some(8));
    }
}
