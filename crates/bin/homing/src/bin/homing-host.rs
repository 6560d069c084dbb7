//! The program `homing-host`: the far side of homing, which hosts are sent.

fn main() -> std::process::ExitCode {
    homing_cli::homing_host()
}
