//! What a job is, from what is written about it. Pure.

use serde::Serialize;

/// LSF's words for the states that it has, and one that it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// Waits.
    #[default]
    Pend,
    /// Waits, and was told not to start.
    Psusp,
    /// Runs.
    Run,
    /// Stopped by a user.
    Ususp,
    /// Stopped because of load.
    Ssusp,
    /// Ended with 0.
    Done,
    /// Ended otherwise.
    Exit,
    /// The machine restarted, or its keeper was killed, while it ran.
    Lost,
}

impl State {
    /// Nothing more will happen to it.
    pub fn is_over(self) -> bool {
        matches!(self, State::Done | State::Exit | State::Lost)
    }
    /// It has slots.
    pub fn is_running(self) -> bool {
        matches!(self, State::Run | State::Ususp | State::Ssusp)
    }
    /// As LSF writes it; it says EXIT of what was lost.
    pub fn lsf(self) -> &'static str {
        match self {
            State::Lost => "EXIT",
            other => other.word(),
        }
    }
    /// As homing writes it.
    pub fn word(self) -> &'static str {
        match self {
            State::Pend => "PEND",
            State::Psusp => "PSUSP",
            State::Run => "RUN",
            State::Ususp => "USUSP",
            State::Ssusp => "SSUSP",
            State::Done => "DONE",
            State::Exit => "EXIT",
            State::Lost => "LOST",
        }
    }
}

/// What is known of one job or element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Its start record is there.
    pub started: bool,
    /// ... and is of this boot.
    pub this_boot: bool,
    /// Its keeper lives.
    pub kept: bool,
    /// Exit status of its end record.
    pub exit: Option<i32>,
    /// A user stopped it.
    pub stopped: bool,
    /// Load stopped it.
    pub loaded: bool,
    /// Its keeper waits for its host to start it.
    pub asked: bool,
}

/// The one place where a state is decided.
pub fn state(facts: &Facts) -> State {
    match facts {
        Facts { exit: Some(0), .. } => State::Done,
        Facts { exit: Some(_), .. } => State::Exit,
        Facts { started: true, this_boot, kept, .. } if !(*this_boot && *kept) => State::Lost,
        Facts { started: true, stopped: true, .. } => State::Ususp,
        Facts { started: true, loaded: true, .. } => State::Ssusp,
        Facts { started: true, .. } => State::Run,
        // Its keeper is about to write the start record.
        Facts { kept: true, stopped: false, asked: false, .. } => State::Run,
        Facts { stopped: true, .. } => State::Psusp,
        _ => State::Pend,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_outlives_everything_and_a_start_needs_a_keeper() {
        let run = Facts { started: true, this_boot: true, kept: true, ..Facts::default() };
        assert_eq!(state(&Facts::default()), State::Pend);
        assert_eq!(state(&run), State::Run);
        assert_eq!(state(&Facts { kept: false, ..run }), State::Lost);
        // Another process may hold a lock of the same name after a restart.
        assert_eq!(state(&Facts { this_boot: false, ..run }), State::Lost);
        assert_eq!(state(&Facts { exit: Some(0), this_boot: false, ..run }), State::Done);
        assert_eq!(state(&Facts { exit: Some(7), ..run }), State::Exit);
        assert_eq!(state(&Facts { stopped: true, loaded: true, ..run }), State::Ususp);
        assert_eq!(state(&Facts { loaded: true, ..run }), State::Ssusp);
        assert_eq!(state(&Facts { stopped: true, ..Facts::default() }), State::Psusp);
        // A keeper that asks another host has not started anything.
        assert_eq!(state(&Facts { kept: true, ..Facts::default() }), State::Run);
        assert_eq!(state(&Facts { kept: true, asked: true, ..Facts::default() }), State::Pend);
    }
}
