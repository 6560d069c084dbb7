//! The `homing` program: arguments, exit codes, and the joining of the rooms.
//! One file a subcommand, in `cmd/`.

mod cli;
mod cluster;
mod cmd;
mod complete;
mod failure;
mod groups;
mod help;
mod stdio;

use std::process::ExitCode;

fn main() -> ExitCode {
    stdio::keep_closed();
    stdio::end_when_unwritten();
    ExitCode::from(cli::main().clamp(0, 255) as u8)
}
