//! Tests scripts by running them on this machine.

use super::*;
use crate::MountState;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

/// Adapts a script for a host to this machine: homing's files are in `dir`, and root is not needed.
pub(super) fn here(dir: &Path, text: &str) -> String {
    let text = text.replace("/var/lib/homing", &dir.join("state").display().to_string());
    text.replace("/run/", &format!("{}/", dir.display())).replace("[ \"$(id -u)\" = 0 ]", "true")
}

/// Runs steps on this machine, with a journal in `dir`; only files are touched by them.
fn run(dir: &Path, steps: &[ChangeStep], void: &[String]) -> Output {
    let text = here(dir, &script(steps, void, &By::default()));
    Command::new("sh").args(["-c", &text]).output().unwrap()
}

fn put(path: &Path, from: Option<&str>, to: Option<&str>) -> HostChange {
    let owner = std::fs::metadata(path.parent().unwrap()).unwrap();
    let state = |text: &str| FileState { content: text.into(), mode: 0o640, uid: owner.uid(), gid: owner.gid() };
    HostChange::File { path: path.display().to_string(), from: from.map(state), to: to.map(state), block: None }
}

#[test]
fn a_file_is_written_noted_and_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("it's $HOME");
    let step = ChangeStep { change: put(&path, None, Some("a'b\n$c\n")), undoes: None };
    let done = run(dir.path(), std::slice::from_ref(&step), &[]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "did 0\n", "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a'b\n$c\n");
    let entry = dir.path().join("state/up/00000001.json");
    let noted: HostChange = serde_json::from_slice(&std::fs::read(&entry).unwrap()).unwrap();
    assert_eq!(noted, step.change);
    let back = ChangeStep { change: noted.inverse().unwrap(), undoes: Some(vec!["00000001.json".into()]) };
    let undone = run(dir.path(), &[back], &[]);
    assert!(undone.status.success() && !path.exists(), "{}", String::from_utf8_lossy(&undone.stderr));
    assert!(!dir.path().join("state").exists(), "nothing of the journal is left");
}

/// A mount that fails stops no step behind it, unless it is a disk, on which later steps may write.
#[test]
fn a_mount_that_fails_is_named_and_the_steps_behind_it_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let (point, path) = (dir.path().join("not in fstab").display().to_string(), dir.path().join("f"));
    let (from, to) = (MountState::default(), MountState { exists: true, mounted: true });
    let mount = |disk| HostChange::Mount { point: point.clone(), from, to, over: None, disk };
    let steps = |disk| [mount(disk), put(&path, None, Some("a\n"))].map(|change| ChangeStep { change, undoes: None });
    let disk = run(dir.path(), &steps(true), &[]);
    assert!(!disk.status.success() && !path.exists());
    let done = run(dir.path(), &steps(false), &[]);
    let out = String::from_utf8_lossy(&done.stdout);
    let fault = format!("untaken\tmount {point}\tmounting {point}: ");
    assert!(out.starts_with(&fault) && out.ends_with("did 0\ndid 1\n") && path.exists(), "{out}");
    assert_eq!(mount(false).thing(), format!("mount {point}"), "the fault has the name of its step");
}

#[test]
fn an_entry_names_the_cluster_file_of_its_set_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let step = ChangeStep { change: put(&path, None, Some("a\n")), undoes: None };
    let owner = "adm:/etc/it's a cluster.toml";
    let text = here(dir.path(), &script(std::slice::from_ref(&step), &[], &By { owner: Some(owner), ..By::default() }));
    assert!(Command::new("sh").args(["-c", &text]).status().unwrap().success());
    let question = crate::FactQuery { journal: true, ..Default::default() };
    let answer = Command::new("sh").args(["-c", &here(dir.path(), &question.script())]).output().unwrap();
    let seen = crate::Observed::read(&String::from_utf8(answer.stdout).unwrap()).unwrap();
    assert_eq!(seen.journal, [("00000001.json".to_string(), step.change)]);
    assert_eq!(seen.owners, [("00000001.json".to_string(), owner.to_string())].into());
    // A host seeks entries of disks by their first bytes.
    let entry = std::fs::read_to_string(dir.path().join("state/up/00000001.json")).unwrap();
    assert!(entry.starts_with(r#"{"kind":"file""#), "{entry}");
}

/// The timer uses `setsid` if the machine has no systemd.
#[test]
fn what_nobody_confirms_is_taken_back_by_the_host_itself() {
    for (confirmed, token) in [(false, "7"), (true, "7"), (true, "net-7")] {
        let dir = tempfile::tempdir().unwrap();
        let (path, made, read) = (dir.path().join("f"), dir.path().join("g"), dir.path().join("read"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let steps = [put(&path, Some("old"), Some("new")), put(&made, None, Some("x"))];
        let steps = steps.map(|change| ChangeStep { change, undoes: None });
        let nudge = HostChange::Nudge { unit: "u".into(), how: How::Reload, test: None };
        let steps = [steps.to_vec(), vec![ChangeStep { change: nudge, undoes: None }]].concat();
        let guard = Guard { seconds: 77, token: token.into() };
        let (passed, ended) = (dir.path().join("passed"), dir.path().join("ended"));
        // The test signals that the time has passed, and the timer that it has ended.
        let timing = format!(
            r#"trap ">{}" EXIT; until [ -e {} ]; do sleep 0.02; done; : %s;"#,
            ended.display(),
            passed.display()
        );
        let here = |text: String| {
            // No unit of this machine is reloaded or restarted.
            here(dir.path(), &text)
                .replace("sleep %s;", &timing)
                .replace("systemctl", &format!("echo >>{} ", read.display()))
        };
        // The undo is in the script as base64.
        let back = FileContent(here(back(&steps)).into_bytes()).encoded();
        let text = script(&steps, &[], &By { guard: Some(&guard), ..By::default() })
            .replace(&FileContent(super::back(&steps).into_bytes()).encoded(), &back);
        let done = Command::new("sh").args(["-c", &here(text)]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        let timer = dir.path().join(format!("homing-up.{token}-timer"));
        assert!(std::fs::read_to_string(&timer).unwrap().contains(" 77;"));
        if confirmed {
            assert!(Command::new("sh").args(["-c", &here(Guard::CONFIRM.into())]).status().unwrap().success());
        }
        std::fs::write(&passed, "").unwrap();
        while !ended.exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if confirmed && token == "7" {
            assert!(made.exists() && !timer.exists());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
            continue;
        }
        assert_eq!((std::fs::read_to_string(&path).unwrap(), made.exists()), ("old".into(), false));
        assert_eq!(std::fs::read_to_string(&read).unwrap().lines().count(), 2, "the unit read its files again");
    }
}

#[test]
fn what_somebody_changes_meanwhile_is_left_alone_and_nothing_further_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("f"), dir.path().join("g"));
    std::fs::write(&path, "theirs").unwrap();
    let steps = [put(&path, Some("old"), Some("new")), put(&other, None, Some("x"))];
    let done = run(dir.path(), &steps.map(|change| ChangeStep { change, undoes: None }), &[]);
    let why = format!("outdated\t{} was changed after homing examined it\n", path.display());
    assert_eq!(String::from_utf8_lossy(&done.stdout), why, "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    assert!(!other.exists());
}

#[test]
fn who_looked_before_another_does_nothing_more_and_who_looked_last_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let steps = [ChangeStep { change: put(&path, None, Some("x")), undoes: None }];
    let sh = |text: &str| Command::new("sh").args(["-c", &here(dir.path(), text)]).output().unwrap();
    let look = |lead: Option<&str>| {
        let question = crate::FactQuery { lead: lead.map(String::from), ..crate::FactQuery::default() };
        sh(&question.script())
    };
    let act = |lead: &str| {
        let done = sh(&script(&steps, &[], &By { lead: Some(lead), ..By::default() }));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(look(Some("killed-1")).status.success() && look(Some("next-2")).status.success());
    assert_eq!(act("killed-1"), "outdated\tanother homing has begun to change this host since\n");
    assert!(!path.exists() && !dir.path().join("state").exists());
    assert!(look(None).status.success(), "to look alone takes the lead from nobody");
    assert_eq!(act("next-2"), "did 0\n");

    let lock = dir.path().join("homing-lead");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(act("next-2"), "outdated\tthis host was restarted after homing examined it\n", "/run was emptied");
    for lead in [None, Some("third-3")] {
        let question = crate::FactQuery { lead: lead.map(String::from), ..crate::FactQuery::default() };
        // The test does not wait long for the lock.
        let text = here(dir.path(), &question.script().replace("-w 300", "-n"));
        let done = Command::new("flock").arg(&lock).args(["sh", "-c", &text]).output().unwrap();
        assert!(
            String::from_utf8_lossy(&done.stderr).contains("another homing up has been changing this host"),
            "{done:?}"
        );
    }
}

#[test]
fn the_tenth_entry_follows_the_ninth() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let text = |n: usize| if n == 0 { None } else { Some("x".repeat(n)) };
    let steps: Vec<ChangeStep> = (0..10)
        .map(|n| ChangeStep { change: put(&path, text(n).as_deref(), text(n + 1).as_deref()), undoes: None })
        .collect();
    assert!(run(dir.path(), &steps, &[]).status.success());
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path().join("state/up")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.last().unwrap(), "00000010.json", "{names:?}");
}

/// Output of dnf 4.14 about a package that obsoletes another, and about one that others need.
const GONE: &str = "\
Installing:
 new               noarch               1-1               t               9.0 k
     replacing  old.noarch 1-1
Removing:
 two               noarch              1-1                @t              2.9 k
Removing dependent packages:
 one               noarch              1-1                @t              2.9 k

Transaction Summary
Remove  2 Packages
";

#[test]
fn what_dnf_would_take_away_is_known() {
    let text = format!("{}dnf_gone <<'END'\n{GONE}END\n", include_str!("../dnf.sh"));
    let said = Command::new("sh").args(["-c", &text]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "old one two ");
}
