//! The worker alone, as it is carried to hosts: a small part of the whole program, which can do the same.

use std::process::ExitCode;

/// A fault of homing itself (`EX_SOFTWARE` of sysexits.h), as the whole program has it.
const FAULT: i32 = 70;
/// Words that are not a worker's.
const USAGE: i32 = 255;

fn main() -> ExitCode {
    // A thread that is missed would leave the others waiting.
    std::panic::set_hook(Box::new(|info| {
        homing_os::say!("homing: cannot go on, by a fault of its own: {info}");
        std::process::exit(FAULT)
    }));
    let words: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let status = match words.get(1).and_then(|word| word.to_str()) {
        Some("worker") => homing_worker::main_stdio(&words[2..]),
        Some(homing_launch::LEADER) => homing_worker::lead_stdio(),
        Some("in-view") => homing_worker::enter_view(&words[2..]),
        _ => {
            let release = homing_launch::wire::release();
            homing_os::say!("homing: this is the worker of homing {release}, which homing itself starts on hosts");
            USAGE
        }
    };
    ExitCode::from(status.clamp(0, 255) as u8)
}
