//! `blaunch`: runs a command on another host of the job, as a process of the job. MPI libraries start their daemons
//! with it, as with ssh.

use super::{Refusal, lsf_refusal};
use homing_launch::{Carried, Channel, Options, Via};
use homing_lsf::options::text;
use homing_model::RawText;
use homing_queue::far::rank::{self, Rank};
use std::io::Write;

/// The word that starts the end on the host.
pub const HOST: &str = "queue-rank";

/// Runs the command on that host; returns its exit status.
pub fn blaunch(words: &[RawText]) -> Result<i32, Refusal> {
    // mpirun gives options of ssh, which are skipped.
    let words: Vec<&RawText> = words.iter().skip_while(|word| word.0.starts_with(b"-")).collect();
    let Some((host, command)) = words.split_first().filter(|(_, command)| !command.is_empty()) else {
        return Err(lsf_refusal("Usage: blaunch HOST COMMAND [ARGUMENT ...]"));
    };
    let host = text(host);
    let hosts = std::env::var("LSB_HOSTS")
        .map_err(|_| lsf_refusal("blaunch works only in jobs; elsewhere use lsrun -m HOST COMMAND"))?;
    if !hosts.split(' ').any(|known| known == host) {
        return Err(lsf_refusal(format!("blaunch: {host} is none of the hosts of this job: {hosts}")));
    }
    let failed = |why: String| lsf_refusal(format!("blaunch: {host}: {why}"));
    let own = host == homing_queue::host_name();
    let via = if own { Via::Local } else { Via::Ssh { target: host.clone() } };
    let options = Options { role: HOST, carried: Carried::Program, ..Options::default() };
    let opened = homing_launch::open(&host, &via, &options).map_err(|e| failed(e.to_string()))?;
    let Channel { mut to, from, keeper, .. } = opened;
    let line = serde_json::to_string(&build_rank(command)?).map_err(|e| failed(e.to_string()))?;
    to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush()).map_err(|e| failed(e.to_string()))?;
    let ended = rank::follow(from);
    drop(to);
    keeper.end(std::time::Duration::from_secs(10));
    let exit = ended.map_err(failed)?;
    rank::ended(&host, exit).map_err(|e| failed(e.to_string()))?;
    Ok(exit)
}

/// Returns the command, its words joined as ssh joins them, with this directory and the job's variables.
fn build_rank(command: &[&RawText]) -> Result<Rank, Refusal> {
    let cwd = crate::cmd::queue::sub::working_directory()?;
    let words: Vec<&[u8]> = command.iter().map(|word| word.0.as_slice()).collect();
    // Other variables stay here, as with ssh: mpirun passes its daemons everything as words.
    let env = std::env::vars_os().map(|(n, v)| (RawText::from(n), RawText::from(v)));
    let of_job = |name: &RawText| ["LSB_", "LS_", "HOMING_"].iter().any(|start| name.0.starts_with(start.as_bytes()));
    let env = env.filter(|(name, _)| of_job(name)).collect();
    Ok(Rank {
        cwd: RawText::from(cwd.as_path()),
        line: RawText(words.join(&b' ')),
        env,
        umask: homing_os::process::umask(),
    })
}

/// Executes `queue-rank`: serves the host's end on standard input and output.
pub fn host() -> Result<i32, homing_model::Failure> {
    use homing_model::Failure;
    rank::guard()?;
    let mut out = std::io::stdout();
    homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).map_err(Failure::system)?;
    rank::serve(std::io::BufReader::new(std::io::stdin()), &mut out)?;
    Ok(0)
}
