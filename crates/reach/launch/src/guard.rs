//! Outlives the run for a moment, to give its Slurm jobs back however it ended.
//!
//! srun gives its job back when it is told to end, but not when it is killed,
//! nor in the moment between the grant and the start of the step. Every job of a
//! run bears the run's name, so that all can be found that way.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which no kind of death can hold back. After
/// a death, requests may still be under way to slurmctld: it looks again.
const SCRIPT: &str = "trap \"\" HUP INT TERM; read -r how; for pause in 0 1 3 10; do sleep $pause; \
                      scancel --quiet --user=\"$(id -un)\" --name=\"$1\" >/dev/null 2>&1; \
                      [ \"$how\" = end ] && exit; done";

/// Cancels all jobs of a name when it is dropped, or when this process dies.
#[derive(Debug)]
pub struct Guard(Option<Child>);

impl Guard {
    /// For the jobs named `name`. Without a process for it there is no guard:
    /// the run itself still gives back what it knows of.
    pub fn over(name: &str) -> Guard {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "homing-guard", name]).current_dir("/").process_group(0);
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
