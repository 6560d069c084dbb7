//! Wraps commands in a program that runs them elsewhere. Only the message to the worker changes. The record and the
//! output show the user's own command.

use crate::container::Container;
use homing_launch::wire::ToWorker;
use homing_model::{Command, RawText, Task};

/// A program that runs the commands of tasks.
#[derive(Clone, Debug)]
pub enum Around {
    /// A program that runs them elsewhere. Its further arguments are the names of the task's inputs, each after
    /// `--near`, then `--` and the command as one line for the shell.
    Submitter(Vec<RawText>),
    /// A container for each.
    Container(Container),
}

/// Returns the message with the command in the form that the program expects.
pub fn around(program: &Around, message: &ToWorker) -> ToWorker {
    let mut message = message.clone();
    if let ToWorker::Run { task, ticket, .. } = &mut message {
        task.command = match program {
            Around::Submitter(words) => command(words, task),
            Around::Container(container) => container.command(task, *ticket),
        };
    }
    message
}

fn command(words: &[RawText], task: &Task) -> Command {
    let near = task.inputs.iter().flat_map(|input| ["--near".into(), input.clone()]);
    let line = RawText(homing_batch::command_line(&task.command));
    Command::Argv(words.iter().cloned().chain(near).chain(["--".into(), line]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_inputs_and_the_command_as_one_line() {
        let own = Command::Argv(["./solve", "a b", "$x"].map(RawText::from).into());
        let task = Task { inputs: vec!["/data/mesh".into()], ..Task::of(own) };
        let words = ["homing", "sub", "--near", "/data/mesh", "--", "./solve 'a b' '$x'"];
        let sent = command(&["homing".into(), "sub".into()], &task);
        assert_eq!(sent, Command::Argv(words.map(RawText::from).into()));
    }
}
