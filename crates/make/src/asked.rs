//! What travels between the threads of `homing make`.

use crate::Seen;
use crate::Step;
use crate::near::Inputs;
use homing_launch::Keeper;
use homing_model::{Change, HostFacts, Outcome, RawText, TaskId};
use homing_wire::{FromWorker, Stream};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A recipe that wants a host.
#[derive(Clone)]
pub struct Asked {
    /// Its connection.
    pub id: u64,
    /// Program and arguments.
    pub words: Vec<RawText>,
    /// Working directory.
    pub cwd: RawText,
    /// Environment.
    pub env: Vec<(RawText, RawText)>,
    /// Its text, for people and for hints.
    pub text: String,
    /// Link, archive or other.
    pub step: Step,
    /// What it reads.
    pub inputs: Inputs,
    /// Folders in which it may write.
    pub folders: Vec<RawText>,
    /// Mount point of the shared file system that holds `cwd`.
    pub mount: Option<PathBuf>,
    /// Files that its host has to look at besides what others changed.
    pub extra: Vec<Change>,
    /// It failed once for want of a file.
    pub again: bool,
    /// Hosts given to it so far.
    pub attempts: u32,
    /// Hosts that cannot run it.
    pub unfit: Vec<usize>,
    /// When it came.
    pub at: Instant,
    /// To its connection.
    pub reply: Sender<ToConnection>,
}

impl Asked {
    /// Nothing but the recipe is known of it.
    pub fn new(id: u64, words: Vec<RawText>, cwd: RawText, env: Vec<(RawText, RawText)>) -> Asked {
        let shell = words.len() >= 3 && words[words.len() - 2].0 == b"-c" && words[0].0.ends_with(b"sh");
        let all = || words.iter().map(RawText::display).collect::<Vec<_>>().join(" ");
        let text = if shell { words[words.len() - 1].display() } else { all() };
        let (inputs, folders, extra, unfit) = Default::default();
        let (step, mount, reply) = (Step::of(&text), None, channel().0);
        let (again, attempts, at) = (false, 0, Instant::now());
        Asked { id, words, cwd, env, text, step, inputs, folders, mount, extra, again, attempts, unfit, at, reply }
    }

    /// Its first line, shortened.
    pub fn label(&self) -> String {
        let line = self.text.lines().next().unwrap_or("");
        line.chars().take(100).collect()
    }
}

/// What arrives at the coordinator; `at` is the index of a host.
pub enum News {
    Up {
        at: usize,
        facts: Box<HostFacts>,
        to: Sender<Vec<u8>>,
        keeper: Keeper,
    },
    Refused {
        at: usize,
        why: String,
    },
    From {
        at: usize,
        messages: Vec<FromWorker>,
    },
    /// Its recipes may still run.
    Cut {
        at: usize,
        why: String,
    },
    Gone {
        at: usize,
        why: String,
    },
    Asked(Box<Asked>),
    /// The recipe of a connection is to end.
    Stop {
        id: u64,
    },
    /// What a recipe wrote was seen here, after so long.
    Seen {
        ticket: u64,
        took: Duration,
    },
    /// Somebody watches, and wants to see what these tasks have printed.
    Watched {
        shown: Vec<TaskId>,
        reply: Sender<Seen>,
    },
    /// A task is to end.
    End {
        task: TaskId,
    },
    /// Make has ended.
    Over,
}

/// What a connection is told of its recipe.
pub enum ToConnection {
    Output(Stream, Vec<u8>),
    Ended { ticket: u64, outcome: Outcome },
    Here,
    Failed(String),
}
