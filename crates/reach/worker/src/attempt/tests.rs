//! Starts of real programs, and the refusals of the system.

use super::*;
use crate::environment::Environment;
use crate::script;
use homing_model::Command;

/// Runs the words as a task in `cwd`, and returns its outcome and its output.
fn run_words(cwd: &Path, words: Vec<RawText>) -> (Outcome, Vec<u8>) {
    let (task, env) = (Task::of(Command::Argv(words)), Environment::default());
    let (ground, view, handle) = (Ground::new().unwrap(), MountView::default(), Handle::default());
    let (room, send) = (|_: &'static str, _: Attempted| None, |_: FromWorker| ());
    let job = AttemptPlan {
        ticket: 1,
        task: &task,
        env: env.with(&[]).unwrap(),
        stdin: None,
        ground: &ground,
        weigh: false,
        patient: false,
        found: None,
        cwd,
        view: &view,
        eager: false,
        handle: &handle,
        room: &room,
        send: &send,
    };
    let end = run(&job, &mut vec![0; CHUNK]);
    (end.outcome, end.stdout)
}

#[test]
fn the_shell_runs_a_script_without_an_interpreter_with_the_words_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("-x")).unwrap();
    let text = "printf '%s|' \"$0\" \"$@\"; exit 3";
    script::script(&dir.path().join("with"), text);
    script::program(&dir.path().join("without"), text);
    script::program(&dir.path().join("-x/option"), text);
    for word in ["./with", "./without", "-x/option"] {
        let words = vec![word.into(), RawText(b"a  b\xff".to_vec()), "".into(), "-c".into()];
        let printed = [word.as_bytes(), b"|a  b\xff||-c|"].concat();
        assert_eq!(run_words(dir.path(), words), (Outcome::Exit(3), printed));
    }
}

#[test]
fn other_refusals_start_nothing_and_name_the_fault() {
    let dir = tempfile::tempdir().unwrap();
    let why = |name: &str, text: &str| {
        script::program(&dir.path().join(name), text);
        match run_words(dir.path(), vec![format!("./{name}").into()]) {
            (Outcome::CannotStart(why), _) => why,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert!(why("windows", "#!/bin/sh\r\necho\r\n").contains(r#"./windows: its interpreter "/bin/sh\r" is not there"#));
    assert!(why("foreign", "\x7fELF\x02\x01\x01\0").contains("./foreign: Exec format error"));
}
