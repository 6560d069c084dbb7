//! The program `homing-host`: the far side of homing, which is copied to hosts.

fn main() -> std::process::ExitCode {
    homing_cli::homing_host()
}
