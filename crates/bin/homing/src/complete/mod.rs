//! Completions: `homing complete WORD...` prints the candidates for the last word, one per line. The shells' scripts
//! run it at each TAB. An empty output means a file, which shells complete and quote best themselves.
//!
//! clap_complete writes tables of options once, but runs, jobs, volumes and hosts are known only when TAB is pressed.

mod line;
mod names;

use crate::cmd::generate::Shell;
use clap::CommandFactory;
use homing_model::Failure;
use std::ffi::OsString;

/// Prints the script of a shell.
pub fn script(shell: Shell) -> Result<i32, Failure> {
    crate::cmd::runs::to_stdout(match shell {
        Shell::Bash => include_str!("homing.bash"),
        Shell::Zsh => include_str!("homing.zsh"),
        Shell::Fish => include_str!("homing.fish"),
    })
}

/// Prints the candidates for the last of these words. With `described`, a tab and a description follow each candidate
/// that has one. An error prints nothing.
pub fn complete(words: &[OsString], described: bool) -> i32 {
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let mut grammar = crate::grammar::Cli::command();
    grammar.build();
    let found = line::candidates(&grammar, &words, &names::known);
    let about = |candidate: &String| {
        let text = described.then(|| line::description(&grammar, &words, candidate)).flatten();
        text.map_or(String::new(), |text| format!("\t{text}"))
    };
    let text: String = found.iter().map(|candidate| format!("{candidate}{}\n", about(candidate))).collect();
    let _ = crate::cmd::runs::to_stdout(&text);
    0
}
