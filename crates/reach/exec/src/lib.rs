//! Runs one command on many hosts.
//!
//! ```no_run
//! use homing_exec::{Command, Options, CommandOutcome, Remote};
//!
//! let remote = Remote::new(Options::default());
//! for result in remote.run(&["n1", "n2"], &Command::argv(["uname", "-r"])) {
//!     match result.outcome {
//!         CommandOutcome::Exited(0) => println!("{}: {}", result.host, String::from_utf8_lossy(&result.stdout)),
//!         other => eprintln!("{}: {other}", result.host),
//!     }
//! }
//! ```
//!
//! Each host has one OpenSSH connection, a control master with the user's own configuration. It outlives the command
//! by [`Options::persist`]. Commands are sessions of it, opened in the master's own protocol on its socket. No `ssh`
//! is started for them. A command that exits with 255 therefore differs from a failed connection; the exit status of
//! `ssh` is the same for both. If the connection ends while the command runs, the result is
//! [`CommandOutcome::Lost`]: the end of the command is unknown.
//!
//! Many hosts are reached through a tree of them, whose inner hosts are leaders ([`Errand`], [`serve`]).
//!
//! It does not: run tasks of a batch (`launch`, `worker`), or judge the output of commands (`check`).

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
pub use command::{Command, CommandInput};
pub use fresh::Fresh;
pub use homing_launch::FAN_OUT;
pub use input::InputSpool;
pub use pool::{Giver, HostEventKind, HostProgress, NoEvent, PoolEvents};
pub use results::{HostResult, HostResults};
pub use scripts::Scripts;
pub use session::SshCommand;
pub use tree::{Errand, Note, WIDTH, WORD, serve};

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How hosts are reached, and within which bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// `ssh` and options of the user. They precede the options added here, and therefore take precedence.
    pub ssh: Vec<OsString>,
    /// The user there, unless it is that of ssh's configuration.
    pub user: Option<String>,
    /// Most hosts served at the same time. 64 is ClusterShell's default, too.
    pub fan_out: usize,
    /// Most hosts that one machine serves without leaders, for an errand that leaders can pass on. With 0 or 1 there
    /// is no tree.
    pub tree: usize,
    /// Time for a connection to be made. Some seconds more are allowed for work that ssh's own `ConnectTimeout` does
    /// not limit, such as a proxy command.
    pub connect_timeout: Duration,
    /// Time for a command; then its process group is killed, on its host.
    pub command_timeout: Option<Duration>,
    /// How long an unused connection is kept; zero closes it with the [`Remote`].
    pub persist: Duration,
    /// Most bytes of standard output, and of standard error, that [`Remote::run`] keeps per host. Further bytes are
    /// counted and dropped.
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
pub enum CommandOutcome {
    /// It exited with this status. On this machine 128 and more is a signal, as in a shell.
    Exited(i32),
    /// A signal ended it; sshd does not report which.
    Killed,
    /// It did not end in time.
    TimedOut,
    /// It was not started: the connection or the login failed. The reason, in one line.
    Unreachable(String),
    /// The connection ended while it ran: it is unknown whether the command ended.
    Lost(String),
}

impl CommandOutcome {
    /// Whether it is exit status zero.
    pub fn is_ok(&self) -> bool {
        *self == CommandOutcome::Exited(0)
    }
}

/// Joins the last three non-empty lines of a command's messages: the reason for its failure.
pub fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

impl fmt::Display for CommandOutcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CommandOutcome::Exited(status) => write!(f, "exited with exit code {status}"),
            CommandOutcome::Killed => f.write_str("killed by a signal"),
            CommandOutcome::TimedOut => f.write_str("command timeout"),
            CommandOutcome::Unreachable(why) | CommandOutcome::Lost(why) => f.write_str(why),
        }
    }
}

/// Runs commands on hosts.
pub struct Remote {
    shared: Arc<connect::Connector>,
}

impl Remote {
    /// Opens no connection before the first command.
    pub fn new(options: Options) -> Remote {
        Remote { shared: Arc::new(connect::Connector::new(options)) }
    }

    /// Runs `command` on all `hosts`, at most [`Options::fan_out`] at a time, and yields results as hosts finish.
    /// Dropping the iterator ends the commands that still run.
    pub fn run(&self, hosts: &[impl AsRef<str>], command: &Command) -> HostResults {
        HostResults::new(self.stream(hosts, command), hosts, self.shared.options.keep)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Like [`Remote::run`], along a tree if one machine cannot serve all hosts.
    pub fn run_tree<E: Errand>(&self, hosts: &[String], errand: E, note: Note) -> HostResults {
        self.results_of(self.stream_tree(hosts, errand, note), hosts)
    }

    /// Returns the complete results of a stream.
    pub fn results_of(&self, stream: PoolEvents, hosts: &[String]) -> HostResults {
        HostResults::new(stream, hosts, self.shared.options.keep)
    }

    /// Like [`Remote::run`], with the output while it comes. A slow reader slows the hosts down; output does not pile
    /// up.
    pub fn stream(&self, hosts: &[impl AsRef<str>], command: &Command) -> PoolEvents {
        let command = command.clone();
        self.stream_each(hosts, move |_| command.clone())
    }

    /// Like [`Remote::stream`], with a command for each host.
    pub fn stream_each(
        &self,
        hosts: &[impl AsRef<str>],
        command: impl Fn(&str) -> Command + Send + Sync + 'static,
    ) -> PoolEvents {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        let job = move |connector: &_, host: &_, cancel: &_, sink: session::Sink| {
            session::run(connector, host, &command(host), cancel, sink)
        };
        pool::start(self.shared.clone(), hosts, Box::new(job))
    }

    /// Runs a command on this machine for each host, and connects to none.
    pub fn stream_here(
        &self,
        hosts: &[impl AsRef<str>],
        command: impl Fn(usize, &str) -> Command + Send + Sync + 'static,
    ) -> PoolEvents {
        let hosts: Vec<String> = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        let ranks: HashMap<String, usize> = hosts.iter().enumerate().map(|(rank, host)| (host.clone(), rank)).collect();
        let job = move |connector: &_, host: &str, cancel: &_, sink: session::Sink| {
            session::here(connector, &command(ranks.get(host).copied().unwrap_or_default(), host), cancel, sink)
        };
        pool::start(self.shared.clone(), hosts, Box::new(job))
    }

    /// Runs a program of this machine for each host, such as rsync. It gets the words for an `ssh` over the kept
    /// connection, or none for this machine.
    pub fn stream_through(
        &self,
        hosts: &[impl AsRef<str>],
        program: impl Fn(&str, SshCommand) -> Command + Send + Sync + 'static,
    ) -> PoolEvents {
        let hosts = hosts.iter().map(|h| h.as_ref().to_string()).collect();
        let job = move |connector: &_, host: &_, cancel: &_, sink: session::Sink| {
            session::through(connector, host, &program, cancel, sink)
        };
        pool::start(self.shared.clone(), hosts, Box::new(job))
    }

    /// Returns how a role of this program is started on hosts: by the same `ssh`, for the same user, within the same
    /// time. The connection is a new one, unless `ssh` is replaced by the words of [`Remote::way_to`].
    pub fn channel_options(&self, role: &'static str) -> homing_launch::Options {
        let ours = self.options();
        let mut ssh = ours.ssh.clone();
        ssh.extend(ours.user.iter().flat_map(|user| ["-l".into(), user.into()]));
        let connect_timeout_s = ours.connect_timeout.as_secs().clamp(1, u32::MAX.into()) as u32;
        let carried = homing_launch::Carried::Host;
        homing_launch::Options { ssh, connect_timeout_s, role, carried, ..homing_launch::Options::default() }
    }

    /// Returns the words that start an `ssh` over the kept connection to `host`, and makes the connection if there is
    /// none. `None` if that fails: an `ssh` of the caller's own then prints the reason.
    pub fn way_to(&self, host: &str) -> Option<Vec<OsString>> {
        // The writing end stays open: this is never cancelled.
        let (never, _open) = wait::Cancel::new().ok()?;
        self.shared.ssh_through(host, &never).ok()
    }
}
