//! `bqueues`, `bhosts`, `lsload`, `lshosts`: one line for each queue or host.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the line between two parts of a long form.
pub fn rule() -> String {
    format!("{}\n", "-".repeat(78))
}

/// A queue with its settings and jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Higher ones come first.
    pub priority: i32,
    /// Whether it takes jobs.
    pub open: bool,
    /// Whether it starts jobs.
    pub active: bool,
    /// Whether it is the one for jobs that name none.
    pub default: bool,
    /// QJOB_LIMIT, UJOB_LIMIT, PJOB_LIMIT, HJOB_LIMIT.
    pub limits: [Option<u32>; 4],
    /// Slots of all its jobs, of pending, running and suspended ones.
    pub slots: [u32; 4],
    /// Whether it starts jobs at the present time.
    pub in_window: bool,
    /// NICE.
    pub nice: u8,
    /// Run limit, minutes.
    pub run_limit: Option<u64>,
    /// Limit of processor time, minutes.
    pub cpu_limit: Option<u64>,
    /// Limit of memory, MiB.
    pub memory_limit: Option<u64>,
    /// Users who may use it; all when empty.
    pub users: Vec<String>,
    /// Other settings, by LSF's names.
    pub settings: Vec<(&'static str, String)>,
    /// Hosts; all when empty.
    pub hosts: Vec<String>,
    /// Load thresholds by index: loadSched and loadStop.
    pub thresholds: BTreeMap<String, (Option<f64>, Option<f64>)>,
    /// The orders that close or inactivate it: by which user, when and why.
    pub comments: Vec<String>,
}

impl Queue {
    /// Returns `Open:Active` and the like.
    pub fn status(&self) -> String {
        let word = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
        let active = if self.in_window { "Active" } else { "Inact_Win" };
        format!("{}:{}", word(self.open, "Open", "Closed"), word(self.active, active, "Inact"))
    }
}

/// Formats a limit, `-` if there is none.
pub fn limit(of: Option<u32>) -> String {
    of.map_or("-".into(), |n| n.to_string())
}

/// A user's slots.
pub struct UserSlots {
    /// The user's name.
    pub name: String,
    /// The most slots that the user may have at once.
    pub most: Option<u32>,
    /// Slots of all jobs, of pending and running ones, and of those suspended by load and by users.
    pub slots: [u32; 5],
}

/// Formats `busers`.
pub fn users(all: &[UserSlots]) -> String {
    let mut out = String::from("USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV \n");
    for UserSlots { name, most, slots: [all, pending, running, by_load, by_user] } in all {
        let most = limit(*most);
        let _ = writeln!(
            out,
            "{name:<18} {:>5}{most:>7}{all:>7}{pending:>7}{running:>7}{by_load:>7}{by_user:>7}{:>7}",
            "-", 0
        );
    }
    out
}

/// Formats `lsinfo`: the wanted resources, or all; the site's own come last.
pub fn resources<'a>(
    asked: &[String],
    own: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Result<String, String> {
    let all: Vec<_> = RESOURCES.into_iter().chain(own).collect();
    if let Some(odd) = asked.iter().find(|name| !all.iter().any(|(known, ..)| known == name)) {
        return Err(format!("{odd}: resource name not found."));
    }
    let mut out = format!("{:<14} {:<7} {:<5} DESCRIPTION\n", "RESOURCE_NAME", "TYPE", "ORDER");
    for (name, order, what) in all.iter().filter(|(name, ..)| asked.is_empty() || asked.iter().any(|a| a == name)) {
        // Only names have no order.
        let kind = if *order == "N/A" { "String" } else { "Numeric" };
        let _ = writeln!(out, "{name:<14} {kind:<7} {order:<5} {what}");
    }
    Ok(out)
}

/// Formats `bqueues`; with `wide` no name is cut.
pub fn queues(all: &[Queue], wide: bool) -> String {
    let mut out = String::from("QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP \n");
    for q in all {
        let name = if wide { q.name.clone() } else { q.name.chars().take(15).collect() };
        let _ = write!(out, "{name:<15} {:>3}   {:<14}", q.priority, q.status());
        let [max, user, processor, host] = q.limits.map(limit);
        let [jobs, pend, run, susp] = q.slots;
        let _ = writeln!(out, "{max:>4}{user:>5}{processor:>5}{host:>5}{jobs:>6}{pend:>6}{run:>6}{susp:>6}");
    }
    out
}

/// The columns of loadSched and loadStop.
const SCHEDULING: [(&str, usize); 13] = [
    ("r15s", 5),
    ("r1m", 6),
    ("r15m", 6),
    ("ut", 8),
    ("pg", 6),
    ("io", 6),
    ("ls", 5),
    ("it", 6),
    ("tmp", 7),
    ("swp", 7),
    ("mem", 7),
    ("bio", 7),
    ("rpc", 7),
];

/// Formats the table of load thresholds: a line of indices, then loadSched and loadStop.
pub fn thresholds(of: &BTreeMap<String, (Option<f64>, Option<f64>)>) -> String {
    let show = |v: Option<f64>| {
        v.map_or("-".to_string(), |v| if v.fract() == 0.0 { format!("{v:.0}") } else { format!("{v:.1}") })
    };
    let own = of.keys().filter(|name| !SCHEDULING.iter().any(|(known, _)| known == name));
    let own = own.map(|name| (name.as_str(), (name.len() + 1).max(7)));
    let columns: Vec<(&str, usize)> = SCHEDULING.into_iter().chain(own).collect();
    let line = |head: &str, value: &dyn Fn(&str) -> String| {
        let cells: String = columns.iter().map(|(name, w)| format!(" {:>w$}", value(name), w = w - 1)).collect();
        format!("{head:<11}{cells}\n")
    };
    let of = |name: &str| of.get(name).copied().unwrap_or((None, None));
    line("", &|name| name.to_string())
        + &line(" loadSched", &|name| show(of(name).0))
        + &line(" loadStop", &|name| show(of(name).1))
}

/// Formats `bqueues -l`.
pub fn queue_long(q: &Queue) -> String {
    let mut out = format!(
        "\nQUEUE: {}\n  -- {}",
        q.name,
        if q.description.is_empty() { "No description provided." } else { &q.description }
    );
    out += if q.default { "  This is the default queue.\n\n" } else { "\n\n" };
    out += "PARAMETERS/STATISTICS\nPRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV \n";
    let [max, user, processor, host] = q.limits.map(limit);
    let [jobs, pend, run, susp] = q.slots;
    let _ = writeln!(
        out,
        "{:>3}{:>5}  {:<14}{max:>4}{user:>5}{processor:>5}{host:>5}{jobs:>6}{pend:>6}{run:>6}{susp:>6}{:>6}{:>5}",
        q.priority,
        q.nice,
        q.status(),
        0,
        0
    );
    for comment in &q.comments {
        let _ = writeln!(out, "\nADMIN ACTION COMMENT: {comment}");
    }
    let minutes = |minutes: u64| format!("{:.1} min", minutes as f64);
    let limits = [
        ("CPULIMIT", q.cpu_limit.map(minutes)),
        ("RUNLIMIT", q.run_limit.map(minutes)),
        ("MEMLIMIT", q.memory_limit.map(|mib| format!("{mib} M"))),
    ];
    for (name, limit) in limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))) {
        let _ = write!(out, "\n{name}\n {limit}\n");
    }
    out += "\nSCHEDULING PARAMETERS\n";
    out += &thresholds(&q.thresholds);
    out += "\nSCHEDULING POLICIES:  ROUND_ROBIN\n";
    let _ = writeln!(
        out,
        "\nUSERS:  {}\nHOSTS:  {}",
        if q.users.is_empty() { "all users".into() } else { q.users.join(" ") },
        if q.hosts.is_empty() { "all".into() } else { q.hosts.join(" ") }
    );
    for (name, value) in &q.settings {
        let _ = writeln!(out, "{name}:  {value}");
    }
    out
}

/// A host as the batch system sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchHost {
    /// Its name.
    pub name: String,
    /// `ok`, `closed_Full`, `closed_Adm`, `unavail`, `unreach`.
    pub status: String,
    /// The order that closes it: by which user, when and why.
    pub comment: Option<String>,
    /// Slots; JL/U and MAX.
    pub per_user: Option<u32>,
    /// See `per_user`.
    pub max: Option<u32>,
    /// Slots of running jobs, of those suspended by load, and of those suspended by users.
    pub slots: [u32; 3],
    /// Its load, for `bhosts -l` and `lsload`.
    pub load: BTreeMap<String, f64>,
    /// Processors and memory (MiB), for `lshosts`.
    pub cpus: Option<u32>,
    /// See `cpus`.
    pub max_mem: Option<f64>,
    /// See `cpus`.
    pub max_swp: Option<f64>,
    /// `uname -m`, upper case.
    pub kind: String,
}

impl BatchHost {
    /// Whether it answers.
    pub fn is_up(&self) -> bool {
        self.status != "unavail"
    }

    /// Returns the tasks that run or wait for a processor, per processor; the largest number if that is unknown.
    fn load_per_cpu(&self) -> f64 {
        self.load.get("r1m").copied().unwrap_or(f64::MAX) / f64::from(self.cpus.unwrap_or(1).max(1))
    }
}

/// Sorts by load, the least first, as in LSF; hosts that do not answer come last.
pub fn by_load(all: &mut [BatchHost]) {
    let load = |a: &BatchHost, b: &BatchHost| a.load_per_cpu().total_cmp(&b.load_per_cpu());
    all.sort_by(|a, b| b.is_up().cmp(&a.is_up()).then(load(a, b)));
}

/// Formats `bhosts`; with `wide` no name is cut, and the status of a closed host has the reason.
pub fn hosts(all: &[BatchHost], wide: bool) -> String {
    let mut out = String::from("HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n");
    for h in all {
        let name = if wide { h.name.clone() } else { h.name.chars().take(18).collect() };
        let [run, ssusp, ususp] = h.slots;
        let status = if wide { &h.status } else { h.status.split('_').next().unwrap_or_default() };
        let _ = write!(out, "{name:<18} {status:<12}{:>5}{:>7}", limit(h.per_user), limit(h.max));
        let _ = writeln!(out, "{:>7}{run:>7}{ssusp:>7}{ususp:>7}{:>7}", run + ssusp + ususp, 0);
    }
    out
}

/// Formats `bhosts -l`.
pub fn host_long(h: &BatchHost) -> String {
    let [run, ssusp, ususp] = h.slots;
    let mut out = format!(
        "HOST  {}\nSTATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW\n",
        h.name
    );
    let _ = writeln!(
        out,
        "{:<15}{:>6}{:>6}{:>7}{:>7}{run:>7}{ssusp:>7}{ususp:>7}{:>7}      -\n\n CURRENT LOAD USED FOR SCHEDULING:",
        h.status,
        "1.00",
        limit(h.per_user),
        limit(h.max),
        run + ssusp + ususp,
        0
    );
    let line = |head: &str, value: &dyn Fn(&str) -> String| {
        let cells: String = SCHEDULING.iter().map(|(name, w)| format!(" {:>w$}", value(name), w = w - 1)).collect();
        format!("{head:<11}{cells}\n")
    };
    out += &(line("", &|name| name.to_string()) + &line(" Total", &|name| index(name, h.load.get(name))));
    out + &h.comment.as_ref().map_or(String::new(), |comment| format!("\n ADMIN ACTION COMMENT: {comment}\n"))
}

/// The resources of all hosts for `lsinfo`: name, whether a larger value is a heavier load, and meaning.
pub const RESOURCES: [(&str, &str, &str); 18] = [
    ("r15s", "Inc", "15-second CPU run queue length"),
    ("r1m", "Inc", "1-minute CPU run queue length"),
    ("r15m", "Inc", "15-minute CPU run queue length"),
    ("ut", "Inc", "CPU utilisation, percent"),
    ("pg", "Inc", "Paging rate, pages/s"),
    ("io", "Inc", "Disk IO rate, KB/s"),
    ("ls", "Inc", "Number of login sessions"),
    ("it", "Dec", "Idle time, minutes"),
    ("tmp", "Dec", "Disk space in /tmp, MB"),
    ("swp", "Dec", "Available swap space, MB"),
    ("mem", "Dec", "Available memory, MB"),
    ("bio", "Inc", "Requests of whole disks, 1/s"),
    ("rpc", "Inc", "NFS calls served, 1/s"),
    ("ncpus", "Dec", "Number of CPUs"),
    ("maxmem", "Dec", "Maximum memory, MB"),
    ("maxswp", "Dec", "Maximum swap space, MB"),
    ("type", "N/A", "Host type"),
    ("hname", "N/A", "Host name"),
];

/// The columns of lsload, with their widths; the last ones came from homing's own elim.
const LOAD: [(&str, usize); 13] = [
    ("r15s", 6),
    ("r1m", 6),
    ("r15m", 6),
    ("ut", 5),
    ("pg", 6),
    ("io", 6),
    ("ls", 4),
    ("it", 6),
    ("tmp", 6),
    ("swp", 6),
    ("mem", 6),
    ("bio", 7),
    ("rpc", 7),
];

/// Formats one value as lsload does; `-` if it is unknown.
fn index(name: &str, value: Option<&f64>) -> String {
    let Some(value) = value else { return "-".into() };
    match name {
        "ut" => format!("{value:.0}%"),
        "tmp" | "swp" | "mem" => mebibytes(*value),
        "ls" => format!("{value:.0}"),
        "io" | "it" if *value < 10_000.0 => format!("{value:.0}"),
        "it" => format!("{value:.0e}").replace('e', "e+0"),
        _ if *value >= 10_000.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

fn mebibytes(mib: f64) -> String {
    match mib {
        m if m >= 10.0 * 1024.0 * 1024.0 => format!("{:.0}T", m / 1024.0 / 1024.0),
        m if m >= 10.0 * 1024.0 => format!("{:.0}G", m / 1024.0),
        m => format!("{m:.0}M"),
    }
}

/// The columns of lsload.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// The built-in indices without io.
    Short,
    /// `-l`: all.
    Long,
    /// `-I r1m:mem`.
    Only(Vec<String>),
}

impl Show {
    /// Parses the list of `-I`.
    pub fn only(text: &str, own: &[String]) -> Result<Show, String> {
        let names: Vec<String> = text.split([':', ',', ' ']).filter(|n| !n.is_empty()).map(String::from).collect();
        match names.iter().find(|n| !LOAD.iter().any(|(known, _)| known == n) && !own.contains(n)) {
            Some(name) => Err(format!("{name}: unknown load index")),
            None => Ok(Show::Only(names)),
        }
    }
}

/// Formats `lsload`, with the names of the site's own indices.
pub fn load(all: &[BatchHost], show: &Show, wide: bool, own: &[String]) -> String {
    let own = own.iter().map(|name| (name.as_str(), (name.len() + 1).max(7)));
    let known: Vec<(&str, usize)> = LOAD.into_iter().chain(own).collect();
    let columns: Vec<(&str, usize)> = match show {
        Show::Short => LOAD.iter().filter(|(n, _)| !matches!(*n, "io" | "bio" | "rpc")).copied().collect(),
        Show::Long => known,
        Show::Only(names) => names.iter().filter_map(|n| known.iter().find(|(known, _)| known == n)).copied().collect(),
    };
    let room = if matches!(show, Show::Long) { 23 } else { 15 };
    let room = if wide { all.iter().map(|h| h.name.len()).max().unwrap_or(0).max(room) } else { room };
    let mut out = format!("{:<room$} {:>6}", "HOST_NAME", "status");
    columns.iter().for_each(|(name, w)| out += &format!("{name:>w$}"));
    out.push('\n');
    for h in all {
        let name: String = h.name.chars().take(room).collect();
        // Slots in use do not change the load's status. LSF calls a host that is closed to users locked.
        let status = match h.status.as_str() {
            "closed_Full" => "ok",
            "closed_Adm" => "lockU",
            other => other,
        };
        let _ = write!(out, "{name:<room$} {status:>6}");
        if matches!(status, "ok" | "lockU") {
            columns.iter().for_each(|(name, w)| out += &format!(" {:>w$}", index(name, h.load.get(*name)), w = w - 1));
        }
        out.push('\n');
    }
    out
}

/// Formats `lshosts`.
pub fn lshosts(all: &[BatchHost], wide: bool) -> String {
    let mut out = String::from("HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES\n");
    for h in all {
        let name = if wide { h.name.clone() } else { h.name.chars().take(11).collect() };
        let some = |v: Option<f64>| v.map_or("-".into(), mebibytes);
        let cpus = limit(h.cpus);
        let kind: String = h.kind.chars().take(7).collect();
        let (mem, swp) = (some(h.max_mem), some(h.max_swp.filter(|swp| *swp > 0.0)));
        let _ =
            writeln!(out, "{name:<11} {kind:>7} {:>8} {:>5} {cpus:>5} {mem:>6} {swp:>6} {:>6} ()", "-", "1.0", "Yes");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rcss1() -> BatchHost {
        let load = [
            ("r15s", 8.2),
            ("r1m", 6.3),
            ("r15m", 3.1),
            ("ut", 99.0),
            ("pg", 0.0),
            ("io", 0.0),
            ("ls", 0.0),
            ("it", 2e8),
            ("tmp", 74.0 * 1024.0),
            ("swp", 0.0),
            ("mem", 19.0 * 1024.0),
            ("bio", 0.5),
            ("rpc", 0.1),
        ];
        BatchHost {
            name: "rcss1".into(),
            status: "closed_Full".into(),
            max: Some(2),
            slots: [2, 0, 0],
            load: load.into_iter().map(|(n, v)| (n.to_string(), v)).collect(),
            ..BatchHost::default()
        }
    }

    #[test]
    fn the_documented_rows() {
        let storage = Queue {
            name: "storage".into(),
            priority: 30,
            open: true,
            active: true,
            in_window: true,
            limits: [None, Some(4), None, Some(2)],
            slots: [3, 1, 2, 0],
            ..Queue::default()
        };
        assert_eq!(
            queues(&[storage], false),
            "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP \n\
             storage          30   Open:Active      -    4    -    2     3     1     2     0\n"
        );
        assert_eq!(
            hosts(&[rcss1()], false),
            "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n\
             rcss1              closed          -      2      2      2      0      0      0\n"
        );
        assert_eq!(
            load(&[rcss1()], &Show::Long, false, &[]),
            "HOST_NAME               status  r15s   r1m  r15m   ut    pg    io  ls    it   tmp   swp   mem    bio    rpc\n\
             rcss1                       ok   8.2   6.3   3.1  99%   0.0     0   0 2e+08   74G    0M   19G    0.5    0.1\n"
        );
    }

    #[test]
    fn the_wide_form_has_the_reason_of_a_closed_host() {
        let adm = BatchHost { name: "n2".into(), status: "closed_Adm".into(), ..BatchHost::default() };
        let rows = |wide| hosts(&[rcss1(), adm.clone()], wide);
        let status =
            |text: String| text.lines().skip(1).map(|l| l.split_whitespace().nth(1).unwrap().to_string()).collect();
        let [short, wide]: [Vec<String>; 2] = [status(rows(false)), status(rows(true))];
        assert_eq!((short, wide), (vec!["closed".into(); 2], vec!["closed_Full".into(), "closed_Adm".into()]));
    }

    #[test]
    fn a_host_without_swap_has_a_dash() {
        let maxswp = |mib: Option<f64>| {
            let text = lshosts(&[BatchHost { kind: "X86_64".into(), max_swp: mib, ..rcss1() }], false);
            text.lines().nth(1).unwrap().split_whitespace().nth(6).unwrap().to_string()
        };
        assert_eq!([maxswp(Some(0.0)), maxswp(None), maxswp(Some(512.0))], ["-", "-", "512M"]);
    }

    #[test]
    fn the_awk_of_the_blog_finds_its_columns() {
        let text = load(&[rcss1()], &Show::Long, false, &[]);
        let columns = |line: &str| [6, 14, 15].map(|n| line.split_whitespace().nth(n - 1).unwrap().to_string());
        assert_eq!(columns(text.lines().next().unwrap()), ["ut", "bio", "rpc"]);
        assert_eq!(columns(text.lines().nth(1).unwrap()), ["99%", "0.5", "0.1"]);
    }

    #[test]
    fn what_is_unknown_is_a_dash_and_what_is_down_has_no_values() {
        let mut host = rcss1();
        host.load.remove("r15s");
        let down = BatchHost { name: "rcss2".into(), status: "unavail".into(), ..BatchHost::default() };
        let text = load(&[host, down], &Show::only("r15s:bio", &[]).unwrap(), false, &[]);
        assert_eq!(
            text,
            "HOST_NAME       status  r15s    bio\nrcss1               ok     -    0.5\nrcss2           unavail\n"
        );
        assert!(Show::only("colour", &[]).is_err());
        let own = ["colour".to_string()];
        let told = load(&[rcss1()], &Show::only("bio:colour", &own).unwrap(), false, &own);
        assert!(told.starts_with("HOST_NAME       status    bio colour\n"), "{told}");
    }

    #[test]
    fn long_forms_show_thresholds() {
        let thresholds = BTreeMap::from([("bio".to_string(), (Some(1500.0), Some(4000.0)))]);
        let text =
            queue_long(&Queue { name: "storage".into(), thresholds, open: true, active: true, ..Queue::default() });
        let line = |head: &str| text.lines().find(|l| l.trim_start().starts_with(head)).unwrap().to_string();
        let at = |l: String, what: &str| l.find(what).map(|p| p + what.len());
        assert_eq!(at(line("r15s"), "bio"), at(line("loadSched"), "1500"));
        assert_eq!(at(line("r15s"), "bio"), at(line("loadStop"), "4000"));
    }
}
