//! `--tasks FILE`: one JSON object a line, for programs that make work.

use crate::amount::{parse_duration, parse_size};
use crate::compose::{Batch, bare_task};
use crate::error::BatchError;
use crate::options::InputOptions;
use crate::records::{LONGEST_LINE, read_until};
use crate::shell::command_from_line;
use homing_model::{Command, RawText, Task};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

/// Most bytes of a line: all that a command line takes, with each byte escaped in six as JSON does (`\u0001`).
const LONGEST_TASK: usize = 6 * LONGEST_LINE;

/// Tasks from JSON lines. Fields: `command` (string) or `argv` (list), `cwd`,
/// `env` (object), `inputs`, `outputs`, `cpus`, `memory` (bytes, or `"2G"`),
/// `timeout` (seconds, or `"2m"`). Empty lines are passed over. `name` is for
/// messages; `-` means standard input.
pub fn tasks_file(reader: Box<dyn BufRead + Send>, name: &str, options: InputOptions) -> Result<Batch, BatchError> {
    let uses_stdin = name == "-";
    let name = if uses_stdin { "standard input".to_owned() } else { name.to_owned() };
    let InputOptions { cwd, functions, tag, .. } = options;
    Ok(Batch::of_lines(TaskLines { reader, name, uses_stdin, line: 0, cwd, functions }, tag.is_some()))
}

pub(crate) struct TaskLines {
    reader: Box<dyn BufRead + Send>,
    name: String,
    uses_stdin: bool,
    line: u64,
    cwd: PathBuf,
    functions: Vec<RawText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    command: Option<RawText>,
    argv: Option<Vec<RawText>>,
    cwd: Option<RawText>,
    #[serde(default)]
    env: BTreeMap<String, RawText>,
    #[serde(default)]
    inputs: Vec<RawText>,
    #[serde(default)]
    outputs: Vec<RawText>,
    cpus: Option<u32>,
    memory: Option<Amount>,
    timeout: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

impl TaskLines {
    pub(crate) fn uses_stdin(&self) -> bool {
        self.uses_stdin
    }

    pub(crate) fn next(&mut self, id: u64) -> Result<Option<Task>, BatchError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let got = read_until(&mut self.reader, b'\n', LONGEST_TASK + 1, &mut text);
            if got.map_err(|source| BatchError::Read { name: self.name.clone(), source })? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if text.len() > LONGEST_TASK {
                return Err(BatchError::TooLong { name: self.name.clone(), item: self.line, limit: LONGEST_TASK });
            }
            if !text.trim_ascii().is_empty() {
                break;
            }
        }
        let task = serde_json::from_slice::<Line>(&text).map_err(|e| json_reason(&e));
        let task = task.and_then(|line| self.task(id, line));
        task.map(Some).map_err(|reason| BatchError::TaskLine { name: self.name.clone(), line: self.line, reason })
    }

    fn task(&self, id: u64, line: Line) -> Result<Task, String> {
        let command = match (line.command, line.argv) {
            (Some(command), None) => command_from_line(&command.0, &self.functions),
            (None, Some(argv)) if !argv.is_empty() => Command::Argv(argv),
            (None, Some(_)) => return Err("'argv' is empty".into()),
            (Some(_), Some(_)) => return Err("both 'command' and 'argv' are given; give one".into()),
            (None, None) => return Err("neither 'command' nor 'argv' is given".into()),
        };
        if has_nul(&command) {
            return Err("the command holds a zero byte, which no command line can carry".into());
        }
        if line.cpus == Some(0) {
            return Err("'cpus' must be at least 1".into());
        }
        Ok(Task {
            cwd: line.cwd.map(|cwd| RawText::from(self.cwd.join(cwd.as_path()).as_path())),
            env: line.env.into_iter().map(|(name, value)| (RawText::from(name), value)).collect(),
            inputs: line.inputs,
            outputs: line.outputs,
            cpus: line.cpus.unwrap_or(1),
            memory: line.memory.map(Amount::bytes).transpose()?,
            timeout_ms: line.timeout.map(Amount::duration).transpose()?.map(|d| d.as_millis() as u64),
            ..bare_task(id, command, Vec::new())
        })
    }
}

fn has_nul(command: &Command) -> bool {
    match command {
        Command::Shell(line) => line.0.contains(&0),
        Command::Argv(words) => words.iter().any(|w| w.0.contains(&0)),
    }
}

/// The parser's words without its own line number, which is always 1.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => format!("{} (column {})", &text[..at], error.column()),
        None => text,
    }
}

impl Amount {
    fn bytes(self) -> Result<u64, String> {
        match self {
            Amount::Number(n) if n >= 0.0 && n.fract() == 0.0 && n < 2f64.powi(53) => Ok(n as u64),
            Amount::Number(n) => Err(format!("'memory' is {n}; it must be a whole number of bytes")),
            Amount::Text(text) => parse_size("memory", &text).map_err(|e| e.to_string()),
        }
    }
    fn duration(self) -> Result<Duration, String> {
        match self {
            Amount::Number(n) if n > 0.0 => Duration::try_from_secs_f64(n).map_err(|e| format!("'timeout': {e}")),
            Amount::Number(n) => Err(format!("'timeout' is {n}; it must be more than 0 seconds")),
            Amount::Text(text) => parse_duration("timeout", &text).map_err(|e| e.to_string()),
        }
    }
}
