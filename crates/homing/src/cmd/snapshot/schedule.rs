//! `homing snapshot schedule`: timers of systemd on one host, with a way back.

use super::args::Schedule as Args;
use super::target::{Target, all};
use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use homing_exec::{Options, Remote};
use homing_snapshot::timer::{self, FOLDER, HEAD, Schedule};
use homing_steps::{
    Executor, Observed, Phase, Question, SshExecutor, Step, Wanted, carry_out, diff, observe, plan, undo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Seconds for the units of a host: a unit that runs is waited for while it stops.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Says that systemd runs the host.
const SYSTEMD: &str = "test -d /run/systemd/system && echo yes";

/// A vault's units.
struct Timer {
    vault: String,
    calendar: String,
    unit: String,
    service: String,
    timer: String,
    /// A question of a shell: whether the host can do it.
    runnable: String,
}

/// A host, and how it is asked.
struct Place {
    host: String,
    executor: SshExecutor,
}

/// Sets timers, or takes them back.
pub fn run(cluster: &ClusterArgs, args: Args) -> Result<i32, Failure> {
    let host = args.on.clone().unwrap_or_else(|| "localhost".into());
    let options = Options { command_timeout: Some(TIMEOUT), ..Options::default() };
    let place = Place { host, executor: SshExecutor { remote: Remote::new(options), sudo: args.sudo } };
    let timers = if args.undo { Vec::new() } else { timers(cluster, &args)? };
    let seen = place.look(&timers)?;
    place.can(&timers, &seen)?;
    let wanted: BTreeSet<String> = timers.iter().flat_map(things).collect();
    let mut came = undo(&seen);
    came.changed.retain(|why| is_ours(why) && !wanted.iter().any(|thing| why.starts_with(&format!("{thing}: "))));
    came.steps.retain(|step| is_ours(&step.change.thing()) && !wanted.contains(&step.change.thing()));
    if timers.is_empty() && !args.undo && came.steps.is_empty() {
        let failure = Failure::usage("no [snapshot.NAME] of the cluster file has a schedule");
        return Err(failure.hint("schedule = \"02:00\""));
    }
    let steps = plan(&wants(&timers, &seen), &mut seen.clone());
    let steps = steps.map_err(|against| Failure::system(format!("{}: {}", place.host, against.join("; "))))?;
    let steps: Vec<Step> = came.steps.into_iter().chain(steps).collect();
    for step in &steps {
        println!("{}: {}", place.host, step.change.told());
        let text = diff(&step.change).filter(|_| args.dry_run).unwrap_or_default();
        text.lines().for_each(|line| println!("    {line}"));
    }
    if !args.dry_run {
        place.carry_out(steps)?;
        timers.iter().for_each(|t| println!("{}: {} on {} ({}.timer)", t.vault, t.calendar, place.host, t.unit));
    }
    if came.changed.is_empty() {
        return Ok(0);
    }
    Err(Failure::system(format!("{}: not all is as before: {}", place.host, came.changed.join("; "))))
}

/// The units of all vaults of the cluster file that have a schedule.
fn timers(cluster: &ClusterArgs, args: &Args) -> Result<Vec<Timer>, Failure> {
    let scheduled = |target: Target| {
        let schedule = Schedule::of(target.section.schedule.as_deref()?);
        Some(schedule.map(|schedule| (target.name, schedule)))
    };
    let vaults: Result<Vec<(String, Schedule)>, String> = all(cluster)?.into_iter().filter_map(scheduled).collect();
    let vaults = vaults.map_err(Failure::usage)?;
    let named: Vec<(&str, Schedule)> = vaults.iter().map(|(name, schedule)| (name.as_str(), *schedule)).collect();
    let later = timer::staggered(&named, args.spread);
    let program = std::env::current_exe().map_err(Failure::system)?;
    let program = program.to_str().ok_or_else(|| Failure::system("the path of this program is not UTF-8"))?;
    let file = cluster.own_file().map(|file| sound(&file)).transpose()?;
    let file = file.map_or(Vec::new(), |file| vec!["--cluster".into(), file]);
    let quoted =
        |word: &str| homing_model::text::quoted_unless(word, |c| c.is_ascii_alphanumeric() || "-_./".contains(c));
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

/// The cluster file's whole path. Root will do what it says: nobody else may be able to put another in its place.
fn sound(file: &Path) -> Result<String, Failure> {
    let told = |why: String| Failure::usage(format!("the cluster file {}: {why}", file.display()));
    let real = file.canonicalize().map_err(|e| told(e.to_string()))?;
    let folder = real.parent().unwrap_or(Path::new("/"));
    if let Some(loose) = homing_folder::who_could_swap(folder).map_err(|e| told(e.to_string()))? {
        return Err(told(format!(
            "root would do what it says, and others could replace what is in {}",
            loose.display()
        )));
    }
    real.to_str().map(String::from).ok_or_else(|| told("its path is not UTF-8".into()))
}

impl Timer {
    fn files(&self) -> [(String, &str); 2] {
        let path = |kind: &str| format!("{FOLDER}/{}.{kind}", self.unit);
        [(path("service"), self.service.as_str()), (path("timer"), self.timer.as_str())]
    }

    fn name(&self) -> String {
        format!("{}.timer", self.unit)
    }
}

/// What a journal calls the parts of a timer.
fn things(timer: &Timer) -> Vec<String> {
    let files = timer.files().map(|(path, _)| path);
    files.into_iter().chain([format!("unit {}", timer.name())]).collect()
}

fn is_ours(thing: &str) -> bool {
    [format!("{FOLDER}/{HEAD}"), format!("unit {HEAD}")].iter().any(|head| thing.starts_with(head.as_str()))
}

/// A timer whose files change is stopped first: it reads them when it starts.
fn wants(timers: &[Timer], seen: &Observed) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for timer in timers {
        let runs = seen.units.get(&timer.name()).is_some_and(|(state, _)| state.active);
        if runs && timer.files().iter().any(|(path, text)| seen.text(path) != Some(text)) {
            wanted.push(Wanted::Unit { name: timer.name(), on: false });
        }
        wanted.extend(timer.files().iter().map(|(path, text)| Wanted::file(path, *text)));
        wanted.push(Wanted::Unit { name: timer.name(), on: true });
    }
    wanted
}

impl Place {
    /// What is there of these timers, and of those that were made before.
    fn look(&self, timers: &[Timer]) -> Result<Observed, Failure> {
        let before = self.ask(&Question { journal: true, ..Question::default() })?;
        let ours = before.journal.iter().map(|(_, change)| change).filter(|change| is_ours(&change.thing()));
        let mut question = Question::of_changes(ours);
        question
            .outputs
            .extend([SYSTEMD.to_string()].into_iter().chain(timers.first().map(|timer| timer.runnable.clone())));
        for timer in timers {
            question.files.extend(timer.files().map(|(path, _)| path));
            question.units.insert(timer.name());
        }
        let mut seen = self.ask(&question)?;
        seen.journal.retain(|(_, change)| is_ours(&change.thing()));
        Ok(seen)
    }

    fn ask(&self, question: &Question) -> Result<Observed, Failure> {
        let told = |why: &str| Failure::system(format!("{}: {why}", self.host));
        let mut seen = observe(&self.executor, std::slice::from_ref(&self.host), question);
        let seen = seen.remove(&self.host).ok_or_else(|| told("it was not asked"))?.map_err(|why| told(&why))?;
        if seen.uid != 0 {
            return Err(told(&format!("you are user {} there, and timers are root's", seen.uid)).hint("--sudo"));
        }
        Ok(seen)
    }

    /// What would be found out at night.
    fn can(&self, timers: &[Timer], seen: &Observed) -> Result<(), Failure> {
        let told = |why: &str| Failure::system(format!("{}: {why}", self.host));
        if !seen.outputs.contains_key(SYSTEMD) {
            return Err(told("systemd does not run there").hint("cron: 0 2 * * * homing snapshot NAME -q"));
        }
        match timers.first() {
            Some(first) if !seen.outputs.contains_key(&first.runnable) => {
                Err(told("this program or the cluster file is not there under the same path, readable to root")
                    .hint("homing push FILE --hosts HOST"))
            }
            _ => Ok(()),
        }
    }

    fn carry_out(&self, steps: Vec<Step>) -> Result<(), Failure> {
        let steps = BTreeMap::from([(self.host.clone(), steps)]);
        let phase = Phase { name: "timers".into(), steps, ..Phase::default() };
        let failed = carry_out(&self.executor as &dyn Executor, &[phase], &mut |_| {});
        failed.into_iter().next().map_or(Ok(()), |(host, why)| Err(Failure::system(format!("{host}: {why}"))))
    }
}
