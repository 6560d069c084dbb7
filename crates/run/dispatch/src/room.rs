//! The largest command that can start here. The kernel refuses a larger one, so it need not be sent to a worker.

use homing_model::{Command, RawText, Task};

/// Linux gives words and environment a quarter of the limit on the stack: at least `LEAST` bytes, and at most three
/// quarters of 8 MiB (execve(2)).
const LEAST: usize = 128 << 10;
const MOST: usize = 6 << 20;
/// The longest word, in pages (execve(2), MAX_ARG_STRLEN).
const PAGES_OF_A_WORD: usize = 32;
/// The additional bytes of each word: its end and a pointer.
const BESIDES: usize = 1 + size_of::<usize>();

/// The bytes that commands may have.
pub(crate) struct ArgumentRoom {
    all: usize,
    word: usize,
}

impl ArgumentRoom {
    /// Returns the limits of this machine, less this environment.
    pub fn beside(env: &[(RawText, RawText)]) -> ArgumentRoom {
        let stack = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
        let all = stack.map_or(MOST, |stack| (stack as usize / 4).clamp(LEAST, MOST));
        ArgumentRoom { all: all.saturating_sub(size(env)), word: rustix::param::page_size() * PAGES_OF_A_WORD }
    }

    /// Returns why this task cannot be started, if it is too large.
    pub fn refusal(&self, task: &Task) -> Option<String> {
        let words: &[RawText] = match &task.command {
            Command::Argv(words) => words,
            Command::Shell(line) => std::slice::from_ref(line),
        };
        let all = words.iter().map(|w| w.0.len() + BESIDES).sum::<usize>() + size(&task.env);
        let longest = words.iter().map(|w| w.0.len() + 1).max().unwrap_or(0);
        let mb = |bytes: usize| bytes as f64 / 1e6;
        if all > self.all {
            return Some(format!(
                "the command of task {} has {:.1} MB; the limit of this system is {:.1} MB",
                task.id,
                mb(all),
                mb(self.all)
            ));
        }
        let text = format!(
            "task {} has a word of {:.2} MB; the limit of this system is {:.2} MB",
            task.id,
            mb(longest),
            mb(self.word)
        );
        (longest > self.word).then_some(text)
    }
}

fn size(env: &[(RawText, RawText)]) -> usize {
    env.iter().map(|(name, value)| name.0.len() + value.0.len() + 1 + BESIDES).sum()
}
