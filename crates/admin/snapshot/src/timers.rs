//! Timers of systemd on a host that make images: the present ones, and the steps to the wanted ones.

use crate::target::Target;
use crate::timer::{self, FOLDER, HEAD, Schedule};
use homing_model::Failure;
use homing_model::text::WordReader;
use homing_steps::{
    ChangePhase, ChangeStep, Executor, FactQuery, HostRequirement, Observed, SshExecutor, carry_out, observe, plan,
    undo,
};
use std::collections::{BTreeMap, BTreeSet};

/// Prints yes if systemd runs the host.
const SYSTEMD: &str = "test -d /run/systemd/system && echo yes";

/// A vault's units.
pub struct Timer {
    /// Its name.
    pub vault: String,
    /// The time, in systemd's form.
    pub calendar: String,
    /// Its units, without their endings.
    pub unit: String,
    service: String,
    timer: String,
    /// A shell command that prints yes if the host can run the service.
    runnable: String,
}

/// A host, and the connection to it.
pub struct TimerHost {
    /// Its name.
    pub host: String,
    /// The connection.
    pub executor: SshExecutor,
}

/// The changes to make.
pub struct TimerPlan {
    /// The steps, in order.
    pub steps: Vec<ChangeStep>,
    /// Things that another user has changed since; they stay.
    pub changed: Vec<String>,
}

impl Timer {
    /// Returns the units of all vaults that have a schedule; `file`: the cluster file for `program`.
    pub fn of(targets: &[Target], program: &str, file: Option<&str>, spread: u32) -> Result<Vec<Timer>, Failure> {
        let scheduled = |target: &Target| {
            let schedule = Schedule::of(target.section.schedule.as_deref()?);
            Some(schedule.map(|schedule| (target.name.clone(), schedule)))
        };
        let vaults: Result<Vec<(String, Schedule)>, String> = targets.iter().filter_map(scheduled).collect();
        let vaults = vaults.map_err(Failure::usage)?;
        let named: Vec<(&str, Schedule)> = vaults.iter().map(|(name, schedule)| (name.as_str(), *schedule)).collect();
        let later = timer::staggered(&named, spread);
        let file = file.map_or(Vec::new(), |file| vec!["--cluster".to_string(), file.to_string()]);
        let quoted = |word: &str| WordReader::LoginShell.quoted(word);
        let readable = file.last().map_or(String::new(), |file| format!(" && test -r {}", quoted(file)));
        let runnable = format!("test -x {}{readable} && echo yes", quoted(program));
        let one = |(name, schedule): &(&str, Schedule)| {
            let ours = [program, "snapshot", "--quiet"].map(String::from).into_iter().chain(file.clone());
            let words: Vec<String> = ours.chain(["--".into(), name.to_string()]).collect();
            let calendar = schedule.later(later[name]);
            Timer {
                unit: timer::unit(name),
                service: timer::service(name, &words),
                timer: timer::timer(name, &calendar),
                runnable: runnable.clone(),
                calendar,
                vault: name.to_string(),
            }
        };
        Ok(named.iter().map(one).collect())
    }

    fn files(&self) -> [(String, &str); 2] {
        let path = |kind: &str| format!("{FOLDER}/{}.{kind}", self.unit);
        [(path("service"), self.service.as_str()), (path("timer"), self.timer.as_str())]
    }

    fn name(&self) -> String {
        format!("{}.timer", self.unit)
    }
}

/// Returns the names of a timer's parts in the journal.
fn things(timer: &Timer) -> Vec<String> {
    let files = timer.files().map(|(path, _)| path);
    files.into_iter().chain([format!("unit {}", timer.name())]).collect()
}

fn is_ours(thing: &str) -> bool {
    [format!("{FOLDER}/{HEAD}"), format!("unit {HEAD}")].iter().any(|head| thing.starts_with(head.as_str()))
}

/// Returns the wanted state. A timer whose files change is stopped first, because it reads them when it starts.
fn wants(timers: &[Timer], seen: &Observed) -> Vec<HostRequirement> {
    let mut wanted = Vec::new();
    for timer in timers {
        let runs = seen.units.get(&timer.name()).is_some_and(|(state, _)| state.active);
        if runs && timer.files().iter().any(|(path, text)| seen.text(path) != Some(text)) {
            wanted.push(HostRequirement::Unit { name: timer.name(), on: false });
        }
        wanted.extend(timer.files().iter().map(|(path, text)| HostRequirement::file(path, *text)));
        wanted.push(HostRequirement::Unit { name: timer.name(), on: true });
    }
    wanted
}

impl TimerHost {
    /// Returns the steps to these timers, and away from earlier ones; `undone`: remove all.
    pub fn way(&self, timers: &[Timer], undone: bool) -> Result<TimerPlan, Failure> {
        let seen = self.look(timers)?;
        self.can(timers, &seen)?;
        let wanted: BTreeSet<String> = timers.iter().flat_map(things).collect();
        let mut came = undo(&seen);
        came.changed.retain(|why| is_ours(why) && !wanted.iter().any(|thing| why.starts_with(&format!("{thing}: "))));
        came.steps.retain(|step| is_ours(&step.change.thing()) && !wanted.contains(&step.change.thing()));
        if timers.is_empty() && !undone && came.steps.is_empty() {
            let failure = Failure::usage("no [snapshot.NAME] of the cluster file has a schedule");
            return Err(failure.hint("schedule = \"02:00\" in [snapshot.NAME]"));
        }
        let steps = plan(&wants(timers, &seen), &mut seen.clone());
        let steps = steps.map_err(|against| Failure::system(format!("{}: {}", self.host, against.join("; "))))?;
        Ok(TimerPlan { steps: came.steps.into_iter().chain(steps).collect(), changed: came.changed })
    }

    /// Observes these timers, and those that were made before.
    fn look(&self, timers: &[Timer]) -> Result<Observed, Failure> {
        let before = self.query_facts(&FactQuery { journal: true, ..FactQuery::default() })?;
        let ours = before.journal.iter().map(|(_, change)| change).filter(|change| is_ours(&change.thing()));
        let mut question = FactQuery::of_changes(ours);
        question
            .outputs
            .extend([SYSTEMD.to_string()].into_iter().chain(timers.first().map(|timer| timer.runnable.clone())));
        for timer in timers {
            question.files.extend(timer.files().map(|(path, _)| path));
            question.units.insert(timer.name());
        }
        let mut seen = self.query_facts(&question)?;
        seen.journal.retain(|(_, change)| is_ours(&change.thing()));
        Ok(seen)
    }

    fn query_facts(&self, question: &FactQuery) -> Result<Observed, Failure> {
        let told = |why: &str| Failure::system(format!("{}: {why}", self.host));
        let mut seen = observe(&self.executor, std::slice::from_ref(&self.host), question);
        let seen =
            seen.remove(&self.host).ok_or_else(|| told("no result came from this host"))?.map_err(|why| told(&why))?;
        if seen.uid != 0 {
            return Err(told(&format!("you are user {} there, and only root may set timers", seen.uid)).hint("--sudo"));
        }
        Ok(seen)
    }

    /// Refuses a set-up that would only fail at night.
    fn can(&self, timers: &[Timer], seen: &Observed) -> Result<(), Failure> {
        let told = |why: &str| Failure::system(format!("{}: {why}", self.host));
        if !seen.outputs.contains_key(SYSTEMD) {
            return Err(told("systemd does not run there").hint("cron: 0 2 * * * homing snapshot NAME -q"));
        }
        match timers.first() {
            Some(first) if !seen.outputs.contains_key(&first.runnable) => Err(told(
                "this program or the cluster file is missing there under the same path, or root cannot read it",
            )
            .hint("homing push FILE --hosts HOST")),
            _ => Ok(()),
        }
    }

    /// Carries the steps out.
    pub fn carry_out(&self, steps: Vec<ChangeStep>) -> Result<(), Failure> {
        let steps = BTreeMap::from([(self.host.clone(), steps)]);
        let phase = ChangePhase { name: "timers".into(), steps, ..ChangePhase::default() };
        let failed = carry_out(&self.executor as &dyn Executor, &[phase], &mut |_| {});
        failed.into_iter().next().map_or(Ok(()), |(host, why)| Err(Failure::system(format!("{host}: {why}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;
    use crate::target::VaultOptions;

    #[test]
    fn each_vault_with_a_schedule_has_a_timer_and_one_whose_files_change_is_stopped_first() {
        let section = |schedule: Option<&str>| Section {
            source: Some("/home".into()),
            bank: "b:/bank".into(),
            schedule: schedule.map(String::from),
            ..Section::default()
        };
        let sections = [("home".to_string(), section(Some("02:00"))), ("other".to_string(), section(None))];
        let targets = Target::all(sections.into()).map_err(|failure| failure.message).unwrap();
        assert_eq!((targets.len(), VaultOptions::default().to), (2, None));
        let timers = Timer::of(&targets, "/usr/bin/homing", Some("/etc/c d.toml"), 0).map_err(|f| f.message).unwrap();
        let [home] = &timers[..] else { panic!("{}", timers.len()) };
        assert!(home.runnable.contains("test -r '/etc/c d.toml'") && home.service.contains("--cluster"));
        let things = things(home);
        assert!(things.len() == 3 && things.iter().all(|thing| is_ours(thing)), "{things:?}");
        let fresh = wants(&timers, &Observed::default());
        assert_eq!(fresh.len(), 3, "two files, and the timer is on");
    }
}
