//! Whole results, host by host, of bounded size.

use crate::Outcome;
use crate::pool::{Stream, What};
use std::collections::HashMap;
use std::time::Duration;

/// What came of a command on a host.
#[derive(Clone, Debug)]
pub struct HostResult {
    /// The host.
    pub host: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Standard output, at most [`crate::Options::keep`] bytes of it.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// Bytes of both that were dropped.
    pub dropped: u64,
    /// Time from its turn to its end, connection included.
    pub elapsed: Duration,
}

impl HostResult {
    /// Why it failed: the last lines of its standard error, or how it ended when it said nothing there.
    pub fn why(&self) -> String {
        let last = crate::last_lines(&String::from_utf8_lossy(&self.stderr));
        if last.is_empty() { self.outcome.to_string() } else { last }
    }
}

/// Results in the order in which hosts finish.
pub struct Results {
    stream: Stream,
    hosts: Vec<String>,
    keep: usize,
    running: HashMap<usize, Kept>,
}

#[derive(Default)]
struct Kept {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    dropped: u64,
}

impl Results {
    pub(crate) fn new(stream: Stream, hosts: &[impl AsRef<str>], keep: usize) -> Results {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        Results { stream, hosts, keep, running: HashMap::new() }
    }
}

impl Iterator for Results {
    type Item = HostResult;

    fn next(&mut self) -> Option<HostResult> {
        loop {
            let event = self.stream.next()?;
            let kept = self.running.entry(event.host).or_default();
            match event.what {
                What::Begun => {}
                What::Stdout(bytes) => kept.dropped += append(&mut kept.stdout, &bytes, self.keep),
                What::Stderr(bytes) => kept.dropped += append(&mut kept.stderr, &bytes, self.keep),
                What::Done(outcome, elapsed) => {
                    let Kept { stdout, stderr, dropped } = self.running.remove(&event.host).unwrap_or_default();
                    let host = self.hosts[event.host].clone();
                    return Some(HostResult { host, outcome, stdout, stderr, dropped, elapsed });
                }
            }
        }
    }
}

fn append(to: &mut Vec<u8>, bytes: &[u8], keep: usize) -> u64 {
    let taken = bytes.len().min(keep.saturating_sub(to.len()));
    to.extend(&bytes[..taken]);
    (bytes.len() - taken) as u64
}
