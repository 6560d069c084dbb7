//! Queries hosts for their facts, and for two samples that give rates.

use homing_launch::wire::{FromWorker, ToWorker};
use homing_launch::{Channel, FAN_OUT, Options, Via};
use homing_model::{Command, HostFacts, HostSample, RawText, Task};
use homing_os::names::is_here;
pub use homing_probe::HostReading;
use homing_probe::{GPU_INDEX, GPU_USE};
use std::time::Duration;

/// The time between the two samples.
pub const BETWEEN: Duration = Duration::from_millis(500);

/// Queries many hosts at once for facts and two samples.
pub fn ask_all(names: &[String]) -> Vec<HostReading> {
    homing_os::threads::each_of(names, FAN_OUT, |name| query_host(name))
}

/// Returns the message for a worker that only samples its host, once in `every`. `run` is the name in its messages.
pub fn sampling(run: &str, every: Duration) -> ToWorker {
    ToWorker::Begin {
        run: run.into(),
        cwd: "/".into(),
        env: Vec::new(),
        umask: homing_os::process::umask(),
        slots: 1,
        sample_ms: every.as_millis() as u32,
        pulse: false,
        eager_output: false,
        nice: 0,
        meter: String::new(),
    }
}

/// Longest wait for the program that prints how busy graphics processors are. It may load a driver.
const GPU_QUERY: Duration = Duration::from_secs(10);

/// Returns the task that prints how busy the graphics processors of a host are.
fn gpu_query() -> ToWorker {
    let words = GPU_USE.iter().map(|word| RawText::from(*word)).collect();
    let task = Task { timeout_ms: Some(GPU_QUERY.as_millis() as u64), ..Task::of(Command::Argv(words)) };
    ToWorker::Run { ticket: 1, slot: 1, task, requires: vec![], weigh: false, fence: vec![], units: vec![] }
}

/// Keeps how busy the graphics processors are among the indices of the host.
fn note_gpus(facts: &mut HostFacts, printed: &[u8]) {
    let found = homing_probe::gpu_use(&String::from_utf8_lossy(printed));
    facts.indices.extend(found.map(|percent| (GPU_INDEX.to_string(), percent)));
}

fn query_host(name: &str) -> HostReading {
    if is_here(name) {
        let first = homing_probe::sample();
        std::thread::sleep(BETWEEN);
        let mut facts = homing_probe::facts();
        if facts.gpus > 0 {
            let printed = homing_os::process::run_shell(&GPU_USE.join(" "), GPU_QUERY);
            note_gpus(&mut facts, &printed.unwrap_or_default());
        }
        return Ok((facts, first, homing_probe::sample()));
    }
    let via = Via::Ssh { target: name.into() };
    let Channel { mut facts, mut to, mut from, keeper, .. } =
        homing_launch::open(name, &via, &Options::default()).map_err(|e| e.to_string())?;
    let begin = sampling("hosts", BETWEEN);
    let mut talk = || -> Result<(HostSample, HostSample), homing_launch::wire::WireError> {
        homing_launch::wire::send(&mut to, &begin)?;
        to.flush()?;
        let mut awaits_gpus = facts.gpus > 0;
        if awaits_gpus {
            homing_launch::wire::send(&mut to, &gpu_query())?;
            to.flush()?;
        }
        let mut samples = Vec::new();
        while samples.len() < 2 || awaits_gpus {
            match homing_launch::wire::receive(&mut from)? {
                Some(FromWorker::Sample(sample)) => samples.push(sample),
                Some(FromWorker::Ended(ended)) => {
                    note_gpus(&mut facts, &ended.stdout);
                    awaits_gpus = false;
                }
                Some(_) => {}
                None => return Err(homing_launch::wire::WireError::Garbled("its worker ended early".into())),
            }
        }
        let last = samples.remove(1);
        Ok((samples.remove(0), last))
    };
    let result = talk();
    drop(to);
    keeper.end(Duration::from_secs(2));
    result.map(|(first, last)| (facts, first, last)).map_err(|e| e.to_string())
}
