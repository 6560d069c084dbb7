//! Identifies the work of a task in 64 bits. `resume` leaves a task out only if this value is the same for its
//! number.

use homing_model::Task;
use sha2::{Digest, Sha256};

/// Returns the first 64 bits of the SHA-256 of the JSON array `[command, cwd, env]` of a task as its source gives it.
/// If the task receives blocks of the run's input as its own, the array is
/// `[command, cwd, env, [[offset, bytes], ...]]`. Limits and placement are left out: if they change, there is no reason
/// to run the task again.
pub fn ran(task: &Task) -> u64 {
    // These maps have only text keys, and writing to memory cannot fail.
    let blocks: Vec<(u64, u64)> = task.stdin.iter().map(|block| (block.offset, block.length)).collect();
    let text = match blocks.is_empty() {
        true => serde_json::to_vec(&(&task.command, &task.cwd, &task.env)),
        false => serde_json::to_vec(&(&task.command, &task.cwd, &task.env, blocks)),
    };
    let text = text.unwrap_or_default();
    Sha256::digest(text)[..8].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::{Block, Command, RawText};

    fn argv(words: &[&str]) -> Task {
        Task::of(Command::Argv(words.iter().map(|w| RawText::from(*w)).collect()))
    }

    #[test]
    fn it_tells_commands_folders_and_environments_apart() {
        let task = argv(&["gzip", "a b"]);
        let others = [
            argv(&["gzip", "a", "b"]),
            argv(&["gzip a b"]),
            Task::of(Command::Shell("gzip a b".into())),
            Task { cwd: Some("/d".into()), ..task.clone() },
            Task { env: vec![("A".into(), "b".into())], ..task.clone() },
            Task { stdin: vec![Block { path: "stdin".into(), offset: 0, length: 9 }], ..task.clone() },
            argv(&["gzip", "a c"]),
        ];
        assert!(others.iter().all(|other| ran(other) != ran(&task)));
        assert_eq!(ran(&Task { id: 7, timeout_ms: Some(1), cpus: 2, ..task.clone() }), ran(&task));
        // Journals of earlier versions are compared with it.
        assert_eq!(ran(&task), 0x6336_b8ef_a085_9ae6);
    }
}
