//! `--pipe`: cuts standard input into blocks of whole records, at the places where GNU parallel cuts it. A block is
//! in memory until its end is found; then it is a part of the file in which the run keeps its input.

use crate::blanks::is_space;
use crate::boundary::{Boundary, Separators, header};
use crate::error::BatchError;
use crate::inputs::{InputOpener, InputSource};
use crate::options::{BlockSize, Blocking, Each, InputOptions};
use crate::template::{CommandTemplate, Filling};
use homing_model::{Block, Command};
use memchr::memchr_iter;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::io::{BufRead, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// GNU parallel's largest block, bytes.
const LARGEST: usize = (1 << 31) - 1;

/// Most parts of the input that are the standard input of one command.
const MOST_PARTS: usize = 1000;

/// The blocks of standard input.
pub(crate) struct Piped {
    from: Box<dyn BufRead + Send>,
    /// The file in which all read bytes are kept.
    copy: PathBuf,
    size: usize,
    boundary: Boundary,
    each: Each,
    /// Bytes that were read; the first `given` of them are in blocks already.
    held: Vec<u8>,
    given: usize,
    /// The places in the input of the held bytes that are in no block yet.
    places: Places,
    /// The number of bytes that were read.
    read: u64,
    /// `-r`: empty and blank lines are left out; a line that is not whole yet waits here.
    partial: Option<Vec<u8>>,
    /// `--rrs`
    separators: Option<Separators>,
    /// The beginning of the input that precedes each block.
    header: Block,
    /// Whether a block was found in the held bytes.
    found: bool,
    ended: bool,
    template: CommandTemplate,
}

impl Piped {
    pub(crate) fn new(
        inputs: &mut dyn InputOpener,
        how: &Blocking,
        each: Each,
        options: &InputOptions,
        template: CommandTemplate,
    ) -> Result<Piped, BatchError> {
        let BlockSize::Bytes(size) = how.size else {
            let reason = "the size of standard input is not known; --pipepart -a FILE takes a number of blocks";
            return Err(BatchError::value("--block", "a number of blocks", reason));
        };
        let opened = inputs.open(Path::new("-"));
        let InputSource { from, copy, .. } =
            opened.map_err(|source| BatchError::Open { path: "standard input".into(), source })?;
        let boundary = Boundary::of(how)?;
        let copy = copy.unwrap_or_default();
        let mut piped = Piped {
            from,
            header: Block { path: copy.clone(), offset: 0, length: 0 },
            copy,
            size: usize::try_from(size).unwrap_or(LARGEST).clamp(1, LARGEST),
            boundary,
            each,
            held: Vec::new(),
            given: 0,
            places: Places::default(),
            read: 0,
            partial: options.no_run_if_empty.then(Vec::new),
            separators: how.removes_separators.then(|| Separators::of(how)).transpose()?,
            found: true,
            ended: false,
            template,
        };
        let unread = |source| BatchError::Read { name: "standard input".into(), source };
        if options.skip_first_line {
            piped.read += piped.from.read_until(b'\n', &mut Vec::new()).map_err(unread)? as u64;
        }
        if let Some(pattern) = &how.header {
            piped.read_header(&header(pattern)?).map_err(unread)?;
        }
        Ok(piped)
    }

    /// Returns the next command and its standard input.
    pub(crate) fn next(&mut self, seq: u64) -> Result<Option<(Command, Vec<Block>)>, BatchError> {
        loop {
            let length = match self.whole() {
                0 if self.ended => self.rest().len(),
                length => length,
            };
            if length > 0 {
                let command = self.template.fill(Filling { args: &[], seq, total: None });
                return Ok(Some((command, self.give(length)?)));
            }
            if self.ended {
                return Ok(None);
            }
            self.fill().map_err(|source| BatchError::Read { name: "standard input".into(), source })?;
        }
    }

    fn rest(&self) -> &[u8] {
        &self.held[self.given..]
    }

    /// Reads the input until it begins with the header. If it never does, there is no header.
    fn read_header(&mut self, header: &Regex) -> std::io::Result<()> {
        let mut begun = Vec::new();
        loop {
            let got = (&mut self.from).take(self.size as u64).read_to_end(&mut begun)?;
            let length = header.find(&begun).map(|found| found.end());
            if length.is_some() || got == 0 {
                self.header = Block { offset: self.read, length: length.unwrap_or(0) as u64, ..self.header.clone() };
                self.read += self.header.length;
                begun.drain(..self.header.length as usize);
                let rest = std::mem::replace(&mut self.from, Box::new(std::io::empty()));
                self.from = Box::new(Cursor::new(begun).chain(rest));
                return Ok(());
            }
        }
    }

    /// Reads up to the next multiple of the size. If no block was found since the last read, the size grows.
    fn fill(&mut self) -> std::io::Result<()> {
        if !std::mem::take(&mut self.found) {
            self.size = LARGEST.min((self.size as f64 * 1.3 + 1.0).ceil() as usize);
        }
        self.held.drain(..std::mem::take(&mut self.given));
        let waiting = self.partial.as_ref().map_or(0, Vec::len);
        let wanted = self.size - (self.held.len() + waiting) % self.size;
        let to = self.partial.as_mut().unwrap_or(&mut self.held);
        let got = (&mut self.from).take(wanted as u64).read_to_end(to)?;
        self.ended = got < wanted;
        if self.partial.is_some() {
            self.keep_lines(self.read - waiting as u64);
        } else {
            self.places.add(self.read, got);
        }
        self.read += got as u64;
        Ok(())
    }

    /// Keeps the whole lines that are not blank. `at`: the place of the first one in the input.
    fn keep_lines(&mut self, mut at: u64) {
        let Some(partial) = &mut self.partial else { return };
        let whole = if self.ended { partial.len() } else { memchr::memrchr(b'\n', partial).map_or(0, |at| at + 1) };
        for line in partial[..whole].split_inclusive(|byte| *byte == b'\n') {
            if !(line.ends_with(b"\n") && line.iter().all(is_space)) {
                self.held.extend_from_slice(line);
                self.places.add(at, line.len());
            }
            at += line.len() as u64;
        }
        partial.drain(..whole);
    }

    /// Returns the length of the next block in the held bytes, 0 while its end is missing.
    fn whole(&self) -> usize {
        match self.each {
            // At the end of the input, the rest is one block.
            Each::Fitting if self.ended => 0,
            Each::Fitting => self.boundary.last(self.rest()).unwrap_or(0),
            Each::Records(number) => self.boundary.nth(self.rest(), number).unwrap_or(0),
            Each::Lines(number) => lines(self.rest(), number),
        }
    }

    fn give(&mut self, length: usize) -> Result<Vec<Block>, BatchError> {
        let left = self.separators.as_ref().map(|separators| separators.left(&self.rest()[..length]));
        let mut places = self.places.take(length);
        if let Some(left) = left {
            places = left.into_iter().flat_map(|range| places.part(range)).collect();
        }
        if places.0.len() > MOST_PARTS {
            let option = if self.separators.is_some() { "--rrs" } else { "-r" };
            let reason = format!(
                "a block would be of more than {MOST_PARTS} parts; a smaller --block or -N, or tr or sed before homing run"
            );
            return Err(BatchError::value(option, "", &reason));
        }
        let block = |(offset, length)| Block { path: self.copy.clone(), offset, length };
        let header = Some(self.header.clone()).filter(|header| header.length > 0);
        let blocks = header.into_iter().chain(places.0.into_iter().map(block)).collect();
        self.given += length;
        self.found = true;
        Ok(blocks)
    }
}

/// Reads all of standard input, and returns it as the input of each command (`--tee`).
pub(crate) fn whole_input(inputs: &mut dyn InputOpener) -> Result<Block, BatchError> {
    let opened = inputs.open(Path::new("-"));
    let InputSource { mut from, copy, .. } =
        opened.map_err(|source| BatchError::Open { path: "standard input".into(), source })?;
    let length = std::io::copy(&mut (&mut from).take(LARGEST as u64 + 1), &mut std::io::sink());
    let length = length.map_err(|source| BatchError::Read { name: "standard input".into(), source })?;
    if length > LARGEST as u64 {
        let reason = "standard input is larger than 2 GiB, which each command would hold in memory; give each the name of a file";
        return Err(BatchError::value("--tee", "", reason));
    }
    Ok(Block { path: copy.unwrap_or_default(), offset: 0, length })
}

/// The places of bytes in the input: offsets and lengths.
#[derive(Debug, Default)]
struct Places(VecDeque<(u64, u64)>);

impl Places {
    fn add(&mut self, offset: u64, length: usize) {
        match self.0.back_mut() {
            Some((at, long)) if *at + *long == offset => *long += length as u64,
            _ => self.0.push_back((offset, length as u64)),
        }
    }

    /// Removes and returns the places of the first `length` bytes.
    fn take(&mut self, length: usize) -> Places {
        let (mut taken, mut left) = (Places::default(), length as u64);
        while left > 0
            && let Some((offset, long)) = self.0.pop_front()
        {
            let used = long.min(left);
            taken.0.push_back((offset, used));
            if used < long {
                self.0.push_front((offset + used, long - used));
            }
            left -= used;
        }
        taken
    }

    /// Returns the places of some of the bytes.
    fn part(&self, range: Range<usize>) -> impl Iterator<Item = (u64, u64)> {
        let mut before = 0;
        self.0.iter().filter_map(move |(offset, long)| {
            let (begin, end) = (before.max(range.start as u64), (before + long).min(range.end as u64));
            let found = (begin < end).then(|| (offset + begin - before, end - begin));
            before += long;
            found
        })
    }
}

impl FromIterator<(u64, u64)> for Places {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(parts: I) -> Places {
        Places(parts.into_iter().collect())
    }
}

/// Returns the length of the lines in `text`, a multiple of `number` of them.
fn lines(text: &[u8], number: usize) -> usize {
    let all = memchr_iter(b'\n', text).count();
    let whole = all - all % number;
    whole.checked_sub(1).and_then(|last| memchr_iter(b'\n', text).nth(last)).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Files;
    use crate::options::InputOptions;
    use crate::strings::Strings;
    use std::io::Cursor;

    fn how(size: u64, recstart: &str, recend: &str) -> Blocking {
        Blocking {
            size: BlockSize::Bytes(size),
            recstart: recstart.into(),
            recend: recend.into(),
            regexp: false,
            header: None,
            tee: false,
            removes_separators: false,
            piped: None,
        }
    }

    fn blocks(content: &str, how: &Blocking, each: Each, header: bool) -> Vec<String> {
        let how = Blocking { header: header.then(|| ":".into()), ..how.clone() };
        blocks_with(content, &how, each, InputOptions::default())
    }

    fn blocks_with(content: &str, how: &Blocking, each: Each, options: InputOptions) -> Vec<String> {
        let template = CommandTemplate::parse(&["cat".into()], &InputOptions::default(), &Strings::default()).unwrap();
        let mut inputs = Files::new(Path::new("."), Box::new(Cursor::new(content.to_string())));
        let mut piped = Piped::new(&mut inputs, how, each, &options, template).unwrap();
        let mut found = Vec::new();
        while let Some((_, blocks)) = piped.next(1).unwrap() {
            let text = |b: &Block| &content[b.offset as usize..(b.offset + b.length) as usize];
            found.push(blocks.iter().map(text).collect());
        }
        found
    }

    #[test]
    fn blocks_are_whole_records_and_nothing_is_lost() {
        let newline = |size| how(size, "", "\n");
        let fitting = |content, how: Blocking| blocks(content, &how, Each::Fitting, false);
        assert_eq!(fitting("a\nbb\nc\nd", newline(4)), ["a\n", "bb\n", "c\nd"]);
        assert_eq!(fitting("a\nb\n", newline(100)), ["a\nb\n"]);
        assert_eq!(fitting("aaaaaaaaaa\nb\n", newline(1)), ["aaaaaaaaaa\n", "b\n"]);
        assert_eq!(fitting("abcdef", how(4, "", "")), ["abcd", "ef"]);
        assert_eq!(fitting(">a\nx\n>b\ny\n>c", how(6, ">", "")), [">a\nx\n", ">b\ny\n", ">c"]);
        assert!(fitting("", newline(4)).is_empty());
    }

    #[test]
    fn blocks_of_so_many_records_or_lines() {
        let newline = how(1 << 20, "", "\n");
        assert_eq!(blocks("1\n2\n3\n", &newline, Each::Records(2), false), ["1\n2\n", "3\n"]);
        assert_eq!(blocks("1\n2\n3\n", &how(1, "", "\n"), Each::Records(2), false), ["1\n2\n", "3\n"]);
        assert_eq!(blocks("1\n2\n3\n4\n5", &newline, Each::Lines(2), false), ["1\n2\n3\n4\n", "5"]);
        assert_eq!(blocks(">a>b>c", &how(9, ">", ""), Each::Records(1), false), [">a", ">b", ">c"]);
    }

    #[test]
    fn what_is_left_out_is_in_no_block() {
        let newline = how(1 << 20, "", "\n");
        let blank = || InputOptions { no_run_if_empty: true, ..Default::default() };
        assert!(blocks_with("\n \n", &newline, Each::Fitting, blank()).is_empty());
        assert_eq!(blocks_with("1\n\n \n2\n\n3", &newline, Each::Records(2), blank()), ["1\n2\n", "3"]);
        assert_eq!(blocks_with("1\n\n2\n", &how(3, "", "\n"), Each::Fitting, blank()), ["1\n", "2\n"]);
        let without = Blocking { removes_separators: true, ..how(1 << 20, "", "+") };
        assert_eq!(blocks_with("a+b\n", &without, Each::Records(1), InputOptions::default()), ["a", "b\n"]);
        assert_eq!(blocks_with("a+b+c", &without, Each::Fitting, InputOptions::default()), ["abc"]);
        let second = Blocking { header: Some("2".into()), ..newline };
        let skips = || InputOptions { skip_first_line: true, ..Default::default() };
        assert_eq!(blocks_with("0\nh\ni\n1\n2\n", &second, Each::Records(1), skips()), ["h\ni\n1\n", "h\ni\n2\n"]);
        let parts = "+a".repeat(MOST_PARTS + 2);
        let mut inputs = Files::new(Path::new("."), Box::new(Cursor::new(parts)));
        let template = CommandTemplate::parse(&["cat".into()], &InputOptions::default(), &Strings::default()).unwrap();
        let mut piped = Piped::new(&mut inputs, &without, Each::Fitting, &InputOptions::default(), template).unwrap();
        assert!(piped.next(1).unwrap_err().to_string().contains("1000 parts"));
    }

    #[test]
    fn the_first_line_goes_before_each_block() {
        let newline = how(1 << 20, "", "\n");
        assert_eq!(blocks("h\n1\n2\n3\n", &newline, Each::Records(2), true), ["h\n1\n2\n", "h\n3\n"]);
        assert!(blocks("h\n", &newline, Each::Fitting, true).is_empty());
        assert_eq!(blocks("no line", &newline, Each::Fitting, true), ["no line"]);
    }
}
