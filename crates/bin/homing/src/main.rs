//! The `homing` program: arguments, exit codes, and the joining of the rooms.
//! One file a subcommand, in `cmd/`.
//!
//! Each command turns its arguments into the values of the crates below, calls one of them, and prints the result.
//! `cli` parses and dispatches, `grammar` lists the commands, `help` has the texts, `idle` refuses options that do nothing.
//!
//! It does not: decide where a task runs, keep state of a run, or hold a rule that a crate below could own.

// First: its macros stand in for the standard ones in all others.
#[macro_use]
mod stdio;

mod cli;
mod cluster;
mod cmd;
mod complete;
mod consent;
mod embedded;
mod grammar;
mod help;
mod idle;
mod mistyped;
mod progress;

use homing_cluster::{nodes, switched};
use homing_model as failure;
use std::process::ExitCode;

/// A first thread with less stack than this, bytes, leaves the work to a thread with as much: what the kernel gives by
/// default (`ulimit -s` 8192, setrlimit(2)). The limit itself stays as it is, since tasks have it too.
const STACK: u64 = 8 << 20;

fn main() -> ExitCode {
    stdio::keep_closed();
    stdio::outlive_file_limit();
    stdio::end_on_panic();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    let status = if limit.is_some_and(|limit| limit < STACK) { with_stack() } else { work() };
    ExitCode::from(status.clamp(0, 255) as u8)
}

/// Apart from `main`, whose frame would have the room of all that it calls.
#[inline(never)]
fn work() -> i32 {
    cli::main()
}

/// The work in a thread whose stack `ulimit -s` does not bound.
fn with_stack() -> i32 {
    let thread = std::thread::Builder::new().stack_size(STACK as usize).spawn(work);
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => homing_model::exit::SYSTEM,
        Err(e) => {
            eprintln!(
                "homing: the stack limit is too low (ulimit -s), and no thread with a larger one can be started: {e}"
            );
            homing_model::exit::SYSTEM
        }
    }
}
