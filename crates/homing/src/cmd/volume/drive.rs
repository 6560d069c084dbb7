//! Observe, plan, carry out, and again until nothing is left: what all verbs share.

use super::args::{One, Way};
use crate::failure::Failure;
use homing_exec::{Options, Remote};
use homing_model::NodeSet;
use homing_model::alike;
use homing_steps::{Executor, SshExecutor};
use homing_volume::execute::{self, News, Stopped};
use homing_volume::{Change, Danger, Observed, Phase, Plan, Record, Refusal, Spec, Then, adopt, gluster, shown};
use std::fs::File;
use std::time::Duration;

/// Rounds of observing and planning before it is said that they lead nowhere.
const ROUNDS: usize = 12;

/// One call.
pub struct Drive<'a> {
    pub way: &'a Way,
    pub executor: SshExecutor,
    /// What the user takes on.
    allowed: Vec<Danger>,
    /// Held while the call lasts: two changes at once would undo each other.
    _lock: Option<File>,
}

/// What a planner answers.
pub type Answer = Result<Plan, Vec<Refusal>>;

impl Drive<'_> {
    pub fn new<'a>(way: &'a Way, lock: Option<&str>) -> Result<Drive<'a>, Failure> {
        let options = Options { command_timeout: Some(Duration::from_secs(way.timeout.max(1))), ..Options::default() };
        let lock = lock.filter(|_| !way.dry_run).map(take_lock).transpose()?;
        Ok(Drive {
            way,
            executor: SshExecutor { remote: Remote::new(options), sudo: way.sudo },
            allowed: Vec::new(),
            _lock: lock,
        })
    }

    /// Takes these dangers on.
    pub fn allowing(self, allowed: Vec<Danger>) -> Self {
        Drive { allowed, ..self }
    }

    /// Asks all hosts of a volume, and once more for bricks that the first answers named.
    pub fn observe(&self, spec: &Spec, hosts: &[String]) -> Observed {
        let seen = execute::observe(&self.executor, spec, hosts, &[]);
        let known = |h: &str, p: &str| seen.host(h).is_none_or(|f| f.stores.iter().any(|s| s.path == p));
        let bricks = gluster::volume(spec, &seen).map(|v| v.bricks.clone()).unwrap_or_default();
        let more: Vec<_> = bricks.into_iter().filter(|b| !known(&b.host, &b.path)).map(|b| (b.host, b.path)).collect();
        if more.is_empty() { seen } else { execute::observe(&self.executor, spec, hosts, &more) }
    }

    /// The record of a volume, or what its hosts tell.
    pub fn find(&self, one: &One) -> Result<Record, Failure> {
        let folder = homing_volume::folder();
        let read = Record::load(&folder, &one.name);
        if let Some(record) = read.map_err(|e| Failure::system(format!("reading the record of {}: {e}", one.name)))? {
            return Ok(record);
        }
        let hosts = self.way.cluster.load()?.hosts(one.hosts.as_deref())?;
        let missing = || {
            let failure = Failure::usage(format!("no volume {} is known", one.name));
            failure.hint(format!("homing volume list; or name hosts to ask: -w 'n[1-4]' {}", one.name))
        };
        if hosts.is_empty() {
            return Err(missing());
        }
        let question = adopt::unknown(&one.name, &hosts);
        let seen = execute::observe(&self.executor, &question, &hosts, &[]);
        let found = adopt::spec(&one.name, &hosts, &seen).map(|spec| Record::new(&folder, spec));
        found.ok_or_else(|| self.why_unknown(&one.name, &hosts, &seen).unwrap_or_else(missing))
    }

    /// Hosts that could not say whether they have a volume.
    fn why_unknown(&self, name: &str, hosts: &[String], seen: &Observed) -> Option<Failure> {
        let silent = seen.hosts.iter().filter_map(|(host, told)| Some((host.as_str(), told.as_ref().err()?.as_str())));
        let (silent, without) = (alike::folded(silent), self.not_root(hosts));
        let hint = if without.is_empty() { "homing exec -w HOSTS true" } else { "--sudo, if you may" };
        let why = [silent, without].concat().join("; ");
        let text = format!("whether there is a volume {name} cannot be told: {why}");
        (!why.is_empty()).then(|| Failure::system(text).hint(hint))
    }

    /// Where the user, or sudo, is not root on the hosts that answer, and what it says there.
    fn not_root(&self, hosts: &[String]) -> Vec<String> {
        let questions: Vec<_> = hosts.iter().map(|h| (h.clone(), vec!["id".into(), "-u".into()])).collect();
        let said = self.executor.programs(&questions);
        let told: Vec<(&str, String)> =
            hosts.iter().zip(said).filter_map(|(h, s)| Some((h.as_str(), no_root(s, self.way.sudo)?))).collect();
        alike::folded(told.iter().map(|(host, why)| (*host, why.as_str())))
    }

    /// A change that fails at its first command leaves something to take back.
    fn need_root(&self, what: &Change, hosts: &[String]) -> Result<(), Failure> {
        let without = self.not_root(hosts);
        if without.is_empty() {
            return Ok(());
        }
        let failure = Failure::usage(format!("{what} needs root on its hosts; {}", without.join("; ")));
        Err(failure.hint(if self.way.sudo { AS_ROOT.into() } else { format!("--sudo; or {AS_ROOT}") }))
    }

    /// Plans and acts until nothing is left. `once`: a movement that has ended is the end.
    pub fn reach(
        &self,
        record: &mut Record,
        what: &Change,
        once: bool,
        planner: &dyn Fn(&Spec, &Observed, &[Danger]) -> Answer,
    ) -> Result<(), Failure> {
        check_pending(record, what)?;
        if !self.way.dry_run {
            self.need_root(what, &record.spec.hosts())?;
        }
        // A plan whose second half cannot be seen from the hosts is finished as it was.
        if !self.way.dry_run && *what != Change::Create && record.pending.as_ref().is_some_and(|p| p.what == *what) {
            let then = self.carry_on(record)?;
            self.wait(&record.spec, &then)?;
        }
        for _ in 0..ROUNDS {
            let seen = self.observe(&record.spec, &record.spec.hosts());
            let plan = planner(&record.spec, &seen, &self.allowed).map_err(|r| refused(what, &record.spec, &r))?;
            if self.way.dry_run {
                print_plan(&plan);
                return Ok(());
            }
            if plan.is_empty() {
                self.notes(&plan);
                return record.finish().map_err(Failure::system);
            }
            record.take_up(what, &plan, &self.allowed).map_err(Failure::system)?;
            self.carry(record, &plan)?;
            self.notes(&plan);
            let waited = self.wait(&record.spec, &plan.then);
            // All commands were given: what a movement came to is told, but interrupted it was not.
            if plan.then == Then::Done || (once && matches!(plan.then, Then::Wait(_))) {
                record.finish().map_err(Failure::system)?;
                return waited;
            }
            waited?;
        }
        Err(Failure::system(format!("{what}: after {ROUNDS} rounds the hosts are still not as wanted"))
            .hint(format!("homing volume status {}", record.spec.name)))
    }

    /// Carries out what is left of the plan in the record.
    pub fn carry_on(&self, record: &mut Record) -> Result<Then, Failure> {
        let Some(pending) = record.pending.clone() else { return Ok(Then::Done) };
        self.say(&format!("taking up {} again", pending.what));
        self.carry(record, &pending.plan)?;
        Ok(pending.plan.then)
    }

    fn carry(&self, record: &mut Record, plan: &Plan) -> Result<(), Failure> {
        let (name, what) = (record.spec.name.clone(), record.pending.as_ref().map(|p| p.what.clone()));
        let failed = execute::carry_out(&self.executor, plan, record, &mut |news| self.tell(news));
        let failed = match failed {
            Err(stopped) => return Err(self.stopped(record, what.as_ref(), &stopped)),
            Ok(failed) => failed,
        };
        if failed.is_empty() {
            return Ok(());
        }
        let each: Vec<(&str, String)> =
            failed.iter().map(|(s, why)| (s.host.as_str(), format!("{}: {why}", s.why))).collect();
        let each = alike::folded(each.iter().map(|(host, text)| (*host, text.as_str())));
        let what = what.map(|what| what.to_string()).unwrap_or_default();
        Err(Failure::system(format!("{what} is done, but not on all hosts: {}", each.join("\n  ")))
            .hint(format!("homing volume resume {name}, when they are well again")))
    }

    /// A change of which nothing was done is no reason to hold up others.
    fn stopped(&self, record: &mut Record, what: Option<&Change>, stopped: &Stopped) -> Failure {
        let shown = what.map(Change::to_string).unwrap_or_default();
        let failure = Failure::system(format!("{shown} stopped: {}", stopped.why));
        if stopped.at_the_start
            && what != Some(&Change::Create)
            && execute::undo(&self.executor, record, &mut |_| {}).is_empty()
        {
            return record.finish().map_or_else(Failure::system, |()| failure.hint("nothing was changed"));
        }
        let name = &record.spec.name;
        failure.hint(format!("homing volume resume {name} finishes it, homing volume undo {name} takes it back"))
    }

    pub fn tell(&self, news: News) {
        match news {
            News::Phase(phase) => self.say(&one_line(phase)),
            News::Waits(step, why) => self.say(&format!("{}: waits: {why}", step.host)),
            // What failed is told at the end, once and with what to do next.
            News::Failed(..) | News::Done(_) => {}
        }
    }

    pub fn tell_back(&self, news: News) {
        if let News::Phase(phase) = news {
            self.say(&format!("taking back: {}", one_line(phase)));
        }
    }

    pub fn say(&self, text: &str) {
        if !self.way.quiet {
            eprintln!("{text}");
        }
    }

    fn notes(&self, plan: &Plan) {
        plan.notes.iter().for_each(|note| self.say(&format!("note: {note}")));
    }
}

/// Another way to be root.
const AS_ROOT: &str = "HOMING_SSH='ssh -l root', where root may log in";

/// Why an answer to `id -u` is not that of root; nothing of a host that did not answer, which is told where it is missed.
fn no_root(said: Result<String, String>, sudo: bool) -> Option<String> {
    match said {
        Ok(user) if user.trim() == "0" => None,
        Ok(user) => Some(format!("you are user {} there", user.trim())),
        Err(why) => (sudo && why.contains("sudo")).then(|| format!("sudo does not work there: {why}")),
    }
}

/// Refuses to begin a change while another one is half done.
fn check_pending(record: &Record, what: &Change) -> Result<(), Failure> {
    let name = &record.spec.name;
    match &record.pending {
        Some(p) if p.what != *what && *what != Change::Delete => {
            Err(Failure::usage(format!("volume {name}: {} was interrupted", p.what))
                .hint(format!("homing volume resume {name} finishes it, homing volume undo {name} takes it back")))
        }
        _ => Ok(()),
    }
}

fn refused(what: &Change, spec: &Spec, refusals: &[Refusal]) -> Failure {
    let mut flags: Vec<&str> = refusals.iter().filter_map(|r| Some(r.danger?.flag())).collect();
    flags.sort_unstable();
    flags.dedup();
    let each = alike::folded_texts(&spec.hosts(), refusals.iter().map(|r| r.why.as_str()));
    let failure = Failure::usage(format!("{what} is refused:\n  {}", each.join("\n  ")));
    let hopeless = refusals.iter().any(|r| r.danger.is_none());
    if hopeless || flags.is_empty() { failure } else { failure.hint(format!("{}, if that is meant", flags.join(" "))) }
}

/// A phase as a line: what is done on which hosts.
fn one_line(phase: &Phase) -> String {
    let set: NodeSet = phase.steps.iter().map(|s| s.host.clone()).collect();
    let first = phase.steps.first().map_or("", |s| &s.why);
    let same = phase.steps.iter().all(|s| s.why == first);
    format!("{set}: {}", if same { first } else { &phase.why })
}

/// Every command, with its hosts, for a reader or a shell.
fn print_plan(plan: &Plan) {
    if plan.is_empty() {
        println!("# nothing to do");
    }
    for phase in &plan.phases {
        println!("# {}", phase.why);
        for (hosts, command) in alike::gathered(phase.steps.iter().map(|s| (s.host.as_str(), shown(&s.argv)))) {
            println!("{hosts}: {command}");
        }
    }
    match &plan.then {
        Then::Done => {}
        Then::Again => println!("# then the hosts are asked again, and what is left is done"),
        Then::Wait(watch) => println!("# then wait for the end of the {}", watch.name()),
    }
    plan.notes.iter().for_each(|note| println!("# note: {note}"));
}

fn take_lock(name: &str) -> Result<File, Failure> {
    let folder = homing_volume::folder();
    let path = folder.join(format!(".{name}.lock"));
    let open = || -> std::io::Result<File> {
        std::fs::create_dir_all(&folder)?;
        File::options().create(true).truncate(false).write(true).open(&path)
    };
    let file = open().map_err(|e| Failure::system(format!("making {}: {e}", path.display())))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(Failure::usage(format!("another homing is changing the volume {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_is_root_and_a_silent_host_is_no_other_user() {
        assert_eq!(no_root(Ok("0\n".into()), false), None);
        assert_eq!(no_root(Ok("1000\n".into()), true).unwrap(), "you are user 1000 there");
        assert_eq!(no_root(Err("host n1 cannot be reached".into()), true), None);
        let missing = "failed to run command 'sudo': No such file or directory";
        assert!(no_root(Err(missing.into()), true).unwrap().starts_with("sudo does not work there: failed"));
        assert_eq!(no_root(Err(missing.into()), false), None);
    }
}
