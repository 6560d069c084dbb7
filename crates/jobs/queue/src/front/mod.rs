//! Chooses the jobs of a runner's round: those at work, and the waiting jobs and elements that could be next. The
//! cost of a round does not grow with the number that wait behind them, and the memory only by a few words each.
//!
//! The first way was to read all of a user's jobs in each round. With 100,000 waiting it started a quarter of the
//! jobs that it starts with 1,000 (`bench/results/queue-waiting.md`).

mod kinds;
mod line;
#[cfg(test)]
mod tests;

use crate::bell::Rung;
use crate::depend::ElementStates;
use crate::entry::Job;
use crate::plan::{Config, JobView};
use crate::state::ElementState;
use crate::{JobSpool, array, files};
use kinds::{JobClass, Kinds};
use line::QueuedJob;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The most waiting elements of a job, and waiting jobs of a kind, in a round. On a machine with more free slots the
/// next round starts the others.
pub(crate) const WINDOW: usize = 64;
/// The most folders that a round reads for the first time.
const FIRST_LOOKS: usize = 2000;
/// The number of waiting jobs behind the front that a round looks at again. The command that changes a job reports
/// it, unless it is killed.
const SECOND_LOOKS: usize = 100;
/// The pause between two listings of the user's folder, if the kernel reports new jobs.
const LIST: Duration = Duration::from_secs(2);
/// The pause between two listings is at least this many times as long as one listing.
const LIST_SHARE: u32 = 20;

/// The jobs of a runner's user.
#[derive(Default)]
pub(crate) struct Front {
    /// Jobs that are read: at work, or near the front of their kind.
    near: BTreeMap<u64, QueuedJob>,
    /// Jobs without elements that wait, or were stopped, behind those; each with the time of its last change, if
    /// known.
    behind: BTreeMap<u64, Option<i64>>,
    /// The waiting jobs, in order.
    kinds: Kinds,
    /// Jobs that were not read yet.
    unread: BTreeSet<u64>,
    over: HashSet<u64>,
    /// The newest job of each name, for conditions.
    names: HashMap<String, u64>,
    /// When the user's folder was last listed, and how long that took.
    listed: Option<(Instant, Duration)>,
    /// When an ended element was last put back.
    again: i64,
    /// The job at which the second looks are.
    turn: u64,
    /// The last start on each host, also of ended jobs.
    began: BTreeMap<Option<String>, Duration>,
    /// Jobs that are read and were changed since the last round.
    changed: BTreeSet<u64>,
}

impl Front {
    /// Returns the jobs of this round, by number, each with the elements that are at work or at the front.
    pub fn look(&mut self, spool: &JobSpool, config: &Config, rung: &Rung) -> Vec<Job> {
        let boot = files::boot_id();
        self.process_events(spool, rung);
        self.read_new(spool, &boot);
        self.look_behind(spool, &boot);
        self.judge(spool);
        let fronts = self.kinds.front(config);
        for id in &fronts {
            if self.behind.contains_key(id) {
                self.read(spool, *id, &boot);
            }
        }
        let wanted: Vec<u64> = self.near.keys().copied().collect();
        let (mut jobs, mut idle) = (Vec::new(), Vec::new());
        for id in wanted {
            let is_front = fronts.contains(&id) | self.changed.remove(&id);
            let Some(line) = self.near.get_mut(&id) else { continue };
            if !(is_front || line.is_at_work()) {
                idle.push(id);
                continue;
            }
            let there = line.look(spool, &boot);
            self.place(id, there);
            jobs.extend(self.near.get(&id).map(|line| line.job.clone()));
        }
        idle.into_iter().for_each(|id| self.put_behind(id));
        jobs
    }

    /// Returns these jobs as the decision sees them.
    pub fn views(&self, spool: &JobSpool, jobs: &[Job]) -> Vec<JobView> {
        spool.views_by(jobs, |_, text| if text.is_empty() { Vec::new() } else { self.states(spool, text) })
    }

    /// Returns the last start on each host, also of ended jobs. It decides whose turn it is.
    pub fn began(&self) -> &BTreeMap<Option<String>, Duration> {
        &self.began
    }

    /// Whether jobs that are not in this round may still start.
    pub fn has_more(&self) -> bool {
        !self.unread.is_empty() || self.kinds.wait_for_conditions()
    }

    /// Whether some folders were not read yet; then the next round begins at once.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Returns the number of waiting elements; `None` while some jobs were not read.
    pub fn waiting(&self) -> Option<usize> {
        let near: usize = self.near.values().map(QueuedJob::waiting).sum();
        self.unread.is_empty().then_some(near + self.behind.len())
    }

    /// Returns state and exit status of the elements of a job, by its number or name, for conditions.
    pub fn states(&self, spool: &JobSpool, text: &str) -> ElementStates {
        let (id, index) = match array::job_id(text) {
            Some(found) => found,
            None => match self.names.get(text) {
                Some(id) => (*id, None),
                None => return Vec::new(),
            },
        };
        if let Some(line) = self.near.get(&id) {
            return line.states(index);
        }
        if self.behind.contains_key(&id) {
            return vec![(ElementState::Pend, None)];
        }
        let Ok(job) = spool.job(id) else { return Vec::new() };
        job.meant(index).map(|part| (part.state, part.end.as_ref().map(|end| end.exit))).collect()
    }

    /// Takes in the events of the bell, and jobs that were put back. Now and then lists the whole folder.
    fn process_events(&mut self, spool: &JobSpool, rung: &Rung) {
        let again = spool.put_back_at();
        if std::mem::replace(&mut self.again, again) != again {
            *self = Front { again, began: std::mem::take(&mut self.began), ..Front::default() };
        }
        let new: Vec<u64> = rung.new.iter().copied().filter(|id| !self.knows(*id)).collect();
        self.unread.extend(new);
        let mut changed = rung.changed.clone();
        let due = self.listed.is_none_or(|(at, took)| {
            let pause = if rung.complete { LIST.max(took * LIST_SHARE) } else { took * LIST_SHARE };
            at.elapsed() >= pause
        });
        if rung.overflowed || due {
            let began = Instant::now();
            let (ids, told) = spool.own_numbers();
            changed.extend(told);
            let new: Vec<u64> = ids.into_iter().filter(|id| !self.knows(*id)).collect();
            self.unread.extend(new);
            self.listed = Some((Instant::now(), began.elapsed()));
        }
        if rung.by_runner {
            spool.forget_changed(&changed);
        }
        changed.into_iter().for_each(|id| self.forget(id));
    }

    fn knows(&self, id: u64) -> bool {
        self.near.contains_key(&id) || self.behind.contains_key(&id) || self.over.contains(&id)
    }

    /// Notes that its user has changed a job. A near one is looked at; one behind the front is read again.
    fn forget(&mut self, id: u64) {
        match self.near.get_mut(&id) {
            Some(line) => {
                line.unsettle();
                self.changed.insert(id);
            }
            None => {
                self.behind.remove(&id);
                self.kinds.put(id, None);
                self.over.remove(&id);
                self.unread.insert(id);
            }
        }
    }

    fn read_new(&mut self, spool: &JobSpool, boot: &str) {
        for _ in 0..FIRST_LOOKS {
            let Some(id) = self.unread.pop_first() else { return };
            self.read_and_sort(spool, id, boot);
        }
    }

    /// Reads a job, and drops it if it waits behind the front: 100,000 jobs would take 200 MB.
    fn read_and_sort(&mut self, spool: &JobSpool, id: u64, boot: &str) {
        self.read(spool, id, boot);
        if self.near.get(&id).is_some_and(|line| !line.is_at_work() && !self.kinds.is_near_front(id)) {
            self.put_behind(id);
        }
    }

    fn read(&mut self, spool: &JobSpool, id: u64, boot: &str) {
        self.behind.remove(&id);
        let Some(line) = QueuedJob::read(spool, id, boot) else { return self.kinds.put(id, None) };
        let name = &line.job.spec.name;
        if !name.is_empty() && self.names.get(name).is_none_or(|newest| *newest < id) {
            self.names.insert(name.clone(), id);
        }
        self.near.insert(id, line);
        self.place(id, true);
    }

    /// Puts a job that was read into its kind, or among the ended ones.
    fn place(&mut self, id: u64, there: bool) {
        let Some(line) = self.near.get(&id) else { return };
        let last = self.began.entry(line.job.spec.host.clone()).or_default();
        *last = line.began.max(*last);
        if there && !line.is_over() {
            let wanted = line.waits().then(|| (JobClass::of(&line.job), line.job.spec.order));
            return self.kinds.put(id, wanted);
        }
        self.kinds.put(id, None);
        self.near.remove(&id);
        if there {
            self.over.insert(id);
        }
    }

    /// Drops the record of a job that waits behind others. An array stays, because its ended elements would be read
    /// again.
    fn put_behind(&mut self, id: u64) {
        let Some(line) = self.near.get(&id).filter(|line| line.job.spec.array.is_none()) else { return };
        self.behind.insert(id, line.settled());
        self.near.remove(&id);
    }

    /// Looks at a few jobs behind the front, and reads the changed ones again.
    fn look_behind(&mut self, spool: &JobSpool, boot: &str) {
        let after = self.behind.range(self.turn + 1..).take(SECOND_LOOKS);
        let some: Vec<(u64, Option<i64>)> = after.map(|(id, changed)| (*id, *changed)).collect();
        self.turn = some.last().map_or(0, |(id, _)| *id);
        for (id, changed) in some {
            let now = line::changed(&spool.places.job(files::uid(), id), files::uid());
            if now.is_none_or(|(now, _)| Some(now) != changed) {
                self.read_and_sort(spool, id, boot);
            }
        }
    }

    /// Decides again about jobs that wait for other jobs.
    fn judge(&mut self, spool: &JobSpool) {
        // A name may be that of a job that was not read.
        if self.unread.is_empty() {
            let mut kinds = std::mem::take(&mut self.kinds);
            kinds.judge(&|text| self.states(spool, text));
            self.kinds = kinds;
        }
    }
}
