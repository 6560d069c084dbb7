//! Sums of other hosts, from the lines of their own `homing usage`.

use crate::usage::UsageLine;
use homing_exec::{Command, CommandOutcome, Options, Remote};
use std::time::Duration;

/// 10,000 runs of a host are added up in some seconds; a host that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The request.
pub struct UsageRequest {
    /// Whether jobs are wanted too.
    pub jobs: bool,
    /// Whether all users are wanted.
    pub users: bool,
    /// Only runs and jobs that ended in this time until now.
    pub since: Option<Duration>,
}

impl UsageRequest {
    fn words(&self) -> Vec<String> {
        let mut words = vec!["homing".to_string(), "usage".into(), "--lines".into()];
        words.extend(self.jobs.then(|| "--jobs".into()));
        words.extend(self.users.then(|| "--users".into()));
        words.extend(self.since.map(|since| format!("--since={}s", since.as_secs())));
        words
    }
}

/// Returns the lines of the hosts, and why some hosts returned none.
pub fn lines(hosts: &[String], request: &UsageRequest) -> (Vec<UsageLine>, Vec<String>) {
    let options = Options { command_timeout: Some(PATIENCE), ..Options::default() };
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    for result in Remote::new(options).run(hosts, &Command::argv(request.words())) {
        match result.outcome {
            CommandOutcome::Exited(0) => match read(&result.stdout) {
                Ok(told) => lines.extend(told),
                Err(why) => failed.push(format!("host {}: {why}", result.host)),
            },
            other => {
                let said = homing_model::text::last_line(&result.stderr, 200)
                    .map_or(String::new(), |said| format!(", {said}"));
                failed.push(format!("host {}: `homing usage` failed there: {other}{said}", result.host));
            }
        }
    }
    (lines, failed)
}

fn read(text: &[u8]) -> Result<Vec<UsageLine>, String> {
    let lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            serde_json::from_slice(line)
                .map_err(|e| format!("this version cannot read a line of its `homing usage`: {e}"))
        })
        .collect()
}
