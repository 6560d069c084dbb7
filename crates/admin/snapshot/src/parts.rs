//! Copies the parts that several hosts read at the same time, before one copy goes over everything.

use crate::ask::{ReplySender, SnapshotReply};
use crate::rsync::{Copy, CopyOutcome, HostFolder, Stats, end};
use crate::run::{self, ChildGuard, Reins};
use crate::sender::MARK;
use crate::split::{CopyPart, PartResult};
use crate::tree::private;
use homing_os::folder::lock::FileLock;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

/// Copies all parts, and reports the end of each. A part that fails is reported, and has no other effect: the copy
/// that follows finds the missing files.
pub fn copy(
    copy: &Copy,
    parts: &[CopyPart],
    folder: &Path,
    held: &FileLock,
    reins: &Reins,
    say: ReplySender,
) -> Vec<PartResult> {
    let (tell, ended) = mpsc::channel();
    // This thread starts them all: they end when this thread ends.
    for (number, part) in parts.iter().enumerate() {
        let errors = folder.join(format!("rsync_error.{number}"));
        let tell = tell.clone();
        let failed = tell.clone();
        let begun = begin(copy, part, &errors, held, reins).and_then(|running| {
            let part = part.clone();
            homing_os::threads::begin(move || drop(tell.send((number, follow(running, &part, &errors)))))
        });
        if let Err(e) = begun {
            let _ = failed.send((number, Err(e.to_string())));
        }
    }
    drop(tell);
    let mut reads: Vec<Option<PartResult>> = vec![None; parts.len()];
    for (number, read) in ended.iter().take(parts.len()) {
        let name = &parts[number].name;
        let read = read.unwrap_or_else(|why| PartResult { why: Some(why), ..PartResult::default() });
        let note = read.why.as_ref().map(|why| format!("{name} did not read its whole part: {why}"));
        note.into_iter().for_each(|note| drop(say(SnapshotReply::Note(note))));
        let _ = say(SnapshotReply::Ended(number));
        reads[number] = Some(PartResult { host: name.clone(), ..read });
    }
    reads.into_iter().flatten().collect()
}

fn begin(copy: &Copy, part: &CopyPart, errors: &Path, held: &FileLock, reins: &Reins) -> io::Result<ChildGuard> {
    let from = HostFolder { host: part.host.clone(), path: part.path.clone() };
    let copy = Copy { from: &from, mark: Some(&part.mark), ..copy.clone() };
    let mut command = run::rsync(copy.part_words(&part.list));
    if from.host.is_none() {
        command.env(MARK, &part.mark);
    }
    command.stdout(Stdio::piped()).stderr(private(errors)?);
    run::start(&mut command, Some(held), reins)
}

fn follow(mut running: ChildGuard, part: &CopyPart, errors: &Path) -> Result<PartResult, String> {
    let failed = |e: io::Error| format!("reading the output of rsync: {e}");
    let said = running.child.stdout.take().map(BufReader::new);
    let mut stats = Stats::default();
    for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
        stats.take(&String::from_utf8_lossy(&line.map_err(failed)?));
    }
    let status = running.wait().map_err(failed)?;
    let text = String::from_utf8_lossy(&fs::read(errors).unwrap_or_default()).into_owned();
    let _ = fs::remove_file(errors);
    let why = match end(status, &text) {
        // The copy that follows reports the files that could not be read.
        CopyOutcome::Whole | CopyOutcome::Incomplete => None,
        CopyOutcome::Full => Some("the bank is full".into()),
        CopyOutcome::Failed(why) => Some(why),
    };
    let network = part.host.as_ref().map(|_| stats.sent);
    Ok(PartResult { host: String::new(), files: stats.files, bytes: stats.bytes, network, why })
}
