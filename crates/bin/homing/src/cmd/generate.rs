//! Prints shell completions and man pages, from the same definitions as the help.

use std::path::PathBuf;

/// Shells whose scripts there are.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash, 4 or later
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// Arguments of `homing completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `homing man`.
#[derive(clap::Args)]
pub struct Man {
    /// Directory for homing.1 and a page for each command
    pub dir: PathBuf,
}
