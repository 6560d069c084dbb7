//! Joins template and sources: a batch is an iterator of tasks.

use crate::blocks::Blocks;
use crate::error::BatchError;
use crate::inputs::InputOpener;
use crate::options::{Blocking, InputOptions, Packing};
use crate::pack::Packer;
use crate::perl::Perl;
use crate::piped::{Piped, whole_input};
use crate::quote::{Dialect, command_line};
use crate::shell::{ShellFunctions, command_from_line};
use crate::slot::{SLOT_INDEX_TOKEN, fill_text};
use crate::sources::{ArgumentWords, Combinations, is_separator, no_item, sources};
use crate::strings::Strings;
use crate::tasks_file::TaskLines;
use crate::template::{CommandTemplate, Filling, TextTemplate};
use homing_model::{Block, RawText, Task};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// The tasks of a run, made one at a time on request.
pub struct Batch {
    origin: Origin,
    tag: Option<Tag>,
    /// For each source, the reason why it gives nothing, if it gives nothing.
    lacks: Vec<String>,
    next_id: u64,
    ended: bool,
}

enum Origin {
    Composed(Box<Composer>),
    Lines(Box<TaskLines>),
    Blocks(Box<(Blocks, Declared)>),
    Piped(Box<(Piped, Declared)>),
    Listed(std::vec::IntoIter<Task>),
}

/// Makes a batch of a command and its input sources.
///
/// `words` is everything after homing's own options: the command's words, then `:::`, `::::`, `:::+`, `::::+` and
/// their arguments. Without any source the records of standard input are the input; without a command each record is
/// one.
pub fn compose(
    words: &[RawText],
    options: InputOptions,
    inputs: &mut dyn InputOpener,
    stdin_is_tty: bool,
) -> Result<Batch, BatchError> {
    let tee = match options.blocks.clone() {
        Some(how) if how.tee => Some(check_tee(words, &options, &how, stdin_is_tty)?),
        Some(how) => return of_blocks(words, &options, &how, inputs, stdin_is_tty),
        None => None,
    };
    let ArgumentWords { command, mut combinations, columns, lacks } = sources(words, &options, inputs, stdin_is_tty)?;
    let names = columns.iter().map(|name| RawText(name.clone())).collect();
    let strings = Strings::new(&options.replacements, columns, options.perl.clone())?;
    let text = |text: &RawText| TextTemplate::parse(text, &strings);
    let template = (!command.is_empty()).then(|| CommandTemplate::parse(command, &options, &strings)).transpose()?;
    let hidden = options.packing.records == Some(0);
    let tag = options.tag.as_ref().map(text).transpose()?.map(|template| Tag { template, hidden });
    let declared = Declared::new(&options, &strings)?;
    let packer = Packer::new(options.packing);
    if template.as_ref().is_some_and(CommandTemplate::needs_total) {
        combinations.hold()?;
        if packer.commands(0).is_none() {
            return Err(BatchError::value("--plus", "{##}", "with -X, -m or -s the number of commands is unknown"));
        }
    }
    let composer = Composer {
        stdin: tee.map(|()| whole_input(inputs)).transpose()?,
        template,
        declared,
        combinations,
        functions: options.functions,
        names,
        perl: options.perl,
        delimited: options.delimiter.is_some(),
        hidden,
        skipped: 0,
        packer,
    };
    Ok(Batch { tag, ..Batch::new(Origin::Composed(Box::new(composer)), lacks) })
}

/// Makes a batch of blocks of files or of standard input, for commands that read theirs.
fn of_blocks(
    words: &[RawText],
    options: &InputOptions,
    how: &Blocking,
    inputs: &mut dyn InputOpener,
    stdin_is_tty: bool,
) -> Result<Batch, BatchError> {
    let refuse =
        |reason: &str| Err(BatchError::value(if how.piped.is_some() { "--pipe" } else { "--pipepart" }, "", reason));
    let at = words.iter().position(|word| is_separator(word, options)).unwrap_or(words.len());
    let (words, behind) = words.split_at(at);
    // `:::: FILE` is `-a FILE`.
    let files = behind.iter().filter(|word| **word != options.arg_file_sep);
    let mut all_files: Vec<RawText> = options.arg_files.iter().map(|file| RawText::from(file.as_path())).collect();
    all_files.extend(files.cloned());
    if words.is_empty() || all_files.iter().any(|word| is_separator(word, options)) {
        return refuse("it takes a command that reads its standard input, and no ':::'");
    }
    let Packing { full, length, .. } = options.packing;
    if full || length.is_some() || (how.piped.is_none() && options.packing != Packing::default()) {
        return refuse("--block limits the input of a command, not -n, -N, -L, -X, -m or -s; --pipe takes -N and -L");
    }
    if how.piped.is_none() && options.no_run_if_empty {
        return refuse("it passes empty lines on, contrary to -r; --pipe leaves them out");
    }
    if how.piped.is_none() && how.removes_separators {
        return refuse("it passes separators on, contrary to --rrs; --pipe leaves them out");
    }
    if options.names_files {
        return refuse("a block has no file name for --header 0");
    }
    let strings = Strings::new(&options.replacements, Vec::new(), options.perl.clone())?;
    let template = CommandTemplate::parse(words, options, &strings)?;
    let declared = Declared::new(options, &strings)?;
    let tag = options.tag.as_ref().map(|text| TextTemplate::parse(text, &strings)).transpose()?.map(Tag::of_template);
    let origin = match how.piped {
        Some(_) if !all_files.is_empty() => {
            return refuse("it cuts standard input; --pipepart -a FILE cuts files");
        }
        Some(_) if stdin_is_tty => return Err(BatchError::NoInput),
        Some(each) => Origin::Piped(Box::new((Piped::new(inputs, how, each, options, template)?, declared))),
        None if Dialect::of(&options.shell) == Dialect::Csh => {
            return refuse("its lines are for a POSIX shell; set SHELL=/bin/sh");
        }
        None => {
            let files = all_files.iter().map(|file| options.cwd.join(file.as_path())).collect();
            Origin::Blocks(Box::new((Blocks::new(files, how, options.skip_first_line, template)?, declared)))
        }
    };
    let lacks = match how.piped {
        Some(_) => vec![no_item("standard input", options)],
        None => all_files.iter().map(|file| no_item(&file.display(), options)).collect(),
    };
    Ok(Batch { tag, ..Batch::new(origin, lacks) })
}

/// The user's declarations for each task besides its command.
struct Declared {
    outputs: Vec<TextTemplate>,
    inputs: Vec<TextTemplate>,
    workdir: Option<TextTemplate>,
    slot_variable: Option<RawText>,
    cwd: PathBuf,
}

impl Declared {
    fn new(options: &InputOptions, strings: &Strings) -> Result<Declared, BatchError> {
        let text = |text: &RawText| TextTemplate::parse(text, strings);
        let texts = |texts: &[RawText]| texts.iter().map(text).collect::<Result<Vec<_>, _>>();
        if options.workdir.as_ref().is_some_and(|dir| dir == &RawText::from("...")) {
            let reason = "name a folder; mktemp -d in the command makes one for each";
            return Err(BatchError::value("--workdir", "...", reason));
        }
        Ok(Declared {
            outputs: texts(&options.outputs)?,
            inputs: texts(&options.inputs_extra)?,
            workdir: options.workdir.as_ref().map(text).transpose()?,
            slot_variable: options.slot_variable.clone(),
            cwd: options.cwd.clone(),
        })
    }

    fn of(&self, mut task: Task, with: Filling) -> Task {
        let fill = |texts: &[TextTemplate]| texts.iter().map(|t| t.fill(with)).collect();
        let cwd = self.workdir.as_ref().map(|dir| RawText::from(self.cwd.join(dir.fill(with).as_path()).as_path()));
        // GNU parallel changes the folder in the task's shell, which then knows the folder before.
        task.env.extend(cwd.iter().map(|_| (RawText::from("OLDPWD"), RawText::from(self.cwd.as_path()))));
        task.env.extend(self.slot_variable.iter().map(|name| (name.clone(), RawText::from(SLOT_INDEX_TOKEN))));
        Task { inputs: fill(&self.inputs), outputs: fill(&self.outputs), cwd, ..task }
    }

    /// Makes a task whose input is not in its command.
    fn fed(&self, id: u64, command: homing_model::Command, stdin: Vec<Block>) -> Task {
        let task = Task { id, stdin, ..Task::of(command) };
        self.of(task, Filling { args: &[], seq: id, total: None })
    }
}

/// Makes tasks from JSON lines. The text of a task is in `command` (string) or `argv` (list). Other fields are
/// `name`, `cwd`, `env` (object), `after` (names or numbers of tasks), `inputs` and `outputs`. Limits are in `cpus`,
/// `memory` (bytes, or `"2G"`), `resources` (object of numbers) and `timeout` (seconds, or `"2m"`).
///
/// Empty lines are skipped. `name` is for messages; `-` means standard input. `again` is a file with the same bytes:
/// without one a task can depend only on tasks before it.
///
/// # Errors
/// The fault of a line, if tasks of the file depend on each other. Or the reason why the file cannot be read.
pub fn tasks_file(
    reader: Box<dyn BufRead + Send>,
    again: Option<PathBuf>,
    name: &str,
    options: InputOptions,
) -> Result<Batch, BatchError> {
    let strings = Strings::new(&options.replacements, Vec::new(), options.perl.clone())?;
    let tag = |text: &RawText| TextTemplate::parse(text, &strings).map(Tag::of_template);
    let tag = options.tag.as_ref().map(tag).transpose()?;
    let lines = TaskLines::open(reader, again, name, options)?;
    let lacks = vec![format!("{} was empty", if name == "-" { "standard input" } else { name })];
    Ok(Batch { tag, ..Batch::new(Origin::Lines(Box::new(lines)), lacks) })
}

/// The beginning of each line of a task's output.
#[derive(Clone, Debug)]
pub struct Tag {
    template: TextTemplate,
    /// `-N0`: the values are not shown.
    hidden: bool,
}

impl Tag {
    /// Makes the tag of `--tag`: the task's arguments.
    pub fn arguments() -> Tag {
        Tag::of_template(TextTemplate::arguments())
    }

    fn of_template(template: TextTemplate) -> Tag {
        Tag { template, hidden: false }
    }

    /// Returns the tag of one task in this slot.
    pub fn of(&self, task: &Task, slot: u32) -> RawText {
        let mut text =
            self.template.fill(Filling { args: if self.hidden { &[] } else { &task.args }, seq: task.id, total: None });
        fill_text(&mut text, &slot.to_string());
        text
    }
}

impl Batch {
    fn new(origin: Origin, lacks: Vec<String>) -> Self {
        Batch { origin, tag: None, lacks, next_id: 1, ended: false }
    }

    /// Makes a batch of these tasks, which keep their numbers.
    pub fn listed(tasks: Vec<Task>, tagged: bool) -> Self {
        let lacks = vec!["the job log has no failed task".into()];
        Batch { tag: tagged.then(Tag::arguments), ..Batch::new(Origin::Listed(tasks.into_iter()), lacks) }
    }

    /// Returns the block of the user's file that the last task reads as its standard input.
    pub fn block(&self) -> Option<&Block> {
        match &self.origin {
            Origin::Blocks(origin) => origin.0.last.as_ref(),
            Origin::Composed(_) | Origin::Lines(_) | Origin::Piped(_) | Origin::Listed(_) => None,
        }
    }

    /// Returns the beginning of lines of output, if there is one.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Returns the number of tasks of the whole batch, if it is known without reading further input.
    pub fn total(&self) -> Option<u64> {
        match &self.origin {
            Origin::Composed(composer) => composer.total(),
            Origin::Listed(tasks) => Some(tasks.len() as u64),
            Origin::Lines(lines) => lines.total(),
            Origin::Blocks(_) | Origin::Piped(_) => None,
        }
    }

    /// Returns the number of tasks that a replacement string has skipped so far. They count in [`Self::total`], and
    /// have no number.
    pub fn skipped(&self) -> u64 {
        match &self.origin {
            Origin::Composed(composer) => composer.skipped,
            Origin::Lines(_) | Origin::Blocks(_) | Origin::Piped(_) | Origin::Listed(_) => 0,
        }
    }

    /// Returns the notes on the input for the user that were made since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        match &self.origin {
            Origin::Composed(composer) => composer.combinations.take_notes(),
            Origin::Lines(_) | Origin::Blocks(_) | Origin::Piped(_) | Origin::Listed(_) => Vec::new(),
        }
    }

    /// Returns the note for a batch without any task: each source with the reason.
    pub fn empty_note(&self) -> String {
        format!("{}, so there are no tasks", self.lacks.join(", "))
    }

    /// Whether tasks may depend on others.
    pub fn has_links(&self) -> bool {
        matches!(&self.origin, Origin::Lines(lines) if lines.has_links())
    }

    /// Returns the names of the input's columns, where `--header` gives them.
    pub fn columns(&self) -> &[RawText] {
        match &self.origin {
            Origin::Composed(composer) => &composer.names,
            Origin::Lines(_) | Origin::Blocks(_) | Origin::Piped(_) | Origin::Listed(_) => &[],
        }
    }

    /// Whether standard input is an input source: tasks must not read it then.
    pub fn uses_stdin(&self) -> bool {
        match &self.origin {
            Origin::Composed(composer) => composer.stdin.is_some() || composer.combinations.uses_stdin(),
            Origin::Lines(lines) => lines.uses_stdin(),
            Origin::Piped(_) => true,
            Origin::Blocks(_) | Origin::Listed(_) => false,
        }
    }
}

impl Iterator for Batch {
    type Item = Result<Task, BatchError>;

    /// Returns nothing after an error that ends the input.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let id = self.next_id;
        let task = match &mut self.origin {
            Origin::Composed(composer) => composer.next(id),
            Origin::Lines(lines) => lines.next(id),
            Origin::Blocks(origin) => {
                let (blocks, declared) = &mut **origin;
                blocks.next(id).map(|command| command.map(|command| declared.fed(id, command, Vec::new())))
            }
            Origin::Piped(origin) => {
                let (piped, declared) = &mut **origin;
                piped.next(id).map(|next| next.map(|(command, stdin)| declared.fed(id, command, stdin)))
            }
            Origin::Listed(tasks) => Ok(tasks.next()),
        };
        self.next_id += 1;
        self.ended = matches!(&task, Ok(None)) || task.as_ref().is_err_and(BatchError::ends_the_input);
        task.transpose()
    }
}

/// Refuses options that `--tee` does not have.
fn check_tee(words: &[RawText], options: &InputOptions, how: &Blocking, stdin_is_tty: bool) -> Result<(), BatchError> {
    let refuse = |reason: &str| Err(BatchError::value("--tee", "", reason));
    if how.piped.is_none() {
        return refuse("it passes standard input on; give each command the name of the file");
    }
    if !words.iter().any(|word| is_separator(word, options)) {
        return refuse("it starts a command for each value behind ':::'");
    }
    if options.packing != Packing::default() || how.header.is_some() || how.removes_separators {
        return refuse("it passes standard input on as it is, without -n, -N, -L, -X, --header or --rrs");
    }
    if stdin_is_tty { Err(BatchError::NoInput) } else { Ok(()) }
}

struct Composer {
    /// `--tee`: the standard input of each task.
    stdin: Option<Block>,
    template: Option<CommandTemplate>,
    declared: Declared,
    combinations: Combinations,
    functions: ShellFunctions,
    /// The names of columns.
    names: Vec<RawText>,
    perl: Option<Arc<dyn Perl>>,
    packer: Packer,
    /// Whether `-d` chooses the end of records.
    delimited: bool,
    /// `-N0` runs once for each record and passes none of it to the command.
    hidden: bool,
    /// The number of skipped tasks so far.
    skipped: u64,
}

impl Composer {
    fn total(&self) -> Option<u64> {
        self.packer.commands(self.combinations.total()?)
    }

    /// Returns the next task that is not skipped. A skipped task gets no number.
    fn next(&mut self, id: u64) -> Result<Option<Task>, BatchError> {
        loop {
            match self.next_of_all(id)? {
                None => return Ok(None),
                Some((_, true)) => self.skipped += 1,
                Some((task, false)) => return Ok(Some(task)),
            }
        }
    }

    /// Returns the next task, and whether it is skipped.
    fn next_of_all(&mut self, id: u64) -> Result<Option<(Task, bool)>, BatchError> {
        let total = self.total();
        let Composer { template, functions, .. } = self;
        let command = |args: &[RawText]| match &template {
            Some(template) => template.fill(Filling { args, seq: id, total }),
            None => command_from_line(&joined(args), functions),
        };
        let length = |args: &[RawText]| command_line(&command(args)).len();
        let Some(args) = self.packer.values(&mut self.combinations, length)? else { return Ok(None) };
        if args.iter().any(|a| a.0.contains(&0)) {
            return Err(BatchError::Nul { task: id, hint: nul_hint(&args, self.delimited) });
        }
        let shown = if self.hidden { &[][..] } else { &args[..] };
        let with = Filling { args: shown, seq: id, total };
        let command = command(shown);
        let stdin = self.stdin.iter().cloned().collect();
        let task = self.declared.of(Task { id, stdin, ..Task::of(command) }, with);
        let passed = self.passes_over(shown);
        Ok(Some((Task { args, ..task }, passed)))
    }

    /// Whether a replacement string of the command skips the task: `{uniq}`, `{choose_k}`, `skip()`. Perl's answer is
    /// taken for every task, because an answer that is left would skip the next one.
    fn passes_over(&self, args: &[RawText]) -> bool {
        let by_perl = self.perl.as_ref().is_some_and(|perl| perl.take_skip());
        by_perl || self.template.as_ref().is_some_and(|template| template.passes_over(args))
    }
}

/// Returns the next step if a value holds a zero byte. Only text that ends with another byte can hold one.
fn nul_hint(values: &[RawText], delimited: bool) -> &'static str {
    let is_utf16 = |value: &RawText| value.0.starts_with(b"\xff\xfe") || value.0.starts_with(b"\xfe\xff");
    match delimited {
        _ if values.iter().any(is_utf16) => "this text is UTF-16: iconv -f UTF-16 -t UTF-8 makes a list of it",
        true => "for names that end with NUL, as from find -print0, give -0 instead of -d",
        false => "for names that end with NUL, as from find -print0, add -0",
    }
}

fn joined(values: &[RawText]) -> Vec<u8> {
    values.iter().map(|v| v.0.as_slice()).collect::<Vec<_>>().join(&b' ')
}
