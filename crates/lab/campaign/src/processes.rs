//! Finds the processes of a run by a variable in their environment. On hosts of a lab it finds them by their host.

use crate::scenario::Whom;
use std::fs;

/// The variable in the environment of all processes of a run.
pub const MARK: &str = "CAMPAIGN";

/// The name of the process that watches over a worker.
const GUARD: &str = "homing-guard";

/// A process of the run.
#[derive(Clone, Debug)]
pub struct RunProcess {
    /// Its process id, as the machine numbers it.
    pub pid: i32,
    /// The process id of its parent.
    pub parent: i32,
    /// Its own name, as `ps -e` has it.
    pub name: String,
    /// Its arguments.
    pub words: Vec<String>,
    /// Its state, as `ps` shows it.
    pub state: char,
}

impl RunProcess {
    /// Returns whether the process has the role `whom` in the run.
    pub fn is(&self, whom: Whom) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", String::as_str);
        match whom {
            Whom::Coordinator => matches!(word(1), "run" | "resume"),
            Whom::Worker => word(1) == "worker" && self.name != GUARD,
            Whom::Guard => self.name == GUARD,
            Whom::Task => self.words.iter().any(|w| w.ends_with("task.sh")),
            Whom::Ssh => word(0) == "ssh" || word(0).ends_with("/ssh"),
            Whom::Group | Whom::All => true,
        }
    }

    /// Returns a line on the process for people.
    pub fn shown(&self) -> String {
        format!("{} {} ({})", self.pid, self.words.join(" "), self.state)
    }
}

/// Returns all processes with the mark, and homing's workers and guards in the lab.
pub fn of_run(mark: &str, lab: Option<&str>) -> Vec<RunProcess> {
    let entry = format!("{MARK}={mark}");
    let own = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let marked = environment.split(|b| *b == 0).any(|variable| variable == entry.as_bytes());
        marked || lab.is_some_and(|lab| in_lab(pid, lab))
    };
    let mine = std::process::id() as i32;
    let found = all().filter(|pid| *pid != mine && own(*pid)).filter_map(process);
    found.filter(|p| p.state != 'Z' && !p.words.is_empty() && !p.words[0].ends_with("nsenter")).collect()
}

fn process(pid: i32) -> Option<RunProcess> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = words.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned());
    let mut words: Vec<String> = words.collect();
    words.pop();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
    let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_string();
    Some(RunProcess { pid, parent, name, words, state })
}

fn in_lab(pid: i32, lab: &str) -> bool {
    let serves = |p: RunProcess| p.is(Whom::Worker) || p.is(Whom::Guard) || p.is(Whom::Task);
    in_group(pid, &format!("homing-lab/{lab}/")) && process(pid).is_some_and(serves)
}

fn in_group(pid: i32, group: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(group))
}

/// Returns the processes by which a host of the lab serves its disk to GlusterFS.
pub fn bricks(lab: &str, host: u64) -> Vec<i32> {
    let group = format!("homing-lab/{lab}/n{host}");
    let own = |p: &RunProcess| p.words.first().is_some_and(|w| w.ends_with("glusterfsd")) && in_group(p.pid, &group);
    all().filter_map(process).filter(own).map(|p| p.pid).collect()
}

/// Returns the processes of the machine.
fn all() -> impl Iterator<Item = i32> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
}
