//! What tasks print: grouped by task, in order when asked for, in a bounded
//! amount of memory however much they print. What does not fit lies in
//! unlinked files in the run's own folder.

use crate::core::Record;
use homing_model::{RawText, TaskId};
use homing_wire::Stream;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Output of one stream kept in memory before it goes to a file, bytes.
const IN_MEMORY: usize = 64 << 10;
/// All output kept in memory; beyond it even small outputs go to files.
const IN_MEMORY_ALL: usize = 64 << 20;

/// How output reaches the user.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// `-k`: in the order of the tasks.
    pub keep_order: bool,
    /// `--line-buffer`: whole lines as they come.
    pub line_buffer: bool,
    /// `--tag`: each line begins with the task's arguments and a tab.
    pub tag: bool,
    /// Where files for large output are made.
    pub spill: PathBuf,
}

#[derive(Default)]
struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    fn push(&mut self, bytes: &[u8], spill: &PathBuf, budget: &mut usize) -> io::Result<()> {
        let fits = self.memory.len() + bytes.len() <= IN_MEMORY && *budget >= bytes.len();
        if self.file.is_none() && fits {
            *budget -= bytes.len();
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(tempfile::tempfile_in(spill)?),
        };
        file.write_all(bytes)
    }

    fn copy_to(&mut self, to: &mut impl Write, tag: Option<&[u8]>, budget: &mut usize) -> io::Result<()> {
        *budget += self.memory.len();
        let memory = std::mem::take(&mut self.memory);
        let mut tagger = Tagger { to, tag, at_line_start: true };
        tagger.write(&memory)?;
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.seek(SeekFrom::Start(0))?;
        let mut chunk = vec![0; IN_MEMORY];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(()),
                n => tagger.write(&chunk[..n])?,
            }
        }
    }
}

struct Tagger<'a, W: Write> {
    to: &'a mut W,
    tag: Option<&'a [u8]>,
    at_line_start: bool,
}

impl<W: Write> Tagger<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tag) = self.tag else { return self.to.write_all(bytes) };
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if self.at_line_start {
                self.to.write_all(tag)?;
                self.to.write_all(b"\t")?;
            }
            self.to.write_all(line)?;
            self.at_line_start = line.ends_with(b"\n");
        }
        Ok(())
    }
}

#[derive(Default)]
struct Pair {
    out: Spool,
    err: Spool,
    results: Option<(File, File)>,
}

/// Collects the output of running tasks and writes that of finished ones.
pub struct Printer<O: Write, E: Write> {
    options: OutputOptions,
    out: O,
    err: E,
    open: HashMap<u64, Pair>,
    held: BTreeMap<TaskId, (Pair, Vec<u8>)>,
    next: TaskId,
    budget: usize,
}

impl<O: Write, E: Write> Printer<O, E> {
    /// Writes to `out` and `err`.
    pub fn new(options: OutputOptions, out: O, err: E) -> Self {
        Printer { options, out, err, open: HashMap::new(), held: BTreeMap::new(), next: 1, budget: IN_MEMORY_ALL }
    }

    /// Sends what a task prints to files instead (`--results`), as GNU parallel does.
    pub fn results(&mut self, ticket: u64, out: File, err: File) {
        self.open.entry(ticket).or_default().results = Some((out, err));
    }

    /// A chunk of a running task's output.
    pub fn chunk(&mut self, ticket: u64, args: &[RawText], stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let pair = self.open.entry(ticket).or_default();
        if let Some((out, err)) = &mut pair.results {
            return if stream == Stream::Out { out } else { err }.write_all(bytes);
        }
        let spool = if stream == Stream::Out { &mut pair.out } else { &mut pair.err };
        spool.push(bytes, &self.options.spill, &mut self.budget)?;
        if self.options.line_buffer && !self.options.keep_order && bytes.contains(&b'\n') {
            return self.print_lines(ticket, args, stream);
        }
        Ok(())
    }

    fn print_lines(&mut self, ticket: u64, args: &[RawText], stream: Stream) -> io::Result<()> {
        let tag = self.tag(args);
        let Some(pair) = self.open.get_mut(&ticket) else { return Ok(()) };
        let spool = if stream == Stream::Out { &mut pair.out } else { &mut pair.err };
        // A line longer than the memory waits in its file for the end of the task.
        let Some(end) = spool.memory.iter().rposition(|b| *b == b'\n').filter(|_| spool.file.is_none()) else {
            return Ok(());
        };
        let rest = spool.memory.split_off(end + 1);
        if stream == Stream::Out {
            spool.copy_to(&mut self.out, tag.as_deref(), &mut self.budget)?;
        } else {
            spool.copy_to(&mut self.err, tag.as_deref(), &mut self.budget)?;
        }
        spool.memory = rest;
        Ok(())
    }

    fn tag(&self, args: &[RawText]) -> Option<Vec<u8>> {
        self.options.tag.then(|| args.iter().map(|a| a.0.as_slice()).collect::<Vec<_>>().join(&b' '))
    }

    /// An attempt ended. Output of an attempt that is tried again is dropped, as GNU parallel does.
    pub fn ended(&mut self, record: &Record) -> io::Result<()> {
        if let Some(ended) = &record.ended {
            for (stream, bytes) in [(Stream::Out, &ended.stdout), (Stream::Err, &ended.stderr)] {
                if !bytes.is_empty() {
                    self.chunk(record.ticket, &record.task.args, stream, bytes)?;
                }
            }
        }
        let mut pair = self.open.remove(&record.ticket).unwrap_or_default();
        if !record.last {
            self.budget += pair.out.memory.len() + pair.err.memory.len();
            return Ok(());
        }
        let tag = self.tag(&record.task.args).unwrap_or_default();
        if !self.options.keep_order {
            return self.print(&mut pair, &tag);
        }
        self.held.insert(record.task.id, (pair, tag));
        self.print_due()
    }

    /// A task that does not run must not hold back the order.
    pub fn skipped(&mut self, task: TaskId) -> io::Result<()> {
        if self.options.keep_order {
            self.held.insert(task, Default::default());
        }
        self.print_due()
    }

    fn print_due(&mut self) -> io::Result<()> {
        while let Some((mut pair, tag)) = self.held.remove(&self.next) {
            self.next += 1;
            self.print(&mut pair, &tag)?;
        }
        Ok(())
    }

    fn print(&mut self, pair: &mut Pair, tag: &[u8]) -> io::Result<()> {
        let tag = self.options.tag.then_some(tag);
        pair.out.copy_to(&mut self.out, tag, &mut self.budget)?;
        if !pair.err.memory.is_empty() || pair.err.file.is_some() {
            self.out.flush()?;
            pair.err.copy_to(&mut self.err, tag, &mut self.budget)?;
        }
        Ok(())
    }

    /// Flushes what was printed so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.err.flush()
    }

    /// The run is over: prints what waits for tasks that never came.
    pub fn close(&mut self) -> io::Result<()> {
        for (_, (mut pair, tag)) in std::mem::take(&mut self.held) {
            self.print(&mut pair, &tag)?;
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::{Command, Outcome, Task};
    use homing_wire::Ended;

    fn record(id: TaskId, stdout: &[u8]) -> Record {
        let task = Task {
            id,
            command: Command::Shell("x".into()),
            cwd: None,
            env: vec![],
            args: vec![format!("a{id}").as_str().into()],
            inputs: vec![],
            outputs: vec![],
            cpus: 1,
            memory: None,
            timeout_ms: None,
        };
        let ended = Ended {
            ticket: id,
            outcome: Outcome::Exit(0),
            wall_us: 1,
            io: Default::default(),
            io_wait: None,
            stdout: stdout.to_vec(),
            stderr: vec![],
            set_aside: vec![],
            wrote: vec![],
        };
        let (host, outcome) = ("n1".into(), Outcome::Exit(0));
        Record {
            ticket: id,
            task,
            attempt: 1,
            host,
            outcome,
            start_ns: 0,
            wall_us: 1,
            ended: Some(ended),
            stdout_bytes: 0,
            stderr_bytes: 0,
            last: true,
        }
    }

    fn printer(options: OutputOptions) -> Printer<Vec<u8>, Vec<u8>> {
        Printer::new(OutputOptions { spill: std::env::temp_dir(), ..options }, Vec::new(), Vec::new())
    }

    #[test]
    fn order_is_kept_and_lines_are_tagged() {
        let mut p = printer(OutputOptions { keep_order: true, tag: true, ..Default::default() });
        p.ended(&record(2, b"two\nlines\n")).unwrap();
        assert!(p.out.is_empty());
        p.ended(&record(1, b"one")).unwrap();
        assert_eq!(String::from_utf8_lossy(&p.out), "a1\tonea2\ttwo\na2\tlines\n");
    }

    #[test]
    fn large_output_is_whole_and_not_in_memory() {
        let mut p = printer(OutputOptions::default());
        let chunk = vec![b'x'; 60_000];
        for _ in 0..10 {
            p.chunk(1, &[], Stream::Out, &chunk).unwrap();
        }
        assert!(p.open[&1].out.memory.len() <= IN_MEMORY && p.open[&1].out.file.is_some());
        p.ended(&record(1, b"end")).unwrap();
        assert_eq!(p.out.len(), 600_003);
        assert_eq!(p.budget, IN_MEMORY_ALL);
    }

    #[test]
    fn line_buffer_never_splits_a_line() {
        let mut p = printer(OutputOptions { line_buffer: true, ..Default::default() });
        p.chunk(1, &[], Stream::Out, b"half").unwrap();
        p.chunk(2, &[], Stream::Out, b"whole\nrest").unwrap();
        assert_eq!(p.out, b"whole\n");
        p.chunk(1, &[], Stream::Out, b" line\n").unwrap();
        assert_eq!(p.out, b"whole\nhalf line\n");
    }
}
