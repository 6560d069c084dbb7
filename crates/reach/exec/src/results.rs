//! Complete results, host by host, of bounded size.

use crate::CommandOutcome;
use crate::pool::{Giver, HostEventKind, PoolEvents};
use std::collections::HashMap;
use std::time::Duration;

/// The result of a command on a host.
#[derive(Clone, Debug)]
pub struct HostResult {
    /// The host.
    pub host: String,
    /// The machine that served it.
    pub giver: Giver,
    /// How it ended.
    pub outcome: CommandOutcome,
    /// Standard output, at most [`crate::Options::keep`] bytes of it.
    pub stdout: Vec<u8>,
    /// Standard error, with the same limit.
    pub stderr: Vec<u8>,
    /// Bytes of both that were dropped.
    pub dropped: u64,
    /// Time from its turn to its end, connection included.
    pub elapsed: Duration,
}

impl HostResult {
    /// Returns why it failed: the last lines of its standard error, or the way it ended if there are none.
    pub fn why(&self) -> String {
        let last = crate::last_lines(&String::from_utf8_lossy(&self.stderr));
        if last.is_empty() { self.outcome.to_string() } else { last }
    }
}

/// Results in the order in which hosts finish.
pub struct HostResults {
    stream: PoolEvents,
    hosts: Vec<String>,
    keep: usize,
    running: HashMap<usize, HostOutput>,
    loads: usize,
}

#[derive(Default)]
struct HostOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    dropped: u64,
}

impl HostResults {
    pub(crate) fn new(stream: PoolEvents, hosts: &[impl AsRef<str>], keep: usize) -> HostResults {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        HostResults { stream, hosts, keep, running: HashMap::new(), loads: 0 }
    }

    /// Returns how many leaders were loaded so far with the data to pass on.
    pub fn loads(&self) -> usize {
        self.loads
    }
}

impl Iterator for HostResults {
    type Item = HostResult;

    fn next(&mut self) -> Option<HostResult> {
        loop {
            let event = self.stream.next()?;
            if event.giver == Giver::Load {
                self.loads += usize::from(matches!(event.what, HostEventKind::Done(..)));
                continue;
            }
            let kept = self.running.entry(event.host).or_default();
            match event.what {
                // A host that begins again sends all its output again.
                HostEventKind::Begun => *kept = HostOutput::default(),
                HostEventKind::Alive => {}
                HostEventKind::Stdout(bytes) => kept.dropped += append(&mut kept.stdout, &bytes, self.keep),
                HostEventKind::Stderr(bytes) => kept.dropped += append(&mut kept.stderr, &bytes, self.keep),
                HostEventKind::Done(outcome, elapsed) => {
                    let HostOutput { stdout, stderr, dropped } = self.running.remove(&event.host).unwrap_or_default();
                    let host = self.hosts[event.host].clone();
                    return Some(HostResult { host, giver: event.giver, outcome, stdout, stderr, dropped, elapsed });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::HostProgress;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn what_a_host_has_told_before_it_was_begun_once_more_counts_once() {
        let (to, events) = sync_channel(8);
        let told = |giver, what| to.send(HostProgress { host: 0, giver, what }).unwrap();
        told(Giver::Leader(1), HostEventKind::Begun);
        told(Giver::Leader(1), HostEventKind::Stdout(b"one\n".to_vec()));
        told(Giver::Here, HostEventKind::Begun);
        told(Giver::Here, HostEventKind::Stdout(b"one\ntwo\n".to_vec()));
        told(Giver::Here, HostEventKind::Done(CommandOutcome::Exited(0), Duration::ZERO));
        drop(to);
        let (_, cancel) = std::io::pipe().unwrap();
        let stream = PoolEvents::new(events, cancel.into(), Vec::new());
        let all: Vec<HostResult> = HostResults::new(stream, &["n1"], 100).collect();
        assert_eq!((all.len(), all[0].stdout.as_slice()), (1, &b"one\ntwo\n"[..]));
    }
}
