//! Measures the load for admission, cheaply enough for many times a second. The interval is that of the caller:
//! `pulse` of the crate `worker`.

use crate::parse;
use homing_model::{Mover, StorageSample};
use homing_os::process::ProcessStat;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, read_to_string};
use std::io::{Read as _, Seek};
use std::time::Instant;

/// The most tasks that one pulse samples, in turn. Opening `/proc/PID/io` takes as long as a twelfth of the shortest
/// task. As long as no process waits for I/O, a sample shows only the bytes read, so `FEW_TASKS` are enough.
const MOST_TASKS: usize = 4;
const FEW_TASKS: usize = 1;
/// Interval of reading interfaces and the page cache, microseconds, because the kernel needs long for these.
const SELDOM_US: u64 = 35_000;
/// Interval of reading the room of the page cache, which changes slowly, microseconds.
const ROOM_US: u64 = 500_000;
const MOST_PROCESSES: usize = 16;
/// The fewest moved bytes of a task that are reported: a disk could read as much in the time of a seek or two.
const WORTH_TELLING: u64 = 256 << 10;
/// The part of a disk's busy time that is kept from one pulse to the next: a memory of some tenths of a second.
const FADE: f64 = 0.9;

/// Takes pulses; remembers the counters of the last one.
#[derive(Debug)]
pub struct Sampler {
    began: Instant,
    disks: ProcFile,
    net: ProcFile,
    io_stall: ProcFile,
    vmstat: ProcFile,
    /// The values that are read rarely: time, text of the interfaces, bytes that were read again.
    seldom: Option<(u64, Option<String>, Option<u64>)>,
    servers: NfsTraffic,
    /// Time of reading the page cache's room, and the room.
    room: Option<(u64, Option<u64>)>,
    io_some_us: Option<u64>,
    before: Option<HashMap<String, Counter>>,
    busy: HashMap<String, f64>,
    /// The leader of the task sampled last.
    turn: i32,
    tasks: HashMap<i32, TaskBytes>,
    /// The bytes that a task, by its leader, had moved at its last report.
    told: HashMap<i32, u64>,
    moved: u64,
    looked: u64,
    blocked_on_io: u64,
    read: TaskBytes,
    longest: i64,
    cache: Cache,
}

/// The traffic of this host with NFS servers.
#[derive(Debug)]
struct NfsTraffic {
    stats: ProcFile,
    /// Time of the last query.
    asked_us: Option<u64>,
    /// The bytes of each server at that time.
    told: BTreeMap<String, u64>,
}

/// The bytes of a task. `cached` came from no disk. The third field is the difference of reads and writes: pipes
/// between its processes count in both, so it leaves them out. `disk` are bytes that disks moved for it.
#[derive(Clone, Copy, Debug, Default)]
struct TaskBytes {
    all: i64,
    cached: i64,
    asked: i64,
    written: i64,
    disk: i64,
}

impl std::ops::AddAssign for TaskBytes {
    fn add_assign(&mut self, more: TaskBytes) {
        self.all += more.all;
        self.cached += more.cached;
        self.asked += more.asked;
        self.written += more.written;
        self.disk += more.disk;
    }
}

/// The traffic of a disk or of one direction of an interface since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counter {
    bytes: u64,
    /// Time with a request under way, milliseconds; 0 for interfaces.
    busy_ms: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            began: Instant::now(),
            disks: ProcFile::new("/proc/diskstats"),
            net: ProcFile::new("/proc/net/dev"),
            io_stall: ProcFile::new("/proc/pressure/io"),
            vmstat: ProcFile::new("/proc/vmstat"),
            seldom: None,
            servers: NfsTraffic { stats: ProcFile::new(homing_mounts::STATS), asked_us: None, told: BTreeMap::new() },
            room: None,
            io_some_us: None,
            before: None,
            busy: HashMap::new(),
            turn: 0,
            tasks: HashMap::new(),
            told: HashMap::new(),
            moved: 0,
            looked: 0,
            blocked_on_io: 0,
            read: TaskBytes::default(),
            longest: 0,
            cache: Cache::default(),
        }
    }
}

impl Sampler {
    /// Takes a pulse, with samples of some of the tasks. A task is the process that leads it, and its ticket.
    pub fn take(&mut self, tasks: &[(i32, u64)]) -> StorageSample {
        let at_us = self.began.elapsed().as_micros() as u64;
        let (net, reread) = self.seldom(at_us);
        let counters = counters(self.disks.text(), net.as_deref());
        let known = counters.is_some();
        if let Some(now) = counters {
            if let Some(before) = &self.before {
                self.moved += grown(before, &now, &mut self.busy);
            }
            self.before = Some(now);
        }
        let some = |text: &str| parse::pressure(text).some_us;
        let io_some_us = self.io_stall.text().and_then(some);
        let stalls = io_some_us.is_none() || io_some_us > self.io_some_us;
        self.io_some_us = io_some_us;
        let mover = self.look_at_some(tasks, if stalls { MOST_TASKS } else { FEW_TASKS });
        // Bytes of ended processes are counted with their parents, in the end with this process. Its own thread reads
        // megabytes of /proc per second, which are subtracted.
        let (mut sum, own) = (read_by("self"), read_by("thread-self"));
        sum.all -= own.all;
        sum.cached -= own.cached;
        self.tasks.values().for_each(|task| sum += *task);
        self.longest = self.tasks.values().map(|task| task.asked).fold(self.longest, i64::max);
        // The kernel counts read-ahead before it is read, and zombies not at all. Neither may lower the totals.
        self.read.all = self.read.all.max(sum.all);
        self.read.cached = self.read.cached.max(sum.cached);
        StorageSample {
            at_us,
            io_some_us,
            looked: self.looked,
            blocked_on_io: self.blocked_on_io,
            moved: known.then_some(self.moved),
            read: self.read.all as u64,
            cached: self.read.cached as u64,
            reread,
            longest: self.longest as u64,
            room: self.room(at_us),
            mover,
        }
    }

    /// Returns the NFS servers with traffic since the last call, with the bytes of each. The first call returns all.
    pub fn served(&mut self) -> Vec<(String, u64)> {
        let at_us = self.began.elapsed().as_micros() as u64;
        let NfsTraffic { stats, asked_us, told } = &mut self.servers;
        if asked_us.is_some_and(|asked_us| at_us < asked_us + SELDOM_US) {
            return Vec::new();
        }
        *asked_us = Some(at_us);
        let now = stats.text().map(crate::served::by_server).unwrap_or_default();
        let news = now.into_iter().map(|(server, served)| (server, served.bytes));
        let news: Vec<_> = news.filter(|(server, bytes)| told.get(server) != Some(bytes)).collect();
        told.extend(news.iter().cloned());
        news
    }

    fn room(&mut self, at_us: u64) -> Option<u64> {
        let asked = self.room.filter(|(asked_us, _)| at_us < asked_us + ROOM_US);
        let (_, room) = *self.room.insert(asked.unwrap_or_else(|| (at_us, crate::room::room())));
        room
    }

    /// Returns the text of `/proc/net/dev` and the bytes that were read again. Both may be cached.
    fn seldom(&mut self, at_us: u64) -> (Option<String>, Option<u64>) {
        if let Some((asked_us, net, reread)) = &self.seldom
            && at_us < asked_us + SELDOM_US
        {
            return (net.clone(), *reread);
        }
        let net = self.net.text().map(str::to_string);
        let reread = self.vmstat.text().and_then(|t| self.cache.read_again(t)).map(|pages| pages * page_bytes());
        self.seldom = Some((at_us, net.clone(), reread));
        (net, reread)
    }

    /// Samples the next few tasks; the other tasks keep their last values. Returns a task that has moved much more
    /// than at its last report.
    fn look_at_some(&mut self, tasks: &[(i32, u64)], most: usize) -> Option<Mover> {
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable();
        let runs = |leader: &i32| tasks.binary_search_by_key(leader, |(leader, _)| *leader).is_ok();
        self.tasks.retain(|leader, _| runs(leader));
        self.told.retain(|leader, _| runs(leader));
        let first = tasks.iter().position(|&(leader, _)| leader > self.turn).unwrap_or(0);
        let mut mover = None;
        for &(leader, ticket) in tasks.iter().cycle().skip(first).take(most.min(tasks.len())) {
            self.turn = leader;
            self.looked += 1;
            let mut look = ProcessSample { left: MOST_PROCESSES, blocked_on_io: false, read: TaskBytes::default() };
            look.at(leader);
            self.blocked_on_io += u64::from(look.blocked_on_io);
            self.tasks.insert(leader, look.read);
            mover = mover.or_else(|| self.mover_if_grown(leader, ticket, look.read));
        }
        mover
    }

    fn mover_if_grown(&mut self, leader: i32, ticket: u64, has: TaskBytes) -> Option<Mover> {
        let bytes = |n: i64| n.max(0) as u64;
        let mover = Mover { ticket, disk: bytes(has.disk), read: bytes(has.all), written: bytes(has.written) };
        let most = mover.disk.max(mover.read).max(mover.written);
        let news = most >= self.told.get(&leader).map_or(WORTH_TELLING, |told| told.saturating_mul(2));
        news.then(|| self.told.insert(leader, most));
        news.then_some(mover)
    }
}

/// A file of `/proc` that stays open: opening it takes longer than reading it.
#[derive(Debug)]
struct ProcFile {
    file: Option<File>,
    text: String,
}

impl ProcFile {
    fn new(path: &str) -> ProcFile {
        // Larger than most of these files, so that one call reads all.
        ProcFile { file: File::open(path).ok(), text: String::with_capacity(16 << 10) }
    }

    /// Returns its current text; `None` if the kernel has no such file.
    fn text(&mut self) -> Option<&str> {
        let file = self.file.as_mut()?;
        self.text.clear();
        file.rewind().and_then(|()| file.read_to_string(&mut self.text)).ok()?;
        Some(&self.text)
    }
}

/// Returns the bytes that the bottleneck moved between two pulses: the disk that was recently the busiest. If no disk
/// is busy, it is the device that moved most: a network, or a disk whose kernel keeps no such time. A disk below a
/// disk moves the same bytes, so a sum would count them twice.
fn grown(before: &HashMap<String, Counter>, now: &HashMap<String, Counter>, busy: &mut HashMap<String, f64>) -> u64 {
    let (mut most, mut busiest) = (0, (0.0, 0));
    for (name, counter) in now {
        let Some(was) = before.get(name) else { continue };
        let bytes = counter.bytes.saturating_sub(was.bytes);
        most = bytes.max(most);
        let ms = counter.busy_ms.saturating_sub(was.busy_ms) as f64;
        let score = busy.entry(name.clone()).or_default();
        *score = *score * FADE + ms;
        // A loop device and the disk below it are equally busy. Then the one that moves more counts.
        if (*score, bytes) > busiest {
            busiest = (*score, bytes);
        }
    }
    if busiest.0 > 1.0 { busiest.1 } else { most }
}

/// A sample of a process and its descendants.
struct ProcessSample {
    left: usize,
    blocked_on_io: bool,
    read: TaskBytes,
}

impl ProcessSample {
    fn at(&mut self, pid: i32) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let Some(stat) = ProcessStat::of(pid) else { return };
        // D means blocked on I/O. Field 20 is the number of threads.
        let is_alone = stat.field(20) == Some(1_u32);
        self.blocked_on_io |= stat.state() == 'D' || (!is_alone && a_thread_stands(pid, &mut self.left));
        self.read += read_by(&pid.to_string());
        let children = read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_ascii_whitespace().filter_map(|c| c.parse().ok()).for_each(|child| self.at(child));
    }
}

/// Returns the bytes that a process and its ended children have read and written.
fn read_by(pid: &str) -> TaskBytes {
    let io = read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name: &str| io.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<i64>().ok()).unwrap_or(0);
    let all = field("rchar:");
    // One process of a task may write into a pipe that the next one reads. Such reads come from no disk either.
    let (written, fetched) = (field("wchar:"), field("read_bytes:"));
    let asked = all - written;
    TaskBytes { all, cached: asked - fetched, asked, written, disk: fetched + field("write_bytes:") }
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

/// Counts pages that return while others are evicted, because the page cache is too small. Files that return on a
/// host with free memory were only evicted long ago.
#[derive(Debug, Default)]
struct Cache {
    /// Returned and evicted pages since boot, at the last reading.
    before: Option<(u64, u64)>,
    /// Recently evicted pages.
    gone: f64,
    again: u64,
}

impl Cache {
    /// Returns the pages read again since the first reading; `None` if the kernel does not count them.
    fn read_again(&mut self, vmstat: &str) -> Option<u64> {
        let row = |name: &str| parse::row(vmstat, name);
        let back = row("workingset_refault_file").or_else(|| row("workingset_refault"))? + row("pswpin").unwrap_or(0);
        let gone = row("pgsteal_file").or_else(|| Some(row("pgsteal_kswapd")? + row("pgsteal_direct")?))?;
        let (was_back, was_gone) = self.before.replace((back, gone)).unwrap_or((back, gone));
        // The kernel evicts in batches, so a pulse may see only one of the two.
        self.gone += gone.saturating_sub(was_gone) as f64;
        let again = (back.saturating_sub(was_back)).min(self.gone as u64);
        self.gone = (self.gone - again as f64) * FADE;
        self.again += again;
        Some(self.again)
    }
}

/// Returns the counters by device, and by interface and direction.
fn counters(disks: Option<&str>, net: Option<&str>) -> Option<HashMap<String, Counter>> {
    let mut all = HashMap::new();
    for line in disks.unwrap_or("").lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|w| w.parse::<u64>().ok());
        if let (Some(name), Some(read), Some(written)) = (words.get(2), number(5), number(9)) {
            let requests = number(3).unwrap_or(0) + number(7).unwrap_or(0);
            // Most machines have dozens of unused devices.
            if requests == 0 {
                continue;
            }
            let counter = Counter { bytes: (read + written) * 512, busy_ms: number(12).unwrap_or(0) };
            all.insert((*name).to_string(), counter);
        }
    }
    for (name, (received, sent)) in net.map(parse::net_dev).unwrap_or_default() {
        all.insert(format!("{name} in"), Counter { bytes: received, ..Counter::default() });
        all.insert(format!("{name} out"), Counter { bytes: sent, ..Counter::default() });
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(of: &[(&str, u64, u64)]) -> HashMap<String, Counter> {
        let line = |(name, sectors, ms): &(&str, u64, u64)| format!(" 7 0 {name} 9 0 {sectors} 0 9 0 0 0 0 {ms} 0\n");
        counters(Some(&of.iter().map(line).collect::<String>()), None).unwrap()
    }

    #[test]
    fn the_disk_that_is_busy_counts_and_not_the_one_that_is_fast() {
        let before = disks(&[("vda", 100, 0), ("loop0", 100, 0)]);
        let now = disks(&[("vda", 900, 4), ("loop0", 150, 20)]);
        let mut busy = HashMap::new();
        assert_eq!(grown(&before, &now, &mut busy), 50 * 512);
        // Between two accesses to the loop device the disk still counts.
        let later = disks(&[("vda", 2000, 6), ("loop0", 150, 20)]);
        assert_eq!(grown(&now, &later, &mut busy), 0);
        assert_eq!(counters(None, None), None);
    }

    #[test]
    fn without_a_busy_disk_what_moves_most_counts() {
        let net = |n: u64| counters(None, Some(&format!("h\nh\n eth0: {n} 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n"))).unwrap();
        assert_eq!(grown(&net(5), &net(1005), &mut HashMap::new()), 1000);
    }

    #[test]
    fn bytes_that_are_read_show_in_the_next_pulse() {
        let mut pulser = Sampler::default();
        let own = std::process::id() as i32;
        let first = pulser.take(&[(own, 1)]);
        let later = pulser.take(&[(own, 1), (i32::MAX, 2)]);
        assert!(later.at_us >= first.at_us && later.moved >= first.moved);
        // The second task is sampled only if a process waited for I/O meanwhile.
        assert!(first.looked == 1 && (2..=3).contains(&later.looked), "{later:?}");
    }

    #[test]
    fn pages_that_come_back_count_only_while_others_go() {
        let mut cache = Cache::default();
        let mut look = |back: u64, gone: u64| {
            cache.read_again(&format!("workingset_refault_file {back}\npswpin 1\npgsteal_file {gone}\n"))
        };
        assert_eq!(look(700, 900), Some(0));
        assert_eq!(look(800, 900), Some(0), "memory is free: read again after days");
        assert_eq!(look(800, 1000), Some(0));
        assert_eq!(look(880, 1000), Some(80), "what went a moment ago");
        assert_eq!(Cache::default().read_again("pswpin 1\n"), None);
    }
}
