//! `--pipe`: cuts standard input into blocks of whole records, at the places where GNU parallel cuts it. A block is
//! in memory until its end is found; then it is a part of the file in which the run keeps its input.

use crate::boundary::Boundary;
use crate::error::BatchError;
use crate::inputs::{InputOpener, InputSource};
use crate::options::{BlockSize, Blocking, Each};
use crate::template::{CommandTemplate, Filling};
use homing_model::{Block, Command};
use memchr::memchr_iter;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// GNU parallel's largest block, bytes.
const LARGEST: usize = (1 << 31) - 1;

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
    /// Offset in the input of the first byte that is in no block yet.
    at: u64,
    /// Length of the first line, which precedes each block; `None` before it was read.
    header: Option<u64>,
    /// Whether a block was found in the held bytes.
    found: bool,
    ended: bool,
    template: CommandTemplate,
}

impl Piped {
    /// `header`: the first line precedes each block.
    pub(crate) fn new(
        inputs: &mut dyn InputOpener,
        how: &Blocking,
        each: Each,
        header: bool,
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
        Ok(Piped {
            from,
            copy: copy.unwrap_or_default(),
            size: usize::try_from(size).unwrap_or(LARGEST).clamp(1, LARGEST),
            boundary,
            each,
            held: Vec::new(),
            given: 0,
            at: 0,
            header: (!header).then_some(0),
            found: true,
            ended: false,
            template,
        })
    }

    /// Returns the next command and its standard input.
    pub(crate) fn next(&mut self, seq: u64) -> Result<Option<(Command, Vec<Block>)>, BatchError> {
        let unread = |source| BatchError::Read { name: "standard input".into(), source };
        if self.header.is_none() {
            self.read_header().map_err(unread)?;
        }
        loop {
            let length = match self.whole() {
                0 if self.ended => self.rest().len(),
                length => length,
            };
            if length > 0 {
                let command = self.template.fill(Filling { args: &[], seq, total: None });
                return Ok(Some((command, self.give(length as u64))));
            }
            if self.ended {
                return Ok(None);
            }
            self.fill().map_err(unread)?;
        }
    }

    fn rest(&self) -> &[u8] {
        &self.held[self.given..]
    }

    fn read_header(&mut self) -> std::io::Result<()> {
        let mut line = Vec::new();
        self.from.read_until(b'\n', &mut line)?;
        if line.last() == Some(&b'\n') {
            self.at = line.len() as u64;
        } else {
            self.held = line;
        }
        self.header = Some(self.at);
        Ok(())
    }

    /// Reads up to the next multiple of the size. If no block was found since the last read, the size grows.
    fn fill(&mut self) -> std::io::Result<()> {
        if !std::mem::take(&mut self.found) {
            self.size = LARGEST.min((self.size as f64 * 1.3 + 1.0).ceil() as usize);
        }
        self.held.drain(..std::mem::take(&mut self.given));
        let wanted = self.size - self.held.len() % self.size;
        let got = (&mut self.from).take(wanted as u64).read_to_end(&mut self.held)?;
        self.ended = got < wanted;
        Ok(())
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

    fn give(&mut self, length: u64) -> Vec<Block> {
        let block = |offset, length| Block { path: self.copy.clone(), offset, length };
        let header = self.header.filter(|length| *length > 0).map(|length| block(0, length));
        let blocks = header.into_iter().chain([block(self.at, length)]).collect();
        self.at += length;
        self.given += length as usize;
        self.found = true;
        blocks
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
            piped: None,
        }
    }

    fn blocks(content: &str, how: &Blocking, each: Each, header: bool) -> Vec<String> {
        let template = CommandTemplate::parse(&["cat".into()], &InputOptions::default(), &Strings::default()).unwrap();
        let mut inputs = Files::new(Path::new("."), Box::new(Cursor::new(content.to_string())));
        let mut piped = Piped::new(&mut inputs, how, each, header, template).unwrap();
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
    fn the_first_line_goes_before_each_block() {
        let newline = how(1 << 20, "", "\n");
        assert_eq!(blocks("h\n1\n2\n3\n", &newline, Each::Records(2), true), ["h\n1\n2\n", "h\n3\n"]);
        assert!(blocks("h\n", &newline, Each::Fitting, true).is_empty());
        assert_eq!(blocks("no line", &newline, Each::Fitting, true), ["no line"]);
    }
}
