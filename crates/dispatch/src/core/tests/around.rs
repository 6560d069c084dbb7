//! Commands that a program runs elsewhere.

use super::*;
use homing_model::RawText;

#[test]
fn a_program_gets_the_command_as_one_line_and_the_record_has_the_users() {
    let around = Some(vec!["homing".into(), "sub".into()]);
    let mut core = core(Policy { around, ..policy() }, &[("n1", 1)]);
    let mut offered = offer(1, &[]);
    offered.task.command = Command::Argv(["./solve", "a b", "$x"].map(RawText::from).into());
    offered.task.inputs = vec!["/data/mesh".into()];
    core.offer(offered);
    core.assign(at(0).mono);
    let (mut sent, mut told) = (None, None);
    for action in core.take_actions() {
        match action {
            Action::Send(_, ToWorker::Run { task, .. }) => sent = Some(task.command),
            Action::Journal(What::TaskStarted { command, .. }) => told = Some(command),
            _ => {}
        }
    }
    let words = ["homing", "sub", "--near", "/data/mesh", "--", "./solve 'a b' '$x'"];
    assert_eq!(sent, Some(Command::Argv(words.map(RawText::from).into())));
    assert_eq!(told.as_deref(), Some("./solve a b $x"));
}
