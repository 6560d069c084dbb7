//! Derives the state of a job from its records. Pure.

use serde::Serialize;

/// LSF's words for the states that it has, and one that it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// Waits.
    #[default]
    Pend,
    /// Waits, and is held back.
    Psusp,
    /// Runs.
    Run,
    /// Suspended by a user.
    Ususp,
    /// Suspended because of load.
    Ssusp,
    /// Ended with 0.
    Done,
    /// Ended otherwise.
    Exit,
    /// The machine restarted, or its keeper was killed, while it ran.
    Lost,
}

impl State {
    /// Whether it has ended for good.
    pub fn is_over(self) -> bool {
        matches!(self, State::Done | State::Exit | State::Lost)
    }
    /// Whether it has slots.
    pub fn is_running(self) -> bool {
        matches!(self, State::Run | State::Ususp | State::Ssusp)
    }
    /// Returns LSF's word; for a lost job LSF prints EXIT.
    pub fn lsf(self) -> &'static str {
        match self {
            State::Lost => "EXIT",
            other => other.word(),
        }
    }
    /// Returns homing's word.
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

/// The known facts of one job or element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Whether its start record exists.
    pub started: bool,
    /// Whether that record is of this boot.
    pub this_boot: bool,
    /// Whether its keeper lives.
    pub kept: bool,
    /// Exit status of its end record.
    pub exit: Option<i32>,
    /// Whether a user stopped it.
    pub stopped: bool,
    /// Whether load stopped it.
    pub loaded: bool,
    /// Whether its keeper waits for its host to start it.
    pub asked: bool,
}

/// Decides the state; no other place does.
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
        // A keeper that requests the start on another host has not started anything.
        assert_eq!(state(&Facts { kept: true, ..Facts::default() }), State::Run);
        assert_eq!(state(&Facts { kept: true, asked: true, ..Facts::default() }), State::Pend);
    }
}
