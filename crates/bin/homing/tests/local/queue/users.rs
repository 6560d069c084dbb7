//! One queue, several users. Only root can act as several users.

use super::world::World;
use crate::until::until;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;

fn as_user(world: &World, uid: u32, args: &[&str]) -> Output {
    let mut command = Command::new(world.program());
    world.set_up(&mut command).args(args).uid(uid).gid(uid).env("HOME", "/nonexistent");
    command.output().unwrap()
}

fn sub(world: &World, uid: u32, job: &str) -> String {
    let output = as_user(world, uid, &["sub", "-q", job]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// Makes a world in which all users may use everything. Returns `None` without the rights to act as other users.
fn shared(slots: u32) -> Option<World> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: several users can only be played by root");
        return None;
    }
    let world = World::new(slots);
    world.open_to_all();
    Some(world)
}

#[test]
fn users_take_turns_and_jobs_run_as_who_submitted_them() {
    let Some(w) = shared(1) else { return };
    sub(&w, ALICE, "until [ -e go ]; do sleep 0.05; done; id -u >> ran");
    for user in [ALICE, ALICE, BOB, BOB] {
        sub(&w, user, "id -u >> ran");
    }
    std::fs::write(w.path().join("go"), "").unwrap();
    until("all ran", || w.lines("ran").len() == 5);
    // The user who had the slot last is the last to get it again.
    let (a, b) = (ALICE.to_string(), BOB.to_string());
    assert_eq!(w.lines("ran"), [&a, &b, &a, &b, &a].map(String::from));
}

#[test]
fn a_clock_that_was_ahead_costs_nobody_a_turn() {
    let Some(w) = shared(1) else { return };
    let clock = crate::preload::preload(w.path(), "clock_shift.c");
    let sub = |uid: u32, job: &str| {
        let mut command = Command::new(w.program());
        w.set_up(&mut command).args(["sub", "-q", job]).uid(uid).gid(uid).env("HOME", "/nonexistent");
        command.env("LD_PRELOAD", &clock).env("CLOCK_SHIFT", format!("@{}/shift", w.path().display()));
        assert!(command.status().unwrap().success());
    };
    std::fs::write(w.path().join("shift"), "3600").unwrap();
    sub(ALICE, "touch began; until [ -e go ]; do sleep 0.05; done; id -u >> ran");
    until("the first runs", || w.path().join("began").exists());
    std::fs::remove_file(w.path().join("shift")).unwrap();
    for user in [ALICE, ALICE, BOB, BOB] {
        sub(user, "id -u >> ran");
    }
    std::fs::write(w.path().join("go"), "").unwrap();
    until("all ran", || w.lines("ran").len() == 5);
    let (a, b) = (ALICE.to_string(), BOB.to_string());
    assert_eq!(w.lines("ran"), [&a, &b, &a, &b, &a].map(String::from));
}

#[test]
fn a_name_cannot_make_up_rows_or_speak_to_terminals() {
    let Some(w) = shared(1) else { return };
    let name = "x\n9  root  DONE\u{1b}c";
    let output = as_user(&w, ALICE, &["sub", "-q", "-K", "-J", name, "true"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("control character '\\n'"), "{why}");
    // Alice writes control characters into her own record.
    let output = as_user(&w, ALICE, &["sub", "-q", "-K", "-J", "plain-name", "true"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = w.path().join(format!("queue/homing-queue-{ALICE}/1/job.json"));
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"plain-name\""), "{text}");
    std::fs::write(&record, text.replace("plain-name", "x\\n9  root  DONE\\u001bc")).unwrap();
    let list = String::from_utf8(as_user(&w, BOB, &["jobs", "-a", "-u"]).stdout).unwrap();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(!list.contains('\u{1b}') && list.contains(r"x\n9  root"), "{list}");
}

#[test]
fn nobody_reads_or_changes_anothers_job() {
    let Some(w) = shared(2) else { return };
    let id = sub(&w, ALICE, "echo secret; touch started; sleep 300 # hidden");
    until("it runs", || w.path().join("started").exists());
    let denied = |args: &[&str]| {
        let output = as_user(&w, BOB, args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = denied(&["kill", &id]);
    assert!(said.contains("61001"), "{said}");
    denied(&["peek", &id]);
    let list = String::from_utf8(as_user(&w, BOB, &["jobs", "-u", "--json"]).stdout).unwrap();
    assert!(list.contains("\"RUN\"") && !list.contains("hidden"), "{list}");
    // Nor can Bob with the shell: the folder is Alice's own, in a folder with the sticky bit.
    let folder = w.path().join(format!("queue/homing-queue-{ALICE}"));
    for line in [
        format!("mv {0} {0}.x", folder.display()),
        format!("rm -rf {0}; ! [ -e {0}/{id} ]", folder.display()),
        format!("cat {0}/{id}/private.json || cat {0}/{id}/spec.json || cat {0}/{id}/out.0", folder.display()),
        format!("touch {0}/{id}/kill.json", folder.display()),
        format!(": > {0}/{id}/lock.0", folder.display()),
        format!("exec 3<{0}/runner.lock", folder.display()),
    ] {
        let status = Command::new("bash").args(["-c", &line]).uid(BOB).gid(BOB).output().unwrap().status;
        assert!(!status.success(), "{line}");
    }
    // The folder with Alice's name is still Alice's, not Bob's.
    assert_eq!(std::fs::metadata(&folder).unwrap().uid(), ALICE);
    // Root may kill the job.
    assert!(w.homing(&["kill", &id]).status.success());
    assert_eq!(as_user(&w, ALICE, &["wait", &id]).status.code(), Some(143));
}

#[test]
fn a_folder_that_somebody_else_made_shuts_nobody_out() {
    let Some(w) = shared(1) else { return };
    sub(&w, ALICE, "true");
    std::fs::create_dir(w.path().join(format!("queue/homing-queue-{BOB}"))).unwrap();
    let id = sub(&w, BOB, "id -u >> ran");
    assert_eq!(as_user(&w, BOB, &["wait", &id]).status.code(), Some(0));
    assert_eq!(w.lines("ran"), [BOB.to_string()]);
    assert_eq!(std::fs::metadata(w.path().join(format!("queue/homing-queue-{BOB}.1"))).unwrap().uid(), BOB);
    let list = as_user(&w, ALICE, &["jobs", "-a", "-u"]);
    assert_eq!(String::from_utf8_lossy(&list.stdout).lines().count(), 3, "{list:?}");
    // All of the names are taken: then homing reports the remedy.
    (1..=20).for_each(|n| drop(std::fs::create_dir(w.path().join(format!("queue/homing-queue-{}.{n}", BOB + 1)))));
    std::fs::create_dir(w.path().join(format!("queue/homing-queue-{}", BOB + 1))).unwrap();
    let said = as_user(&w, BOB + 1, &["sub", "true"]);
    assert_eq!(said.status.code(), Some(254));
    assert!(String::from_utf8_lossy(&said.stderr).contains("root must remove them"), "{said:?}");
}

#[test]
fn what_lies_in_the_place_of_the_folders_for_all_shuts_nobody_out() {
    let Some(w) = shared(1) else { return };
    let queue = w.path().join("queue");
    std::fs::create_dir(&queue).unwrap();
    std::fs::set_permissions(&queue, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    let line = "echo > homing-queue; mkdir -m 1700 homing-queue.1; mkdir -m 1777 homing-queue.2; echo > homing-queue.2/numbers";
    let mut alice = Command::new("sh");
    alice.args(["-c", line]).current_dir(&queue).uid(ALICE).gid(ALICE);
    assert!(alice.status().unwrap().success());
    for (user, name) in [(BOB, "first"), (ALICE, "second")] {
        let id = sub(&w, user, &format!("echo {name} >> ran"));
        assert_eq!(as_user(&w, user, &["wait", &id]).status.code(), Some(0));
    }
    assert_eq!(w.lines("ran"), ["first", "second"]);
}

/// A user leaves other kinds of files in the place of the files that count slots. homing names them, and they hold up
/// no other user.
#[test]
fn a_pipe_a_link_or_a_closed_file_in_the_place_of_slots_stops_nobody() {
    let Some(w) = shared(1) else { return };
    let id = sub(&w, ALICE, "true");
    assert_eq!(as_user(&w, ALICE, &["wait", &id]).status.code(), Some(0));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let file = w.path().join(format!("queue/homing-queue-{ALICE}/slots")).join(host);
    for line in ["mkfifo $0", "ln -s /dev/zero $0", "umask 077; echo > $0", "mkdir $0"] {
        let mut left = Command::new("sh");
        left.args(["-c", &format!("rm -rf $0; {line}")]).arg(&file).uid(ALICE).gid(ALICE);
        assert!(left.status().unwrap().success());
        let id = sub(&w, BOB, "true");
        assert_eq!(as_user(&w, BOB, &["wait", &id]).status.code(), Some(0), "{line}");
        sub(&w, BOB, "until [ -e go ]; do sleep 0.05; done");
        let waits = sub(&w, BOB, "true");
        let why = as_user(&w, BOB, &["jobs", "--why", &waits]);
        let why = String::from_utf8_lossy(&why.stdout).into_owned();
        assert!(why.contains("no free slots") && why.contains("is ignored"), "{line}: {why}");
        std::fs::write(w.path().join("go"), "").unwrap();
        assert_eq!(as_user(&w, BOB, &["wait"]).status.code(), Some(0), "{line}");
        std::fs::remove_file(w.path().join("go")).unwrap();
    }
}

/// Another user has many and large jobs. They cost nothing if a command does not list them, and little if it does.
#[test]
fn what_another_user_has_put_there_is_not_read_without_need_and_bounded_where_it_is() {
    let Some(w) = shared(1) else { return };
    let id = sub(&w, BOB, "true");
    let folder = w.path().join(format!("queue/homing-queue-{BOB}"));
    let spec = std::fs::read_to_string(folder.join(&id).join("job.json")).unwrap();
    assert!(spec.contains("\"array\":null"), "{spec}");
    let many = spec.replace("\"array\":null", "\"array\":{\"indices\":\"1-100000\",\"limit\":null}");
    for id in 1000..1060 {
        let dir = folder.join(id.to_string());
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("job.json"), &many).unwrap();
        for path in [&dir, &dir.join("job.json")] {
            std::os::unix::fs::chown(path, Some(BOB), Some(BOB)).unwrap();
        }
    }
    let line = format!("ulimit -v 200000; exec {} jobs -a \"$@\"", w.program().display());
    let listed = |args: &[&str]| {
        let mut command = Command::new("bash");
        w.set_up(&mut command).args(["-c", &line, "-"]).args(args).uid(ALICE).gid(ALICE).env("HOME", "/nonexistent");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(listed(&[]), 1);
    assert_eq!(listed(&["-u"]), 10_001);
    let own = sub(&w, ALICE, "true");
    assert_eq!(as_user(&w, ALICE, &["wait", &own]).status.code(), Some(0));
}

/// The highest number leaves no room for a next one.
#[test]
fn a_number_that_somebody_has_made_up_ends_no_numbering() {
    let Some(w) = shared(1) else { return };
    assert_eq!(sub(&w, ALICE, "true"), "1");
    let file = w.path().join(format!("queue/homing-queue/numbers/{}", u64::MAX));
    let made = Command::new("touch").arg(&file).uid(BOB).gid(BOB).status().unwrap();
    assert!(made.success());
    assert_eq!(
        [sub(&w, ALICE, "true"), sub(&w, ALICE, "true"), sub(&w, BOB, "true")],
        ["2", "3", "4"].map(String::from)
    );
}

#[test]
fn a_user_who_holds_the_turn_or_stands_still_starves_nobody() {
    let Some(w) = shared(1) else { return };
    sub(&w, BOB, "true");
    // Bob holds a lock on the folder of turns for the rest of the test.
    let mut holder = Command::new("flock")
        .args(["-F", "queue/homing-queue", "sh", "-c", "touch held; exec sleep 60"])
        .current_dir(w.path())
        .uid(BOB)
        .gid(BOB)
        .spawn()
        .unwrap();
    until("he holds it", || w.path().join("held").exists());
    sub(&w, ALICE, "touch ran");
    until("hers runs all the same", || w.path().join("ran").exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
}
