//! A job whose standard input, output and error are its submitter's: `salloc`, and in its allocation `srun`, which
//! carries all three and the signals.
//!
//! The first way, to follow the output files of a batch job, has no input. salloc writes to standard error too, so
//! that srun gets the submitter's standard error through a descriptor of its own.

use super::batch;
use crate::{JobSpec, Private, QueueError};
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

/// The shell passes its script to srun as one argument, which the kernel bounds at 128 KiB.
const LONGEST_SCRIPT: usize = 120 << 10;

/// The command in the allocation: waits for the word to start, prints its host, and becomes srun. Descriptor 8
/// carries the word, and 9 is the submitter's standard error.
const INSIDE: &str =
    "read -r go <&8; exec 8<&-; echo \"<<Starting on $SLURM_JOB_NODELIST>>\" >&9; exec \"$@\" 2>&9 9>&-";

/// A job that is connected to this process.
pub struct Joined {
    salloc: Child,
    go: Option<PipeWriter>,
    said: BufReader<std::process::ChildStderr>,
}

/// A message of salloc.
#[derive(Debug, PartialEq)]
enum SallocMessage {
    Job(u64, bool),
    Bad(String),
    Nothing,
}

fn news(line: &str) -> SallocMessage {
    let Some(said) = line.trim_end().strip_prefix("salloc: ") else {
        return SallocMessage::Bad(line.trim_end().into());
    };
    let number = |head: &str| said.strip_prefix(head)?.trim().parse().ok();
    if let Some(id) = number("Granted job allocation ") {
        return SallocMessage::Job(id, true);
    }
    if let Some(id) = number("Pending job allocation ") {
        return SallocMessage::Job(id, false);
    }
    match said.contains("error:") || said.contains("revoked") || said.contains("unrecognized") {
        true => SallocMessage::Bad(said.trim_start_matches("error: ").into()),
        false => SallocMessage::Nothing,
    }
}

impl Joined {
    pub(super) fn start(
        spec: &JobSpec,
        private: &Private,
        dependency: Option<&str>,
        terminal: bool,
    ) -> Result<Joined, QueueError> {
        let failed =
            |e: std::io::Error| QueueError::Program(format!("requesting an allocation from Slurm: salloc: {e}"));
        let script = String::from_utf8(batch::script(spec, private))
            .ok()
            .filter(|s| s.len() < LONGEST_SCRIPT)
            .ok_or_else(|| {
                QueueError::Request("the script of an interactive job must be UTF-8 and shorter than 120 KiB".into())
            })?;
        let (before, srun) = words(spec, dependency, terminal);
        let mut command = Command::new(&before[0]);
        command
            .args(&before[1..])
            .args(["/bin/sh", "-c", INSIDE, "homing"])
            .args(srun)
            .args(["/bin/sh", "-c", &script]);
        command.env_clear().envs(private.env.iter().map(|(name, value)| (name.as_os(), value.as_os())));
        let (ours, go) = std::io::pipe().map_err(failed)?;
        let error = rustix::io::dup(std::io::stderr()).map_err(|e| failed(e.into()))?;
        pass(&mut command, ours.into(), error);
        let mut salloc = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
        let said = BufReader::new(
            salloc.stderr.take().ok_or_else(|| QueueError::Program("salloc has no error output".into()))?,
        );
        Ok(Joined { salloc, go: Some(go), said })
    }

    /// Returns the number of its process, for signals: SIGTERM returns the allocation.
    pub fn process(&self) -> u32 {
        self.salloc.id()
    }

    /// Blocks until the job has ended; returns its exit status, 128 + N after signal N. `submitted` is called as soon
    /// as it has a number, before it starts. An error is Slurm's refusal.
    pub fn wait(mut self, submitted: impl Fn(u64)) -> Result<i32, QueueError> {
        let (mut id, mut line, mut complaint) = (None, Vec::new(), None);
        while self.said.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            match news(&String::from_utf8_lossy(&line)) {
                SallocMessage::Job(number, granted) => {
                    if id.is_none() {
                        submitted(number);
                    }
                    id = Some(number);
                    if let Some(mut go) = self.go.take_if(|_| granted) {
                        let _ = go.write_all(b"\n");
                    }
                }
                // salloc may report that an allocation was revoked which ended by itself.
                SallocMessage::Bad(_) if self.go.is_none() => {}
                SallocMessage::Bad(said) => complaint = Some(said),
                SallocMessage::Nothing => {}
            }
            line.clear();
        }
        let ended = self.salloc.wait().map_err(|e| QueueError::Program(format!("waiting for salloc: {e}")))?;
        match (id, complaint) {
            (None, said) => {
                let said = said.unwrap_or_else(|| format!("salloc ended with {ended}"));
                Err(QueueError::Program(format!("Slurm granted no allocation: {said}")))
            }
            (Some(id), said) => {
                let status = ended.code().or(ended.signal().map(|s| 128 + s)).unwrap_or(255);
                said.into_iter().for_each(|said| homing_os::say!("Job <{id}>: {said}"));
                Ok(status)
            }
        }
    }
}

/// Returns the arguments of salloc, and of the srun in it.
fn words(spec: &JobSpec, dependency: Option<&str>, terminal: bool) -> (Vec<String>, Vec<String>) {
    let of_the_step = ["--input=", "--output=", "--error=", "--open-mode="];
    let of_sbatch = ["sbatch", "--parsable", "--ignore-pbs", "--kill-on-invalid-dep="];
    let is = |word: &String, list: &[&str]| list.iter().any(|head| word.starts_with(head));
    let (step, job): (Vec<String>, Vec<String>) =
        batch::words(spec, dependency).into_iter().partition(|w| is(w, &of_the_step));
    let job = job.into_iter().filter(|w| !is(w, &of_sbatch));
    let mut srun: Vec<String> =
        ["srun", "--quiet", "--nodes=1", "--ntasks=1", "--unbuffered", "--mpi=none"].map(String::from).into();
    // A step does not take the job's number of processors by itself.
    srun.push(format!("--cpus-per-task={}", spec.slots.max(1)));
    srun.push("--quit-on-interrupt".into());
    srun.extend(terminal.then(|| "--pty".to_string()));
    srun.extend(step);
    (std::iter::once("salloc".to_string()).chain(job).chain(["--no-bell".into(), "--nodes=1".into()]).collect(), srun)
}

/// Passes both as descriptors 8 and 9, and ends salloc with SIGTERM when this process has ended.
fn pass(command: &mut Command, word: OwnedFd, error: OwnedFd) {
    // SAFETY: dup2 is async-signal-safe and touches no memory of the parent.
    unsafe {
        command.pre_exec(move || {
            for (from, to) in [(&word, 8), (&error, 9)] {
                if libc::dup2(from.as_raw_fd(), to) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    homing_os::process::bound_to_thread(command, rustix::process::Signal::TERM);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_salloc_says() {
        assert_eq!(news("salloc: Pending job allocation 12\n"), SallocMessage::Job(12, false));
        assert_eq!(news("salloc: Granted job allocation 12\n"), SallocMessage::Job(12, true));
        assert_eq!(news("salloc: job 12 queued and waiting for resources\n"), SallocMessage::Nothing);
        let refusal = "salloc: error: Job submit/allocate failed: Invalid qos specification\n";
        assert_eq!(news(refusal), SallocMessage::Bad("Job submit/allocate failed: Invalid qos specification".into()));
    }

    #[test]
    fn files_are_the_steps_and_the_rest_the_jobs() {
        let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"x"},
                       "name":"","queue":"lab","slots":2,"stderr":"e.%J"}"#;
        let (job, step) = words(&serde_json::from_str(text).unwrap(), Some("afterok:1"), true);
        let (job, step) = (job.join(" "), step.join(" "));
        assert!(job.starts_with("salloc --job-name=x ") && job.contains("--dependency=afterok:1"), "{job}");
        assert!(!job.contains("--error") && !job.contains("kill-on"), "{job}");
        assert!(step.contains("--pty --error=e.%j --open-mode=append") && step.contains("--cpus-per-task=2"), "{step}");
    }
}
