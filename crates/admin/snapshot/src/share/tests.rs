use crate::skipped::skipped;
#[path = "../../../../../tests/until.rs"]
mod until;

use super::*;
use crate::ask::Control;
use crate::split::Deal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use until::until;

/// Returns the listed files of a brick, sorted.
fn listed(brick: &Path, exclude: &[&str], since: Option<Timestamp>, (nth, of): (u32, u32)) -> Vec<Vec<u8>> {
    let turn = BrickTurn { brick: brick.into(), nth, of };
    let deal = Deal { exclude: exclude.iter().map(|pattern| pattern.to_string()).collect(), since };
    let share = Share { turns: Vec::new(), below: "home".into(), deal, mark: String::new() };
    let mut found = HostFiles { list: "/".into(), files: 0, bytes: 0 };
    let mut out = Vec::new();
    look(&share, &turn, &Reins::default(), &mut out, &mut found).unwrap();
    let mut names: Vec<Vec<u8>> = out.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    assert_eq!(names.pop(), Some(Vec::new()));
    assert_eq!(found.files, names.len() as u64);
    names.sort();
    names
}

#[test]
fn files_that_the_copy_would_read_are_listed_each_by_one_of_those_that_have_it() {
    if Command::new("rsync").arg("--version").output().is_err() {
        skipped("images need rsync");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let brick = dir.path();
    ["home/tmp", "home/d", "home/.glusterfs-not", ".glusterfs/aa"]
        .iter()
        .for_each(|name| fs::create_dir_all(brick.join(name)).unwrap());
    let odd = std::ffi::OsStr::from_bytes(b"home/d/new\nline \xff \\#012");
    let write = |name: &Path| fs::write(brick.join(name), "x").unwrap();
    for name in ["home/a", "home/d/b.c", "home/d/b.o", "home/tmp/t", "home/elsewhere", "home/two", ".glusterfs/aa/1"] {
        write(name.as_ref());
    }
    write(odd.as_ref());
    fs::write(brick.join("home/empty"), "").unwrap();
    fs::hard_link(brick.join("home/two"), brick.join("home/d/two")).unwrap();
    fs::hard_link(brick.join("home/two"), brick.join(".glusterfs/aa/2")).unwrap();
    fs::hard_link(brick.join("home/a"), brick.join(".glusterfs/aa/3")).unwrap();
    fs::set_permissions(brick.join("home/elsewhere"), fs::Permissions::from_mode(0o1000)).unwrap();
    std::os::unix::fs::symlink("a", brick.join("home/link")).unwrap();
    let all = listed(brick, &["/tmp", "*.o"], None, (0, 1));
    let names = [&b"a"[..], b"d/b.c", b"d/new\nline \xff \\#012"];
    assert_eq!(all, names);
    let mut both = [0, 1].map(|nth| listed(brick, &["/tmp", "*.o"], None, (nth, 2))).concat();
    both.sort();
    assert_eq!(both, all);
    let soon = Timestamp::now() + MARGIN + MARGIN;
    assert!(listed(brick, &[], Some(soon), (0, 1)).is_empty());
    assert_eq!(listed(brick, &["/tmp", "*.o"], Some(Timestamp::now()), (0, 1)), all);
}

#[test]
fn the_rsync_that_reads_stands_still_while_others_need_the_volume() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("rsync");
    // `cp` copies it: a child of another thread could inherit the open file, and then it could not be executed.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    let (reins, (tell, told)) = (Reins::default(), std::sync::mpsc::channel());
    let deal = Deal { exclude: Vec::new(), since: None };
    let share = Share { turns: Vec::new(), below: "".into(), deal, mark: "share".into() };
    let theirs = reins.clone();
    std::thread::spawn(move || hold(&share, &theirs, &mut |answer| tell.send(answer).map_err(io::Error::other)));
    let Ok(SnapshotReply::Found(found)) = told.recv() else { panic!() };
    assert_eq!(fs::read(&found.list).unwrap(), b"", "whoever is told of it can read it");
    reins.heed(&Control::Pause);
    // The process begins during the pause.
    let mut child = Command::new(&program).arg("600").env(crate::sender::MARK, "share").spawn().unwrap();
    let stands = |wanted: &str| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(wanted))
    };
    until("it is stopped", || stands("T"));
    reins.heed(&Control::Resume);
    until("it goes on", || stands("S"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_folder_that_is_no_brick_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let turn = BrickTurn { brick: dir.path().into(), nth: 0, of: 1 };
    let deal = Deal { exclude: Vec::new(), since: None };
    let share = Share { turns: Vec::new(), below: "".into(), deal, mark: String::new() };
    let mut found = HostFiles { list: "/".into(), files: 0, bytes: 0 };
    let why = look(&share, &turn, &Reins::default(), &mut Vec::new(), &mut found).unwrap_err();
    assert!(why.contains("brick"), "{why}");
}
