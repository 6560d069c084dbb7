//! Observes, plans and carries out, until nothing is left to do. All changes of volumes share this.

use crate::execute::{self, PlanEvent, Stopped};
use crate::observe::StrayPool;
use crate::{
    CommandPhase, Danger, HostFacts, Observed, Refusal, Spec, Then, VolumeChange, VolumePlan, VolumeRecord, adopt,
    folder, gluster, needs, shown,
};
use homing_model::{Failure, NodeSet, alike};
use homing_os::folder::lock;
use homing_steps::{Executor, SshExecutor};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::time::{Duration, Instant};

/// Rounds of observing and planning before homing reports that they lead nowhere.
const ROUNDS: usize = 12;

/// Time for daemons to connect with each other.
const CONNECTING: Duration = Duration::from_secs(15);

/// Requests consent to a change, with its name and a summary of its plan; an error means no.
pub type Confirm = Box<dyn Fn(&str, &str) -> Result<(), Failure>>;

/// How changes are carried out, and how much is reported.
pub struct Manner {
    /// Whether plans are only shown.
    pub dry_run: bool,
    /// Reports each step.
    pub print: fn(&str),
    /// Shows a plan.
    pub show: fn(&str),
    /// Requests the user's consent to a change.
    pub confirm: Confirm,
    /// Whether a user waits at a terminal.
    pub live: bool,
}

/// One invocation of a command on volumes.
pub struct Drive {
    /// The connection to the hosts.
    pub executor: SshExecutor,
    pub(crate) manner: Manner,
    /// Dangers that the user accepts.
    allowed: Vec<Danger>,
    /// Held during the call: two changes at once would undo each other.
    _lock: Option<File>,
}

/// The result of a planner.
pub type PlanResult = Result<VolumePlan, Vec<Refusal>>;

impl Drive {
    /// `lock` is the name of the volume that is changed.
    pub fn new(executor: SshExecutor, manner: Manner, lock: Option<&str>) -> Result<Drive, Failure> {
        let lock = lock.filter(|_| !manner.dry_run).map(take_lock).transpose()?;
        Ok(Drive { executor, manner, allowed: Vec::new(), _lock: lock })
    }

    /// Accepts these dangers.
    pub fn allowing(self, allowed: Vec<Danger>) -> Self {
        Drive { allowed, ..self }
    }

    pub(crate) fn allowed(&self) -> &[Danger] {
        &self.allowed
    }

    /// Queries all hosts of a volume, and again for bricks that the first answers named.
    pub fn observe(&self, spec: &Spec, hosts: &[String]) -> Observed {
        let seen = execute::observe(&self.executor, spec, hosts, &[]);
        let known = |h: &str, p: &str| seen.host(h).is_none_or(|f| f.stores.iter().any(|s| s.path == p));
        let bricks = gluster::volume(spec, &seen).map(|v| v.bricks.clone()).unwrap_or_default();
        let more: Vec<_> = bricks.into_iter().filter(|b| !known(&b.host, &b.path)).map(|b| (b.host, b.path)).collect();
        if more.is_empty() { seen } else { execute::observe(&self.executor, spec, hosts, &more) }
    }

    /// Returns the facts of hosts on a volume that they know better than this machine.
    pub fn adopted(&self, name: &str, hosts: &[String]) -> (Option<Spec>, Observed) {
        let seen = execute::observe(&self.executor, &adopt::unknown(name, hosts), hosts, &[]);
        (adopt::spec(name, hosts, &seen), seen)
    }

    /// Returns the record of a volume. If there is none, it is reconstructed from the facts of `hosts`.
    pub fn find(
        &self,
        name: &str,
        hosts: impl FnOnce() -> Result<Vec<String>, Failure>,
    ) -> Result<VolumeRecord, Failure> {
        let folder = folder();
        let read = VolumeRecord::load(&folder, name);
        if let Some(record) = read.map_err(|e| Failure::system(format!("reading the record of {name}: {e}")))? {
            return Ok(record);
        }
        let hosts = hosts()?;
        let mut known: BTreeSet<String> = VolumeRecord::names(&folder).into_iter().collect();
        if hosts.is_empty() {
            return Err(no_volume(name, &known));
        }
        let (found, seen) = self.adopted(name, &hosts);
        let found = found.map(|spec| VolumeRecord::found(&folder, spec, &hosts));
        found.ok_or_else(|| {
            known.extend(seen.volume_names());
            let stray = || of_stray(name, &seen);
            let unknown = || self.why_unknown(Some(name), &hosts, &seen);
            stray().or_else(unknown).unwrap_or_else(|| no_volume(name, &known))
        })
    }

    /// Returns why hosts reported no volumes at all; `None` if they have none.
    pub fn why_none(&self, hosts: &[String]) -> Option<Failure> {
        let seen = execute::observe(&self.executor, &adopt::unknown("any", hosts), hosts, &[]);
        self.why_unknown(None, hosts, &seen)
    }

    /// Returns a failure with the hosts that could not report whether they have a volume of this name, or any.
    fn why_unknown(&self, name: Option<&str>, hosts: &[String], seen: &Observed) -> Option<Failure> {
        let what = name.map_or("any volume".into(), |name| format!("a volume {name}"));
        let (silent, without) = (alike::folded(seen.silent()), self.not_root(hosts));
        let stopped = without_daemon(seen, name.is_none());
        let hint = match () {
            () if !without.is_empty() => "--sudo, if you may use sudo there",
            () if !silent.is_empty() => "homing exec -w HOSTS true",
            () => "homing exec -w HOSTS 'systemctl start glusterd'",
        };
        let why = [silent, without, stopped.into_iter().collect()].concat().join("; ");
        let text = format!("homing cannot determine whether {what} exists: {why}");
        (!why.is_empty()).then(|| Failure::system(text).hint(hint))
    }

    /// Returns the hosts where the user, or sudo, is not root, with the reason.
    fn not_root(&self, hosts: &[String]) -> Vec<String> {
        let questions: Vec<_> = hosts.iter().map(|h| (h.clone(), vec!["id".into(), "-u".into()])).collect();
        let said = self.executor.programs(&questions);
        let told: Vec<(&str, String)> =
            hosts.iter().zip(said).filter_map(|(h, s)| Some((h.as_str(), no_root(s, self.executor.sudo)?))).collect();
        alike::folded(told.iter().map(|(host, why)| (*host, why.as_str())))
    }

    /// Checks for root first, because a change that fails at its first command needs an undo.
    fn need_root(&self, what: &VolumeChange, hosts: &[String]) -> Result<(), Failure> {
        let without = self.not_root(hosts);
        if without.is_empty() {
            return Ok(());
        }
        let failure = Failure::system(format!("{what} needs root on its hosts; {}", without.join("; ")));
        Err(failure.hint(if self.executor.sudo { AS_ROOT.into() } else { format!("use --sudo, or {AS_ROOT}") }))
    }

    /// Plans and acts until nothing is left. `once`: the change is complete when its movement of bytes has ended.
    pub fn converge(
        &self,
        record: &mut VolumeRecord,
        what: &VolumeChange,
        once: bool,
        planner: &dyn Fn(&Spec, &Observed, &[Danger]) -> PlanResult,
    ) -> Result<(), Failure> {
        let acts = !self.manner.dry_run;
        check_pending(record, what)?;
        if acts {
            self.need_root(what, &record.spec.hosts())?;
        }
        // A change that is begun or continued without a daemon stops halfway, and blocks the repair.
        let mut fresh = Some(self.needed(&record.spec, what)?);
        // A plan whose second half cannot be derived from the hosts is finished as it was recorded.
        let mut confirmed = false;
        if acts && *what != VolumeChange::Create && record.pending.as_ref().is_some_and(|p| p.what == *what) {
            self.confirm_pending(record)?;
            confirmed = true;
            fresh = None;
            let then = self.carry_on(record)?;
            self.wait(&record.spec, &then)?;
        }
        for _ in 0..ROUNDS {
            let seen = fresh.take().unwrap_or_else(|| self.observe(&record.spec, &record.spec.hosts()));
            let plan = planner(&record.spec, &seen, &self.allowed).map_err(|r| refused(what, &record.spec, &r))?;
            if !acts {
                (self.manner.show)(&text(&plan));
                return Ok(());
            }
            if plan.is_empty() {
                self.notes(&plan);
                return record.finish().map_err(Failure::system);
            }
            if !confirmed {
                self.confirm(&record.spec.name, what, &plan)?;
                confirmed = true;
            }
            record.take_up(what, &plan, &self.allowed).map_err(Failure::system)?;
            self.carry(record, &plan)?;
            self.notes(&plan);
            let waited = self.wait(&record.spec, &plan.then);
            // All commands were carried out: the result of a movement is reported, but the change was not
            // interrupted.
            if plan.then == Then::Done || (once && matches!(plan.then, Then::Wait(_))) {
                record.finish().map_err(Failure::system)?;
                return waited;
            }
            waited?;
        }
        Err(Failure::system(format!("{what}: set-up incomplete after {ROUNDS} rounds"))
            .hint(format!("homing volume status {}", record.spec.name)))
    }

    /// Queries the hosts of a change, and refuses it if a daemon is missing. Daemons that were started a moment ago are
    /// not yet connected.
    fn needed(&self, spec: &Spec, what: &VolumeChange) -> Result<Observed, Failure> {
        let begun = Instant::now();
        loop {
            let seen = self.observe(spec, &spec.hosts());
            let needs = needs::refusals(what, spec, &seen);
            match () {
                () if needs.is_empty() => return Ok(seen),
                () if begun.elapsed() < CONNECTING && needs.iter().all(|refusal| refusal.passing) => {
                    std::thread::sleep(Duration::from_secs(1));
                }
                () => return Err(refused(what, spec, &needs)),
            }
        }
    }

    fn confirm(&self, name: &str, what: &VolumeChange, plan: &VolumePlan) -> Result<(), Failure> {
        (self.manner.confirm)(&format!("volume {name}: {what}"), &summary(name, what, plan))
    }

    fn confirm_pending(&self, record: &VolumeRecord) -> Result<(), Failure> {
        record.pending.as_ref().map_or(Ok(()), |pending| self.confirm(&record.spec.name, &pending.what, &pending.plan))
    }

    /// Carries out the rest of the plan in the record.
    fn carry_on(&self, record: &mut VolumeRecord) -> Result<Then, Failure> {
        let Some(pending) = record.pending.clone() else { return Ok(Then::Done) };
        self.print_message(&format!("continuing {}", pending.what));
        self.carry(record, &pending.plan)?;
        Ok(pending.plan.then)
    }

    fn carry(&self, record: &mut VolumeRecord, plan: &VolumePlan) -> Result<(), Failure> {
        let (name, what) = (record.spec.name.clone(), record.pending.as_ref().map(|p| p.what.clone()));
        let failed = execute::carry_out(&self.executor, plan, record, &mut |news| self.report_event(news));
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
        Err(Failure::system(format!("{what} succeeded, except on these hosts: {}", each.join("\n  ")))
            .hint(format!("homing volume resume {name} does the rest when these hosts work again")))
    }

    /// If nothing of a change was done, the change is cleared: it is no reason to block others.
    fn stopped(&self, record: &mut VolumeRecord, what: Option<&VolumeChange>, stopped: &Stopped) -> Failure {
        let shown = what.map(VolumeChange::to_string).unwrap_or_default();
        let failure = Failure::system(format!("{shown} stopped: {}", stopped.why));
        if what.is_some_and(VolumeChange::leaves_nothing) {
            let status = format!("homing volume status {}", record.spec.name);
            return record.finish().map_or_else(Failure::system, |()| failure.hint(status));
        }
        if stopped.at_the_start
            && what != Some(&VolumeChange::Create)
            && execute::undo(&self.executor, record, &mut |_| {}).is_empty()
        {
            return record.finish().map_or_else(Failure::system, |()| failure.hint("nothing was changed"));
        }
        failure.hint(two_ways(&record.spec.name))
    }

    fn report_event(&self, news: PlanEvent) {
        match news {
            PlanEvent::Phase(phase) => self.print_message(&one_line(phase)),
            PlanEvent::Waits(step, why) => self.print_message(&format!("{}: waiting: {why}", step.host)),
            // Failures are reported at the end, once and with the next command to run.
            PlanEvent::Failed(..) | PlanEvent::Done(_) => {}
        }
    }

    /// Undoes an interrupted change, and returns it.
    pub fn undo(&self, record: &mut VolumeRecord) -> Result<VolumeChange, Failure> {
        let Some(pending) = record.pending.clone() else {
            return Err(Failure::usage(format!("volume {}: no change was interrupted", record.spec.name)));
        };
        self.confirm(&record.spec.name, &pending.what, &VolumePlan::default())?;
        let left = execute::undo(&self.executor, record, &mut |news| {
            if let PlanEvent::Phase(phase) = news {
                self.print_message(&format!("undoing: {}", one_line(phase)));
            }
        });
        if !left.is_empty() {
            return Err(Failure::system(format!(
                "{} is not completely undone:\n  {}",
                pending.what,
                left.join("\n  ")
            )));
        }
        let ended = if pending.what == VolumeChange::Create { record.remove() } else { record.finish() };
        ended.map(|()| pending.what).map_err(Failure::system)
    }

    pub(crate) fn print_message(&self, text: &str) {
        (self.manner.print)(text);
    }

    fn notes(&self, plan: &VolumePlan) {
        plan.notes.iter().for_each(|note| self.print_message(&format!("note: {note}")));
    }
}

/// Returns the failure for a volume that neither this machine nor a host knows.
fn no_volume(name: &str, known: &BTreeSet<String>) -> Failure {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let known = if known.is_empty() { String::new() } else { format!("; volumes: {}", known.join(", ")) };
    let failure = Failure::usage(format!("homing knows no volume {name}{known}"));
    failure.hint(format!("homing volume list shows the known volumes; -w 'n[1-4]' {name} queries hosts"))
}

/// Returns the failure for a volume that only a host outside of the pool remembers.
fn of_stray(name: &str, seen: &Observed) -> Option<Failure> {
    let (host, pool) = seen.strays().find(|(_, pool)| pool.volumes.iter().any(|volume| volume == name))?;
    let text = format!("there is no volume {name}: {host} alone has it, but {}", pool.text());
    Some(Failure::usage(text).hint(StrayPool::remedy(host)))
}

/// Returns the hosts with records of the volume, or of any one, whose daemon does not run: they cannot report it. A
/// daemon without a record of it has no part in it.
fn without_daemon(seen: &Observed, any: bool) -> Option<String> {
    let has_record = |facts: &HostFacts| facts.glusterd_knows || (any && !facts.glusterd_volumes.is_empty());
    let is_stopped = |facts: &HostFacts| has_record(facts) && !facts.active.contains("glusterd");
    let hosts = seen.hosts.iter().filter(|(_, facts)| facts.as_ref().is_ok_and(is_stopped));
    let hosts: NodeSet = hosts.map(|(host, _)| host.clone()).collect();
    (!hosts.is_empty()).then(|| format!("glusterd does not run on {hosts}"))
}

/// Another way to become root.
const AS_ROOT: &str = "HOMING_SSH='ssh -l root' if root may log in";

/// Returns why an answer to `id -u` is not that of root. `None` also for a host without an answer, which is reported
/// elsewhere.
fn no_root(said: Result<String, String>, sudo: bool) -> Option<String> {
    match said {
        Ok(user) if user.trim() == "0" => None,
        Ok(user) => Some(format!("you are user {} there", user.trim())),
        Err(why) => (sudo && why.contains("sudo")).then(|| format!("sudo does not work there: {why}")),
    }
}

/// Names the two commands that end an interrupted change.
fn two_ways(name: &str) -> String {
    format!("homing volume resume {name} finishes it, homing volume undo {name} undoes it")
}

/// Refuses to begin a change while another one is incomplete.
fn check_pending(record: &VolumeRecord, what: &VolumeChange) -> Result<(), Failure> {
    let name = &record.spec.name;
    match &record.pending {
        Some(p) if p.what != *what && *what != VolumeChange::Delete => {
            Err(Failure::usage(format!("volume {name}: {} was interrupted", p.what)).hint(two_ways(name)))
        }
        _ => Ok(()),
    }
}

fn refused(what: &VolumeChange, spec: &Spec, refusals: &[Refusal]) -> Failure {
    let mut flags: Vec<&str> = refusals.iter().filter_map(|r| Some(r.danger?.flag())).collect();
    flags.sort_unstable();
    flags.dedup();
    let each = alike::folded_texts(&spec.hosts(), refusals.iter().map(|r| r.why.as_str()));
    let text = format!("{what} is refused:\n  {}", each.join("\n  "));
    // A host that does not answer has the same status in every command.
    let failure = if refusals.iter().any(|r| r.of_host) { Failure::system(text) } else { Failure::usage(text) };
    if let Some(remedy) = refusals.iter().find_map(|r| r.remedy.as_ref()) {
        return failure.hint(remedy);
    }
    let hopeless = refusals.iter().any(|r| r.danger.is_none());
    if hopeless || flags.is_empty() { failure } else { failure.hint(format!("{} allows it", flags.join(" "))) }
}

/// Returns a phase as a line: its hosts and its purpose.
fn one_line(phase: &CommandPhase) -> String {
    let set: NodeSet = phase.steps.iter().map(|s| s.host.clone()).collect();
    let first = phase.steps.first().map_or("", |s| &s.why);
    let same = phase.steps.iter().all(|s| s.why == first);
    format!("{set}: {}", if same { first } else { &phase.why })
}

/// Summarizes a plan for the question before it: a line for each phase, and its notes.
fn summary(name: &str, what: &VolumeChange, plan: &VolumePlan) -> String {
    let phases =
        plan.phases.iter().filter(|phase| !phase.steps.is_empty()).map(|phase| format!("  {}\n", one_line(phase)));
    let notes = plan.notes.iter().map(|note| format!("  note: {note}\n"));
    format!("volume {name}: {what}\n{}--dry-run shows each command.", phases.chain(notes).collect::<String>())
}

/// Prints every command with its hosts, for a reader or a shell.
fn text(plan: &VolumePlan) -> String {
    let mut text = String::new();
    if plan.is_empty() {
        text += "# nothing to do\n";
    }
    for phase in &plan.phases {
        let _ = writeln!(text, "# {}", phase.why);
        for (hosts, command) in alike::gathered(phase.steps.iter().map(|s| (s.host.as_str(), shown(&s.argv)))) {
            let _ = writeln!(text, "{hosts}: {command}");
        }
    }
    match &plan.then {
        Then::Done => {}
        Then::Again => text += "# then homing queries the hosts again and does the rest\n",
        Then::Wait(watch) => text += &format!("# then wait for the end of the {}\n", watch.name()),
    }
    plan.notes.iter().for_each(|note| text += &format!("# note: {note}\n"));
    text
}

fn take_lock(name: &str) -> Result<File, Failure> {
    let folder = folder();
    let path = folder.join(format!(".{name}.lock"));
    let open = || homing_os::folder::make_folder(&folder, 0o777).and_then(|()| lock::file(&path, 0o644));
    let file = open().map_err(|e| Failure::system(format!("making {}: {e}", path.display())))?;
    match lock::try_lock_all(&file) {
        Ok(true) => Ok(file),
        _ => Err(Failure::usage(format!("another homing is changing the volume {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandStep, VolumeKind};

    #[test]
    fn only_root_is_root_and_a_silent_host_is_no_other_user() {
        assert_eq!(no_root(Ok("0\n".into()), false), None);
        assert_eq!(no_root(Ok("1000\n".into()), true).unwrap(), "you are user 1000 there");
        assert_eq!(no_root(Err("host n1 cannot be reached".into()), true), None);
        let missing = "failed to run command 'sudo': No such file or directory";
        assert!(no_root(Err(missing.into()), true).unwrap().starts_with("sudo does not work there: failed"));
        assert_eq!(no_root(Err(missing.into()), false), None);
    }

    #[test]
    fn a_mistyped_volume_is_no_fault_of_hosts_without_a_part_in_it() {
        let facts = |active: &[&str]| HostFacts {
            programs: ["glusterd".to_string()].into(),
            active: active.iter().map(|unit| unit.to_string()).collect(),
            ..HostFacts::default()
        };
        let of = |n4: HostFacts| Observed {
            hosts: [("n1".to_string(), Ok(facts(&["glusterd"]))), ("n4".to_string(), Ok(n4))].into(),
        };
        let stopped = facts(&[]);
        assert_eq!(without_daemon(&of(stopped.clone()), false), None);
        assert_eq!(without_daemon(&of(stopped.clone()), true), None);
        let knows = HostFacts { glusterd_knows: true, ..stopped.clone() };
        assert_eq!(without_daemon(&of(knows), false).as_deref(), Some("glusterd does not run on n4"));
        let other = HostFacts { glusterd_volumes: ["data".to_string()].into(), ..stopped };
        assert_eq!(without_daemon(&of(other.clone()), false), None);
        assert!(without_daemon(&of(other), true).is_some(), "it may have others");
        let failure = no_volume("nosuch", &["data".to_string()].into());
        let refused = (failure.message.as_str(), failure.status);
        assert_eq!(refused, ("homing knows no volume nosuch; volumes: data", homing_model::exit::USAGE));
    }

    #[test]
    fn a_plan_is_told_with_equal_commands_of_hosts_together() {
        let step = |host: &str| CommandStep {
            host: host.into(),
            argv: ["mkdir", "/a b"].map(String::from).into(),
            why: "makes it".into(),
            undo: None,
        };
        let phase =
            CommandPhase { why: "folders".into(), steps: vec![step("n1"), step("n2")], ..CommandPhase::default() };
        assert_eq!(one_line(&phase), "n[1-2]: makes it");
        let plan =
            VolumePlan { phases: vec![phase], then: Then::Again, notes: vec!["slow".into()], ..VolumePlan::default() };
        let told =
            "# folders\nn[1-2]: mkdir '/a b'\n# then homing queries the hosts again and does the rest\n# note: slow\n";
        assert_eq!(text(&plan), told);
        assert_eq!(text(&VolumePlan::default()), "# nothing to do\n");
    }

    #[test]
    fn what_is_refused_for_a_danger_is_told_with_the_word_that_takes_it_on() {
        let spec = Spec { kind: VolumeKind::Nfs, ..adopt::unknown("data", &["n1".into()]) };
        let last = Refusal::danger(Danger::LastCopy, "n1 has the last copy".into());
        let failure = refused(&VolumeChange::Heal, &spec, std::slice::from_ref(&last));
        assert_eq!(failure.hint.as_deref(), Some("--allow-losing-copies allows it"));
        let never = Refusal::never("it has none");
        assert_eq!(refused(&VolumeChange::Heal, &spec, &[last.clone(), never]).hint, None);
        assert_eq!(failure.status, homing_model::exit::USAGE);
        // A silent host is one everywhere, also beside a danger.
        let silent = Observed { hosts: [("n9".to_string(), Err("host n9 is unknown".to_string()))].into() };
        let silent = crate::refuse::of_silent(&silent, |_| true);
        let failure = refused(&VolumeChange::Create, &spec, &[silent, vec![last]].concat());
        assert_eq!((failure.status, failure.hint), (homing_model::exit::SYSTEM, None));
    }
}
