//! Input sources: `:::` values, `::::` files, standard input. They are combined with each other, or linked by `:::+`
//! and `::::+`. The last varies fastest.

use crate::error::BatchError;
use crate::inputs::{InputOpener, InputSource};
use crate::options::InputOptions;
use crate::records::{ByteStrings, Cutting, InputNotes, Records};
use crate::shuffle::Shuffle;
use homing_model::RawText;
use std::path::Path;

enum ValueSource {
    Held(ByteStrings),
    Stream(Records),
}

impl ValueSource {
    fn has_values(&self) -> bool {
        matches!(self, ValueSource::Held(values) if values.len() > 0)
    }
}

/// Sources that advance together: a row is one record of each.
struct Axis {
    sources: Vec<ValueSource>,
    next: usize,
    /// Whether the longest source determines the number of rows; the others start again.
    recycled: bool,
}

impl Axis {
    /// Returns the number of rows, once all sources are held: that of the shortest, or with `--link` of the longest.
    fn len(&self) -> Option<usize> {
        let lengths = self.sources.iter().map(|s| match s {
            ValueSource::Held(values) => Some(values.len()),
            ValueSource::Stream(_) => None,
        });
        let lengths = lengths.collect::<Option<Vec<_>>>()?.into_iter();
        if self.recycled { lengths.max() } else { lengths.min() }
    }

    fn hold(&mut self) -> Result<(), BatchError> {
        for source in &mut self.sources {
            if let ValueSource::Stream(_) = source {
                let taken = std::mem::replace(source, ValueSource::Held(ByteStrings::default()));
                if let ValueSource::Stream(records) = taken {
                    *source = ValueSource::Held(records.hold()?);
                }
            }
        }
        Ok(())
    }

    /// Appends the values of row `index` of a held axis.
    fn row(&self, index: usize, cutting: &Cutting, to: &mut Vec<RawText>) {
        for source in &self.sources {
            if let ValueSource::Held(values) = source {
                cutting.values(values.get(index % values.len()), to);
            }
        }
    }

    /// Returns the next row, whether held or not. `pad`: a stream that ends before its first record counts as one
    /// empty value.
    fn next_row(&mut self, cutting: &Cutting, pad: bool) -> Result<Option<Vec<RawText>>, BatchError> {
        let mut row = Vec::new();
        if self.recycled {
            if self.next >= self.len().unwrap_or(0) {
                return Ok(None);
            }
            self.row(self.next, cutting, &mut row);
            self.next += 1;
            return Ok(Some(row));
        }
        for source in &mut self.sources {
            match source {
                ValueSource::Held(values) if self.next < values.len() => {
                    cutting.values(values.get(self.next), &mut row)
                }
                ValueSource::Held(_) => return Ok(None),
                ValueSource::Stream(records) => match records.next()? {
                    Some(record) => cutting.values(&record, &mut row),
                    None if self.next == 0 && pad => {
                        row.push(RawText::default());
                        *source = ValueSource::Held(ByteStrings::one_empty());
                    }
                    None => return Ok(None),
                },
            }
        }
        self.next += 1;
        Ok(Some(row))
    }
}

/// All combinations of the sources, made one at a time.
pub(crate) struct Combinations {
    axes: Vec<Axis>,
    cutting: Cutting,
    shuf: Option<u64>,
    /// Whether all sources are read before the first row.
    whole: bool,
    at: u64,
    settled: bool,
    first_row: Option<Vec<RawText>>,
    uses_stdin: bool,
    notes: InputNotes,
    /// Whether some source had values when all had been read.
    some_hold: bool,
}

impl Combinations {
    fn sources(&self) -> impl Iterator<Item = &ValueSource> {
        self.axes.iter().flat_map(|axis| &axis.sources)
    }

    /// Makes an empty source beside others one empty value: `::: a b :::` runs for a and b, as with GNU parallel.
    fn pad_empty(&mut self) {
        for source in self.axes.iter_mut().flat_map(|axis| &mut axis.sources) {
            if matches!(source, ValueSource::Held(values) if values.len() == 0) {
                *source = ValueSource::Held(ByteStrings::one_empty());
            }
        }
    }

    /// Returns their number, if no source is still to be read.
    pub(crate) fn total(&self) -> Option<u64> {
        self.axes.iter().try_fold(1u64, |n, axis| n.checked_mul(axis.len()? as u64))
    }

    /// Reads all sources, which makes [`Combinations::total`] known.
    pub(crate) fn hold(&mut self) -> Result<(), BatchError> {
        self.whole = true;
        self.settle()
    }

    pub(crate) fn uses_stdin(&self) -> bool {
        self.uses_stdin
    }

    /// Returns the notes on the sources since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Returns all values of the next combination.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<RawText>>, BatchError> {
        if !self.settled {
            self.settle()?;
        }
        if self.shuf.is_some() { Ok(self.next_shuffled()) } else { self.next_in_order() }
    }

    /// Reads the sources that must be in memory: all but the slowest one, and that one too if the order is random.
    fn settle(&mut self) -> Result<(), BatchError> {
        self.settled = true;
        let streamed = usize::from(self.shuf.is_none() && !self.whole);
        self.axes.iter_mut().skip(streamed).try_for_each(Axis::hold)?;
        let some_hold = self.sources().any(ValueSource::has_values);
        self.some_hold = some_hold;
        if self.some_hold || self.sources().any(|s| matches!(s, ValueSource::Stream(_))) {
            self.pad_empty();
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), BatchError> {
        let known = self.axes.iter().filter_map(Axis::len).try_fold(1u64, |n, len| n.checked_mul(len as u64));
        if known.is_some_and(|n| n <= i64::MAX as u64) { Ok(()) } else { Err(BatchError::TooMany) }
    }

    /// Appends the values of combination number `index` of the axes after `skip`.
    fn combination(&self, skip: usize, mut index: u64, to: &mut Vec<RawText>) {
        let axes = &self.axes[skip..];
        let mut rows = vec![0; axes.len()];
        for (row, axis) in rows.iter_mut().zip(axes).rev() {
            let len = axis.len().unwrap_or(0) as u64;
            *row = (index % len) as usize;
            index /= len;
        }
        for (row, axis) in rows.into_iter().zip(axes) {
            axis.row(row, &self.cutting, to);
        }
    }

    fn next_shuffled(&mut self) -> Option<Vec<RawText>> {
        let total = self.total()?;
        if self.at >= total {
            return None;
        }
        let mut values = Vec::new();
        let index = Shuffle::new(total, self.shuf?).at(self.at);
        self.at += 1;
        self.combination(0, index, &mut values);
        Some(values)
    }

    fn next_in_order(&mut self) -> Result<Option<Vec<RawText>>, BatchError> {
        let rest: u64 = self.axes[1..].iter().filter_map(Axis::len).map(|n| n as u64).product();
        if rest == 0 {
            return Ok(None);
        }
        if self.at == rest || self.first_row.is_none() {
            self.at = 0;
            self.first_row = self.axes[0].next_row(&self.cutting, self.some_hold)?;
        }
        let Some(first) = &self.first_row else { return Ok(None) };
        let mut values = first.clone();
        self.combination(1, self.at, &mut values);
        self.at += 1;
        Ok(Some(values))
    }
}

/// The word before the words of a source.
struct Separator {
    files: bool,
    linked: bool,
}

impl Separator {
    fn of(word: &RawText, options: &InputOptions) -> Option<Separator> {
        let is = |name: &RawText, linked: bool| match linked {
            true => word.0.strip_suffix(b"+").is_some_and(|word| word == name.0),
            false => word == name,
        };
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let found = all
            .into_iter()
            .find(|(files, linked)| is(if *files { &options.arg_file_sep } else { &options.arg_sep }, *linked));
        found.map(|(files, linked)| Separator { files, linked })
    }
}

/// Whether a word is `:::` or one of its variants.
pub(crate) fn is_separator(word: &RawText, options: &InputOptions) -> bool {
    Separator::of(word, options).is_some()
}

/// The content of the command line's words.
pub(crate) struct ArgumentWords<'a> {
    pub(crate) command: &'a [RawText],
    pub(crate) combinations: Combinations,
    /// `--header`: the names of the columns.
    pub(crate) columns: Vec<Vec<u8>>,
    /// For each source, the reason why it gives nothing, if it gives nothing.
    pub(crate) lacks: Vec<String>,
}

/// Splits the words into the command template and the sources, and opens the sources.
pub(crate) fn sources<'a>(
    words: &'a [RawText],
    options: &InputOptions,
    inputs: &mut dyn InputOpener,
    stdin_is_tty: bool,
) -> Result<ArgumentWords<'a>, BatchError> {
    let starts = |words: &[RawText]| words.iter().position(|word| is_separator(word, options));
    let (command, mut rest) = words.split_at(starts(words).unwrap_or(words.len()));
    let mut opening = Opening {
        options,
        cutting: Cutting::new(options)?,
        inputs,
        notes: InputNotes::default(),
        lacks: Vec::new(),
        uses_stdin: false,
        axes: Vec::new(),
        names: Vec::new(),
    };
    for path in &options.arg_files {
        opening.add(false, |o| o.file(path.as_path()))?;
    }
    while let Some((separator, after)) = rest.split_first() {
        let end = starts(after).unwrap_or(after.len());
        opening.group(separator, &after[..end])?;
        rest = &after[end..];
    }
    if opening.axes.is_empty() {
        if stdin_is_tty {
            return Err(BatchError::NoInput);
        }
        opening.add(false, |o| o.file(Path::new("-")))?;
    }
    let columns = match (options.header, options.names_files) {
        (true, _) => opening.columns()?,
        (false, true) => std::mem::take(&mut opening.names),
        (false, false) => Vec::new(),
    };
    let lacks = std::mem::take(&mut opening.lacks);
    Ok(ArgumentWords { command, combinations: opening.finish()?, columns, lacks })
}

/// Returns the reason for a file or a stream without an item.
pub(crate) fn no_item(name: &str, options: &InputOptions) -> String {
    match options {
        InputOptions { header: true, .. } => format!("{name} had no item behind the names of columns"),
        InputOptions { no_run_if_empty: true, .. } => format!("{name} was empty or blank"),
        _ => format!("{name} was empty"),
    }
}

struct Opening<'a> {
    options: &'a InputOptions,
    cutting: Cutting,
    inputs: &'a mut dyn InputOpener,
    notes: InputNotes,
    lacks: Vec<String>,
    uses_stdin: bool,
    axes: Vec<Axis>,
    /// The file name of each source; empty if it has none.
    names: Vec<Vec<u8>>,
}

impl Opening<'_> {
    /// Adds the sources of one separator and the words after it.
    fn group(&mut self, separator: &RawText, words: &[RawText]) -> Result<(), BatchError> {
        let Some(Separator { files, linked }) = Separator::of(separator, self.options) else { return Ok(()) };
        if linked && self.axes.is_empty() {
            return Err(BatchError::LinkFirst(separator.display()));
        }
        if !files {
            self.names.push(Vec::new());
            let behind = if self.options.header { "the names of columns" } else { "it" };
            self.lacks.push(format!("'{}' has no value behind {behind}", separator.display()));
            return self.add(linked, |o| Ok(ValueSource::Held(o.values(words))));
        }
        if words.is_empty() {
            return Err(BatchError::NoFile);
        }
        words.iter().try_for_each(|word| self.add(linked, |o| o.file(word.as_path())))
    }

    fn add(
        &mut self,
        linked: bool,
        open: impl FnOnce(&mut Self) -> Result<ValueSource, BatchError>,
    ) -> Result<(), BatchError> {
        let source = open(self)?;
        let recycled = self.options.link;
        match self.axes.last_mut().filter(|_| linked || recycled) {
            Some(axis) => axis.sources.push(source),
            None => self.axes.push(Axis { sources: vec![source], next: 0, recycled }),
        }
        Ok(())
    }

    /// Returns the first record of each source, cut at the separator of columns.
    fn columns(&mut self) -> Result<Vec<Vec<u8>>, BatchError> {
        let mut names = Vec::new();
        for source in self.axes.iter_mut().flat_map(|axis| &mut axis.sources) {
            let first = match source {
                ValueSource::Held(values) => values.take_first(),
                ValueSource::Stream(records) => records.next()?,
            };
            self.cutting.values(&first.unwrap_or_default(), &mut names);
        }
        Ok(names.into_iter().map(|name| name.0).collect())
    }

    /// `--skip-first-line`: whether the source being opened is the first.
    fn skips_a_line(&self) -> bool {
        self.options.skip_first_line && self.axes.is_empty()
    }

    fn values(&self, words: &[RawText]) -> ByteStrings {
        let mut values = ByteStrings::default();
        let mut words =
            words.iter().skip(usize::from(self.skips_a_line())).take_while(|word| !self.cutting.ends(&word.0));
        while let Some(word) = words.next() {
            let mut record = std::borrow::Cow::Borrowed(word.0.as_slice());
            while self.cutting.goes_on(&record) {
                match words.next() {
                    Some(more) => record.to_mut().extend_from_slice(&more.0),
                    None => break,
                }
            }
            if self.cutting.wants(&record) {
                values.push(&record);
            }
        }
        values
    }

    fn file(&mut self, path: &Path) -> Result<ValueSource, BatchError> {
        let is_stdin = path == Path::new("-");
        if is_stdin && std::mem::replace(&mut self.uses_stdin, true) {
            return Err(BatchError::StdinTwice);
        }
        let name = if is_stdin { "standard input".into() } else { RawText::from(path).display() };
        self.names.push(if is_stdin { Vec::new() } else { RawText::from(path).0 });
        self.lacks.push(no_item(&name, self.options));
        let opened = self.inputs.open(path);
        let InputSource { from, hold, .. } =
            opened.map_err(|source| BatchError::Open { path: name.clone(), source })?;
        let mut records = Records::new(from, name, self.cutting.clone(), self.notes.clone());
        if self.skips_a_line() {
            records.skip()?;
        }
        if hold { records.hold().map(ValueSource::Held) } else { Ok(ValueSource::Stream(records)) }
    }

    fn finish(self) -> Result<Combinations, BatchError> {
        let mut combinations = Combinations {
            axes: self.axes,
            cutting: self.cutting,
            shuf: self.options.shuf,
            whole: self.options.link,
            at: 0,
            settled: false,
            first_row: None,
            uses_stdin: self.uses_stdin,
            notes: self.notes,
            some_hold: false,
        };
        if combinations.sources().any(ValueSource::has_values) {
            combinations.pad_empty();
        }
        combinations.check_size()?;
        Ok(combinations)
    }
}
