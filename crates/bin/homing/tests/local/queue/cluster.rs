//! `cluster.toml`: homing reports mistakes in it, and does not obey a stranger's file.

use super::world::World;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs homing without a named cluster file, so that it looks for `./cluster.toml`.
fn unnamed(world: &World, command: &mut Command, args: &[&str]) -> Output {
    world.set_up(command).env_remove("HOMING_CLUSTER").env_remove("XDG_CONFIG_HOME").env("HOME", "/nonexistent");
    command.args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_mistake_in_it_ends_every_command_that_reads_it() {
    let w = World::new(1);
    std::fs::write(w.path().join("cluster.toml"), "hosts = \"n1\"\n[host.n1]\nslotz = 2\n").unwrap();
    for args in [&["run", "echo", ":::", "a"][..], &["hosts"], &["exec", "-w", "n1", "true"], &["make", "-n"]] {
        let output = unnamed(&w, &mut Command::new(env!("CARGO_BIN_EXE_homing")), args);
        assert_eq!(output.status.code(), Some(255), "{args:?}: {}", said(&output));
        let told = said(&output);
        assert!(["cluster.toml, line 3", "`slotz`", "`slots`"].iter().all(|w| told.contains(w)), "{args:?}: {told}");
    }
    // The queue uses the named file.
    let output = w.homing(&["sub", "true"]);
    assert_eq!(output.status.code(), Some(255), "{}", said(&output));
    assert!(said(&output).contains("cluster.toml, line 3"), "{}", said(&output));
}

/// A pipe, and a file that others may write, in the user's own folder.
#[test]
fn what_is_no_file_or_others_may_write_is_told_and_left() {
    let w = World::new(1);
    let file = w.path().join("cluster.toml");
    let run = || unnamed(&w, &mut Command::new(env!("CARGO_BIN_EXE_homing")), &["run", "-q", "echo", ":::", "here"]);
    let left = |why: &str| {
        let output = run();
        let told = said(&output);
        assert!(told.contains("./cluster.toml was not read") && told.contains(why), "{told}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "here\n", "{told}");
    };
    std::fs::write(&file, "hosts = \"elsewhere\"\n").unwrap();
    chmod(&file, 0o646);
    left("others may write it");
    chmod(&file, 0o644);
    chmod(w.path(), 0o777);
    left("others may write its folder");
    chmod(w.path(), 0o755);
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    left("no regular file");
    let named = w.homing(&["run", "--cluster", "cluster.toml", "echo", ":::", "here"]);
    assert_eq!(named.status.code(), Some(255), "a file that is named must be one");
    assert!(said(&named).contains("no regular file"), "{}", said(&named));
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_strangers_file_is_not_obeyed_and_follows_no_job() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: several users can only be played by root");
        return;
    }
    const ALICE: u32 = 61_011;
    const BOB: u32 = 61_012;
    let w = World::new(1);
    w.open_to_all();
    let hers = w.path().join("hers");
    std::fs::create_dir(&hers).unwrap();
    std::fs::write(hers.join("cluster.toml"), "hosts = \"elsewhere\"\n[queue.hers]\n").unwrap();
    for path in [&hers, &hers.join("cluster.toml")] {
        std::os::unix::fs::chown(path, Some(ALICE), Some(ALICE)).unwrap();
    }
    let at = |uid: u32, args: &[&str]| {
        let mut command = Command::new(w.program());
        command.uid(uid).gid(uid);
        w.set_up(&mut command).env_remove("HOMING_CLUSTER").env("HOME", "/nonexistent").current_dir(&hers);
        command.env("HOMING_RUNS", w.path().join(format!("runs-{uid}"))).args(args).output().unwrap()
    };
    let his = at(BOB, &["run", "-q", "echo", ":::", "here"]);
    assert_eq!(String::from_utf8_lossy(&his.stdout), "here\n", "{}", said(&his));
    assert!(said(&his).contains("it belongs to user 61011"), "{}", said(&his));
    let own = at(ALICE, &["nodeset", "-e", "@*"]);
    assert_eq!(String::from_utf8_lossy(&own.stdout), "elsewhere\n", "{}", said(&own));
    for uid in [ALICE, BOB] {
        let refused = at(uid, &["sub", "--queue", "hers", "true"]);
        assert!(said(&refused).contains("no such queue"), "{}", said(&refused));
    }
}
