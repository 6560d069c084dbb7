//! The slot number in a command, which is known only when the task is sent.

use homing_model::{Command, RawText};

/// Stands in a command for `{%}`, the slot number, which is known only when
/// the task is sent. [`fill_slot`] replaces it.
pub const SLOT_TOKEN: &str = "\u{1}homing:slot\u{1}";

/// Puts the slot number wherever the command says `{%}`. Call it just before
/// the task is sent; a command without `{%}` is left as it is.
pub fn fill_slot(command: &mut Command, slot: u32) {
    let digits = slot.to_string();
    match command {
        Command::Shell(line) => fill_text(line, &digits),
        Command::Argv(words) => words.iter_mut().for_each(|w| fill_text(w, &digits)),
    }
}

pub(crate) fn fill_text(text: &mut RawText, digits: &str) {
    let token = SLOT_TOKEN.as_bytes();
    let mut from = 0;
    // The common command has no such byte at all.
    while let Some(at) = text.0[from..].iter().position(|&b| b == token[0]).map(|i| i + from) {
        if text.0[at..].starts_with(token) {
            text.0.splice(at..at + token.len(), digits.bytes());
            from = at + digits.len();
        } else {
            from = at + 1;
        }
    }
}
