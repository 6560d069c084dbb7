//! The fields of a line, and the task that it makes.

use super::types::wrong_type;
use crate::amount::{parse_duration, parse_size};
use crate::shell::{ShellFunctions, command_from_line};
use homing_model::graph::Other;
use homing_model::resource::{PARTS, parse_amount, too_much};
use homing_model::{Command, RawText, Task, TaskId};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskFileLine {
    pub name: Option<RawText>,
    command: Option<RawText>,
    argv: Option<Vec<RawText>>,
    cwd: Option<RawText>,
    #[serde(default)]
    env: BTreeMap<String, RawText>,
    #[serde(default)]
    after: Vec<Reference>,
    #[serde(default)]
    inputs: Vec<RawText>,
    #[serde(default)]
    outputs: Vec<RawText>,
    cpus: Option<u32>,
    #[serde(alias = "mem")]
    memory: Option<Amount>,
    #[serde(default)]
    resources: BTreeMap<String, serde_json::Number>,
    timeout: Option<Amount>,
}

/// A reference to a task in `after`.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Reference {
    Number(TaskId),
    Name(RawText),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

/// Settings that are the same for all lines of a file.
pub(super) struct TaskDefaults {
    /// The run's working directory.
    pub cwd: PathBuf,
    /// Functions of the shell with which commands may begin.
    pub functions: ShellFunctions,
    /// The largest amount of each named resource on a host, in parts of a unit.
    pub resources: BTreeMap<String, u64>,
}

impl TaskFileLine {
    pub fn parse(text: &[u8]) -> Result<TaskFileLine, String> {
        match text.trim_ascii_start() {
            [b'[', ..] => Err("a JSON array is not a task: write each task as one object on its own line, as `jq -c \
                '.[]' FILE` prints them"
                .into()),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err("the text is UTF-16; a task file is UTF-8".into()),
            [b'{', ..] => serde_json::from_slice(text).map_err(|e| json_reason(&e, text)),
            _ => Err("expected a JSON object, such as {\"command\": \"echo a\"}".into()),
        }
    }

    /// Returns the tasks that it must run after.
    pub fn after(&self) -> Vec<Other> {
        let other = |task: &Reference| match task {
            Reference::Number(number) => Other::Number(*number),
            Reference::Name(name) => Other::Name(name.clone()),
        };
        self.after.iter().map(other).collect()
    }

    /// Whether it runs after another task, or writes files that another may wait for.
    pub fn waits_or_makes(&self) -> bool {
        !(self.after.is_empty() && self.outputs.is_empty())
    }

    /// Whether it names tasks or files that may link it with others.
    pub fn may_link(&self) -> bool {
        !(self.after.is_empty() && self.inputs.is_empty() && self.outputs.is_empty() && self.name.is_none())
    }

    fn base(&self, cwd: &Path) -> PathBuf {
        self.cwd.as_ref().map_or_else(|| cwd.to_path_buf(), |dir| cwd.join(dir.as_path()))
    }

    /// Returns its inputs, absolute if `cwd` is.
    pub fn inputs(&self, cwd: &Path) -> Vec<PathBuf> {
        let base = self.base(cwd);
        self.inputs.iter().map(|path| base.join(path.as_path())).collect()
    }

    /// Returns its outputs, absolute if `cwd` is.
    pub fn outputs(&self, cwd: &Path) -> Vec<PathBuf> {
        let base = self.base(cwd);
        self.outputs.iter().map(|path| base.join(path.as_path())).collect()
    }

    /// Makes task number `id`, which runs after these.
    pub fn task(self, id: TaskId, after: Vec<TaskId>, setting: &TaskDefaults) -> Result<Task, String> {
        let command = match (self.command, self.argv) {
            (Some(command), None) => command_from_line(&command.0, &setting.functions),
            (None, Some(argv)) if !argv.is_empty() => Command::Argv(argv),
            (None, Some(_)) => return Err("'argv' is empty".into()),
            (Some(_), Some(_)) => return Err("both 'command' and 'argv' are given; give one".into()),
            (None, None) => return Err("neither 'command' nor 'argv' is given".into()),
        };
        if has_nul(&command) {
            return Err("the command holds a zero byte, which no command line can carry".into());
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("'env' has {name:?}; a variable has a name without '=' or a zero byte"));
        }
        if self.cpus == Some(0) {
            return Err("'cpus' must be at least 1".into());
        }
        let parts = |(name, wanted): (String, serde_json::Number)| {
            let parts = parse_amount(&wanted.to_string()).map_err(|why| format!("'resources': {name}: {why}"))?;
            offered(&name, parts, &setting.resources).map(|()| (name, parts))
        };
        let resources = self.resources.into_iter().map(parts).collect::<Result<Vec<_>, String>>()?;
        Ok(Task {
            cwd: self.cwd.map(|cwd| RawText::from(setting.cwd.join(cwd.as_path()).as_path())),
            env: self.env.into_iter().map(|(name, value)| (RawText::from(name), value)).collect(),
            inputs: self.inputs,
            outputs: self.outputs,
            cpus: self.cpus.unwrap_or(1),
            memory: self.memory.map(Amount::bytes).transpose()?,
            timeout_ms: self.timeout.map(Amount::duration).transpose()?.map(|d| (d.as_millis() as u64).max(1)),
            name: self.name,
            after,
            resources: resources.into_iter().filter(|(_, wanted)| *wanted > 0).collect(),
            id,
            ..Task::of(command)
        })
    }
}

/// Checks that some host has this much of a resource. Amounts are in parts of a unit.
pub fn offered(name: &str, wanted: u64, resources: &BTreeMap<String, u64>) -> Result<(), String> {
    match resources.get(name) {
        _ if wanted == 0 => Ok(()),
        None => {
            let all = wanted.div_ceil(PARTS);
            Err(format!("no host of this run has the resource {name:?}; --resource {name}={all} gives it to each host"))
        }
        Some(most) if *most < wanted => Err(too_much(name, wanted, *most)),
        Some(_) => Ok(()),
    }
}

fn has_nul(command: &Command) -> bool {
    match command {
        Command::Shell(line) => line.0.contains(&0),
        Command::Argv(words) => words.iter().any(|w| w.0.contains(&0)),
    }
}

/// Returns the fault of a line: the key with a wrong type, or the parser's message without its own line number, which
/// is always 1.
fn json_reason(error: &serde_json::Error, line: &[u8]) -> String {
    if let Some(wrong) = error.is_data().then(|| wrong_type(line)).flatten() {
        return wrong;
    }
    let text = error.to_string();
    let text = match text.rfind(" at line ") {
        Some(at) => format!("{} (column {})", &text[..at], error.column()),
        None => text,
    };
    if error.is_eof() { text + ": a task is one JSON object on one line, as `jq -c . FILE` prints it" } else { text }
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
