//! The reading side: a journal as an iterator of events.

use crate::seal::{self, Seal};
use crate::{FILE, FORMAT, JournalError};
use homing_model::Event;
use homing_model::event::EventKind;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Every kind of event that this homing knows, by its name in `event`.
pub(crate) const KINDS: [&str; 14] = [
    "run_started",
    "run_resumed",
    "host_up",
    "host_lost",
    "host_unfit",
    "sample",
    "limit",
    "leases",
    "task_started",
    "task_ended",
    "task_skipped",
    "task_again",
    "note",
    "run_ended",
];

/// The events of a journal in order. A torn last line is dropped, also while the run still goes on. Kinds of a later
/// homing are skipped and counted. A damaged line and a gap between lines are errors that name the line; iteration
/// may continue after them.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    from: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    skipped: u64,
    /// The number of the next record.
    next: u64,
    /// Whether a record with a seal was read. The records after it have one too.
    sealed: bool,
    /// Whether damage was reported since the last good record. That report covers the gap that the damage left.
    damaged: bool,
    /// Whether the line in memory is still to be returned, because a gap before it was reported first.
    held: bool,
    end: ReaderState,
}

/// Whether the iterator has reached the end.
#[derive(Debug)]
enum ReaderState {
    NotYet,
    /// At the end, after so many bytes of an incomplete line.
    Met(usize),
    /// At the end for good: later lines are not read.
    Final,
}

/// Opens the journal in a run's folder for reading. Takes no lock.
pub fn replay(dir: &Path) -> Result<Replay, JournalError> {
    let path = dir.join(FILE);
    let file = File::open(&path).map_err(JournalError::io("read", &path))?;
    let from = BufReader::with_capacity(256 << 10, file);
    Ok(Replay {
        path,
        from,
        line: Vec::new(),
        number: 0,
        skipped: 0,
        next: 1,
        sealed: false,
        damaged: false,
        held: false,
        end: ReaderState::NotYet,
    })
}

impl Replay {
    /// Returns the number of records of unknown kind so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Continues after the end with the lines appended meanwhile. A journal of a later format, and one that cannot be
    /// read, stay at their end.
    pub fn go_on(&mut self) {
        if let ReaderState::Met(torn) = self.end
            && self.from.seek_relative(-(torn as i64)).is_ok()
        {
            self.end = ReaderState::NotYet;
        }
    }

    /// Returns why the line is damaged or does not follow the line before, or `None` for a good line.
    fn fault(&mut self) -> Option<String> {
        match seal::of(&self.line) {
            Seal::Broken => Some("its checksum does not match".into()),
            Seal::None if self.sealed => Some("it has no checksum, unlike the records before it".into()),
            Seal::None => {
                self.next += 1;
                None
            }
            Seal::Number(n) if n < self.next && (self.sealed || !self.damaged) => {
                Some(format!("it is record {n}, but record {} should come next", self.next))
            }
            Seal::Number(n) if n > self.next && !self.damaged => {
                self.held = true;
                let missing = format!("records {} to {} are missing before it", self.next, n - 1);
                self.next = n;
                Some(missing)
            }
            Seal::Number(n) => {
                (self.next, self.sealed, self.damaged) = (n.saturating_add(1), true, false);
                None
            }
        }
    }

    fn damage(&mut self, reason: String) -> JournalError {
        self.damaged = !self.held;
        JournalError::Damaged { path: self.path.clone(), line: self.number, reason }
    }

    /// Returns the line in memory as an item, unless it is to be skipped.
    fn taken(&mut self) -> Option<Result<Event, JournalError>> {
        match self.fault() {
            Some(reason) => Some(Err(self.damage(reason))),
            None => self.parse(),
        }
    }

    fn parse(&mut self) -> Option<Result<Event, JournalError>> {
        match serde_json::from_slice::<Event>(&self.line) {
            Ok(Event { what: EventKind::RunStarted { v, .. }, .. }) if v > FORMAT => {
                self.end = ReaderState::Final;
                Some(Err(JournalError::Newer { path: self.path.clone(), found: v }))
            }
            Ok(event) => Some(Ok(event)),
            Err(_) if is_unknown_kind(&self.line) => {
                self.skipped += 1;
                None
            }
            Err(e) => Some(Err(self.damage(e.to_string()))),
        }
    }
}

impl Iterator for Replay {
    type Item = Result<Event, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        while matches!(self.end, ReaderState::NotYet) {
            if std::mem::take(&mut self.held) {
                match self.taken() {
                    None => continue,
                    item => return item,
                }
            }
            self.line.clear();
            if let Err(e) = self.from.read_until(b'\n', &mut self.line) {
                self.end = ReaderState::Final;
                return Some(Err(JournalError::io("read", &self.path)(e)));
            }
            if self.line.last() != Some(&b'\n') {
                self.end = ReaderState::Met(self.line.len());
                return None;
            }
            self.line.pop();
            self.number += 1;
            if let Some(item) = self.taken() {
                return Some(item);
            }
        }
        None
    }
}

/// Returns the event of a single line, unless the line is damaged.
pub(crate) fn event_of(line: &[u8]) -> Option<Event> {
    if seal::of(line) == Seal::Broken { None } else { serde_json::from_slice(line).ok() }
}

fn is_unknown_kind(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        event: String,
    }
    serde_json::from_slice::<Head>(line).is_ok_and(|head| !KINDS.contains(&head.event.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_kinds_are_those_of_the_golden_file() {
        let mut golden: Vec<String> = include_str!("../tests/golden.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].as_str().unwrap().to_string())
            .collect();
        let mut known = KINDS.map(String::from).to_vec();
        golden.sort();
        known.sort();
        assert_eq!(golden, known);
    }
}
