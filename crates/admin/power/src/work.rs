//! The work that keeps a host on.

use std::fmt;

/// A kind of work. The first one that is found is reported.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Slurm's daemon runs there.
    Slurm,
    /// A program that serves others, by its name.
    Serves(String),
    /// A run, a job or a queue of homing.
    Homing,
    /// A user is logged in there, or runs a command over ssh: the user's number.
    Login(u32),
    /// A user's process, by the user's number, and its name.
    User(u32, String),
    /// The load average of the last minute, or of the last five.
    Load(f64),
}

impl Work {
    /// Describes it; `user` returns the name of a number.
    pub fn description(&self, user: impl Fn(u32) -> String) -> String {
        match self {
            Work::Login(uid) => format!("{} is logged in", user(*uid)),
            Work::User(uid, name) => format!("{} runs {name}", user(*uid)),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Work::Slurm => f.write_str("a Slurm daemon runs there: use SuspendProgram and ResumeProgram in slurm.conf"),
            Work::Serves(name) => write!(f, "it serves other hosts: {name}"),
            Work::Homing => f.write_str("a run, job or queue of homing is active there"),
            Work::Login(uid) => write!(f, "user {uid} is logged in"),
            Work::User(uid, name) => write!(f, "user {uid} runs {name}"),
            Work::Load(load) => write!(f, "load {load:.2}"),
        }
    }
}
