//! Template and sources joined: a batch is an iterator of tasks.

use crate::error::BatchError;
use crate::inputs::Inputs;
use crate::options::InputOptions;
use crate::shell::command_from_line;
use crate::sources::{Combinations, sources};
use crate::tasks_file::TaskLines;
use crate::template::{CommandTemplate, Filling, TextTemplate};
use homing_model::{RawText, Task};

/// The tasks of a run, made one at a time as they are asked for.
pub struct Batch {
    origin: Origin,
    next_id: u64,
    ended: bool,
}

enum Origin {
    Composed(Box<Composer>),
    Lines(Box<TaskLines>),
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
    let (command, combinations) = sources(words, &options, inputs, stdin_is_tty)?;
    let texts = |texts: &[RawText]| texts.iter().map(TextTemplate::parse).collect::<Result<Vec<_>, _>>();
    let composer = Composer {
        template: (!command.is_empty()).then(|| CommandTemplate::parse(command, &options)).transpose()?,
        outputs: texts(&options.outputs)?,
        inputs: texts(&options.inputs_extra)?,
        combinations,
        functions: options.functions,
        max_args: options.max_args,
    };
    Ok(Batch::new(Origin::Composed(Box::new(composer))))
}

impl Batch {
    fn new(origin: Origin) -> Self {
        Batch { origin, next_id: 1, ended: false }
    }

    pub(crate) fn of_lines(lines: TaskLines) -> Self {
        Batch::new(Origin::Lines(Box::new(lines)))
    }

    /// Number of tasks of the whole batch, when it is known without reading
    /// further input.
    pub fn total(&self) -> Option<u64> {
        match &self.origin {
            Origin::Composed(composer) => composer.total(),
            Origin::Lines(_) => None,
        }
    }

    /// True if standard input is an input source, so that tasks must not read it.
    pub fn uses_stdin(&self) -> bool {
        match &self.origin {
            Origin::Composed(composer) => composer.combinations.uses_stdin(),
            Origin::Lines(lines) => lines.uses_stdin(),
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
    combinations: Combinations,
    functions: Vec<RawText>,
    max_args: Option<usize>,
}

impl Composer {
    fn total(&self) -> Option<u64> {
        let records = self.combinations.total()?;
        Some(records.div_ceil(self.max_args.unwrap_or(1).max(1) as u64))
    }

    /// The values of one command: one record, or `-n` of them.
    fn values(&mut self) -> Result<Option<Vec<RawText>>, BatchError> {
        let Some(mut values) = self.combinations.next()? else { return Ok(None) };
        for _ in 1..self.max_args.unwrap_or(1) {
            match self.combinations.next()? {
                Some(more) => values.extend(more),
                None => break,
            }
        }
        Ok(Some(values))
    }

    fn next(&mut self, id: u64) -> Result<Option<Task>, BatchError> {
        let Some(args) = self.values()? else { return Ok(None) };
        if args.iter().any(|a| a.0.contains(&0)) {
            return Err(BatchError::Nul { task: id });
        }
        // `-n0` runs once for each record and shows the command none of it.
        let shown = if self.max_args == Some(0) { &[][..] } else { &args[..] };
        let with = Filling { args: shown, seq: id };
        let command = match &self.template {
            Some(template) => template.fill(with),
            None => command_from_line(&joined(shown), &self.functions),
        };
        let fill = |texts: &[TextTemplate]| texts.iter().map(|t| t.fill(with)).collect();
        let (inputs, outputs) = (fill(&self.inputs), fill(&self.outputs));
        Ok(Some(Task { inputs, outputs, ..bare_task(id, command, args) }))
    }
}

fn joined(values: &[RawText]) -> Vec<u8> {
    values.iter().map(|v| v.0.as_slice()).collect::<Vec<_>>().join(&b' ')
}

/// A task with nothing declared.
pub(crate) fn bare_task(id: u64, command: homing_model::Command, args: Vec<RawText>) -> Task {
    Task { id, args, ..Task::of(command) }
}
