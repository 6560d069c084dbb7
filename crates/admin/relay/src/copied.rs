//! Collects the results of a copy, host by host, from the output of rsync.

use crate::given_by;
use homing_exec::{CommandOutcome, Giver, HostEventKind, HostProgress, PoolEvents};
use homing_model::exit;
use homing_model::text::keep_tail;

/// Bytes of standard error that are kept of a host, the last ones. It is as much as is kept of a failed command
/// elsewhere ([`homing_exec::Options::keep`] limits all output of a command).
const TEXT: usize = 64 << 10;
/// A line without an end is passed on in pieces of this many bytes. rsync prints one line per file. Its path has at
/// most 4096 bytes (PATH_MAX), and each becomes at most four characters.
const LONGEST_LINE: usize = 32 << 10;

/// The result of one host.
#[derive(Clone, Debug)]
pub struct CopyResult {
    /// The status of its end.
    pub outcome: CommandOutcome,
    /// Files, folders and links that were changed.
    pub changed: u64,
    /// The duration in seconds.
    pub seconds: f64,
    /// The end of its standard error.
    pub text: Vec<u8>,
    /// Bytes that were sent from here, for this host and for the hosts to which it passes files on.
    pub sent: u64,
    /// The host that gave it its files, if it was not this machine.
    pub by: Option<String>,
}

/// A line of a host.
pub enum HostLine<'l> {
    /// Something was changed.
    Changed(&'l str),
    /// An error message of the host.
    Wrong(&'l str),
}

/// Collects the output of all hosts, and passes each line of a host to the callback as it arrives.
pub fn collected(hosts: &[String], stream: PoolEvents, on_line: &dyn Fn(&str, HostLine)) -> Vec<CopyResult> {
    let none =
        CopyResult { outcome: CommandOutcome::Killed, changed: 0, seconds: 0.0, text: Vec::new(), sent: 0, by: None };
    let mut copied = vec![none; hosts.len()];
    let mut begun: Vec<[Vec<u8>; 2]> = vec![Default::default(); hosts.len()];
    for HostProgress { host, giver, what } in stream {
        let (of, name) = (&mut copied[host], hosts[host].as_str());
        let (which, bytes) = match what {
            HostEventKind::Begun | HostEventKind::Alive => continue,
            HostEventKind::Done(..) if giver == Giver::Load => continue,
            HostEventKind::Stdout(bytes) => (0, bytes),
            HostEventKind::Stderr(bytes) => (1, bytes),
            HostEventKind::Done(outcome, elapsed) => {
                (of.outcome, of.seconds) = (explain_status(name, outcome), elapsed.as_secs_f64());
                of.by = given_by(giver, hosts, name);
                continue;
            }
        };
        if which == 1 {
            keep_tail(&mut of.text, &bytes, TEXT);
        }
        for line in lines(&mut begun[host][which], &bytes) {
            if which == 1 {
                on_line(name, HostLine::Wrong(&line));
                continue;
            }
            let (sent, line) = sent(&line);
            of.sent += if matches!(giver, Giver::Leader(_)) { 0 } else { sent };
            if giver != Giver::Load {
                of.changed += 1;
                on_line(name, HostLine::Changed(line));
            }
        }
    }
    for (host, lines) in begun.iter().enumerate() {
        if !lines[1].is_empty() {
            on_line(&hosts[host], HostLine::Wrong(&String::from_utf8_lossy(&lines[1])));
        }
    }
    copied
}

/// Returns the lines that these bytes complete; the rest is kept in `open`.
fn lines(open: &mut Vec<u8>, bytes: &[u8]) -> Vec<String> {
    let mut whole = Vec::new();
    for part in bytes.split_inclusive(|b| *b == b'\n') {
        open.extend(part);
        if part.ends_with(b"\n") || open.len() > LONGEST_LINE {
            let line = open.strip_suffix(b"\n").unwrap_or(open);
            whole.push(String::from_utf8_lossy(line).into_owned());
            open.clear();
        }
    }
    whole
}

impl CopyResult {
    /// Adds the result of comparing both sides afterwards. Returns the number of differences, if that is the fault.
    pub fn compared(&mut self, found: CopyResult) -> Option<u64> {
        if !self.outcome.is_ok() {
            return None;
        }
        let differs = found.outcome.is_ok() && found.changed > 0;
        self.outcome = if differs { CommandOutcome::Exited(1) } else { found.outcome };
        differs.then_some(found.changed)
    }

    /// Adds the result of a further path.
    pub fn joined(self, one: CopyResult) -> CopyResult {
        let outcome = if self.outcome.is_ok() { one.outcome } else { self.outcome };
        let (changed, seconds) = (self.changed + one.changed, self.seconds + one.seconds);
        let mut text = self.text;
        keep_tail(&mut text, &one.text, TEXT);
        CopyResult { outcome, changed, seconds, text, sent: self.sent + one.sent, by: self.by.or(one.by) }
    }
}

/// Splits a line of rsync into the bytes that were sent for it, and the rest.
fn sent(line: &str) -> (u64, &str) {
    let number = line.split_once(' ').and_then(|(sent, rest)| Some((sent.parse().ok()?, rest)));
    number.unwrap_or((0, line))
}

/// Explains statuses that rsync passes on: that of ssh, and that of a shell if a program is missing.
fn explain_status(host: &str, outcome: CommandOutcome) -> CommandOutcome {
    match outcome {
        CommandOutcome::Exited(255) => {
            CommandOutcome::Lost(format!("host {host}: the connection was lost during the copy"))
        }
        CommandOutcome::Exited(exit::NO_PROGRAM) => CommandOutcome::Unreachable(format!(
            "host {host}: rsync is missing on this machine or on {host}; install it on both"
        )),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(outcome: CommandOutcome, changed: u64) -> CopyResult {
        CopyResult { outcome, changed, seconds: 0.5, text: Vec::new(), sent: 7, by: None }
    }

    #[test]
    fn what_differs_after_a_copy_is_a_failure_and_an_earlier_one_stays_what_it_was() {
        let well = || of(CommandOutcome::Exited(0), 2);
        let mut one = well();
        assert_eq!((one.compared(of(CommandOutcome::Exited(0), 3)), one.outcome), (Some(3), CommandOutcome::Exited(1)));
        let mut one = well();
        assert_eq!((one.compared(of(CommandOutcome::TimedOut, 3)), one.outcome), (None, CommandOutcome::TimedOut));
        let mut one = of(CommandOutcome::Exited(23), 0);
        assert_eq!((one.compared(well()), one.outcome), (None, CommandOutcome::Exited(23)));
    }

    #[test]
    fn paths_of_a_host_add_up_and_the_first_failure_is_its_own() {
        let all = of(CommandOutcome::Exited(0), 1).joined(of(explain_status("n1", CommandOutcome::Exited(127)), 2));
        assert!(
            matches!(&all.outcome, CommandOutcome::Unreachable(why) if why.starts_with("host n1: rsync is missing"))
        );
        assert_eq!((all.changed, all.seconds, all.sent), (3, 1.0, 14));
        assert_eq!((sent("12 a b"), sent("deleting x")), ((12, "a b"), (0, "deleting x")));
    }

    #[test]
    fn a_line_without_an_end_and_one_without_bound_are_passed_on_in_pieces() {
        let (mut open, mut all, piece) = (Vec::new(), Vec::new(), vec![b'x'; 10_000]);
        for _ in 0..1000 {
            all.extend(lines(&mut open, &piece));
            assert!(open.len() <= LONGEST_LINE + piece.len());
        }
        assert_eq!(all.iter().map(String::len).sum::<usize>() + open.len(), 10_000_000);
        open.clear();
        assert_eq!((lines(&mut open, b"a\n\nb"), open), (vec!["a".to_string(), "".into()], b"b".to_vec()));
        let said = |count: usize| CopyResult { text: vec![b'y'; count], ..of(CommandOutcome::Exited(23), 0) };
        assert_eq!(said(TEXT).joined(said(1000)).text.len(), TEXT);
    }
}
