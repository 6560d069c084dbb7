//! The `homing` program: arguments, exit codes, and the joining of the rooms.
//! One file a subcommand, in `cmd/`.

// First: its macros stand in for the standard ones in all others.
#[macro_use]
mod stdio;

mod cli;
mod cluster;
mod cmd;
mod complete;
mod embedded;
mod grammar;
mod help;
mod idle;
mod progress;

use homing_cluster::{leases, nodes, switched};
use homing_model as failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    stdio::keep_closed();
    stdio::outlive_file_limit();
    stdio::end_on_panic();
    ExitCode::from(cli::main().clamp(0, 255) as u8)
}
