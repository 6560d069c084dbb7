//! Measures the same curve over the MPI that is installed on the hosts.

use super::ask::{Hosts, input};
use homing_exec::{Command, CommandOutcome, HostResult};
use homing_model::Failure;
use homing_model::text::shown;
use homing_network::Latency;

/// A ping-pong of MPI.
const PINGPONG: &str = include_str!("pingpong.c");
/// Compiles the ping-pong on both hosts at the same path, and starts it on the first.
const MPI: &str = include_str!("mpi.sh");
/// The time limit for all sizes, seconds, which take five. It is below the smallest time limit of a command.
const PATIENCE: u32 = 40;

/// Returns the name of the hosts' MPI, and the latency of messages of each size over it, from the first host to the
/// second.
pub fn mpi(hosts: &Hosts) -> Result<(String, Vec<Latency>), Failure> {
    let token = homing_os::folder::unguessable();
    let token = token.map_err(|e| Failure::system(format!("reading a random number from the kernel: {e}")))?;
    let [a, b] = [hosts.addresses[0], hosts.addresses[1]];
    let ask = |verb: &str| -> Result<Vec<Result<String, String>>, Failure> {
        let script = format!(
            "folder=/tmp/homing-mpi.{token} a={a} b={b} patience={PATIENCE}\n{MPI}\n{verb} <<'HOMING_C'\n{PINGPONG}\nHOMING_C\n"
        );
        let said = hosts.all(&Command::argv(["sh", "-s"]).input(input(&script)?));
        Ok(said.into_iter().map(command_output).collect())
    };
    let failed = |host: usize, why: &str| {
        Failure::system(format!("MPI on {}: {why}", hosts.known[host].name)).hint(
            "install mpicc and mpirun of OpenMPI or MPICH on both hosts, and let ssh from the first to the second work without a password",
        )
    };
    // Both hosts have the program before the first host starts it on both; it is removed from both afterwards.
    let compiled = ask("compile")?;
    let ran = if compiled.iter().all(Result::is_ok) { ask("measure")? } else { Vec::new() };
    ask("remove")?;
    for (at, said) in compiled.iter().chain(&ran).enumerate() {
        said.as_ref().map_err(|why| failed(at % hosts.known.len(), why))?;
    }
    let text = ran.into_iter().next().and_then(Result::ok).unwrap_or_default();
    let curve: Vec<Latency> = text.lines().filter_map(latency).collect();
    let name = text.lines().find_map(|line| line.strip_prefix("mpi\t")).map(shown).unwrap_or_default();
    if curve.is_empty() { Err(failed(0, "mpirun printed no measurement")) } else { Ok((name, curve)) }
}

fn command_output(said: Result<HostResult, String>) -> Result<String, String> {
    let said = said?;
    match said.outcome {
        CommandOutcome::Exited(0) => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        _ => Err(shown(&said.why())),
    }
}

fn latency(line: &str) -> Option<Latency> {
    let words: Vec<&str> = line.strip_prefix("latency\t")?.split('\t').collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    Some(Latency { bytes: words.first()?.parse().ok()?, p50_us: number(1)?, p99_us: number(2)?, max_us: number(3)? })
}

#[cfg(test)]
#[path = "../../../../../tests/script.rs"]
mod script;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script in a folder, whose programs precede those of the system.
    fn runs(folder: &std::path::Path, programs: &[(&str, &str)], script: &str) -> std::process::Output {
        for (name, text) in programs {
            script::script(&folder.join(name), text);
        }
        let mut sh = std::process::Command::new("sh");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        sh.args(["-c", script]).current_dir(folder).env("PATH", path).env("SSH_CONNECTION", "10.9.9.9 1 10.9.9.1 22");
        sh.output().unwrap()
    }

    #[test]
    fn an_mpi_that_hangs_is_ended_and_what_it_told_by_then_counts_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mpirun = |told: &str| {
            format!("[ \"$1\" = --version ] && echo 'HYDRA: Version: 4.0' || {{ printf '{told}'; exec sleep 1000; }}")
        };
        let ran = |told: &str| {
            let script = format!("folder=. a=10.9.9.1 b=10.9.9.2 patience=0.5\n{MPI}\nmeasure");
            let programs = [("hostname", "echo 10.9.9.1"), ("mpirun", &*mpirun(told))];
            let said = runs(folder.path(), &programs, &script);
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (said.status.code(), text(said.stdout), text(said.stderr))
        };
        let (status, stdout, stderr) = ran("latency\\t1\\t2\\t3\\t4\\nend\\n");
        assert_eq!((status, stderr.as_str()), (Some(0), ""));
        assert!(stdout.ends_with("\nmpi\tMPICH; it did not end, and homing stopped it after 0.5 s\n"), "{stdout}");
        let (status, _, stderr) = ran("latency\\t1\\t2\\t3\\t4\\n");
        assert_eq!(status, Some(1));
        assert!(stderr.contains("it did not end, and homing stopped it") && stderr.contains("10.9.9.2"), "{stderr}");
    }

    #[test]
    fn a_line_of_mpi_is_a_size_and_its_times() {
        let told = latency("latency\t1024\t12.5\t20\t99").unwrap();
        assert_eq!((told.bytes, told.p50_us, told.max_us), (1024, 12.5, 99.0));
        assert_eq!((latency("latency\tx\t1\t1\t1"), latency("welcome")), (None, None));
    }
}
