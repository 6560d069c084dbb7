//! The `bsub -I` that starts a worker on a host and is its channel.

use crate::{Allocation, WorkerRequest, WorkerStart, job_name};
use homing_model::text::always_quoted;
use std::ffi::OsString;

/// Prints the job's number and runs the bootstrap. bsub writes the standard error of a job among its output, which is
/// the channel.
const WRAP: &str = "echo \"homing-boot job $LSB_JOBID\"; /bin/sh -c \"$1\" homing \"$2\" 2>/dev/null";

/// Variables for bsub: it ends when no daemon answers, and the line with the job's number is no part of the output.
const VARIABLES: [&str; 2] = ["LSB_NTRIES=1", "BSUB_STDERR=1"];

impl WorkerRequest {
    /// Returns the command of a worker. `launcher` is the command that starts programs on a host of the job around us.
    pub(super) fn lsf_start(&self, worker: WorkerStart, launcher: &[&str]) -> Vec<OsString> {
        // Of the program's path, nothing but its name for the shell is used there.
        let program = worker.program.display().to_string();
        let words = ["/bin/sh", "-c", WRAP, "homing", worker.script, &program];
        let mut line: Vec<String> = ["env"].into_iter().chain(VARIABLES).map(String::from).collect();
        match self.within {
            // Its words reach the program as they are.
            Some(_) => {
                line.extend(launcher.iter().copied().chain([worker.node]).map(String::from));
                line.extend(words.map(String::from));
            }
            None => {
                line.extend(["bsub", "-I"].map(String::from));
                line.extend(self.lsf_arguments(worker.node));
                // bsub joins the words of a command with blanks, for a shell.
                line.push(words.map(always_quoted).join(" "));
            }
        }
        line.into_iter().map(OsString::from).collect()
    }

    fn lsf_arguments(&self, node: &str) -> Vec<String> {
        let mut args = vec!["-J".into(), job_name(&self.run), "-m".into(), node.into()];
        args.extend(["-n".into(), self.cpus.max(1).to_string(), "-R".into(), "span[hosts=1]".into()]);
        args.extend(self.lsf_given());
        if let Some(mb) = self.memory_mb {
            args.extend(["-R".into(), format!("rusage[mem={mb}]")]);
        }
        if self.gpus > 0 {
            args.extend(["-gpu".into(), format!("num={}", self.gpus)]);
        }
        args.extend(self.extra.iter().cloned());
        args
    }

    /// Returns the user's settings for account and destination.
    fn lsf_given(&self) -> Vec<String> {
        let time = self.time.as_deref().and_then(minutes).map(|minutes| minutes.to_string());
        let given = [("-q", &self.partition), ("-P", &self.account), ("-W", &time), ("-U", &self.reservation)];
        given.into_iter().filter_map(|(option, value)| Some([option.into(), value.clone()?])).flatten().collect()
    }

    pub(super) fn lsf_refuses(&self) -> Option<String> {
        if self.qos.is_some() {
            return Some("--qos: LSF has no quality of service; --partition QUEUE names a queue".into());
        }
        let time = self.time.as_deref().filter(|time| minutes(time).is_none())?;
        Some(format!("--time {time}: expected MINUTES, H:MM:SS or D-H, as with Slurm"))
    }

    /// Returns a refusal with the refused request.
    pub(super) fn lsf_refusal(&self, message: &str) -> String {
        let given: Vec<String> = self.lsf_given().into_iter().chain(self.extra.iter().cloned()).collect();
        if given.is_empty() { message.into() } else { format!("{message}; the request had {}", given.join(" ")) }
    }
}

/// Reads a time limit in Slurm's notation as minutes, rounded up: `MINUTES`, `MINUTES:SS`, `H:MM:SS`, `D-H`, `D-H:MM`,
/// `D-H:MM:SS`.
fn minutes(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let parts: Vec<u64> = rest.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (text.contains('-'), &parts[..]) {
        (true, [hours]) => (*hours, 0, 0),
        (true, [hours, minutes]) => (*hours, *minutes, 0),
        (false, [minutes]) => (0, *minutes, 0),
        (false, [minutes, seconds]) => (0, *minutes, *seconds),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some((days * 24 + hours) * 60 + minutes + seconds.div_ceil(60))
}

impl Allocation {
    /// Reads the variables of a job of LSF. `None` outside of one, in a job of homing's own queue, which has the same
    /// variables, or if they contradict each other.
    pub(crate) fn of_lsf(var: &dyn Fn(&str) -> Option<String>) -> Option<Allocation> {
        if var("HOMING_JOB").is_some() || var("LSF_ENVDIR").is_none() {
            return None;
        }
        let job = var("LSB_JOBID").filter(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))?;
        let words = var("LSB_MCPU_HOSTS")?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let pairs = words.chunks(2).map(|pair| match pair {
            [host, slots] => Some(((*host).to_string(), slots.parse().ok().filter(|n| *n > 0)?)),
            _ => None,
        });
        let nodes: Vec<(String, u32)> = pairs.collect::<Option<_>>()?;
        let here = nodes.iter().map(|(name, _)| name).find(|name| homing_os::names::is_here(name)).cloned();
        (!nodes.is_empty()).then_some(Allocation { job, nodes, here })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn line(request: &WorkerRequest) -> Vec<String> {
        let worker = WorkerStart { node: "n3", script: "echo 'it'; x", program: Path::new("/opt/a b") };
        request.lsf_start(worker, &["lsrun", "-m"]).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_job_takes_what_the_user_gives_and_its_command_is_one_word() {
        let request = WorkerRequest {
            partition: Some("short".into()),
            account: Some("p1".into()),
            time: Some("1:30:01".into()),
            cpus: 4,
            memory_mb: Some(2000),
            gpus: 2,
            extra: vec!["-x".into()],
            run: "r1".into(),
            ..WorkerRequest::default()
        };
        let words = line(&request);
        let (command, options) = words.split_last().unwrap();
        assert_eq!(
            options.join(" "),
            "env LSB_NTRIES=1 BSUB_STDERR=1 bsub -I -J homing-r1 -m n3 -n 4 -R span[hosts=1] -q short -P p1 -W 91 \
             -R rusage[mem=2000] -gpu num=2 -x"
        );
        let split = shlex::split(command).unwrap();
        assert_eq!(split[..2], ["/bin/sh", "-c"]);
        assert_eq!(split[3..], ["homing", "echo 'it'; x", "/opt/a b"]);
    }

    #[test]
    fn in_a_job_its_own_launcher_starts_the_worker() {
        let request = WorkerRequest { within: Some("17".into()), ..WorkerRequest::default() };
        assert_eq!(line(&request)[3..7], ["lsrun", "-m", "n3", "/bin/sh"]);
    }

    #[test]
    fn times_are_slurms_and_what_lsf_lacks_is_refused() {
        for (text, wanted) in [
            ("90", Some(90)),
            ("1:30", Some(2)),
            ("2:00:00", Some(120)),
            ("1-0", Some(1440)),
            ("1-2:03", Some(1563)),
            ("1-2:03:04", Some(1564)),
            ("x", None),
            ("1:2:3:4", None),
        ] {
            assert_eq!(minutes(text), wanted, "{text}");
        }
        let of = |qos: Option<&str>, time: &str| {
            let (qos, time) = (qos.map(String::from), Some(time.to_string()));
            WorkerRequest { qos, time, ..WorkerRequest::default() }.lsf_refuses()
        };
        assert!(of(Some("high"), "5").unwrap().contains("LSF has no quality of service"));
        assert!(of(None, "soon").unwrap().contains("--time soon"));
        assert_eq!(of(None, "5"), None);
    }

    #[test]
    fn the_job_around_this_process() {
        let read = |pairs: &[(&str, &str)]| {
            Allocation::of_lsf(&|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
        };
        let job = [("LSF_ENVDIR", "/opt/lsf/conf"), ("LSB_JOBID", "117"), ("LSB_MCPU_HOSTS", "n1 2 n2 1 ")];
        let nodes = vec![("n1".to_string(), 2), ("n2".to_string(), 1)];
        assert_eq!(read(&job), Some(Allocation { job: "117".into(), nodes, here: None }));
        assert_eq!(read(&[&job[..], &[("HOMING_JOB", "1")]].concat()), None);
        assert_eq!(read(&job[1..]), None);
        assert_eq!(read(&[job[0], job[1], ("LSB_MCPU_HOSTS", "n1 2 n2")]), None);
    }
}
