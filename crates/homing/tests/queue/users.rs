//! One queue, several users. Only root can play several users.

use crate::until::until;
use crate::world::World;
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

/// A world of which all users may use everything, or none where there are no other users to play.
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
    // The one who had the slot last is the last to get it again.
    let (a, b) = (ALICE.to_string(), BOB.to_string());
    assert_eq!(w.lines("ran"), [&a, &b, &a, &b, &a].map(String::from));
}

#[test]
fn a_name_cannot_make_up_rows_or_speak_to_terminals() {
    let Some(w) = shared(1) else { return };
    let name = "x\n9  root  DONE\u{1b}c";
    let output = as_user(&w, ALICE, &["sub", "-q", "-K", "-J", name, "true"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    // Nor with the shell: the folder is Alice's own, in a folder with the sticky bit.
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
    // What Bob puts there under Alice's name is not believed.
    assert_eq!(std::fs::metadata(&folder).unwrap().uid(), ALICE);
    // Root may.
    assert!(w.homing(&["kill", &id]).status.success());
    assert_eq!(as_user(&w, ALICE, &["wait", &id]).status.code(), Some(143));
}

#[test]
fn a_folder_that_somebody_else_made_is_refused() {
    let Some(w) = shared(1) else { return };
    sub(&w, ALICE, "true");
    std::fs::create_dir(w.path().join(format!("queue/homing-queue-{BOB}"))).unwrap();
    let said = as_user(&w, BOB, &["sub", "true"]);
    assert_eq!(said.status.code(), Some(254));
    assert!(String::from_utf8_lossy(&said.stderr).contains("somebody else"), "{said:?}");
}

#[test]
fn a_user_who_holds_the_turn_or_stands_still_starves_nobody() {
    let Some(w) = shared(1) else { return };
    sub(&w, BOB, "true");
    until("the queue is there", || w.path().join("queue/homing-queue/turn.lock").exists());
    // Bob locks the file of turns, for ever. Python, because flock(1) takes another kind of lock.
    let line = "import fcntl,struct,time;f=open('queue/homing-queue/turn.lock','r+');\
                fcntl.fcntl(f,37,struct.pack('hhqqi4x',1,0,0,0,0));open('held','w');time.sleep(60)";
    let mut holder =
        Command::new("python3").args(["-c", line]).current_dir(w.path()).uid(BOB).gid(BOB).spawn().unwrap();
    until("he holds it", || w.path().join("held").exists());
    sub(&w, ALICE, "touch ran");
    until("hers runs all the same", || w.path().join("ran").exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
}
