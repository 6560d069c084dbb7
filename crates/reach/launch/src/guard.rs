//! A process that outlives the run for a moment and gives the run's jobs of a batch system back, however the
//! run ended.
//!
//! srun and bsub give their jobs back on SIGTERM, but not on SIGKILL, nor in the moment between the grant and the start of
//! the worker. Every job of a run has the run's name, by which all can be found.

use homing_scheduler::{System, job_name};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which every kind of death of the run causes. After a death, requests may still be
/// under way to the daemon: the script cancels again after pauses. `CANCEL` is the batch system's line.
const SCRIPT: &str = "trap \"\" HUP INT TERM; read -r how; for pause in 0 1 3 10; do sleep $pause; \
                      CANCEL >/dev/null 2>&1; [ \"$how\" = end ] && exit; done";

/// Cancels all jobs of a name when it is dropped, or when this process dies.
#[derive(Debug)]
pub struct Guard(Option<Child>);

impl Guard {
    /// Starts a guard of the jobs of a run. If its process cannot be started there is no guard: the run itself
    /// still gives back the jobs that it knows.
    pub fn over(system: System, run: &str) -> Guard {
        let mut command = Command::new("/bin/sh");
        let script = SCRIPT.replace("CANCEL", system.words().cancelling());
        command.args(["-c", &script, "homing-guard", &job_name(run)]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Guard(command.spawn().ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(b"end\n");
        }
        let _ = child.wait();
    }
}
