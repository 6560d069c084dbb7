//! Prints the output of tasks: grouped by task, and in order with `-k`. Memory is bounded for any amount of output.
//! The rest lies in files in the run's own folder.

use crate::colour::{self, Colour, Colours};
use crate::core::AttemptRecord;
use crate::kept::{OutputContent, TaskOutput, Unprinted};
use homing_batch::{Tag, command_line, fill_slot};
use homing_launch::wire::OutputStream;
use homing_model::{RawText, Task, TaskId};
use homing_os::folder::Reserve;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use tempfile::{NamedTempFile, TempPath};

/// The bytes of one stream that are kept in memory before it goes to a file.
const IN_MEMORY: usize = 64 << 10;
/// The bytes of all output in memory. Beyond it, even small outputs go to files.
const IN_MEMORY_ALL: usize = 64 << 20;

/// Options of the output.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// `-k`: in the order of the tasks.
    pub keep_order: bool,
    /// `--line-buffer`: whole lines as they arrive.
    pub line_buffer: bool,
    /// The most bytes of a task's output, on both streams. The rest is dropped.
    pub limit: Option<u64>,
    /// `--tag`, `--tagstring`: each line begins with this and a tab.
    pub tag: Option<Tag>,
    /// `--colour`, `--colour-failed`.
    pub colours: Option<Colours>,
    /// `-v`, `-t`: the command of a task is printed before its output, on this stream.
    pub commands: Option<OutputStream>,
    /// The folder for files of large output.
    pub spill: PathBuf,
}

#[derive(Default)]
struct OutputSpool {
    memory: Vec<u8>,
    file: Option<NamedTempFile>,
}

impl OutputSpool {
    /// Returns the content to be kept. If it is a file, the file outlives this process.
    fn content(&mut self) -> OutputContent {
        match &mut self.file {
            None => OutputContent::Bytes(RawText(self.memory.clone())),
            Some(file) => {
                file.disable_cleanup(true);
                OutputContent::File(file.path().to_path_buf())
            }
        }
    }

    /// Restores output that an earlier part of the run kept.
    fn recovered(content: OutputContent) -> io::Result<OutputSpool> {
        Ok(match content {
            OutputContent::Bytes(bytes) => OutputSpool { memory: bytes.0, file: None },
            OutputContent::File(path) => {
                let file = File::open(&path)?;
                let mut path = TempPath::try_from_path(path)?;
                path.disable_cleanup(true);
                OutputSpool { memory: Vec::new(), file: Some(NamedTempFile::from_parts(file, path)) }
            }
        })
    }

    fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.file.is_none()
    }

    /// Returns the end of the output, at most `most` bytes.
    fn tail(&self, most: usize) -> Vec<u8> {
        match &self.file {
            Some(file) => tail_of(file.as_file(), most),
            None => self.memory[self.memory.len().saturating_sub(most)..].to_vec(),
        }
    }

    fn push(&mut self, bytes: &[u8], spill: &PathBuf, budget: &mut usize) -> io::Result<()> {
        let fits = self.memory.len() + bytes.len() <= IN_MEMORY && *budget >= bytes.len();
        if self.file.is_none() && fits {
            *budget -= bytes.len();
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(tempfile::Builder::new().prefix("output-").tempfile_in(spill)?),
        };
        file.write_all(bytes)
    }

    /// Prints the output. Its file is returned; the caller drops it once the output has reached the user.
    fn copy_to(&mut self, to: &mut impl Write, mark: Mark, budget: &mut usize) -> io::Result<Option<NamedTempFile>> {
        *budget += self.memory.len();
        let memory = std::mem::take(&mut self.memory);
        let mut marker = Marker { to, mark, at_line_start: true };
        marker.write(&memory)?;
        let Some(mut file) = self.file.take() else {
            marker.end()?;
            return Ok(None);
        };
        file.seek(SeekFrom::Start(0))?;
        let mut chunk = vec![0; IN_MEMORY];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                n => marker.write(&chunk[..n])?,
            }
        }
        marker.end()?;
        Ok(Some(file))
    }
}

/// Returns the end of a file, also if its descriptor is write-only. Empty if it cannot be read.
fn tail_of(file: &File, most: usize) -> Vec<u8> {
    let mut tail = Vec::new();
    let read = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).and_then(|mut file| {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(most as u64)))?;
        file.take(most as u64).read_to_end(&mut tail)
    });
    read.map_or(Vec::new(), |_| tail)
}

/// The marks of a task's lines: a tag before them, a colour around them.
#[derive(Clone, Copy)]
struct Mark<'a> {
    tag: Option<&'a [u8]>,
    colour: Option<Colour>,
}

struct Marker<'a, W: Write> {
    to: &'a mut W,
    mark: Mark<'a>,
    at_line_start: bool,
}

impl<W: Write> Marker<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Mark { tag, colour } = self.mark;
        if tag.is_none() && colour.is_none() {
            return self.to.write_all(bytes);
        }
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if self.at_line_start {
                self.to.write_all(colour.map(Colour::on).unwrap_or_default().as_bytes())?;
                self.to.write_all(tag.unwrap_or_default())?;
                self.to.write_all(if tag.is_some() { b"\t" } else { b"" })?;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            self.to.write_all(text)?;
            self.at_line_start = text.len() < line.len();
            if self.at_line_start {
                self.end_of_line()?;
            }
        }
        Ok(())
    }

    fn end_of_line(&mut self) -> io::Result<()> {
        self.to.write_all(self.mark.colour.map_or(&b""[..], |_| colour::OFF))?;
        self.to.write_all(b"\n")
    }

    /// Ends a last line without a newline if it has a colour, which would otherwise continue behind it.
    fn end(&mut self) -> io::Result<()> {
        if self.at_line_start || self.mark.colour.is_none() { Ok(()) } else { self.end_of_line() }
    }
}

#[derive(Default)]
struct Pair {
    out: OutputSpool,
    err: OutputSpool,
    results: Option<(File, File)>,
    tag: Option<RawText>,
    colour: Option<Colour>,
    /// The number of bytes that were taken.
    taken: u64,
    /// Whether further bytes are dropped.
    cut: bool,
}

impl Pair {
    /// Returns the part of the arrived bytes that is within the limit.
    fn take<'a>(&mut self, bytes: &'a [u8], limit: Option<u64>) -> &'a [u8] {
        let left = if self.cut { 0 } else { limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.taken)) };
        self.taken += left.min(bytes.len() as u64);
        &bytes[..left.min(bytes.len() as u64) as usize]
    }
}

/// Collects the output of running tasks and writes that of finished ones.
pub struct Printer<O: Write, E: Write> {
    options: OutputOptions,
    out: O,
    err: E,
    open: HashMap<u64, Pair>,
    held: BTreeMap<TaskId, Pair>,
    next: TaskId,
    budget: usize,
    reserve: Reserve,
    short: bool,
    unprinted: Unprinted,
    /// Output that an earlier part of the run kept and did not print.
    earlier: BTreeMap<TaskId, TaskOutput>,
    /// Tasks whose output was written since the last flush, and the files of that output.
    written: Vec<TaskId>,
    files: Vec<NamedTempFile>,
}

impl<O: Write, E: Write> Printer<O, E> {
    /// Makes a printer that writes to `out` and `err`.
    pub fn new(options: OutputOptions, out: O, err: E) -> io::Result<Self> {
        let (unprinted, earlier) = Unprinted::open(&options.spill)?;
        Ok(Printer {
            options,
            out,
            err,
            open: HashMap::new(),
            held: BTreeMap::new(),
            next: 1,
            budget: IN_MEMORY_ALL,
            reserve: Reserve::default(),
            short: false,
            unprinted,
            earlier,
            written: Vec::new(),
            files: Vec::new(),
        })
    }

    /// Sends the output of a task to files instead (`--results`), as GNU parallel does.
    pub fn results(&mut self, ticket: u64, out: File, err: File) {
        self.open.entry(ticket).or_default().results = Some((out, err));
    }

    /// Prepares the output of a task that is sent: its tag, its colour, and its command if commands are printed.
    pub fn begins(&mut self, ticket: u64, task: &Task, slot: u32) -> io::Result<()> {
        if let Some(tag) = &self.options.tag {
            self.open.entry(ticket).or_default().tag = Some(tag.of(task, slot));
        }
        if let Some(colours) = self.options.colours {
            self.open.entry(ticket).or_default().colour = colours.of(task.id, false);
        }
        let Some(stream) = self.options.commands else { return Ok(()) };
        let mut command = task.command.clone();
        fill_slot(&mut command, slot);
        let mut line = command_line(&command);
        line.push(b'\n');
        self.chunk(ticket, stream, &line)
    }

    /// Takes a chunk of a running task's output.
    pub fn chunk(&mut self, ticket: u64, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let pair = self.open.entry(ticket).or_default();
        let bytes = pair.take(bytes, self.options.limit);
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some((out, err)) = &mut pair.results {
            let file = if stream == OutputStream::Out { out } else { err };
            self.short |= self.reserve.is_used_up(file, bytes.len());
            return file.write_all(bytes);
        }
        let spool = if stream == OutputStream::Out { &mut pair.out } else { &mut pair.err };
        spool.push(bytes, &self.options.spill, &mut self.budget)?;
        if let Some(file) = &spool.file {
            self.short |= self.reserve.is_used_up(file.as_file(), bytes.len());
        }
        if self.options.line_buffer && !self.options.keep_order && bytes.contains(&b'\n') {
            return self.print_lines(ticket, stream);
        }
        Ok(())
    }

    /// Whether the disk of the output is nearly full. Each discovery is returned once.
    pub fn is_short_of_room(&mut self) -> bool {
        std::mem::take(&mut self.short)
    }

    /// Returns the ends of the output of a running attempt, at most `most` bytes of each stream: output, then errors.
    pub fn so_far(&self, ticket: u64, most: usize) -> [Vec<u8>; 2] {
        match self.open.get(&ticket) {
            None => Default::default(),
            Some(Pair { results: Some((out, err)), .. }) => [tail_of(out, most), tail_of(err, most)],
            Some(pair) => [pair.out.tail(most), pair.err.tail(most)],
        }
    }

    /// Drops all further output of this attempt.
    pub fn cut(&mut self, ticket: u64) {
        self.open.entry(ticket).or_default().cut = true;
    }

    /// Whether output waits to be printed.
    pub fn waits(&self) -> bool {
        let open = self.open.values().chain(self.held.values());
        open.into_iter().any(|pair| !pair.out.is_empty())
    }

    fn print_lines(&mut self, ticket: u64, stream: OutputStream) -> io::Result<()> {
        let Some(pair) = self.open.get_mut(&ticket) else { return Ok(()) };
        let spool = if stream == OutputStream::Out { &mut pair.out } else { &mut pair.err };
        // A line longer than the memory waits in its file for the end of the task.
        let Some(end) = spool.memory.iter().rposition(|b| *b == b'\n').filter(|_| spool.file.is_none()) else {
            return Ok(());
        };
        let rest = spool.memory.split_off(end + 1);
        let mark = Mark { tag: pair.tag.as_ref().map(|tag| tag.0.as_slice()), colour: pair.colour };
        if stream == OutputStream::Out {
            spool.copy_to(&mut self.out, mark, &mut self.budget)?;
        } else {
            spool.copy_to(&mut self.err, mark, &mut self.budget)?;
        }
        spool.memory = rest;
        Ok(())
    }

    /// Takes the rest of these attempts' output, and keeps all of it that is still to be printed. Called before their
    /// ends are journalled, because then they do not run again. Lines that were printed as they arrived are not kept,
    /// so they are flushed to the user here.
    pub fn keep<'a>(&mut self, records: impl Iterator<Item = &'a AttemptRecord>) -> io::Result<()> {
        let (mut all, mut some) = (Vec::new(), false);
        for record in records {
            some = true;
            if let Some(ended) = &record.ended {
                for (stream, bytes) in [(OutputStream::Out, &ended.stdout), (OutputStream::Err, &ended.stderr)] {
                    if !bytes.is_empty() {
                        self.chunk(record.ticket, stream, bytes)?;
                    }
                }
            }
            all.extend(self.unprinted_of(record));
        }
        if some && self.options.line_buffer {
            self.out.flush()?;
            self.err.flush()?;
        }
        self.unprinted.keep(all)
    }

    fn unprinted_of(&mut self, record: &AttemptRecord) -> Option<TaskOutput> {
        let pair = self.open.get_mut(&record.ticket).filter(|_| record.last)?;
        let (out, err) = (pair.out.content(), pair.err.content());
        (!pair.out.is_empty() || !pair.err.is_empty()).then(|| {
            let tag = pair.tag.clone().unwrap_or_default();
            TaskOutput { task: record.task.id, tag, out, err }
        })
    }

    /// Takes the end of an attempt whose output was kept. The output of an attempt that is tried again is dropped, as
    /// in GNU parallel.
    pub fn ended(&mut self, record: &AttemptRecord) -> io::Result<()> {
        let mut pair = self.open.remove(&record.ticket).unwrap_or_default();
        if !record.last {
            self.budget += pair.out.memory.len() + pair.err.memory.len();
            return Ok(());
        }
        self.earlier.remove(&record.task.id);
        pair.colour = self.options.colours.and_then(|colours| colours.of(record.task.id, !record.outcome.is_success()));
        if !self.options.keep_order {
            return self.print(record.task.id, &mut pair);
        }
        self.held.insert(record.task.id, pair);
        self.print_due()
    }

    /// Takes a task that does not run, so that it does not hold back the order. Output of an earlier part of the run
    /// that was not printed is printed now.
    pub fn skipped(&mut self, task: TaskId) -> io::Result<()> {
        let mut pair = match self.earlier.remove(&task) {
            None => Default::default(),
            Some(TaskOutput { tag, out, err, .. }) => {
                let tag = self.options.tag.is_some().then_some(tag);
                let pair = Pair {
                    out: OutputSpool::recovered(out)?,
                    err: OutputSpool::recovered(err)?,
                    tag,
                    ..Pair::default()
                };
                let pair = Pair { colour: self.options.colours.and_then(|colours| colours.of(task, false)), ..pair };
                self.budget = self.budget.saturating_sub(pair.out.memory.len() + pair.err.memory.len());
                pair
            }
        };
        if !self.options.keep_order {
            return self.print(task, &mut pair);
        }
        self.held.insert(task, pair);
        self.print_due()
    }

    fn print_due(&mut self) -> io::Result<()> {
        while let Some(mut pair) = self.held.remove(&self.next) {
            self.print(self.next, &mut pair)?;
            self.next += 1;
        }
        Ok(())
    }

    fn print(&mut self, task: TaskId, pair: &mut Pair) -> io::Result<()> {
        let mark = Mark { tag: pair.tag.as_ref().map(|tag| tag.0.as_slice()), colour: pair.colour };
        self.files.extend(pair.out.copy_to(&mut self.out, mark, &mut self.budget)?);
        if !pair.err.is_empty() {
            self.out.flush()?;
            self.files.extend(pair.err.copy_to(&mut self.err, mark, &mut self.budget)?);
        }
        self.written.push(task);
        Ok(())
    }

    /// Flushes the printed output, which then need not be kept any more.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.err.flush()?;
        self.files.iter_mut().for_each(|file| file.disable_cleanup(false));
        self.unprinted.printed(&std::mem::take(&mut self.written))?;
        self.files.clear();
        Ok(())
    }

    /// Ends the run: prints the output that waits for tasks that never arrived.
    pub fn close(&mut self) -> io::Result<()> {
        for (task, mut pair) in std::mem::take(&mut self.held) {
            self.print(task, &mut pair)?;
        }
        self.flush()?;
        self.unprinted.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_launch::wire::AttemptEnd;
    use homing_model::{Command, Outcome, Task};

    fn record(id: TaskId, stdout: &[u8]) -> AttemptRecord {
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
            stdin: Vec::new(),
            folders: Vec::new(),
            name: None,
            after: vec![],
            resources: vec![],
        };
        let ended = AttemptEnd {
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
        AttemptRecord {
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
            tail: vec![],
            last: true,
            ran: None,
        }
    }

    fn printer(options: OutputOptions) -> Printer<Vec<u8>, Vec<u8>> {
        let spill = tempfile::tempdir().unwrap().keep();
        Printer::new(OutputOptions { spill, ..options }, Vec::new(), Vec::new()).unwrap()
    }

    fn end(p: &mut Printer<Vec<u8>, Vec<u8>>, record: &AttemptRecord) {
        p.begins(record.ticket, &record.task, 1).unwrap();
        p.keep(std::iter::once(record)).unwrap();
        p.ended(record).unwrap();
    }

    #[test]
    fn what_a_dead_coordinator_had_not_printed_comes_in_its_place() {
        let options = OutputOptions { keep_order: true, tag: Some(Tag::arguments()), ..Default::default() };
        let mut dead = printer(options);
        end(&mut dead, &record(2, b"two\n"));
        end(&mut dead, &record(3, &[b'x'; 2 * IN_MEMORY]));
        let options = dead.options.clone();
        std::mem::forget(dead);
        let mut p = Printer::new(options.clone(), Vec::new(), Vec::new()).unwrap();
        end(&mut p, &record(1, b"one\n"));
        p.skipped(2).unwrap();
        p.skipped(3).unwrap();
        p.close().unwrap();
        assert!(p.out.starts_with(b"a1\tone\na2\ttwo\na3\txxx"), "{:?}", &p.out[..40]);
        assert_eq!(p.out.len(), 17 + 2 * IN_MEMORY);
        assert_eq!(std::fs::read_dir(&options.spill).unwrap().count(), 0, "nothing is left of it");
    }

    #[test]
    fn order_is_kept_and_lines_are_tagged() {
        let mut p = printer(OutputOptions { keep_order: true, tag: Some(Tag::arguments()), ..Default::default() });
        end(&mut p, &record(2, b"two\nlines\n"));
        assert!(p.out.is_empty());
        end(&mut p, &record(1, b"one"));
        assert_eq!(String::from_utf8_lossy(&p.out), "a1\tonea2\ttwo\na2\tlines\n");
    }

    #[test]
    fn lines_have_the_colour_of_their_task() {
        let options = OutputOptions { colours: Some(Colours::All), tag: Some(Tag::arguments()), ..Default::default() };
        let mut p = printer(options);
        end(&mut p, &record(1, b"one\ntwo"));
        let on = "\x1b[48;5;134;38;5;231m\x1b[K";
        assert_eq!(String::from_utf8_lossy(&p.out), format!("{on}a1\tone\x1b[m\n{on}a1\ttwo\x1b[m\n"));
        let mut p = printer(OutputOptions { colours: Some(Colours::Failed), ..Default::default() });
        end(&mut p, &record(1, b"one"));
        assert_eq!(p.out, b"one");
    }

    #[test]
    fn large_output_is_whole_and_not_in_memory() {
        let mut p = printer(OutputOptions::default());
        let chunk = vec![b'x'; 60_000];
        for _ in 0..10 {
            p.chunk(1, OutputStream::Out, &chunk).unwrap();
        }
        assert!(p.open[&1].out.memory.len() <= IN_MEMORY && p.open[&1].out.file.is_some());
        end(&mut p, &record(1, b"end"));
        assert_eq!(p.out.len(), 600_003);
        assert_eq!(p.budget, IN_MEMORY_ALL);
    }

    /// A writer that accepts all bytes and fails to flush them, like a full disk.
    #[derive(Default)]
    struct FullDisk(Vec<u8>);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            if self.0.is_empty() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }
    }

    #[test]
    fn no_task_has_ended_whose_lines_did_not_reach_the_user() {
        let spill = tempfile::tempdir().unwrap();
        let options = OutputOptions { line_buffer: true, spill: spill.path().into(), ..Default::default() };
        let mut p = Printer::new(options, FullDisk::default(), FullDisk::default()).unwrap();
        p.keep([record(1, b"")].iter()).unwrap();
        let error = p.keep([record(2, b"a line\n")].iter()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn line_buffer_never_splits_a_line() {
        let mut p = printer(OutputOptions { line_buffer: true, ..Default::default() });
        p.chunk(1, OutputStream::Out, b"half").unwrap();
        p.chunk(2, OutputStream::Out, b"whole\nrest").unwrap();
        assert_eq!(p.out, b"whole\n");
        p.chunk(1, OutputStream::Out, b" line\n").unwrap();
        assert_eq!(p.out, b"whole\nhalf line\n");
    }
}
