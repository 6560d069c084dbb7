//! The programs `homing`, `homing-admin` and `homing-host`: arguments, help, exit statuses. Each subcommand has a
//! file in `cmd/`.
//!
//! `homing` runs batches, builds and jobs. `homing-admin` has the commands that administer a cluster, and is built
//! with the feature `admin`; `homing check` starts it ([`programs`]). `homing-host` is the far side ([`roles`]),
//! which is copied to hosts.
//!
//! Each command turns its arguments into the values of the crates below, calls one of them, and prints the result.
//! `cli` parses and dispatches, `grammar` lists the commands, `help` has the texts, `idle` refuses options that do
//! nothing.
//!
//! It does not: decide where a task runs, keep state of a run, or hold a rule that a crate below could own.

// Helpers of homing-admin's commands alone are in the same files as those that all commands use.
#![cfg_attr(not(feature = "admin"), allow(dead_code, unused_imports))]

// First, because its macros replace the standard ones in all other modules.
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
mod nearest;
mod pages;
mod peer;
mod programs;
mod progress;
mod roles;

use homing_cluster::{nodes, switched};
use homing_model as failure;
use std::process::ExitCode;

/// The least stack of the first thread, in bytes; with less, a new thread does the work. The size is the kernel's
/// default (`ulimit -s` 8192, setrlimit(2)). The limit itself stays as it is, since tasks inherit it.
const STACK: u64 = 8 << 20;

/// The program `homing`. Commands that administer a cluster are started in `homing-admin`.
pub fn homing() -> ExitCode {
    begin(cli::homing)
}

/// The program `homing-admin`, which has all commands.
#[cfg(feature = "admin")]
pub fn homing_admin() -> ExitCode {
    begin(cli::admin)
}

/// The program `homing-host`: the roles that homing starts on other hosts, and no command for people.
pub fn homing_host() -> ExitCode {
    begin(roles::main)
}

fn begin(work: fn() -> i32) -> ExitCode {
    stdio::keep_closed();
    stdio::outlive_file_limit();
    stdio::end_on_panic();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    let status = if limit.is_some_and(|limit| limit < STACK) { with_stack(work) } else { work() };
    ExitCode::from(status.clamp(0, 255) as u8)
}

/// Runs the work in a thread whose stack `ulimit -s` does not limit.
fn with_stack(work: fn() -> i32) -> i32 {
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
