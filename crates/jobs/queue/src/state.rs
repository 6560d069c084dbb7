//! Derives the state of a job from its records. Pure.

use serde::Serialize;

/// LSF's words for the states that it has, and one that it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ElementState {
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

impl ElementState {
    /// Whether it has ended for good.
    pub fn is_over(self) -> bool {
        matches!(self, ElementState::Done | ElementState::Exit | ElementState::Lost)
    }
    /// Whether it has slots.
    pub fn is_running(self) -> bool {
        matches!(self, ElementState::Run | ElementState::Ususp | ElementState::Ssusp)
    }
    /// Returns LSF's word; for a lost job LSF prints EXIT.
    pub fn lsf(self) -> &'static str {
        match self {
            ElementState::Lost => "EXIT",
            other => other.word(),
        }
    }
    /// Returns homing's word.
    pub fn word(self) -> &'static str {
        match self {
            ElementState::Pend => "PEND",
            ElementState::Psusp => "PSUSP",
            ElementState::Run => "RUN",
            ElementState::Ususp => "USUSP",
            ElementState::Ssusp => "SSUSP",
            ElementState::Done => "DONE",
            ElementState::Exit => "EXIT",
            ElementState::Lost => "LOST",
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
    pub start_requested: bool,
}

/// Decides the state; no other place does.
pub fn state(facts: &Facts) -> ElementState {
    match facts {
        Facts { exit: Some(0), .. } => ElementState::Done,
        Facts { exit: Some(_), .. } => ElementState::Exit,
        Facts { started: true, this_boot, kept, .. } if !(*this_boot && *kept) => ElementState::Lost,
        Facts { started: true, stopped: true, .. } => ElementState::Ususp,
        Facts { started: true, loaded: true, .. } => ElementState::Ssusp,
        Facts { started: true, .. } => ElementState::Run,
        // Its keeper is about to write the start record.
        Facts { kept: true, stopped: false, start_requested: false, .. } => ElementState::Run,
        Facts { stopped: true, .. } => ElementState::Psusp,
        _ => ElementState::Pend,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_outlives_everything_and_a_start_needs_a_keeper() {
        let run = Facts { started: true, this_boot: true, kept: true, ..Facts::default() };
        assert_eq!(state(&Facts::default()), ElementState::Pend);
        assert_eq!(state(&run), ElementState::Run);
        assert_eq!(state(&Facts { kept: false, ..run }), ElementState::Lost);
        // Another process may hold a lock of the same name after a restart.
        assert_eq!(state(&Facts { this_boot: false, ..run }), ElementState::Lost);
        assert_eq!(state(&Facts { exit: Some(0), this_boot: false, ..run }), ElementState::Done);
        assert_eq!(state(&Facts { exit: Some(7), ..run }), ElementState::Exit);
        assert_eq!(state(&Facts { stopped: true, loaded: true, ..run }), ElementState::Ususp);
        assert_eq!(state(&Facts { loaded: true, ..run }), ElementState::Ssusp);
        assert_eq!(state(&Facts { stopped: true, ..Facts::default() }), ElementState::Psusp);
        // A keeper that requests the start on another host has not started anything.
        assert_eq!(state(&Facts { kept: true, ..Facts::default() }), ElementState::Run);
        assert_eq!(state(&Facts { kept: true, start_requested: true, ..Facts::default() }), ElementState::Pend);
    }
}
