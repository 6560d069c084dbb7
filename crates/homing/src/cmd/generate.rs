//! Shell completions and man pages, from the same definitions as the help.

use crate::complete::Shell;
use crate::failure::Failure;
use std::path::PathBuf;

/// Arguments of `homing completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Arguments of `homing man`.
#[derive(clap::Args)]
pub struct Man {
    /// Directory for homing.1 and a page for each command
    dir: PathBuf,
}

/// Prints completions.
pub fn completions(args: Completions) -> Result<i32, Failure> {
    crate::complete::script(args.shell)
}

/// Writes man pages.
pub fn man(args: Man) -> Result<i32, Failure> {
    let wrong = |e: std::io::Error| Failure::system(format!("cannot write man pages to {}: {e}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).map_err(wrong)?;
    crate::help::write_man(&args.dir).map_err(wrong)?;
    Ok(0)
}
