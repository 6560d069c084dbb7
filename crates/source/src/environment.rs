//! What surrounds a run on this side: the environment that travels, the shell, signals, this machine's name.

use homing_dispatch::Interrupts;
use homing_model::{Failure, RawText};
use std::path::Path;
use std::sync::Arc;

/// Variables that tell of this terminal, login or host; on another host they would lie.
const HOST_BOUND: [&str; 16] = [
    "HOSTNAME",
    "HOST",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM_SESSION_ID",
    "WINDOWID",
    "DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMUX",
    "TMUX_PANE",
    "STY",
];

/// The environment that travels with tasks: all that is exported, or what `--env` names.
///
/// `here`: the tasks run on this machine, where exported functions mean the
/// same and `PARALLEL_PID` can be signalled.
pub fn exported(names: &[String], here: bool) -> Result<Vec<(RawText, RawText)>, Failure> {
    let names: Vec<&str> = names.iter().flat_map(|n| n.split(',')).filter(|n| !n.is_empty()).collect();
    let missing =
        names.iter().find(|n| **n != "_" && std::env::var_os(n).is_none() && std::env::var_os(variable(n)).is_none());
    if let Some(name) = missing {
        return Err(Failure::usage(format!("--env {name}: that variable is not exported here")));
    }
    let all = names.is_empty() || names.contains(&"_");
    let travels = |name: &str| {
        let function = function(name);
        let bound = HOST_BOUND.contains(&name) || name.starts_with("SSH_") || (function.is_some() && !here);
        names.contains(&function.unwrap_or(name)) || name == "PATH" || name == "HOME" || (all && !bound)
    };
    let mut env: Vec<(RawText, RawText)> = std::env::vars_os()
        .filter(|(name, _)| travels(&name.to_string_lossy()))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    env.push(("HOMING_SHELL".into(), shell()));
    if here {
        env.push(("PARALLEL_PID".into(), std::process::id().to_string().into()));
    }
    Ok(env)
}

/// Bash's variable for an exported function.
fn variable(function: &str) -> String {
    format!("BASH_FUNC_{function}%%")
}

/// The function that such a variable holds.
fn function(variable: &str) -> Option<&str> {
    variable.strip_prefix("BASH_FUNC_")?.strip_suffix("%%")
}

/// Functions that Bash has exported to us.
pub fn functions() -> Vec<RawText> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.filter_map(|name| function(&name).map(RawText::from)).collect()
}

/// Shells that read POSIX quoting, which inputs get.
const POSIX: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"];

/// The shell for command lines: $HOMING_SHELL, $PARALLEL_SHELL or $SHELL when
/// it takes POSIX quoting, else /bin/sh.
pub fn shell() -> RawText {
    let named = ["HOMING_SHELL", "PARALLEL_SHELL", "SHELL"].iter().filter_map(|v| std::env::var(v).ok());
    named.into_iter().find(|path| is_posix(path)).map_or_else(|| "/bin/sh".into(), RawText::from)
}

fn is_posix(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with('/') && POSIX.contains(&name) && Path::new(path).exists()
}

/// Refuses a shell that was named for homing alone and cannot be used; one of the user's login is passed over.
pub fn check_shell() -> Result<(), Failure> {
    match std::env::var("HOMING_SHELL") {
        Ok(path) if !path.is_empty() && !is_posix(&path) => {
            let text = format!("HOMING_SHELL={path}: that is no shell that is here and reads POSIX quoting");
            Err(Failure::usage(text).hint(format!("the path of one of {}; or unset HOMING_SHELL", POSIX.join(", "))))
        }
        _ => Ok(()),
    }
}

/// This machine's name in a journal.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// From now on SIGINT, SIGTERM and SIGHUP are counted instead of ending us.
pub fn count_interrupts() -> Result<Arc<Interrupts>, Failure> {
    let count = Arc::new(Interrupts::default());
    let counted = count.clone();
    let failed = |e| Failure::system(format!("cannot listen to signals: {e}"));
    let mut signals =
        signal_hook::iterator::Signals::new([libc_signal::INT, libc_signal::TERM, libc_signal::HUP]).map_err(failed)?;
    let counting = homing_threads::begin(move || {
        for signal in signals.forever() {
            // Whoever sends TERM or HUP does not wait for tasks to end by themselves.
            let steps = if signal == libc_signal::INT { 1 } else { 2 };
            counted.came(signal, steps);
        }
    });
    counting.map(|_| count).map_err(failed)
}

mod libc_signal {
    pub const HUP: i32 = 1;
    pub const INT: i32 = 2;
    pub const TERM: i32 = 15;
}
