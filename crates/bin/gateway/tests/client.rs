//! Tests the client with a member that is this machine behind a fake ssh. A fake homing prints its words.

#[path = "../../../../tests/script.rs"]
mod script;

use script::script;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns a client whose ssh gives the last word to a shell. Like that of sshd, the shell ignores no signal. It
/// finds `homing` in `bin` alone.
fn client(dir: &Path, words: &[&str]) -> Command {
    let bin = dir.join("bin");
    std::fs::create_dir_all(dir.join("there")).unwrap();
    std::fs::create_dir_all(&bin).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let ssh = format!("for last; do :; done\nPATH={path} exec env --default-signal sh -c \"$last\"");
    script(&dir.join("ssh"), &ssh);
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing-client"));
    command.args(words).env("HOMING_SSH", dir.join("ssh")).env("XDG_CACHE_HOME", dir.join("cache"));
    command.env_remove("HOMING_GATEWAY").env_remove("HOMING_GATEWAY_FOLDER").current_dir(dir);
    command
}

fn ended(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn words_folder_input_output_and_status_are_those_of_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["--gateway=far", "--folder", "there", "run", "-q", "it's {}", "--gateway", ":::", "a b"];
    let mut command = client(dir.path(), &words);
    let fake = "printf '<%s>' \"$@\"; echo; basename \"$PWD\"; cat; echo news >&2; exit 7\n";
    script(&dir.path().join("bin/homing"), fake);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from here\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(said(&ended.stdout), "<run><-q><it's {}><--gateway><:::><a b>\nthere\nfrom here\n");
    assert_eq!((said(&ended.stderr).as_str(), ended.status.code()), ("news\n", Some(7)));
    assert_eq!(std::fs::read_dir(dir.path().join("cache/homing")).unwrap().count(), 0, "nothing is left there");
}

#[test]
fn a_signal_reaches_the_member_and_its_last_words_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = client(dir.path(), &["--gateway", "far", "jobs"]);
    let fake = "trap 'echo ended; exit 143' TERM\necho began\nwhile :; do sleep 0.05; done\n";
    script(&dir.path().join("bin/homing"), fake);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut from = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut from, &mut first).unwrap();
    assert_eq!(first, "began\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let mut last = String::new();
    std::io::Read::read_to_string(&mut from, &mut last).unwrap();
    assert_eq!((last.as_str(), child.wait().unwrap().code()), ("ended\n", Some(143)));
}

#[test]
fn what_cannot_be_is_said_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let of = |words: &[&str]| {
        let ended = ended(&mut client(dir.path(), words));
        (ended.status.code(), said(&ended.stderr))
    };
    let (status, text) = of(&["--gateway", "far", "push", "f"]);
    assert!(status == Some(255) && text.starts_with("homing-client: a member cannot run \"push\""), "{text}");
    let (status, text) = of(&["--gateway=-oProxyCommand=x", "jobs"]);
    assert!(status == Some(255) && text.contains("not a host name for ssh"), "{text}");
    let (status, text) = of(&["jobs"]);
    assert!(status == Some(255) && text.contains("--gateway"), "{text}");
    let (status, text) = of(&["--gateway", "far", "--folder", "nowhere", "jobs"]);
    assert!(status == Some(254) && text.contains("nowhere"), "{text}");
    let (status, text) = of(&["--gateway", "far", "jobs"]);
    assert!(status == Some(254) && text.contains("homing is not in the PATH"), "{text}");
}
