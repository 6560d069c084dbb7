//! Shell completions and man pages, from the same definitions as the help.

use crate::cli::Cli;
use crate::failure::Failure;
use clap::CommandFactory;
use std::io;
use std::path::PathBuf;

/// Arguments of `homing completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

/// Arguments of `homing man`.
#[derive(clap::Args)]
pub struct Man {
    /// Directory for homing.1 and a page for each command
    dir: PathBuf,
}

/// Prints completions.
pub fn completions(args: Completions) -> Result<i32, Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "homing", &mut io::stdout());
    Ok(0)
}

/// Writes man pages.
pub fn man(args: Man) -> Result<i32, Failure> {
    let wrong = |e: io::Error| Failure::system(format!("cannot write man pages to {}: {e}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).map_err(wrong)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(wrong)?;
    Ok(0)
}
