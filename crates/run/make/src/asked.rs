//! What travels between the threads of `homing make`.

use crate::Seen;
use crate::near::Inputs;
use crate::{Step, text_of};
use homing_launch::Heard;
use homing_launch::wire::Stream;
use homing_launch::wire::stub::Part;
use homing_model::{Change, Outcome, RawText, TaskId};
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
    /// Its place in the build.
    pub part: Part,
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
    /// Hosts that were lost with it.
    pub losses: u32,
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
        let text = text_of(words.iter().map(RawText::display));
        let (part, inputs, folders, extra, unfit) = Default::default();
        let (step, mount, reply) = (Step::of(&text), None, channel().0);
        let (again, losses, at) = (false, 0, Instant::now());
        Asked { id, words, cwd, env, part, text, step, inputs, folders, mount, extra, again, losses, unfit, at, reply }
    }

    /// Nobody wanted it any more.
    pub fn was_killed(&self) {
        let _ = self.reply.send(ToConnection::Ended { ticket: 0, outcome: Outcome::Killed });
    }

    /// Its first line, shortened.
    pub fn label(&self) -> String {
        let line = self.text.lines().next().unwrap_or("");
        line.chars().take(100).collect()
    }
}

/// What arrives at the coordinator.
pub enum News {
    /// Of the host with this number.
    Host(usize, Heard),
    /// For people.
    Note(String),
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
