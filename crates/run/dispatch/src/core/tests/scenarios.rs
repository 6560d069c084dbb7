//! Golden scenarios: scripts of hosts, tasks and events in `tests/scenarios`. They are played through the core with a
//! virtual clock.
//!
//! A line that begins with `> ` is a command. The lines after it are the answer of the core. `UPDATE=1` writes the
//! answers.
//!
//! | command | meaning |
//! |---|---|
//! | `policy KEY=VALUE...` | before all hosts: `tries`, `io` (a number, `off`), `halt`, `delay`, `locality=off`, `has=gpu:2`, `watts=LIMIT:IDLE:FULL`, `switch=NAME:HOSTS:RATE`, `median`, `shared` |
//! | `host NODESET slots=N memory=BYTES rate=BYTES slow=FACTOR` | hosts join, or come back |
//! | `task N[..M] on=HOST,... served=HOST,... bytes=N takes=S exits=N,... after=N,... memory=BYTES cpus=N uses=NAME:N` | tasks are offered |
//! | `end` | no more tasks come |
//! | `run [until S]` | time goes on, to the end of the run or to that second |
//! | `lose HOST`, `drain HOST` | a host is lost, or takes no more tasks |
//! | `lease SERVER N` | so many tasks may read from a server that others use |
//! | `signal N` | the user ends the run |

use super::*;
use crate::power::{Circuit, Draw};
use homing_model::{ClusterLinks, NodeSet};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The time between two looks of the core while no task ends, microseconds.
const TICK_US: u64 = S / 10;
/// The time after which a run counts as endless, microseconds.
const LONGEST_US: u64 = 1000 * S;

/// The values of a command, by their names.
struct CommandValues<'a>(Vec<(&'a str, &'a str)>);

impl<'a> CommandValues<'a> {
    fn new(words: &[&'a str]) -> CommandValues<'a> {
        CommandValues(words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn list(&self, key: &str) -> Vec<&'a str> {
        self.get(key).map_or_else(Vec::new, |text| text.split(',').collect())
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key).map(|text| text.parse().unwrap_or_else(|_| panic!("{key}={text} is no number")))
    }
}

/// Parses an amount such as `gpu:2`.
fn amount(text: &str) -> (String, u64) {
    let (name, count) = text.split_once(':').unwrap();
    (name.into(), count.parse().unwrap())
}

fn set_policy(policy: &mut Policy, values: &CommandValues) {
    for (key, value) in &values.0 {
        match *key {
            "tries" => policy.tries = value.parse().ok(),
            "io" if *value == "off" => policy.io = Io::Off,
            "io" => policy.io = Io::Fixed(value.parse().unwrap()),
            "halt" => policy.halt = value.parse().unwrap(),
            "delay" => policy.delay_us = (value.parse::<f64>().unwrap() * 1e6) as u64,
            "locality" => policy.locality = *value != "off",
            "median" => policy.timeout_of_median = value.parse().ok(),
            "shared" => policy.shared = true,
            "has" => policy.resources.each.extend([amount(value)]),
            "watts" => {
                let watts: Vec<f64> = value.split(':').map(|text| text.parse().unwrap()).collect();
                let draw = |name: &str| (name.to_string(), Draw { idle_w: watts[1], full_w: watts[2] });
                let hosts = NodeSet::parse("n[1-4]").unwrap().iter().map(draw).collect();
                policy.power = vec![Circuit { name: "rack".into(), limit_w: watts[0], hosts }];
            }
            "switch" => {}
            other => panic!("no policy {other}"),
        }
    }
    let switch = |(_, text): &(&str, &str)| {
        let parts: Vec<&str> = text.split(':').collect();
        let hosts = NodeSet::parse(parts[1]).unwrap().iter().map(String::from).collect();
        homing_model::links::Switch {
            name: parts[0].into(),
            hosts,
            uplink: parts[2].parse::<f64>().ok().map(|rate| rate as u64),
            above: Some("top".into()),
        }
    };
    let mut switches: Vec<_> = values.0.iter().filter(|(key, _)| *key == "switch").map(switch).collect();
    if !switches.is_empty() {
        switches.push(homing_model::links::Switch { name: "top".into(), hosts: vec![], uplink: None, above: None });
        policy.links = ClusterLinks::new(switches).unwrap();
    }
}

/// A task of a script.
#[derive(Clone)]
struct Scripted {
    offer: Offer,
    takes_us: u64,
    /// The status of each attempt. The last one applies to all later attempts.
    exits: Vec<i32>,
}

/// A running attempt.
struct Attempted {
    ends_us: u64,
    host: HostIx,
    task: TaskId,
    attempt: u32,
    killed: Option<Outcome>,
}

struct Play {
    core: Core,
    now_us: u64,
    tasks: BTreeMap<TaskId, Scripted>,
    /// The factor by which tasks take longer, by the host's name.
    slow: HashMap<String, f64>,
    running: BTreeMap<u64, Attempted>,
    /// The number of attempts of each task so far.
    attempts: HashMap<TaskId, u32>,
    out: String,
}

impl Play {
    fn new(policy: Policy) -> Play {
        Play {
            core: Core::new(policy, Counts::default()),
            now_us: 0,
            tasks: BTreeMap::new(),
            slow: HashMap::new(),
            running: BTreeMap::new(),
            attempts: HashMap::new(),
            out: String::new(),
        }
    }

    fn write_line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:.1} s  {text}", self.now_us as f64 / 1e6);
    }

    fn host(&mut self, set: &str, values: &CommandValues) {
        let slots = values.number("slots").unwrap_or(1.0) as u32;
        let memory_bytes = values.number("memory").unwrap_or(8e9) as u64;
        let nic_bytes_per_s = values.number("rate").map(|rate| rate as u64);
        for name in NodeSet::parse(set).unwrap().iter() {
            let facts = HostFacts { hostname: name.into(), memory_bytes, nic_bytes_per_s, ..HostFacts::default() };
            self.core.host_up(name, slots, facts);
            self.slow.insert(name.into(), values.number("slow").unwrap_or(1.0));
        }
        self.act();
    }

    fn task(&mut self, numbers: &str, values: &CommandValues) {
        let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
        for id in first.parse::<TaskId>().unwrap()..=last.parse().unwrap() {
            let names = |key: &str| values.list(key).into_iter().map(String::from).collect::<Vec<_>>();
            let mut offer = offer(id, &values.list("on"));
            if let Some(bytes) = values.number("bytes") {
                offer.total = bytes as u64;
                offer.per_host.iter_mut().for_each(|(_, held)| *held = bytes as u64);
            }
            offer.served = names("served");
            offer.task.cpus = values.number("cpus").unwrap_or(1.0) as u32;
            offer.task.memory = values.number("memory").map(|bytes| bytes as u64);
            offer.task.after = values.list("after").iter().map(|id| id.parse().unwrap()).collect();
            offer.task.resources = values.list("uses").into_iter().map(amount).collect();
            let takes_us = (values.number("takes").unwrap_or(1.0) * 1e6) as u64;
            let exits = values.list("exits").iter().map(|exit| exit.parse().unwrap()).collect();
            self.tasks.insert(id, Scripted { offer: offer.clone(), takes_us, exits });
            match offer.task.after.is_empty() {
                true => self.core.offer(offer),
                false => self.core.wait_for(offer.task),
            }
        }
        self.act();
    }

    fn ix(&self, name: &str) -> HostIx {
        self.core.hosts().find(name).unwrap_or_else(|| panic!("no host {name}"))
    }

    fn lose(&mut self, name: &str) {
        let host = self.ix(name);
        self.running.retain(|_, run| run.host != host);
        self.write_line(&format!("{name} is lost"));
        self.core.host_lost(host, "the connection is lost", false, at(self.now_us));
        self.act();
    }

    fn lease(&mut self, server: &str, tasks: &str) {
        let storage = (0..).map(StorageIx::Server).find(|ix| self.core.storage_name(*ix) == server).unwrap();
        self.core.leased(storage, tasks.parse().ok());
        self.act();
    }

    /// Carries out the actions of the core, and writes them down.
    fn act(&mut self) {
        loop {
            let actions = self.core.take_actions();
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.do_one(action));
        }
    }

    fn do_one(&mut self, action: Action) {
        match action {
            Action::Journal(EventKind::TaskStarted { task, attempt, host, why, .. }) => {
                let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                self.write_line(&format!("task {task} starts on {host}{again}{why}"));
            }
            Action::Journal(EventKind::Limit { storage, limit, .. }) => {
                let limit = limit.map_or("no limit".to_string(), |limit| format!("{limit} at once"));
                self.write_line(&format!("storage of {storage}: {limit}"));
            }
            Action::Send(host, ToWorker::Run { ticket, task, .. }) => self.begin(host, ticket, task.id),
            Action::Send(_, ToWorker::Kill { ticket, timed_out, .. }) => {
                let Some(run) = self.running.get_mut(&ticket) else { return };
                run.killed = Some(if timed_out { Outcome::TimedOut } else { Outcome::Killed });
                run.ends_us = self.now_us;
            }
            Action::Ended { record } => {
                let more = if record.last { "" } else { ", and is tried again" };
                let how = match &record.outcome {
                    Outcome::Exit(exit) => format!("exits with {exit}"),
                    other => format!("ends: {other:?}"),
                };
                let place = if record.host.is_empty() { String::new() } else { format!(" on {}", record.host) };
                self.write_line(&format!("task {}{place} {how}{more}", record.task.id));
            }
            Action::Note(text) => self.write_line(&format!("note: {text}")),
            Action::HostNote(host, text) => {
                let name = self.core.hosts().name(host).to_string();
                self.write_line(&format!("note: {name}: {text}"));
            }
            Action::Share(storage, _) => {
                let name = self.core.storage_name(storage).to_string();
                self.write_line(&format!("leases of {name} are wanted"));
            }
            Action::Locate(task) => {
                let offer = self.tasks[&task.id].offer.clone();
                self.core.offer(Offer { task: *task, ..offer });
            }
            _ => {}
        }
    }

    fn begin(&mut self, host: HostIx, ticket: u64, task: TaskId) {
        let factor = self.slow[self.core.hosts().name(host)];
        let takes_us = (self.tasks[&task].takes_us as f64 * factor) as u64;
        let attempt = self.attempts.entry(task).or_default();
        *attempt += 1;
        let (ends_us, attempt) = (self.now_us + takes_us, *attempt);
        self.running.insert(ticket, Attempted { ends_us, host, task, attempt, killed: None });
    }

    fn end_due(&mut self) {
        let due = self.running.iter().filter(|(_, run)| run.ends_us <= self.now_us).map(|(ticket, _)| *ticket);
        for ticket in due.collect::<Vec<_>>() {
            let Some(run) = self.running.remove(&ticket) else { continue };
            let exits = &self.tasks[&run.task].exits;
            let exit = exits.get(run.attempt as usize - 1).or(exits.last()).copied().unwrap_or(0);
            let outcome = run.killed.unwrap_or(Outcome::Exit(exit));
            self.core.ended(run.host, ended(ticket, outcome), at(self.now_us));
            self.act();
        }
    }

    /// Lets time pass until the run is over, or until `stop_us`.
    fn run(&mut self, stop_us: Option<u64>) {
        loop {
            self.end_due();
            self.core.tick(at(self.now_us).mono);
            self.core.assign(at(self.now_us).mono);
            self.act();
            if self.running.values().any(|run| run.ends_us <= self.now_us) {
                continue;
            }
            if self.core.is_over() || self.core.is_stranded() {
                break;
            }
            if stop_us.is_some_and(|stop| self.now_us >= stop) {
                return;
            }
            assert!(self.now_us < LONGEST_US, "it does not end:\n{}", self.out);
            let next = self.running.values().map(|run| run.ends_us).min().unwrap_or(u64::MAX);
            self.now_us = next.min(self.now_us + TICK_US).min(stop_us.unwrap_or(u64::MAX));
        }
        if stop_us.is_none() {
            let (exit, ending) = self.core.finish();
            let EventKind::RunEnded { counts, .. } = ending else { panic!("{ending:?}") };
            let counts = counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ");
            self.write_line(&format!("the run ends with {exit}: {counts}"));
        }
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let values = CommandValues::new(words.get(2..).unwrap_or_default());
        match words[..] {
            ["host", set, ..] => self.host(set, &values),
            ["task", numbers, ..] => self.task(numbers, &values),
            ["end"] => self.core.source_ended(),
            ["run"] => self.run(None),
            ["run", "until", seconds] => self.run(Some((seconds.parse::<f64>().unwrap() * 1e6) as u64)),
            ["lose", name] => self.lose(name),
            ["drain", name] => {
                let host = self.ix(name);
                self.core.host_draining(host, "it is wanted elsewhere");
                self.act();
            }
            ["lease", server, tasks] => self.lease(server, tasks),
            ["signal", number] => {
                self.core.interrupt(number.parse().unwrap(), true);
                self.act();
            }
            _ => panic!("no command {line:?}"),
        }
    }
}

/// Plays a script. Returns it with the answers of the core.
fn transcript(script: &str) -> String {
    let mut policy = policy();
    let mut play: Option<Play> = None;
    let mut out = String::new();
    for line in script.lines().filter(|line| line.starts_with("> ") || line.starts_with('#')) {
        let _ = writeln!(out, "{line}");
        let Some(command) = line.strip_prefix("> ") else { continue };
        if let Some(values) = command.strip_prefix("policy ") {
            set_policy(&mut policy, &CommandValues::new(&values.split_whitespace().collect::<Vec<_>>()));
            continue;
        }
        let play = play.get_or_insert_with(|| Play::new(policy.clone()));
        play.command(command);
        out.push_str(&std::mem::take(&mut play.out));
    }
    out
}

#[test]
fn scenarios_are_played_as_they_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/scenarios");
    let mut scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    scripts.sort();
    assert!(scripts.len() >= 20, "{scripts:?}");
    for path in scripts {
        let script = std::fs::read_to_string(&path).unwrap();
        let played = transcript(&script);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, played).unwrap();
        } else {
            assert_eq!(played, script, "{}: UPDATE=1 cargo test --workspace --lib scenarios_are", path.display());
        }
    }
}
