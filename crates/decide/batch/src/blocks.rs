//! `--pipepart`: cuts files into blocks of whole records, each of them the standard input of one command. It reads
//! only the bytes around the cuts.

use crate::boundary::{Boundary, header};
use crate::error::BatchError;
use crate::options::{BlockSize, Blocking};
use crate::quote::{command_line, quote};
use crate::template::{CommandTemplate, Filling};
use homing_model::{Block, Command, RawText};
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are read at once to find the end of a record.
const PIECE: usize = 128 << 10;

/// The blocks of the files, one after the other.
pub(crate) struct Blocks {
    files: VecDeque<PathBuf>,
    open: Option<Open>,
    size: u64,
    boundary: Boundary,
    header: Option<Regex>,
    skip_first_line: bool,
    template: CommandTemplate,
    pub(crate) last: Option<Block>,
}

struct Open {
    path: PathBuf,
    file: File,
    size: u64,
    at: u64,
    /// The part that precedes each block.
    header: Range<u64>,
}

fn unread(path: &Path) -> impl Fn(io::Error) -> BatchError {
    move |source| BatchError::Read { name: path.display().to_string(), source }
}

impl Blocks {
    /// `files` are absolute. `skip_first_line`: the first line of each file is in no block.
    pub(crate) fn new(
        files: Vec<PathBuf>,
        how: &Blocking,
        skip_first_line: bool,
        template: CommandTemplate,
    ) -> Result<Blocks, BatchError> {
        if files.is_empty() {
            return Err(BatchError::value("--pipepart", "", "name the file to be cut with -a FILE"));
        }
        let mut all = 0;
        for path in &files {
            let known = path.metadata();
            let known = known.map_err(|source| BatchError::Open { path: path.display().to_string(), source })?;
            if !known.is_file() {
                return Err(BatchError::value("--pipepart", &path.display().to_string(), "it is not a regular file"));
            }
            all += known.len();
        }
        let size = match how.size {
            BlockSize::Bytes(bytes) => bytes.max(1),
            BlockSize::Number(number) => 1 + (all as f64 / number) as u64,
        };
        let boundary = Boundary::of(how)?;
        let header = how.header.as_deref().map(header).transpose()?;
        Ok(Blocks { files: files.into(), open: None, size, boundary, header, skip_first_line, template, last: None })
    }

    /// Returns the next command; its block is in `last`.
    pub(crate) fn next(&mut self, seq: u64) -> Result<Option<Command>, BatchError> {
        let Some(mut open) = self.opened()? else { return Ok(None) };
        let end = self.cut(&open, open.at.saturating_add(self.size)).map_err(unread(&open.path))?;
        let block = Block { path: open.path.clone(), offset: open.at, length: end - open.at };
        let command = self.template.fill(Filling { args: &[], seq, total: None });
        let line = line(&block, &open.header, &command_line(&command));
        open.at = end;
        self.open = Some(open);
        self.last = Some(block);
        Ok(Some(Command::Shell(RawText(line))))
    }

    /// Returns a file with bytes left.
    fn opened(&mut self) -> Result<Option<Open>, BatchError> {
        loop {
            if let Some(open) = self.open.take().filter(|open| open.at < open.size) {
                return Ok(Some(open));
            }
            let Some(path) = self.files.pop_front() else { return Ok(None) };
            let file = File::open(&path).map_err(unread(&path))?;
            let size = file.metadata().map_err(unread(&path))?.len();
            let newline = Boundary::Text(b"\n".into(), 1);
            let skipped = self.skip_first_line.then(|| after(&file, &newline, 0, size)).transpose();
            let begin = skipped.map_err(unread(&path))?.unwrap_or(0);
            let length = self.header.as_ref().map(|header| header_length(&file, header, begin)).transpose();
            let end = begin + length.map_err(unread(&path))?.unwrap_or(0);
            self.open = Some(Open { path, file, size, at: end, header: begin..end });
        }
    }

    /// Returns the end of the record that holds byte `from`.
    fn cut(&self, open: &Open, from: u64) -> io::Result<u64> {
        if from >= open.size || self.boundary.is_anywhere() {
            return Ok(from.min(open.size));
        }
        after(&open.file, &self.boundary, from, open.size)
    }
}

/// Returns the end of the first record that ends after `from`, or the end of the file.
fn after(file: &File, boundary: &Boundary, from: u64, size: u64) -> io::Result<u64> {
    let (mut held, mut start) = (Vec::new(), from);
    loop {
        let filled = held.len();
        held.resize(filled + PIECE, 0);
        let got = file.read_at(&mut held[filled..], start + filled as u64)?;
        held.truncate(filled + got);
        if let Some(at) = boundary.first(&held) {
            return Ok(start + at as u64);
        }
        if got == 0 {
            return Ok(size);
        }
        let gone = held.len().saturating_sub(boundary.overlap());
        held.drain(..gone);
        start += gone as u64;
    }
}

/// Returns the length of the header that begins at `begin`, 0 if there is none.
fn header_length(file: &File, header: &Regex, begin: u64) -> io::Result<u64> {
    let mut held = Vec::new();
    loop {
        let filled = held.len();
        held.resize(filled + PIECE, 0);
        let got = file.read_at(&mut held[filled..], begin + filled as u64)?;
        held.truncate(filled + got);
        match header.find(&held) {
            Some(found) => return Ok(found.end() as u64),
            None if got == 0 => return Ok(0),
            None => {}
        }
    }
}

/// Returns a shell's line that gives the command its block. If the file cannot be read, the task must not succeed
/// with half of its input. 141 is the status of the reader if the command needs no more.
fn line(block: &Block, header: &Range<u64>, command: &[u8]) -> Vec<u8> {
    let file = String::from_utf8_lossy(&quote(block.path.as_os_str().as_bytes())).into_owned();
    let part = |offset: u64, length: u64| {
        let flags = "bs=1M iflag=skip_bytes,count_bytes,fullblock status=none";
        format!("dd if={file} {flags} skip={offset} count={length}")
    };
    let body = part(block.offset, block.length);
    let reader = match header.end - header.start {
        0 => body,
        length => format!("{} && {body}", part(header.start, length)),
    };
    let mut line = format!("{{ {reader} || test $? -eq 141 || kill -TERM $$; }} | (").into_bytes();
    line.extend_from_slice(command);
    line.push(b')');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::InputOptions;
    use crate::strings::Strings;

    fn blocks(content: &str, size: u64, recstart: &str, recend: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        std::fs::write(&path, content).unwrap();
        let how = Blocking {
            size: BlockSize::Bytes(size),
            recstart: recstart.into(),
            recend: recend.into(),
            regexp: false,
            header: None,
            tee: false,
            removes_separators: false,
            piped: None,
        };
        let template = CommandTemplate::parse(&["cat".into()], &InputOptions::default(), &Strings::default()).unwrap();
        let mut blocks = Blocks::new(vec![path], &how, false, template).unwrap();
        let mut found = Vec::new();
        while blocks.next(1).unwrap().is_some() {
            let Block { offset, length, .. } = blocks.last.clone().unwrap();
            found.push(content[offset as usize..(offset + length) as usize].to_string());
        }
        found
    }

    #[test]
    fn records_stay_whole_and_nothing_is_lost() {
        assert_eq!(blocks("a\nbb\nc\nd", 2, "", "\n"), ["a\nbb\n", "c\nd"]);
        assert_eq!(blocks("a\nb\n", 100, "", "\n"), ["a\nb\n"]);
        assert_eq!(blocks(">a\nx\n>b\ny\n>c", 3, ">", ""), [">a\nx\n", ">b\ny\n", ">c"]);
        assert_eq!(blocks("abcdef", 4, "", ""), ["abcd", "ef"]);
        assert!(blocks("", 4, "", "\n").is_empty());
        let long = format!("{}END{}END", "x".repeat(PIECE - 1), "y".repeat(3 * PIECE));
        let cut = blocks(&long, 1, "", "END");
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [PIECE + 2, 3 * PIECE + 3]);
    }
}
