//! The `homing` program: arguments, exit codes, and the joining of the rooms.
//! One file a subcommand, in `cmd/`.

// First: its macros stand in for the standard ones in all others.
#[macro_use]
mod stdio;

mod addresses;
mod cli;
mod cluster;
mod cmd;
mod complete;
mod embedded;
mod failure;
mod grammar;
mod groups;
mod help;
mod leases;
mod nodes;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    stdio::keep_closed();
    stdio::end_on_panic();
    ExitCode::from(cli::main().clamp(0, 255) as u8)
}
