//! The worker alone, as it is copied to hosts: a small part of the whole program, which has the same commands.

use std::process::ExitCode;

/// Exit status for a fault of homing itself (`EX_SOFTWARE` of sysexits.h), as in the whole program.
const FAULT: i32 = 70;
/// Exit status for arguments that are not a worker's.
const USAGE: i32 = 255;

fn main() -> ExitCode {
    // The other threads would wait for a thread that panicked.
    std::panic::set_hook(Box::new(|info| {
        homing_os::say!("homing: internal error: {info}");
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
