//! Runs the copy itself, and parses rsync's output.

use crate::instant::OWN;
use crate::rsync::{Copy, CopyOutcome, Stats, end, excluded};
use crate::run::{self, Reins};
use crate::tree::private;
use homing_os::folder::lock::FileLock;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

/// The most names that are kept in memory; the lists on disk have all.
const KEPT: usize = 1000;

/// The result of a copy.
#[derive(Clone, Debug)]
pub struct TransferResult {
    /// How it ended.
    pub end: CopyOutcome,
    /// rsync's figures.
    pub stats: Stats,
    /// The first names that patterns left out.
    pub excluded: Vec<String>,
    /// The number of all such names.
    pub excluded_count: u64,
    /// rsync's messages about files that it could not read.
    pub unreadable: Vec<String>,
    /// The number of files that vanished while it ran.
    pub vanished: usize,
}

/// Copies into an image's folder, which also gets the lists `excluded` and `rsync_error`.
pub fn copy(copy: &Copy, folder: &Path, held: &FileLock, reins: &Reins) -> io::Result<TransferResult> {
    let errors = folder.join("rsync_error");
    let mut command = run::rsync(copy.words());
    command.stdout(Stdio::piped()).stderr(private(&errors)?);
    let mut running = run::start(&mut command, Some(held), reins)?;
    let said = running.child.stdout.take().map(BufReader::new);
    let mut list = BufWriter::new(private(&folder.join("excluded"))?);
    let (mut stats, mut names, mut count) = (Stats::default(), Vec::new(), 0);
    for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if let Some(path) = excluded(&line) {
            if own(path) {
                continue;
            }
            writeln!(list, "{path}")?;
            count += 1;
            if names.len() < KEPT {
                names.push(path.to_string());
            }
        } else {
            stats.take(&line);
        }
    }
    list.flush()?;
    let status = running.wait()?;
    let text = String::from_utf8_lossy(&std::fs::read(&errors)?).into_owned();
    let telling = |line: &&str| line.starts_with("rsync: ") || line.contains("failed verification");
    Ok(TransferResult {
        end: end(status, &text),
        stats,
        excluded: names,
        excluded_count: count,
        unreadable: text.lines().filter(telling).take(KEPT).map(String::from).collect(),
        vanished: text.lines().filter(|line| line.contains(" has vanished: ")).count(),
    })
}

/// Whether it is one of homing's own folders, which users do not miss.
fn own(path: &str) -> bool {
    OWN.iter().any(|folder| path.starts_with(folder))
}
