//! The result of a copy, as text and as JSON.

use super::Args;
use homing_exec::{CommandOutcome, verdict};
use homing_model::Failure;
use homing_model::alike::label;
use homing_model::{NodeSet, RawText, document, units};
use homing_relay::CopyResult;
use serde_json::json;

/// Prints the result; returns the exit status.
pub fn conclude(args: &Args, hosts: &[String], copied: &[CopyResult], push: bool) -> Result<i32, Failure> {
    let rows = || hosts.iter().zip(copied);
    let status = copied.iter().map(|c| verdict::code(&c.outcome, false)).max().unwrap_or(0);
    let bytes: u64 = copied.iter().map(|c| c.sent).sum();
    if args.json {
        let row = |(host, c): (&String, &CopyResult)| {
            let exit = if let CommandOutcome::Exited(status) = c.outcome { Some(status) } else { None };
            let mut row = json!({
                "host": host, "outcome": verdict::word(&c.outcome), "exit": exit, "changed": c.changed,
                "seconds": (c.seconds * 1e6).round() / 1e6, "stderr": RawText(c.text.clone()),
            });
            if push {
                row["by"] = json!(c.by);
            }
            row
        };
        let mut all = json!({ "hosts": rows().map(row).collect::<Vec<_>>(), "exit": status });
        if push {
            all["sent_bytes"] = json!(bytes);
        }
        print!("{}", document::line(all));
    } else if !args.quiet {
        let lines = verdict::lines(rows().map(|(h, c)| (h.as_str(), &c.outcome)));
        lines.iter().for_each(|line| eprintln!("homing: {line}"));
        let same: NodeSet =
            rows().filter(|(_, c)| c.outcome.is_ok() && c.changed == 0).map(|(h, _)| h.clone()).collect();
        if args.verbose && !same.is_empty() {
            println!("{}: nothing to change", label(&same));
        }
        if args.verbose && bytes > 0 {
            println!("{}", left_here(bytes, copied));
        }
    }
    Ok(status)
}

/// Returns the line with the bytes that left this machine, and the number of hosts that got files from others.
fn left_here(sent: u64, copied: &[CopyResult]) -> String {
    let passed = copied.iter().filter(|c| c.by.is_some()).count();
    let rest = if passed > 0 {
        format!("; {passed} of {} hosts received their files from other hosts", copied.len())
    } else {
        String::new()
    };
    format!("{} of files were sent from this machine{rest}", units::bytes(sent))
}
