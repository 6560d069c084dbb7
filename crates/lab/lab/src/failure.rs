//! Words a failure of the lab for the user.

use crate::LabError;
use homing_model::Failure;

/// Mistakes of the caller have another exit status than failures of the machine.
impl From<LabError> for Failure {
    fn from(e: LabError) -> Failure {
        match &e {
            LabError::Down(name) => {
                let up: Vec<String> = crate::names().into_iter().filter(|name| crate::is_up(name)).collect();
                match up.as_slice() {
                    [] => Failure::usage(&e).hint(format!("homing lab up --name {name}")),
                    up => Failure::usage(format!("{e}; up: {}", up.join(", "))),
                }
            }
            LabError::NotRoot => Failure::usage(&e).hint("sudo homing lab ..."),
            LabError::Up(name) => {
                let failure = Failure::usage(&e);
                failure.hint(format!("homing lab status --name {name}"))
            }
            LabError::Request(_) | LabError::NoHost { .. } | LabError::Stale { .. } => Failure::usage(e),
            _ => Failure::system(e),
        }
    }
}
