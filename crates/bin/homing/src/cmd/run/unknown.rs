//! Names the replacement of an option that `homing run` does not have.

use crate::nearest::near_option;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_model::Failure;

/// Options of other programs and of other commands, each with its replacement in homing.
const OTHERS: &[(&str, &str)] = &[
    ("--mem", "--memfree SIZE starts tasks only where so much is free; --mem-per-task SIZE requests it from Slurm"),
    ("--memory", "--memfree SIZE starts tasks only where so much is free; --mem-per-task SIZE requests it from Slurm"),
    ("--cpus", "--cpus-per-task N with Slurm; `cpus` of a line of --tasks elsewhere"),
    ("--group", "--hosts @GROUP"),
    ("--exclude", "--hosts 'n[1-4]!n2' leaves n2 out"),
    ("--gres", "--gpus-per-task N; on Slurm it requests --gres=gpu:N of each worker"),
    ("--notify", "--on-exit COMMAND: homing help watching has examples with mail and webhooks"),
    ("--mail", "--on-exit COMMAND: homing help watching has examples with mail and webhooks"),
    ("--failed", "homing resume --failed RUN runs failed tasks again; homing report RUN --failed lists them"),
];

/// Returns the failure for an option that `homing run` does not have, with its replacement. clap would suggest the
/// option with the most similar name, which is about something else. `grammar`: that of `homing run`.
pub fn unknown(error: &clap::Error, grammar: fn() -> clap::Command) -> Option<Failure> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let name = given.split('=').next().unwrap_or_default();
    if let Some((_, instead)) = OTHERS.iter().find(|(other, _)| *other == name) {
        return Some(Failure::usage(format!("homing run has no option {name}")).hint(instead));
    }
    Some(match homing_batch::absent(name) {
        Some((name, instead)) => Failure::usage(format!("GNU parallel's {name} is not supported; instead: {instead}"))
            .hint("homing help parallel lists all its options"),
        None => {
            let near = near_option(&grammar(), name);
            Failure::usage(format!("homing run has no option {name}")).hint(match near {
                Some(near) => format!("homing run {near}; put options of the command into its quotes"),
                None => "homing run --help; put options of the command into its quotes: 'CMD -x {}' ::: FILES".into(),
            })
        }
    })
}
