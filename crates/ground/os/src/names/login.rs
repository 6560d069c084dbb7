//! Which variables of the environment go along to another host, and which are those of the login there. One list for
//! runs, builds and jobs; the manual has it in the page on environments.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Where a variable of a task on another host is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// The shell of whoever submits.
    Submitter,
    /// The login that runs the task: it names folders, sockets or programs of that host and user.
    Login,
    /// Nobody: it speaks of one terminal, shell or session.
    Nobody,
}

/// Of the login that runs the task.
const LOGIN: [&str; 9] = ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "MAIL", "HOSTNAME", "HOST", "TMPDIR"];
/// Beginnings of names of the same kind.
const LOGIN_BEGINNINGS: [&str; 2] = ["XDG_", "SSH_"];
/// Of one terminal, shell or session.
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

/// Where a task on another host has this variable from, unless it is named for the task (`--env NAME`).
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

/// [`origin`] for a build or a job of the queue: its `PATH` and `SHELL` go along, as with Slurm and LSF, since a makefile
/// or `module load` has set them for just this work.
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
