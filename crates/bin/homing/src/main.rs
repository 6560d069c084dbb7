//! The program `homing`.

fn main() -> std::process::ExitCode {
    homing_cli::homing()
}
