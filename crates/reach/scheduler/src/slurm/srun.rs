//! The `srun` that starts a worker on a node and is its channel.

use crate::{WorkerRequest, job_name};
use std::ffi::OsString;
use std::path::Path;

/// Variables with srun's defaults for user and destination. All others that begin with `SLURM_` are left out.
/// `SLURM_NTASKS_PER_NODE`, `SLURM_MEM_PER_CPU` and similar ones belong to the surrounding job, and contradict the
/// needs of a worker.
const KEPT: &[&str] = &[
    "SLURM_CONF",
    "SLURM_CLUSTERS",
    "SLURM_JWT",
    "SLURM_PARTITION",
    "SLURM_ACCOUNT",
    "SLURM_QOS",
    "SLURM_TIMELIMIT",
    "SLURM_RESERVATION",
    "SLURM_CONSTRAINT",
    "SLURM_WCKEY",
];

/// Whether a variable of our environment may reach srun.
pub(super) fn keeps(name: &str) -> bool {
    !name.starts_with("SLURM_") || KEPT.contains(&name)
}

impl WorkerRequest {
    /// Returns the arguments of `srun`, for a worker on `node` that `script` starts. `program` is its path on this
    /// machine.
    pub(super) fn srun_arguments(&self, node: &str, script: &str, program: &Path) -> Vec<OsString> {
        let mut args: Vec<String> = match &self.within {
            // Beside the user's own steps, with all memory that the job has there.
            Some(job) => vec![format!("--jobid={job}"), "--overlap".into(), "--mem=0".into()],
            None => self.srun_job_arguments(),
        };
        args.extend(["--nodes=1".into(), "--ntasks=1".into(), format!("--nodelist={node}")]);
        args.push(format!("--cpus-per-task={}", self.cpus.max(1)));
        // The channel carries bytes in both directions at once. No MPI, no binding: tasks see all that the worker
        // has.
        args.extend(["--unbuffered", "--mpi=none", "--cpu-bind=none", "--chdir=/"].map(String::from));
        args.extend(self.extra.iter().cloned());
        let own = if self.within.is_none() { "own" } else { "step" };
        args.extend(["/bin/sh", "-c", WRAP, "homing", script, own].map(String::from));
        args.into_iter().map(OsString::from).chain([program.into()]).collect()
    }

    fn srun_job_arguments(&self) -> Vec<String> {
        let mut args = vec![format!("--job-name={}", job_name(&self.run))];
        args.extend(self.srun_given());
        args.extend(self.memory_mb.map(|mb| format!("--mem={mb}M")));
        args.extend((self.gpus > 0).then(|| format!("--gres={}", gres(self.gpus.into()))));
        args.extend(self.licenses.as_ref().map(|licenses| format!("--licenses={licenses}")));
        args
    }

    /// Returns the user's settings for account and destination, as arguments of srun.
    fn srun_given(&self) -> impl Iterator<Item = String> {
        let given = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("qos", &self.qos),
            ("time", &self.time),
            ("reservation", &self.reservation),
        ];
        given.into_iter().filter_map(|(name, value)| value.as_ref().map(|v| format!("--{name}={v}")))
    }

    /// Returns a refusal of Slurm's with the refused request, and a remedy if one is known.
    pub(super) fn srun_refusal(&self, message: &str) -> String {
        let Some(advice) = advice(message) else { return message.into() };
        let licenses = self.licenses.iter().map(|licenses| format!("--licenses={licenses}"));
        let asked: Vec<String> = self.srun_given().chain(licenses).chain(self.extra.iter().cloned()).collect();
        match asked.is_empty() {
            true => format!("{message}; neither --account nor --qos was given: {advice}"),
            false => format!("{message}; the request had {}: {advice}", asked.join(" ")),
        }
    }
}

/// Returns a remedy for a refusal that concerns Slurm's accounting or its licences.
pub fn advice(said: &str) -> Option<&'static str> {
    // The texts are those of slurm_strerror().
    let said = said.to_ascii_lowercase();
    if said.contains("invalid account") || said.contains("invalid qos") {
        return Some("`sacctmgr show associations user=$USER format=account,partition,qos` lists what you may use");
    }
    if said.contains("invalid license") {
        return Some(
            "`scontrol show licenses` lists the licences that Slurm counts; Licenses=NAME:N in slurm.conf makes one, \
             or `sacctmgr add resource` for several clusters",
        );
    }
    let limits = ["violates accounting", "time limit is invalid", "qos limit", "association limit"];
    limits.iter().any(|l| said.contains(l)).then_some(
        "`sacctmgr show qos`, `sacctmgr show associations user=$USER` and `scontrol show partition` show the limits",
    )
}

/// Returns the value of `--gres` for so many graphics processors on each node of a job.
pub fn gres(gpus: u64) -> String {
    format!("gpu:{gpus}")
}

/// Prints the job's number, runs the bootstrap, and cancels a job of our own if the worker ended with an error. The
/// srun that would cancel it may have been killed, and Slurm then keeps the allocation until its time limit.
const WRAP: &str = "echo \"homing-boot job $SLURM_JOB_ID\"; /bin/sh -c \"$1\" homing \"$3\"; s=$?; \
                    [ $s = 0 ] || [ \"$2\" != own ] || scancel \"$SLURM_JOB_ID\" >/dev/null 2>&1; exit $s";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &WorkerRequest) -> String {
        let words: Vec<String> = request
            .srun_arguments("n3", "SCRIPT", Path::new("/bin/homing"))
            .into_iter()
            .map(|w| w.into_string().expect("text"))
            .collect();
        words.join(" ")
    }

    #[test]
    fn a_job_of_its_own_takes_what_the_user_says() {
        let request = WorkerRequest {
            partition: Some("lab".into()),
            time: Some("1:00".into()),
            cpus: 4,
            memory_mb: Some(2000),
            licenses: Some("nas:2".into()),
            gpus: 3,
            extra: vec!["--constraint=ib".into()],
            run: "r1".into(),
            ..WorkerRequest::default()
        };
        let text = line(&request);
        for part in [
            "--partition=lab",
            "--time=1:00",
            "--mem=2000M",
            "--gres=gpu:3",
            "--licenses=nas:2",
            "--nodelist=n3",
            "--cpus-per-task=4",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("--overlap") && !text.contains("--qos"), "{text}");
        assert!(
            text.find("--constraint=ib") < text.find("/bin/sh") && text.ends_with("homing SCRIPT own /bin/homing"),
            "{text}"
        );
    }

    #[test]
    fn a_step_names_its_job_and_nothing_that_only_jobs_take() {
        let request =
            WorkerRequest { within: Some("17".into()), partition: Some("lab".into()), ..WorkerRequest::default() };
        let text = line(&request);
        assert!(text.starts_with("--jobid=17 --overlap --mem=0 ") && !text.contains("--partition"), "{text}");
        assert!(text.contains("--cpus-per-task=1 ") && text.ends_with(" step /bin/homing"), "{text}");
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_what_helps() {
        let request = WorkerRequest {
            account: Some("chem".into()),
            extra: vec!["--constraint=ib".into()],
            ..WorkerRequest::default()
        };
        let text = request.srun_refusal("Invalid account or account/partition combination specified");
        assert!(text.contains("the request had --account=chem --constraint=ib: `sacctmgr show"), "{text}");
        let text = WorkerRequest::default().srun_refusal("Job violates accounting/QOS policy (job submit limit)");
        assert!(text.contains("neither --account nor --qos") && text.contains("sacctmgr show qos"), "{text}");
        let request = WorkerRequest { licenses: Some("nas:2".into()), ..WorkerRequest::default() };
        let text = request.srun_refusal("Invalid license specification");
        assert!(text.contains("the request had --licenses=nas:2: `scontrol show licenses`"), "{text}");
        assert_eq!(request.srun_refusal("Zero Bytes were transmitted"), "Zero Bytes were transmitted");
    }

    #[test]
    fn the_environment_of_a_job_around_us_stays_out() {
        assert!(!keeps("SLURM_NTASKS_PER_NODE") && !keeps("SLURM_MEM_PER_CPU"));
        assert!(keeps("SLURM_PARTITION") && keeps("PATH"));
    }
}
