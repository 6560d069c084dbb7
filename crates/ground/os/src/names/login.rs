//! Decides which variables of the environment travel to another host, and which come from the login there. Runs,
//! builds and jobs use the same list; it is also on the manual's page on environments.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Where a task on another host gets a variable from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// The shell of the submitting user.
    Submitter,
    /// The login that runs the task: it names folders, sockets or programs of that host and user.
    Login,
    /// Not set at all: the variable belongs to one terminal, shell or session.
    Nobody,
}

/// Variables of the login that runs the task.
const LOGIN: [&str; 9] = ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "MAIL", "HOSTNAME", "HOST", "TMPDIR"];
/// Prefixes of further variables of the login.
const LOGIN_BEGINNINGS: [&str; 2] = ["XDG_", "SSH_"];
/// Variables of one terminal, shell or session.
const NOBODY: [&str; 12] = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM_SESSION_ID",
    "WINDOWID",
    "DISPLAY",
    "XAUTHORITY",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Returns where a task on another host gets this variable from, unless the user names it for the task (`--env
/// NAME`).
pub fn origin(name: &OsStr) -> VariableOrigin {
    let name = name.as_bytes();
    let among = |list: &[&str]| list.iter().any(|known| known.as_bytes() == name);
    match () {
        () if among(&LOGIN) => VariableOrigin::Login,
        () if LOGIN_BEGINNINGS.iter().any(|start| name.starts_with(start.as_bytes())) => VariableOrigin::Login,
        () if among(&NOBODY) => VariableOrigin::Nobody,
        () => VariableOrigin::Submitter,
    }
}

/// [`origin`] for a build or a job of the queue. Its `PATH` and `SHELL` travel, as with Slurm and LSF, because a
/// makefile or `module load` has set them for just this work.
pub fn origin_of_work(name: &OsStr) -> VariableOrigin {
    match name.as_bytes() {
        b"PATH" | b"SHELL" => VariableOrigin::Submitter,
        _ => origin(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_of_one_side() {
        for (name, run, work) in [
            ("HOME", VariableOrigin::Login, VariableOrigin::Login),
            ("PATH", VariableOrigin::Login, VariableOrigin::Submitter),
            ("SHELL", VariableOrigin::Login, VariableOrigin::Submitter),
            ("XDG_RUNTIME_DIR", VariableOrigin::Login, VariableOrigin::Login),
            ("SSH_AUTH_SOCK", VariableOrigin::Login, VariableOrigin::Login),
            ("SHLVL", VariableOrigin::Nobody, VariableOrigin::Nobody),
            ("DBUS_SESSION_BUS_ADDRESS", VariableOrigin::Nobody, VariableOrigin::Nobody),
            ("HOMEWORK", VariableOrigin::Submitter, VariableOrigin::Submitter),
            ("OMP_NUM_THREADS", VariableOrigin::Submitter, VariableOrigin::Submitter),
        ] {
            assert_eq!((origin(name.as_ref()), origin_of_work(name.as_ref())), (run, work), "{name}");
        }
    }
}
