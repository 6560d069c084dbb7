//! Roles: functions that homing starts on other hosts, or in the background of this one. They exchange messages and
//! are no commands for people. `homing-host` has only roles. `homing` has them, too, so that it works as a single
//! file.

use crate::cmd;
use homing_model::{Failure, exit};
use std::ffi::OsString;
use std::io::{self, BufReader, Stdin, Stdout};

/// Executes `homing-host ROLE WORD...`; returns the exit status.
pub fn main() -> i32 {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = play(&mut words) {
        return status;
    }
    if words.get(1).is_some_and(|word| word == "--version") {
        println!("homing-host {}", crate::programs::version());
        return 0;
    }
    let role = words.get(1).map_or_else(|| "no role".into(), |word| format!("{:?} is not a role", word.display()));
    eprintln!("homing-host: {role}: this program is started by homing on hosts, with a role as its first word");
    eprintln!("  try: homing --help");
    exit::USAGE
}

/// Executes the role that the second word names; `None` if it names none.
pub fn play(words: &mut Vec<OsString>) -> Option<i32> {
    let word = words.get(1)?.to_str()?;
    let result = match word {
        // A task of a worker, on its way to its program. Its words are not parsed here.
        "in-view" => return Some(homing_worker::enter_view(&words[2..])),
        // They fork a guard first, which copies this process's memory; the grammar would be most of that.
        "worker" => return Some(homing_worker::main_stdio(&words[2..])),
        homing_launch::LEADER => return Some(homing_worker::lead_stdio()),
        // Once per line of a makefile: it parses its words without the whole grammar.
        "recipe" => return Some(cmd::make::stub::recipe(words.split_off(2))),
        "queue-runner" => cmd::queue::runner(),
        "queue-keeper" => cmd::queue::keeper(&words[2..]),
        "queue-far" => cmd::queue::far::far(&words[2..]),
        cmd::queue::far::HOST => cmd::queue::far::host(),
        cmd::lsf::RANK => cmd::lsf::rank(),
        homing_exec::WORD => homing_relay::host().map(|()| 0).map_err(Failure::system),
        homing_bench::ends::WORD => on_stdio(homing_bench::ends::serve),
        homing_snapshot::serve::WORD => on_stdio(homing_snapshot::serve::serve),
        homing_snapshot::remove::WORD => snapshot_remove(&words[2..]),
        _ => return None,
    };
    Some(status(result))
}

/// Prints a failure; returns the exit status.
pub fn status(result: Result<i32, Failure>) -> i32 {
    result.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            eprintln!("{failure}");
        }
        failure.status
    })
}

/// Serves a role on standard input and output.
fn on_stdio(serve: impl FnOnce(BufReader<Stdin>, &mut Stdout) -> io::Result<()>) -> Result<i32, Failure> {
    let mut out = io::stdout();
    homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).map_err(Failure::system)?;
    serve(BufReader::new(io::stdin()), &mut out).map_err(Failure::system)?;
    Ok(0)
}

/// Executes `snapshot-remove VAULT`.
fn snapshot_remove(words: &[OsString]) -> Result<i32, Failure> {
    let vault = words.first().ok_or_else(|| Failure::usage("no vault is named"))?;
    homing_snapshot::remove::all(vault.as_ref()).map_err(Failure::system)?;
    Ok(0)
}
