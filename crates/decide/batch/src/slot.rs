//! Replaces the slot number in a command, which is known only when the task is sent.

use homing_model::{Command, RawText, Task};

/// The token for `{%}` in a command, the slot number. [`fill_slot`] replaces it.
pub const SLOT_TOKEN: &str = "\u{1}homing:slot\u{1}";

/// The value of the variable of `--process-slot-var`, the slot's number counted from 0. [`fill_slot_of`] replaces it.
pub(crate) const SLOT_INDEX_TOKEN: &str = "\u{1}homing:slot-index\u{1}";

/// Replaces the slot's number in the command and the environment of a task, just before it is sent.
pub fn fill_slot_of(task: &mut Task, slot: u32) {
    fill_slot(&mut task.command, slot);
    let index = |value: &RawText| value.0 == SLOT_INDEX_TOKEN.as_bytes();
    for (_, value) in task.env.iter_mut().filter(|(_, value)| index(value)) {
        *value = slot.saturating_sub(1).to_string().into();
    }
}

/// Replaces each `{%}` of the command by the slot number. Call it just before the task is sent; a command without
/// `{%}` stays as it is.
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
    // Most commands do not contain this byte at all.
    while let Some(at) = text.0[from..].iter().position(|&b| b == token[0]).map(|i| i + from) {
        if text.0[at..].starts_with(token) {
            text.0.splice(at..at + token.len(), digits.bytes());
            from = at + digits.len();
        } else {
            from = at + 1;
        }
    }
}
