//! The program `homing-admin`: the commands that administer a cluster.

fn main() -> std::process::ExitCode {
    homing_cli::homing_admin()
}
