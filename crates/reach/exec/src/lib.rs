//! One command on many hosts.
//!
//! ```no_run
//! use homing_exec::{Command, Options, Outcome, Remote};
//!
//! let remote = Remote::new(Options::default());
//! for result in remote.run(&["n1", "n2"], &Command::argv(["uname", "-r"])) {
//!     match result.outcome {
//!         Outcome::Exited(0) => println!("{}: {}", result.host, String::from_utf8_lossy(&result.stdout)),
//!         other => eprintln!("{}: {other}", result.host),
//!     }
//! }
//! ```
//!
//! Each host has one OpenSSH connection (a control master with the user's own
//! configuration) that outlives the command by [`Options::persist`]. Commands
//! are sessions of it, opened by speaking the master's own protocol on its
//! socket: no `ssh` is started for them, and a command that ends with 255 is
//! not mistaken for a connection that failed, as it is by the exit status of
//! `ssh`.
//!
//! Many hosts are reached through a tree of them, whose inner hosts are leaders ([`Errand`], [`serve`]).
//!
//! It does not: run tasks of a batch (`launch`, `worker`), or judge what commands print (`check`).

mod capture;
mod command;
mod connect;
mod folder;
mod fresh;
pub mod gathered;
mod input;
pub mod lines;
mod local;
mod mux;
mod pool;
mod results;
mod scripts;
mod session;
mod tree;
pub mod verdict;
mod wait;

pub use capture::Capture;
pub use command::{Command, Input};
pub use fresh::Fresh;
pub use homing_launch::FAN_OUT;
pub use input::Spool;
pub use pool::{Event, Giver, Stream, Waiting, What};
pub use results::{HostResult, Results};
pub use scripts::Scripts;
pub use session::Way;
pub use tree::{Errand, Note, WIDTH, WORD, serve};

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How hosts are reached, and within which bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// `ssh` and options that precede ours, so that they win over ours.
    pub ssh: Vec<OsString>,
    /// The user there, when it is not the one of ssh's configuration.
    pub user: Option<String>,
    /// Hosts at work at the same time. 64 is ClusterShell's default too.
    pub fan_out: usize,
    /// Hosts that one serves where others can pass on what they are given; with more, they do. 0 and 1 are no tree.
    pub tree: usize,
    /// Time for a connection to be made. Some seconds more are allowed for
    /// what ssh's own `ConnectTimeout` does not bound, such as a proxy command.
    pub connect_timeout: Duration,
    /// Time for a command; its process group is killed then, on its host.
    pub command_timeout: Option<Duration>,
    /// How long an unused connection is kept; zero closes it with the [`Remote`].
    pub persist: Duration,
    /// Bytes of standard output, and as many of standard error, that
    /// [`Remote::run`] keeps of a host. What is beyond is counted and dropped.
    pub keep: usize,
    /// Folder for the control sockets (default: a private one in `XDG_RUNTIME_DIR` or /tmp).
    pub folder: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ssh: homing_os::names::ssh_words(),
            user: None,
            fan_out: FAN_OUT,
            tree: WIDTH,
            connect_timeout: Duration::from_secs(10),
            command_timeout: None,
            persist: Duration::from_secs(600),
            keep: 1 << 20,
            folder: None,
        }
    }
}

/// How a command ended on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran; its exit status. On this machine 128 and more is a signal, as in a shell.
    Exited(i32),
    /// A signal ended it; sshd does not pass on which.
    Killed,
    /// It did not end in time.
    TimedOut,
    /// It was not started: no connection, or none that was let in. One line on why.
    Unreachable(String),
    /// The connection ended in the middle: whether the command did is unknown.
    Lost(String),
}

impl Outcome {
    /// Exit status zero.
    pub fn is_ok(&self) -> bool {
        *self == Outcome::Exited(0)
    }
}

/// The last three lines of what a command said that hold anything, as one: why it failed.
pub fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Outcome::Exited(status) => write!(f, "exited with exit code {status}"),
            Outcome::Killed => f.write_str("killed by a signal"),
            Outcome::TimedOut => f.write_str("command timeout"),
            Outcome::Unreachable(why) | Outcome::Lost(why) => f.write_str(why),
        }
    }
}

/// Runs commands on hosts.
pub struct Remote {
    shared: Arc<connect::Connector>,
}

impl Remote {
    /// Nothing is opened before the first command.
    pub fn new(options: Options) -> Remote {
        Remote { shared: Arc::new(connect::Connector::new(options)) }
    }

    /// Runs `command` on all `hosts`, at most [`Options::fan_out`] at a time,
    /// and yields results as hosts finish. Dropping the iterator ends what still runs.
    pub fn run(&self, hosts: &[impl AsRef<str>], command: &Command) -> Results {
        Results::new(self.stream(hosts, command), hosts, self.shared.options.keep)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// As [`Remote::run`], along a tree where there are more hosts than one serves.
    pub fn run_tree<E: Errand>(&self, hosts: &[String], errand: E, note: Note) -> Results {
        Results::new(self.stream_tree(hosts, errand, note), hosts, self.shared.options.keep)
    }

    /// As [`Remote::run`], with the output while it comes. A slow reader slows
    /// the hosts down; nothing piles up.
    pub fn stream(&self, hosts: &[impl AsRef<str>], command: &Command) -> Stream {
        let command = command.clone();
        self.stream_each(hosts, move |_| command.clone())
    }

    /// The same, with a command for each host.
    pub fn stream_each(
        &self,
        hosts: &[impl AsRef<str>],
        command: impl Fn(&str) -> Command + Send + Sync + 'static,
    ) -> Stream {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        let job = move |connector: &_, host: &_, cancel: &_, sink: session::Sink| {
            session::run(connector, host, &command(host), cancel, sink)
        };
        pool::start(self.shared.clone(), hosts, Box::new(job))
    }

    /// Runs a program of this machine for each host, such as rsync, which gets
    /// the words for an `ssh` over the kept connection (none for this machine).
    pub fn stream_through(
        &self,
        hosts: &[impl AsRef<str>],
        program: impl Fn(&str, Way) -> Command + Send + Sync + 'static,
    ) -> Stream {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        let job = move |connector: &_, host: &_, cancel: &_, sink: session::Sink| {
            session::through(connector, host, &program, cancel, sink)
        };
        pool::start(self.shared.clone(), hosts, Box::new(job))
    }

    /// The words that start an `ssh` over the kept connection to `host`, which is made when there
    /// is none. `None` where that fails: an `ssh` without it tells why.
    pub fn way_to(&self, host: &str) -> Option<Vec<OsString>> {
        // The writing end stays open: nobody cancels this.
        let (never, _open) = wait::Cancel::new().ok()?;
        self.shared.ssh_through(host, &never).ok()
    }
}
