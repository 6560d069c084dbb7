//! The upkeep of a runner for its user's jobs, before it starts others.

use super::Runner;
use crate::files::{self, write_json};
use crate::load::LoadIndices;
use crate::plan::{Config, JobView};
use crate::state::ElementState;
use crate::{Job, QueueError, Style};

impl Runner<'_> {
    /// Ends the processes of jobs whose keepers were killed, before their slots are given away.
    pub(super) fn kill_descendants(&mut self, jobs: &[Job]) {
        let boot = files::boot_id();
        for job in jobs.iter().filter(|j| j.uid == files::uid()) {
            for part in job.parts.iter().filter(|p| p.state == ElementState::Lost) {
                let Some(start) = part.start.as_ref().filter(|s| s.process.boot_id == boot) else { continue };
                if self.buried.insert((job.id, part.index, start.at_ns)) {
                    crate::tree::kill_descendants(&job.dir, part.index);
                }
            }
        }
    }

    /// Ends waiting jobs whose process has gone: the one that answers for a job from another machine, or the command
    /// that the job ends with.
    pub(super) fn end_forsaken(&self, jobs: &[Job]) -> Result<usize, QueueError> {
        let mut count = 0;
        let boot = files::boot_id();
        let own = jobs.iter().filter(|j| j.uid == files::uid());
        for (job, why) in own.filter_map(|job| Some((job, job.spec.forsaken(&boot)?))) {
            for part in job.parts.iter().filter(|p| matches!(p.state, ElementState::Pend | ElementState::Psusp)) {
                self.spool.end_unstarted(job, part.index, why)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Ends jobs that can never start, for `homing sub --after`. LSF leaves such jobs pending.
    pub(super) fn end_hopeless(&self, jobs: &[Job], views: &[JobView]) -> Result<usize, QueueError> {
        let mut count = 0;
        let mine = |j: &&Job| j.uid == files::uid() && j.spec.style == Style::Homing && j.spec.after.is_some();
        for view in
            views.iter().filter(|v| v.state == ElementState::Pend && v.after == crate::depend::ConditionVerdict::Never)
        {
            if let Some(job) = jobs.iter().filter(mine).find(|j| j.id == view.id) {
                let after = job.spec.after.clone().unwrap_or_default();
                let reason = format!("its condition {after} can never hold");
                self.spool.end_unstarted(job, view.index, &reason)?;
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Suspends running jobs of a queue whose second threshold is crossed, and resumes them below the first.
pub(super) fn heed_load(jobs: &[Job], config: &Config, load: &LoadIndices) {
    for job in jobs.iter().filter(|j| j.uid == files::uid() && j.spec.host.is_none()) {
        let Some(queue) = config.queues.get(&job.spec.queue) else { continue };
        for part in job.parts.iter().filter(|p| p.state.is_running()) {
            let path = job.dir.join(format!("load.{}.json", part.index));
            match (part.stopped_by.is_some(), load.above_second(&queue.load)) {
                (false, Some(by)) => {
                    let _ = write_json(&path, &crate::job::Stop { by }, 0o644);
                }
                (true, None) if load.above_first(&queue.load).is_none() => {
                    let _ = std::fs::remove_file(&path);
                }
                _ => {}
            }
        }
    }
}
