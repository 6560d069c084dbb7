//! (to be written)
use crate::failure::Failure;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> Result<i32, Failure> {
    Err(Failure::system("not built yet"))
}
