//! An unfinished job. Only its elements that are at work or could be next are read.

use super::WINDOW;
use crate::depend::ElementStates;
use crate::entry::{Job, JobElement};
use crate::files;
use crate::read::Reader;
use crate::state::ElementState;
use crate::{JobSpool, amend};
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A job as the runner of its user knows it.
pub(super) struct QueuedJob {
    /// The job with the elements that are at work, stopped or at the front; `job.parts` has no others.
    pub job: Job,
    /// Indices that wait behind those, ascending. They had no records when the folder was listed.
    rest: VecDeque<u32>,
    /// Index, state and exit status of elements that have ended.
    ended: Vec<(u32, ElementState, i32)>,
    /// The time of the last change of its folder, if nothing outside the folder can change the job.
    settled: Option<i64>,
    /// The last start of one of its elements in this boot, also of an ended one, as time after the boot.
    pub began: Duration,
}

/// Records of an element, without index and suffix.
const RECORDS: [&str; 5] = ["start", "end", "stop", "load", "ask"];

impl QueuedJob {
    /// Reads it for the first time.
    pub fn read(spool: &JobSpool, id: u64, boot: &str) -> Option<QueuedJob> {
        let uid = files::uid();
        let dir = spool.places.job(uid, id);
        let (changed, settled) = changed(&dir, uid)?;
        let spec = spool.own_spec(&dir)?;
        let mut line = QueuedJob {
            job: Job { id, uid, spec, parts: Vec::new(), dir },
            rest: VecDeque::new(),
            ended: Vec::new(),
            settled: None,
            began: Duration::ZERO,
        };
        let touched = match &line.job.spec.array {
            // The folder of an array may hold four files for each element: one listing replaces a look for each.
            Some(array) => {
                let names = Reader::list(&line.job.dir)?;
                let (touched, rest): (Vec<u32>, Vec<u32>) =
                    array.indices.iter().partition(|at| is_touched(&names, **at));
                line.rest = rest.into();
                touched
            }
            None => vec![0],
        };
        let read = |index: u32| Reader::by_look(&line.job.dir, boot).part(index);
        let parts: Vec<JobElement> = touched.into_iter().map(read).collect();
        parts.into_iter().for_each(|part| line.add(part));
        line.fill(boot);
        line.settled = Some(changed).filter(|_| settled && line.is_settled());
        Some(line)
    }

    /// Reads again the things that may have changed; returns whether the job still exists.
    pub fn look(&mut self, spool: &JobSpool, boot: &str) -> bool {
        let Some((changed, settled)) = changed(&self.job.dir, self.job.uid) else { return false };
        if self.settled == Some(changed) {
            return true;
        }
        // Its folder was removed while something was written into it.
        if !self.job.dir.join("job.json").exists() {
            return false;
        }
        if self.job.dir.join(amend::AMEND).exists() {
            match spool.own_spec(&self.job.dir) {
                Some(spec) => self.job.spec = spec,
                None => return false,
            }
        }
        let parts = std::mem::take(&mut self.job.parts);
        let read = |part: JobElement| Reader::by_look(&self.job.dir, boot).part(part.index);
        let parts: Vec<JobElement> = parts.into_iter().map(read).collect();
        parts.into_iter().for_each(|part| self.add(part));
        self.fill(boot);
        self.settled = Some(changed).filter(|_| settled && self.is_settled());
        true
    }

    fn add(&mut self, part: JobElement) {
        let started = part.start.as_ref().filter(|start| start.process.boot_id == files::boot_id());
        self.began = self.began.max(started.map_or(Duration::ZERO, |start| start.process.began()));
        match (part.state, &part.end) {
            (ElementState::Done | ElementState::Exit, end) => {
                self.ended.push((part.index, part.state, end.as_ref().map_or(255, |end| end.exit)));
            }
            _ => self.job.parts.push(part),
        }
    }

    /// Reads waiting elements until as many are known as may start in one round.
    fn fill(&mut self, boot: &str) {
        let mut waiting = self.job.parts.iter().filter(|part| part.state == ElementState::Pend).count();
        while waiting < WINDOW
            && let Some(index) = self.rest.pop_front()
        {
            let part = Reader::by_look(&self.job.dir, boot).part(index);
            waiting += usize::from(part.state == ElementState::Pend);
            self.add(part);
        }
    }

    /// Whether the folder alone decides its state. The state of an element with a lock depends on the process that
    /// holds it.
    fn is_settled(&self) -> bool {
        let told = |part: &JobElement| {
            matches!(part.state, ElementState::Pend | ElementState::Psusp)
                && !self.job.dir.join(format!("lock.{}", part.index)).exists()
        };
        self.job.parts.iter().all(told)
    }

    /// Whether all elements have ended.
    pub fn is_over(&self) -> bool {
        self.job.parts.is_empty() && self.rest.is_empty()
    }

    /// Whether an element could start if nothing else blocked it.
    pub fn waits(&self) -> bool {
        self.job.parts.iter().any(|part| part.state == ElementState::Pend)
    }

    /// Whether each round must look at it: it runs, a host was requested to start it, it was lost, or it ends with
    /// another process.
    pub fn is_at_work(&self) -> bool {
        let idle = |part: &JobElement| matches!(part.state, ElementState::Pend | ElementState::Psusp) && !part.kept;
        let spec = &self.job.spec;
        spec.origin.is_some() || spec.bound.is_some() || !self.job.parts.iter().all(idle)
    }

    /// Returns the number of waiting elements, stopped ones included.
    pub fn waiting(&self) -> usize {
        let waits = |part: &&JobElement| matches!(part.state, ElementState::Pend | ElementState::Psusp);
        self.rest.len() + self.job.parts.iter().filter(waits).count()
    }

    /// Makes the next look read it, even if its folder has not changed.
    pub fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Returns when its folder was last changed, if it need not be read before the next change.
    pub fn settled(&self) -> Option<i64> {
        self.settled
    }

    /// Returns state and exit status of each element, or of one, for the conditions of other jobs.
    pub fn states(&self, index: Option<u32>) -> ElementStates {
        let open = |part: &JobElement| (part.index, part.state, part.end.as_ref().map(|end| end.exit));
        let ended = self.ended.iter().map(|(index, state, exit)| (*index, *state, Some(*exit)));
        let rest = self.rest.iter().map(|index| (*index, ElementState::Pend, None));
        let all = self.job.parts.iter().map(open).chain(ended).chain(rest);
        all.filter(|(at, ..)| index.is_none_or(|index| index == *at)).map(|(_, state, exit)| (state, exit)).collect()
    }
}

/// Whether an element has a record.
fn is_touched(names: &HashSet<String>, index: u32) -> bool {
    names.contains(&format!("lock.{index}"))
        || RECORDS.iter().any(|record| names.contains(&format!("{record}.{index}.json")))
}

/// Returns when a job's folder was changed, and whether that is long enough ago; none if it is not the user's folder.
pub(super) fn changed(dir: &std::path::Path, uid: u32) -> Option<(i64, bool)> {
    // A link to another user's folder is not followed.
    let meta = fs::symlink_metadata(dir).ok().filter(|meta| meta.is_dir() && meta.uid() == uid)?;
    Some(files::changed(&meta))
}
