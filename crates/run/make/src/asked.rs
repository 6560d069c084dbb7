//! Messages between the threads of `homing make`.

use crate::BuildSnapshot;
use crate::near::RecipeInputs;
use crate::{RecipeWork, text_of};
use homing_launch::HostEvent;
use homing_launch::wire::OutputStream;
use homing_launch::wire::stub::RecipePosition;
use homing_model::{FileChange, Outcome, RawText, TaskId};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A recipe that waits for a host.
#[derive(Clone)]
pub struct RecipeRequest {
    /// Its connection.
    pub id: u64,
    /// Program and arguments.
    pub words: Vec<RawText>,
    /// Working directory.
    pub cwd: RawText,
    /// Environment.
    pub env: Vec<(RawText, RawText)>,
    /// Its place in the build.
    pub part: RecipePosition,
    /// Its text, for people and for hints.
    pub text: String,
    /// Link, archive or other.
    pub step: RecipeWork,
    /// Its inputs.
    pub inputs: RecipeInputs,
    /// Folders in which it may write.
    pub folders: Vec<RawText>,
    /// Mount point of the shared file system that holds `cwd`.
    pub mount: Option<PathBuf>,
    /// Files that its host has to look at, in addition to changes by others.
    pub extra: Vec<FileChange>,
    /// Whether it failed once because a file was missing.
    pub again: bool,
    /// Number of hosts that were lost while they ran it.
    pub losses: u32,
    /// Hosts that cannot run it.
    pub unfit: Vec<usize>,
    /// When it came.
    pub at: Instant,
    /// Channel to its connection.
    pub reply: Sender<ToConnection>,
}

impl RecipeRequest {
    /// Makes a recipe without further facts.
    pub fn new(id: u64, words: Vec<RawText>, cwd: RawText, env: Vec<(RawText, RawText)>) -> RecipeRequest {
        let text = text_of(words.iter().map(RawText::display));
        let (part, inputs, folders, extra, unfit) = Default::default();
        let (step, mount, reply) = (RecipeWork::of(&text), None, channel().0);
        let (again, losses, at) = (false, 0, Instant::now());
        RecipeRequest {
            id,
            words,
            cwd,
            env,
            part,
            text,
            step,
            inputs,
            folders,
            mount,
            extra,
            again,
            losses,
            unfit,
            at,
            reply,
        }
    }

    /// Reports to the connection that the recipe was stopped because it is not wanted any more.
    pub fn was_killed(&self) {
        let _ = self.reply.send(ToConnection::Ended { ticket: 0, outcome: Outcome::Killed });
    }

    /// Returns its first line, shortened.
    pub fn label(&self) -> String {
        let line = self.text.lines().next().unwrap_or("");
        homing_model::fit::clipped(line, 100)
    }
}

/// Messages to the coordinator.
pub enum BuildEvent {
    /// News of the host with this number.
    Host(usize, HostEvent),
    /// A message for the user.
    Note(String),
    Asked(Box<RecipeRequest>),
    /// The recipe of a connection must end.
    Stop {
        id: u64,
    },
    /// The files written by a recipe are visible here, after this time.
    Seen {
        ticket: u64,
        took: Duration,
    },
    /// A watching program wants the state of the build, with the output of these tasks.
    Watched {
        shown: Vec<TaskId>,
        reply: Sender<BuildSnapshot>,
    },
    /// A task must end.
    End {
        task: TaskId,
    },
    /// Make has ended.
    Over,
}

/// Messages to a connection about its recipe.
pub enum ToConnection {
    Output(OutputStream, Vec<u8>),
    Ended { ticket: u64, outcome: Outcome },
    Here,
    Failed(String),
}
