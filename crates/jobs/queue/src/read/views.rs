//! Jobs as the decision sees them, with the verdicts on their conditions.

use super::Job;
use crate::depend::{self, ConditionVerdict, ElementStates};
use crate::files;
use crate::job::Start;
use crate::plan::JobView;
use crate::{JobSpool, array};

impl JobSpool {
    /// Returns the views of all jobs.
    pub fn views(&self, jobs: &[Job]) -> Vec<JobView> {
        self.views_by(jobs, |uid, text| SpoolLookup { spool: self, jobs, uid }.parts(text))
    }

    /// Returns the views; `states` returns the states of a job that a user's condition names.
    pub(crate) fn views_by(&self, jobs: &[Job], states: impl Fn(u32, &str) -> ElementStates) -> Vec<JobView> {
        let (mut views, boot) = (Vec::new(), files::boot_id());
        let began = |start: &Start| (start.process.boot_id == boot).then(|| start.process.began());
        for job in jobs {
            let after = match &job.spec.after {
                Some(text) if job.parts.iter().any(|p| !p.state.is_over()) => {
                    depend::judge(text, &FunctionLookup(&|text: &str| states(job.uid, text)))
                }
                _ => ConditionVerdict::Holds,
            };
            views.extend(job.parts.iter().map(|part| JobView {
                id: job.id,
                index: part.index,
                uid: job.uid,
                queue: job.spec.queue.clone(),
                slots: if job.spec.over_several().is_some() { 0 } else { job.spec.slots },
                order: job.spec.order,
                limit: job.spec.array.as_ref().and_then(|a| a.limit),
                state: part.state,
                asks: part.start_refusal.is_some() && part.kept && part.start.is_none(),
                after,
                host: job.spec.host.clone(),
                require: job.spec.require.clone(),
                gpu_parts: job.spec.gpu_parts,
                storage: job.spec.storage.clone(),
                began: part.start.as_ref().and_then(began).unwrap_or_default(),
            }));
        }
        views
    }
}

/// Answers by a function.
struct FunctionLookup<'a>(&'a dyn Fn(&str) -> ElementStates);

impl depend::JobLookup for FunctionLookup<'_> {
    fn parts(&self, job: &str) -> ElementStates {
        (self.0)(job)
    }
}

/// The jobs that one user's conditions may name: every job by its number, the user's own by name. `jobs` are the jobs
/// that were read already, which need not be all.
struct SpoolLookup<'a> {
    spool: &'a JobSpool,
    jobs: &'a [Job],
    uid: u32,
}

impl SpoolLookup<'_> {
    fn parts(&self, text: &str) -> ElementStates {
        let by_id = array::job_id(text);
        let read = match by_id {
            // Of several jobs of one number the user's own is meant.
            Some((id, _)) => {
                let known = self.jobs.iter().filter(|j| j.id == id).max_by_key(|j| j.uid == self.uid);
                known.cloned().or_else(|| self.spool.job(id).ok())
            }
            // Of several jobs of one name the newest is meant, as in LSF.
            None if text.is_empty() => None,
            None => self.spool.jobs_of(self.uid).into_iter().find(|j| j.spec.name == text),
        };
        let job = read.as_ref();
        let index = by_id.and_then(|(_, index)| index);
        let parts = job.iter().flat_map(|j| &j.parts).filter(|p| index.is_none_or(|i| i == p.index));
        parts.map(|p| (p.state, p.end.as_ref().map(|e| e.exit))).collect()
    }
}
