//! Carries out the settings of a queue around its jobs: commands before and after, a starter, and processor limits.

use super::{Keeper, ended, exit_of};
use crate::job::JobEnd;
use homing_model::RawText;
use homing_model::text::quoted;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The exit status of a job if its queue's pre_exec failed, as with `bsub -E`.
const NOT_PREPARED: i32 = 125;
/// Seconds after the limit of processor time at which a process that ignores SIGXCPU is killed.
const DEAF: u64 = 5;
/// The place of the job's command in a starter.
const USER_COMMAND: &[u8] = b"%USRCMD";

impl Keeper<'_> {
    /// Runs the queue's pre_exec. Returns the job's end if the job must not start.
    pub(super) fn prepare(&self, record: &File) -> Result<Option<JobEnd>, String> {
        let Some(child) = self.beside(&self.queue.pre_exec)? else { return Ok(None) };
        let (status, reason, _) = self.wait(child, record, self.orders());
        self.sweep();
        let failed = || format!("the pre_exec of queue {} ended with {}", self.spec.queue, exit_of(status));
        Ok(match reason {
            Some(reason) => Some(JobEnd { exit: 130, reason: Some(reason), ..ended() }),
            None if status.success() => None,
            None => Some(JobEnd { exit: NOT_PREPARED, reason: Some(failed()), ..ended() }),
        })
    }

    /// Runs the queue's post_exec. Its failure is reported in the runner's log alone, because the job has already
    /// ended.
    pub(super) fn finish(&self, record: &File) {
        let ended = match self.beside(&self.queue.post_exec) {
            Ok(None) => return,
            Ok(Some(child)) => exit_of(self.wait(child, record, self.orders().after_the_job()).0).to_string(),
            Err(why) => why,
        };
        self.sweep();
        if ended != "0" {
            homing_os::say!("homing: job {}: the post_exec of queue {}: {ended}", self.id, self.spec.queue);
        }
    }

    /// Starts a command line of the queue as the job's user, in the job's environment, without its streams.
    fn beside(&self, line: &str) -> Result<Option<std::process::Child>, String> {
        if line.is_empty() {
            return Ok(None);
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.spec.cwd.as_path());
        self.surround(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Some).map_err(|e| format!("cannot start {line:?}: {e}"))
    }

    /// Returns the words of the job, as its queue starts them.
    pub(super) fn started(&self, words: Vec<RawText>) -> Vec<RawText> {
        if self.queue.job_starter.is_empty() {
            return words;
        }
        let line = with_starter(self.queue.job_starter.as_bytes(), &words);
        vec!["/bin/sh".into(), "-c".into(), RawText(line)]
    }

    /// Gives the job's processes the nice value and the limit of processor time of its queue.
    pub(super) fn hold_back(&self, command: &mut Command) {
        let (nice, limit) =
            (i32::from(self.queue.nice), self.queue.cpu_limit.map(|minutes| minutes.saturating_mul(60)));
        if nice == 0 && limit.is_none() {
            return;
        }
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(libc::PRIO_PROCESS, 0) + nice);
                if let Some(seconds) = limit {
                    let limit = libc::rlimit { rlim_cur: seconds, rlim_max: seconds.saturating_add(DEAF) };
                    libc::setrlimit(libc::RLIMIT_CPU, &limit);
                }
                Ok(())
            });
        }
    }

    /// Returns why a job ended, if the signal of that limit ended it.
    pub(super) fn over_cpu_limit(&self, exit: i32) -> Option<String> {
        (self.queue.cpu_limit.is_some() && exit == 128 + libc::SIGXCPU).then(|| "cpu limit".into())
    }
}

fn with_starter(starter: &[u8], words: &[RawText]) -> Vec<u8> {
    let command = words.iter().map(|word| quoted(&word.0)).collect::<Vec<_>>().join(&b' ');
    match starter.windows(USER_COMMAND.len()).position(|part| part == USER_COMMAND) {
        Some(at) => [&starter[..at], &command, &starter[at + USER_COMMAND.len()..]].concat(),
        None => [starter, b" ", &command].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_has_the_command_as_it_was_written() {
        let line = |starter: &str| {
            let words = ["/bin/sh", "-c", "echo 'a b'"].map(RawText::from);
            String::from_utf8(with_starter(starter.as_bytes(), &words)).unwrap()
        };
        let run = |line: String| String::from_utf8(Command::new("sh").args(["-c", &line]).output().unwrap().stdout);
        assert_eq!(run(line("env X=1")).unwrap(), "a b\n");
        assert_eq!(run(line("(%USRCMD; echo after)")).unwrap(), "a b\nafter\n");
    }
}
