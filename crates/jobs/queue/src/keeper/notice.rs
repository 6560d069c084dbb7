//! The user's command after the end of a job.

use super::Keeper;
use crate::files::read_json;
use crate::job::JobEnd;
use homing_os::process::run_hook;
use std::process::Command;
use std::time::Duration;

/// The longest time of the command. The job's slots are free only when its keeper has ended.
const LONGEST: Duration = Duration::from_secs(60);

impl Keeper<'_> {
    /// Runs the command, if the job has one and its end is recorded. Reports its failure.
    pub(super) fn notify(&self) {
        let Some(line) = &self.private.on_exit else { return };
        let Some((end, _)) = read_json::<JobEnd>(&self.dir.join(format!("end.{}.json", self.index))) else { return };
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().envs(self.private.env.iter().map(|(name, value)| (name.as_os(), value.as_os())));
        shell.current_dir(self.spec.cwd.as_path()).env("HOMING_JOB", self.id.to_string());
        shell.env("HOMING_JOB_INDEX", self.index.to_string()).env("HOMING_EXIT", end.exit.to_string());
        shell.env("HOMING_NAME", &self.spec.name).env("HOMING_DONE", u32::from(end.exit == 0).to_string());
        shell.env("HOMING_FAILED", u32::from(end.exit != 0).to_string());
        if let Err(why) = run_hook(shell, line.as_os(), Some(LONGEST)) {
            homing_os::say!("homing: job {}: --on-exit {}: {why}", self.id, line.display());
        }
    }
}
