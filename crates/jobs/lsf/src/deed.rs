//! Carries out LSF's verbs `bkill`, `bstop`, `bresume` and `brequeue`, and chooses the jobs that they mean.

use crate::choose::{self, JobSelector};
use crate::jobs::JobReport as Row;
use crate::options::Parsed;
use crate::rows;
use homing_queue::{ElementState, Engine, Job, QueueError, until_over};
use std::time::{Duration, Instant};

/// How long a requeue waits for the keeper. A keeper writes the end of its job before it releases the job's lock, and
/// without the lock nothing is put back. The keeper has little left to do then; the bound is for an overloaded
/// machine.
const LETS_GO: Duration = Duration::from_secs(10);

/// An action on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Ends it, or sends it a signal.
    Kill(Option<i32>),
    /// Suspends it.
    Stop,
    /// Lets it go on.
    Resume,
    /// Puts it back into the queue.
    Requeue(Which),
}

/// Which jobs are put back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// Running jobs; they are ended first.
    running: bool,
    done: bool,
    failed: bool,
}

impl Which {
    /// Reads the options as LSF does: running jobs by default, and interrupted jobs in any case.
    fn of(parsed: &Parsed) -> Which {
        let any = ["a", "d", "e", "r"].iter().any(|o| parsed.has(o));
        let has = |option: &str| parsed.has("a") || parsed.has(option);
        Which { running: has("r") || !any, done: has("d"), failed: has("e") }
    }

    fn has(&self, state: ElementState) -> bool {
        match state {
            ElementState::Run | ElementState::Ususp | ElementState::Ssusp => self.running,
            ElementState::Done => self.done,
            ElementState::Exit => self.failed,
            ElementState::Lost => true,
            ElementState::Pend | ElementState::Psusp => false,
        }
    }
}

impl Deed {
    /// Returns the action of a verb; the error is in LSF's words.
    pub fn of(verb: &str, parsed: &Parsed) -> Result<Deed, String> {
        Ok(match verb {
            "bstop" => Deed::Stop,
            "bresume" => Deed::Resume,
            "brequeue" => Deed::Requeue(Which::of(parsed)),
            _ => match parsed.text("s") {
                Some(signal) => by_signal(&signal)?,
                None => Deed::Kill(parsed.has("r").then_some(libc::SIGKILL)),
            },
        })
    }

    /// Whether it applies to ended jobs too.
    pub fn requeues(&self) -> bool {
        matches!(self, Deed::Requeue(_))
    }

    /// Returns the jobs that an id, or 0 with the filters, means. A job of which all elements are meant is returned
    /// whole.
    pub fn meant<'a>(
        &self,
        jobs: &'a [Job],
        wanted: &JobSelector,
        parsed: &Parsed,
        own: &str,
    ) -> Vec<(&'a Job, Option<u32>)> {
        if wanted.id == 0 {
            return jobs.iter().flat_map(|job| self.meant_of(job, parsed, own)).collect();
        }
        let Some(job) = jobs.iter().find(|j| j.id == wanted.id) else { return Vec::new() };
        if wanted.indices.is_empty() {
            return vec![(job, None)];
        }
        let known = job.parts.iter().filter(|p| wanted.indices.contains(&p.index));
        known.map(|p| (job, Some(p.index))).collect()
    }

    /// Returns the elements of a job that the filters mean.
    fn meant_of<'a>(&self, job: &'a Job, parsed: &Parsed, own: &str) -> Vec<(&'a Job, Option<u32>)> {
        let user = parsed.text("u").unwrap_or(own.into());
        let fits = |row: &Row| {
            let is = |option: &str, fits: &dyn Fn(&str) -> bool| parsed.text(option).is_none_or(|v| fits(&v));
            (self.requeues() || !row.is_over())
                && (user == "all" || row.user == user)
                && is("J", &|name| choose::name_fits(name, row))
                && is("q", &|queue| row.queue == queue)
                && is("m", &|host| row.exec_hosts.iter().any(|h| h == host))
                && is("P", &|project| row.project == project)
                && choose::is_of(row, parsed.text("g").as_deref(), parsed.text("app").as_deref())
        };
        let is_put_back = |state| !matches!(self, Deed::Requeue(which) if !which.has(state));
        let chosen = job.parts.iter().filter(|p| fits(&rows::row(job, p)) && is_put_back(p.state));
        let chosen: Vec<u32> = chosen.map(|p| p.index).collect();
        match job.spec.array.is_none() || chosen.len() == job.parts.len() {
            true if !chosen.is_empty() => vec![(job, None)],
            _ => chosen.into_iter().map(|i| (job, Some(i))).collect(),
        }
    }

    /// Carries it out. Returns the word that LSF prints for the job then, or none if there was nothing to put back.
    pub fn carry_out(
        &self,
        engine: &dyn Engine,
        job: &Job,
        index: Option<u32>,
    ) -> Result<Option<&'static str>, QueueError> {
        Ok(match self {
            Deed::Kill(signal) => {
                engine.kill(job, index, *signal)?;
                Some(if signal.is_none_or(|signal| signal == libc::SIGKILL) { "terminated" } else { "signaled" })
            }
            Deed::Stop => engine.stop(job, index, true).map(|()| Some("stopped"))?,
            Deed::Resume => engine.stop(job, index, false).map(|()| Some("resumed"))?,
            Deed::Requeue(which) => (requeue(engine, job, index, which)? > 0).then_some("requeued"),
        })
    }
}

/// Returns the action for a signal's name. As in LSF, `-s STOP` is bstop.
fn by_signal(signal: &str) -> Result<Deed, String> {
    let name = signal.trim_start_matches("SIG").to_uppercase();
    match name.as_str() {
        "STOP" | "TSTP" => Ok(Deed::Stop),
        "CONT" => Ok(Deed::Resume),
        _ => match homing_model::signal::number(&name) {
            Some(number) => Ok(Deed::Kill(Some(number))),
            None => Err(format!("{signal}: Illegal signal value")),
        },
    }
}

/// Puts the chosen elements back and returns their number. Running ones are ended first, and the call waits for that.
fn requeue(engine: &dyn Engine, job: &Job, index: Option<u32>, which: &Which) -> Result<usize, QueueError> {
    let mut count = 0;
    // Slurm ends jobs and requeues them itself.
    let kept_here = engine.name() == "homing";
    let meant: Vec<(u32, ElementState)> = job.meant(index).map(|p| (p.index, p.state)).collect();
    for (index, state) in meant.into_iter().filter(|(_, state)| which.has(*state)) {
        if !state.is_over() && kept_here {
            engine.kill(job, Some(index), None)?;
            until_over(engine, job.id, Some(index), |_| Ok::<(), QueueError>(()))?;
        }
        let given_up = Instant::now() + LETS_GO;
        count += loop {
            let now = engine.job(job.id)?;
            let put_back = engine.again(&now, Some(index), true)?;
            let may_follow = kept_here && Instant::now() < given_up && now.is_over(Some(index));
            if put_back > 0 || !may_follow {
                break put_back;
            }
            std::thread::sleep(engine.pace());
        };
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{BKILL, BREQUEUE};
    use crate::options::parse;
    use homing_queue::array::Array;
    use homing_queue::{JobElement, JobSpec};

    fn job(id: u64, name: &str, states: &[ElementState]) -> Job {
        let array = (states.len() > 1).then(|| Array { indices: (1..=states.len() as u32).collect(), limit: None });
        let spec =
            JobSpec { user: "me".into(), name: name.into(), queue: "q".into(), slots: 1, array, ..JobSpec::default() };
        let first = u32::from(states.len() > 1);
        let parts = (first..).zip(states).map(|(index, state)| JobElement { state: *state, ..JobElement::new(index) });
        Job { id, uid: 1, spec: spec.into(), parts: parts.collect(), dir: Default::default() }
    }

    fn meant(verb: &str, words: &[&str]) -> Vec<(u64, Option<u32>)> {
        use ElementState::{Done, Exit, Lost, Pend, Run};
        let jobs = [job(1, "a", &[Run]), job(2, "b", &[Done, Run, Pend]), job(3, "a", &[Exit]), job(4, "c", &[Lost])];
        let words: Vec<_> = words.iter().map(|word| (*word).into()).collect();
        let parsed = parse(if verb == "brequeue" { &BREQUEUE } else { &BKILL }, &words).unwrap();
        let wanted = choose::all_wanted(&parsed.operands).unwrap();
        let deed = Deed::of(verb, &parsed).unwrap();
        let found = wanted.iter().flat_map(|one| deed.meant(&jobs, one, &parsed, "me"));
        found.map(|(job, index)| (job.id, index)).collect()
    }

    #[test]
    fn filters_mean_what_has_not_ended_and_whole_jobs_where_all_of_one_is_meant() {
        assert_eq!(meant("bkill", &["0"]), [(1, None), (2, Some(2)), (2, Some(3))]);
        assert_eq!(meant("bkill", &["-J", "a", "0"]), [(1, None)]);
        assert_eq!(meant("bkill", &["-u", "her", "0"]), []);
        assert_eq!(meant("bkill", &["2[3]", "3"]), [(2, Some(3)), (3, None)], "what is named is meant, ended or not");
    }

    #[test]
    fn what_was_interrupted_is_put_back_in_any_case() {
        assert_eq!(meant("brequeue", &["0"]), [(1, None), (2, Some(2)), (4, None)]);
        assert_eq!(meant("brequeue", &["-e", "0"]), [(3, None), (4, None)]);
        assert_eq!(meant("brequeue", &["-d", "0"]), [(2, Some(1)), (4, None)]);
    }

    #[test]
    fn signals_that_are_verbs_are_those() {
        assert_eq!(by_signal("SIGSTOP"), Ok(Deed::Stop));
        assert_eq!(by_signal("cont"), Ok(Deed::Resume));
        assert_eq!(by_signal("USR1"), Ok(Deed::Kill(Some(10))));
        assert_eq!(by_signal("NO"), Err("NO: Illegal signal value".into()));
        let of = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).into()).collect();
            Deed::of("bkill", &parse(&BKILL, &words).unwrap())
        };
        assert_eq!(of(&["-r", "1"]), Ok(Deed::Kill(Some(9))));
        assert_eq!(of(&["1"]), Ok(Deed::Kill(None)));
    }
}
