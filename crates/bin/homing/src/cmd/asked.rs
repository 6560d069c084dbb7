//! Queries hosts for their facts, and for two samples that give rates.

use homing_launch::wire::{FromWorker, ToWorker};
use homing_launch::{Channel, FAN_OUT, Options, Via};
use homing_model::HostSample;
use homing_os::names::is_here;
pub use homing_probe::Answer;
use std::time::Duration;

/// The time between the two samples.
pub const BETWEEN: Duration = Duration::from_millis(500);

/// Queries many hosts at once for facts and two samples.
pub fn ask_all(names: &[String]) -> Vec<Answer> {
    homing_os::threads::each_of(names, FAN_OUT, |name| ask(name))
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

fn ask(name: &str) -> Answer {
    if is_here(name) {
        let first = homing_probe::sample();
        std::thread::sleep(BETWEEN);
        return Ok((homing_probe::facts(), first, homing_probe::sample()));
    }
    let via = Via::Ssh { target: name.into() };
    let Channel { facts, mut to, mut from, keeper, .. } =
        homing_launch::open(name, &via, &Options::default()).map_err(|e| e.to_string())?;
    let begin = sampling("hosts", BETWEEN);
    let mut talk = || -> Result<(HostSample, HostSample), homing_launch::wire::WireError> {
        homing_launch::wire::send(&mut to, &begin)?;
        to.flush()?;
        let mut samples = Vec::new();
        while samples.len() < 2 {
            match homing_launch::wire::receive(&mut from)? {
                Some(FromWorker::Sample(sample)) => samples.push(sample),
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
