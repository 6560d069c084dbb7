//! `--json`: writes one document host by host, so that it needs no memory for all of it.

use super::Errand;
use super::show::input_lost;
use homing_exec::{CommandOutcome, HostResult, Remote, verdict};
use homing_model::document::VERSION;
use homing_model::{Failure, RawText};
use homing_relay::given_by;
use serde_json::{Value, json};
use std::io::Write;

/// Runs the command and prints the document; returns the exit status.
pub fn run(remote: &Remote, hosts: &[String], errand: &Errand, maxrc: bool) -> Result<i32, Failure> {
    let mut out = std::io::stdout().lock();
    let (mut status, mut first) = (0, true);
    let broken = |e| Failure::unwritten("writing to standard output failed", &e);
    write!(out, "{{\"version\":{VERSION},\"hosts\":[").map_err(broken)?;
    for result in remote.results_of(errand.begin(remote, hosts), hosts) {
        status = status.max(verdict::code(&result.outcome, maxrc));
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(out, "{comma}\n{}", row(&result, hosts)).map_err(broken)?;
        out.flush().map_err(broken)?;
    }
    let lost = errand.command.spool().and_then(|input| input.failure()).map(|why| input_lost(&why));
    let status = lost.as_ref().map_or(status, |failure| failure.status);
    writeln!(out, "\n],\"exit\":{status}}}").map_err(broken)?;
    lost.map_or(Ok(status), Err)
}

fn row(result: &HostResult, hosts: &[String]) -> Value {
    let (exit, why) = match &result.outcome {
        CommandOutcome::Exited(status) => (Some(*status), None),
        CommandOutcome::Unreachable(why) | CommandOutcome::Lost(why) => (None, Some(why)),
        CommandOutcome::Killed | CommandOutcome::TimedOut => (None, None),
    };
    json!({
        "host": result.host,
        "outcome": verdict::word(&result.outcome),
        "exit": exit,
        "reason": why,
        "by": given_by(result.giver, hosts, &result.host),
        "seconds": (result.elapsed.as_secs_f64() * 1e6).round() / 1e6,
        "stdout": RawText(result.stdout.clone()),
        "stderr": RawText(result.stderr.clone()),
        "dropped_bytes": result.dropped,
    })
}
