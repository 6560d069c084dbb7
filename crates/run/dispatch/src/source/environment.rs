//! The surroundings of a run on this machine: the environment that travels, the shell, signals, the name of the
//! machine.

use crate::Interrupts;
use homing_batch::ShellFunctions;
use homing_model::{Failure, RawText};
use homing_os::names::VariableOrigin;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// Returns the environment that travels with tasks: all exported variables, or those that `--env` names. Variables of
/// the login that runs a task ([`homing_os::names::origin`]) travel only if they are named.
///
/// `here`: the tasks run on this machine by this login, where exported functions mean the same and `PARALLEL_PID` can
/// be signalled.
pub fn exported(names: &[String], here: bool) -> Result<Vec<(RawText, RawText)>, Failure> {
    let names: Vec<&str> = names.iter().flat_map(|n| n.split(',')).filter(|n| !n.is_empty()).collect();
    let missing =
        names.iter().find(|n| **n != "_" && std::env::var_os(n).is_none() && std::env::var_os(variable(n)).is_none());
    if let Some(name) = missing {
        return Err(Failure::usage(format!("--env {name}: that variable is not exported here")));
    }
    let travels = |name: &OsStr| travels(&name.to_string_lossy(), homing_os::names::origin(name), &names, here);
    let mut env: Vec<(RawText, RawText)> = std::env::vars_os()
        .filter(|(name, _)| travels(name))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    env.push(("HOMING_SHELL".into(), shell()));
    if here {
        env.push(("PARALLEL_PID".into(), std::process::id().to_string().into()));
    }
    Ok(env)
}

/// Whether a variable travels. `names` are the names of `--env`.
fn travels(name: &str, origin: VariableOrigin, names: &[&str], here: bool) -> bool {
    let function = function(name);
    if names.contains(&function.unwrap_or(name)) {
        return true;
    }
    let all = names.is_empty() || names.contains(&"_");
    match origin {
        // On this machine both are one login. A task without these variables would find no program.
        VariableOrigin::Login => here && (all || matches!(name, "PATH" | "HOME")),
        VariableOrigin::Nobody => false,
        VariableOrigin::Submitter => all && (function.is_none() || here),
    }
}

/// Returns the name of Bash's variable for an exported function.
fn variable(function: &str) -> String {
    format!("BASH_FUNC_{function}%%")
}

/// Returns the function that such a variable holds.
fn function(variable: &str) -> Option<&str> {
    variable.strip_prefix("BASH_FUNC_")?.strip_suffix("%%")
}

/// Returns the functions with which a command may begin. Bash reads the file `BASH_ENV` before each command, and the
/// functions of that file are unknown here; `module` of Lmod is one.
pub fn functions() -> ShellFunctions {
    let reads_a_file = std::env::var_os("BASH_ENV").is_some_and(|file| !file.is_empty());
    if reads_a_file && shell().0.ends_with(b"/bash") {
        return ShellFunctions::Unknown;
    }
    ShellFunctions::Named(exported_functions().map(RawText::from).collect())
}

/// Returns the functions that Bash has exported to this process.
fn exported_functions() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.filter_map(|name| function(&name).map(str::to_owned))
}

/// Returns the exported functions that a command names and that hosts do not have. `named` are the words of `--env`.
pub fn functions_left_here(command: &str, named: &[String]) -> Vec<String> {
    let exported: Vec<String> = exported_functions().collect();
    left_here(&exported, command, named)
}

fn left_here(exported: &[String], command: &str, named: &[String]) -> Vec<String> {
    let travels = |function: &str| named.iter().flat_map(|words| words.split(',')).any(|name| name == function);
    let is_named = |function: &str| {
        command.split(|c: char| !(c.is_alphanumeric() || "_-.:+".contains(c))).any(|word| word == function)
    };
    exported.iter().filter(|function| is_named(function) && !travels(function)).cloned().collect()
}

/// The shells that read POSIX quoting, which inputs get.
const POSIX: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"];

/// Returns the shell for command lines: $HOMING_SHELL, $PARALLEL_SHELL or $SHELL if it reads POSIX quoting, else
/// /bin/sh.
pub fn shell() -> RawText {
    let named = ["HOMING_SHELL", "PARALLEL_SHELL", "SHELL"].iter().filter_map(|v| std::env::var(v).ok());
    named.into_iter().find(|path| is_posix(path)).map_or_else(|| "/bin/sh".into(), RawText::from)
}

fn is_posix(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with('/') && POSIX.contains(&name) && Path::new(path).exists()
}

/// Refuses a shell in HOMING_SHELL that cannot be used. An unusable shell of the user's login is skipped without an
/// error.
pub fn check_shell() -> Result<(), Failure> {
    match std::env::var("HOMING_SHELL") {
        Ok(path) if !path.is_empty() && !is_posix(&path) => {
            let text = format!("HOMING_SHELL={path}: no such shell on this machine, or it does not read POSIX quoting");
            Err(Failure::usage(text).hint(format!("the path of one of {}; or unset HOMING_SHELL", POSIX.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Returns the name of this machine in a journal.
pub fn hostname() -> String {
    homing_os::names::own_name()
}

/// Signals that end a run with its record. They come from a terminal, at a logout, or from Slurm ahead of a time limit
/// (`sbatch --signal=USR1`).
const ENDING: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Counts the signals that end a run from now on, instead of ending this process.
pub fn count_interrupts() -> Result<Arc<Interrupts>, Failure> {
    let count = Arc::new(Interrupts::default());
    let counted = count.clone();
    let failed = |e| Failure::system(format!("cannot listen to signals: {e}"));
    let mut signals = signal_hook::iterator::Signals::new(ENDING).map_err(failed)?;
    let counting = homing_os::threads::begin(move || {
        for signal in signals.forever() {
            // A sender of another signal than INT does not wait until tasks end by themselves.
            let steps = if signal == SIGINT { 1 } else { 2 };
            counted.came(signal, steps);
        }
    });
    counting.map(|_| count).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_hosts_do_not_have_is_found_in_the_command() {
        let exported = ["f", "count_all", "g"].map(String::from);
        let left = |command: &str, named: &[&str]| {
            left_here(&exported, command, &named.iter().map(|name| name.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(left("f {} | sort", &[]), ["f"]);
        assert_eq!(left("sort -f {}; count_all", &[]), ["count_all"]);
        assert!(left("f {}", &["PATH,f"]).is_empty());
        assert!(left("cat of.txt", &[]).is_empty());
    }

    #[test]
    fn what_is_of_a_login_goes_nowhere_unless_it_is_named() {
        let goes =
            |name: &str, names: &[&str], here| travels(name, homing_os::names::origin(name.as_ref()), names, here);
        for name in ["HOME", "PATH", "USER", "SHELL", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "TMPDIR"] {
            let all = [goes(name, &[], false), goes(name, &["_"], false), goes(name, &[name], false)];
            assert_eq!((all, goes(name, &[], true)), ([false, false, true], true), "{name}");
        }
        assert!(goes("PATH", &["FOO"], true) && !goes("USER", &["FOO"], true));
        assert!(goes("FOO", &[], false) && !goes("FOO", &["BAR"], false) && goes("FOO", &["BAR", "_"], false));
        assert!(!goes("SHLVL", &[], true) && goes("DISPLAY", &["DISPLAY"], false));
        let function = "BASH_FUNC_f%%";
        assert!(goes(function, &[], true) && !goes(function, &[], false) && goes(function, &["f"], false));
    }
}
