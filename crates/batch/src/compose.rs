//! Template and sources joined: a batch is an iterator of tasks.

use crate::blocks::{Block, Blocking, Blocks};
use crate::error::BatchError;
use crate::inputs::Inputs;
use crate::options::{InputOptions, Packing};
use crate::pack::Packer;
use crate::quote::{Dialect, command_line};
use crate::shell::command_from_line;
use crate::sources::{Combinations, Given, is_separator, sources};
use crate::strings::Strings;
use crate::tasks_file::TaskLines;
use crate::template::{CommandTemplate, Filling, TextTemplate, fill_text};
use homing_model::{RawText, Task};
use std::path::PathBuf;

/// The tasks of a run, made one at a time as they are asked for.
pub struct Batch {
    origin: Origin,
    tag: Option<Tag>,
    next_id: u64,
    ended: bool,
}

enum Origin {
    Composed(Box<Composer>),
    Lines(Box<TaskLines>),
    Blocks(Box<Blocks>),
}

/// Makes a batch of a command and its input sources.
///
/// `words` is everything after homing's own options: the command's words,
/// then `:::`, `::::`, `:::+`, `::::+` and what follows them. Without any
/// source the records of standard input are the input; without a command each
/// record is one.
pub fn compose(
    words: &[RawText],
    options: InputOptions,
    inputs: &mut dyn Inputs,
    stdin_is_tty: bool,
) -> Result<Batch, BatchError> {
    if let Some(how) = options.blocks.clone() {
        return pipepart(words, &options, &how);
    }
    let Given { command, mut combinations, columns } = sources(words, &options, inputs, stdin_is_tty)?;
    let strings = Strings::new(&options.replacements, columns)?;
    let text = |text: &RawText| TextTemplate::parse(text, &strings);
    let texts = |texts: &[RawText]| texts.iter().map(text).collect::<Result<Vec<_>, _>>();
    let template = (!command.is_empty()).then(|| CommandTemplate::parse(command, &options, &strings)).transpose()?;
    if options.workdir.as_ref().is_some_and(|dir| dir == &RawText::from("...")) {
        return Err(BatchError::value(
            "--workdir",
            "...",
            "name a folder; mktemp -d in the command makes one for each",
        ));
    }
    let packer = Packer::new(options.packing);
    if template.as_ref().is_some_and(CommandTemplate::needs_total) {
        combinations.hold()?;
        if packer.commands(0).is_none() {
            return Err(BatchError::value("--plus", "{##}", "with -X, -m or -s nobody knows the number of commands"));
        }
    }
    let composer = Composer {
        template,
        outputs: texts(&options.outputs)?,
        inputs: texts(&options.inputs_extra)?,
        workdir: options.workdir.as_ref().map(text).transpose()?,
        cwd: options.cwd,
        combinations,
        functions: options.functions,
        hidden: options.packing.records == Some(0),
        packer,
    };
    let tag = options.tag.as_ref().map(text).transpose()?.map(Tag);
    Ok(Batch { tag, ..Batch::new(Origin::Composed(Box::new(composer))) })
}

/// Blocks of files for commands that read their standard input.
fn pipepart(words: &[RawText], options: &InputOptions, how: &Blocking) -> Result<Batch, BatchError> {
    let refuse = |reason: &str| BatchError::value("--pipepart", "", reason);
    if Dialect::of(&options.shell) == Dialect::Csh {
        return Err(refuse("its lines are for a POSIX shell; set SHELL=/bin/sh"));
    }
    if options.packing != Packing::default() {
        return Err(refuse("--block bounds what a command gets, not -n, -N, -L, -X, -m or -s"));
    }
    if words.is_empty() || words.iter().any(|word| is_separator(word, options)) {
        return Err(refuse("it takes a command that reads its standard input, files with -a, and no ':::'"));
    }
    let strings = Strings::new(&options.replacements, Vec::new())?;
    let template = CommandTemplate::parse(words, options, &strings)?;
    let files = options.arg_files.iter().map(|file| options.cwd.join(file)).collect();
    let tag = options.tag.as_ref().map(|text| TextTemplate::parse(text, &strings)).transpose()?.map(Tag);
    let blocks = Blocks::new(files, how, options.header, template)?;
    Ok(Batch { tag, ..Batch::new(Origin::Blocks(Box::new(blocks))) })
}

/// What each line of a task's output begins with.
#[derive(Clone, Debug)]
pub struct Tag(TextTemplate);

impl Tag {
    /// `--tag`: the task's arguments.
    pub fn arguments() -> Tag {
        Tag(TextTemplate::arguments())
    }

    /// For one task in this slot.
    pub fn of(&self, task: &Task, slot: u32) -> RawText {
        let mut text = self.0.fill(Filling { args: &task.args, seq: task.id, total: None });
        fill_text(&mut text, &slot.to_string());
        text
    }
}

impl Batch {
    fn new(origin: Origin) -> Self {
        Batch { origin, tag: None, next_id: 1, ended: false }
    }

    pub(crate) fn of_lines(lines: TaskLines, tagged: bool) -> Self {
        Batch { tag: tagged.then(Tag::arguments), ..Batch::new(Origin::Lines(Box::new(lines))) }
    }

    /// The block that the last task reads as its standard input.
    pub fn block(&self) -> Option<&Block> {
        match &self.origin {
            Origin::Blocks(blocks) => blocks.last.as_ref(),
            Origin::Composed(_) | Origin::Lines(_) => None,
        }
    }

    /// What lines of output begin with, if they begin with anything.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Number of tasks of the whole batch, when it is known without reading
    /// further input.
    pub fn total(&self) -> Option<u64> {
        match &self.origin {
            Origin::Composed(composer) => composer.total(),
            Origin::Lines(_) | Origin::Blocks(_) => None,
        }
    }

    /// True if standard input is an input source, so that tasks must not read it.
    pub fn uses_stdin(&self) -> bool {
        match &self.origin {
            Origin::Composed(composer) => composer.combinations.uses_stdin(),
            Origin::Lines(lines) => lines.uses_stdin(),
            Origin::Blocks(_) => false,
        }
    }
}

impl Iterator for Batch {
    type Item = Result<Task, BatchError>;

    /// After an error that ends the input there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let task = match &mut self.origin {
            Origin::Composed(composer) => composer.next(self.next_id),
            Origin::Lines(lines) => lines.next(self.next_id),
            Origin::Blocks(blocks) => {
                let id = self.next_id;
                blocks.next(id).map(|command| command.map(|command| bare_task(id, command, Vec::new())))
            }
        };
        self.next_id += 1;
        self.ended = matches!(&task, Ok(None)) || task.as_ref().is_err_and(BatchError::ends_the_input);
        task.transpose()
    }
}

struct Composer {
    template: Option<CommandTemplate>,
    outputs: Vec<TextTemplate>,
    inputs: Vec<TextTemplate>,
    workdir: Option<TextTemplate>,
    cwd: PathBuf,
    combinations: Combinations,
    functions: Vec<RawText>,
    packer: Packer,
    /// `-N0` runs once for each record and shows the command none of it.
    hidden: bool,
}

impl Composer {
    fn total(&self) -> Option<u64> {
        self.packer.commands(self.combinations.total()?)
    }

    fn next(&mut self, id: u64) -> Result<Option<Task>, BatchError> {
        let total = self.total();
        let Composer { template, functions, .. } = self;
        let command = |args: &[RawText]| match &template {
            Some(template) => template.fill(Filling { args, seq: id, total }),
            None => command_from_line(&joined(args), functions),
        };
        let length = |args: &[RawText]| command_line(&command(args)).len();
        let Some(args) = self.packer.values(&mut self.combinations, length)? else { return Ok(None) };
        if args.iter().any(|a| a.0.contains(&0)) {
            return Err(BatchError::Nul { task: id });
        }
        let shown = if self.hidden { &[][..] } else { &args[..] };
        let with = Filling { args: shown, seq: id, total };
        let command = command(shown);
        let fill = |texts: &[TextTemplate]| texts.iter().map(|t| t.fill(with)).collect();
        let (inputs, outputs) = (fill(&self.inputs), fill(&self.outputs));
        let cwd = self.workdir.as_ref().map(|dir| RawText::from(self.cwd.join(dir.fill(with).as_path()).as_path()));
        Ok(Some(Task { inputs, outputs, cwd, ..bare_task(id, command, args) }))
    }
}

fn joined(values: &[RawText]) -> Vec<u8> {
    values.iter().map(|v| v.0.as_slice()).collect::<Vec<_>>().join(&b' ')
}

/// A task with nothing declared.
pub(crate) fn bare_task(id: u64, command: homing_model::Command, args: Vec<RawText>) -> Task {
    Task { id, args, ..Task::of(command) }
}
