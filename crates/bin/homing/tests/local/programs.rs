//! The three programs: `homing` becomes `homing-admin` for that program's commands, and needs no other program
//! otherwise.

use crate::world::World;
use homing_bench::ends::{EndOrder, PORT, PairEnd, PairsOrder, WORD};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Makes a folder with a copy of `homing` alone. Returns its path; the tests start it with only that folder in PATH.
fn alone(world: &World) -> PathBuf {
    let folder = world.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let homing = folder.join("homing");
    // Another process copies it. A file that this process writes cannot be executed while another test starts a
    // program.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_homing")).arg(&homing).status().unwrap();
    assert!(copied.success());
    homing
}

fn output(world: &World, program: &Path, args: &[&str], path: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(args).env("PATH", path).env("HOMING_RUNS", world.path().join("runs")).env("SHELL", "/bin/sh");
    command.current_dir(world.path()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn administrative_commands_are_found_beside_homing_then_in_the_path() {
    let world = World::new();
    let homing = alone(&world);
    let (empty, other) = (world.path().join("empty"), world.path().join("other"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&other).unwrap();
    // With the feature `admin` a single file has these commands too.
    let by_itself = output(&world, &homing, &["check", "--help"], &empty);
    assert!(by_itself.status.success() && said(&by_itself).contains("Usage: homing check"), "{}", said(&by_itself));
    let admin = env!("CARGO_BIN_EXE_homing-admin");
    std::os::unix::fs::symlink(admin, other.join("homing-admin")).unwrap();
    for (path, args) in [(&other, ["check", "--help"]), (&other, ["help", "check"])] {
        let found = output(&world, &homing, &args, path);
        assert!(found.status.success() && said(&found).contains("Usage: homing check"), "{}", said(&found));
    }
    // A program beside homing comes first. One that fails shows which program was started.
    std::os::unix::fs::symlink("/bin/false", homing.with_file_name("homing-admin")).unwrap();
    assert_eq!(output(&world, &homing, &["check", "--help"], &other).status.code(), Some(1));
}

#[test]
fn a_single_file_runs_tasks_and_lists_all_commands() {
    let world = World::new();
    let homing = alone(&world);
    let path = Path::new("/usr/bin:/bin");
    let run = output(&world, &homing, &["run", "echo {}", ":::", "a"], path);
    assert!(run.status.success() && said(&run).contains("a\n"), "{}", said(&run));
    let help = output(&world, &homing, &["--help"], path);
    let text = said(&help);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?}: {text}"));
    let order =
        ["\n Run\n", "\n  run ", "\n Jobs\n", "\n  sub ", "\n Hosts\n", "\n Administer\n", "\n  check ", "\n Try\n"];
    assert!(order.map(at).is_sorted(), "{text}");
}

#[test]
fn the_far_side_has_roles_and_no_commands() {
    let world = World::new();
    let host = Path::new(env!("CARGO_BIN_EXE_homing-host"));
    let path = Path::new("/usr/bin:/bin");
    let command = output(&world, host, &["run", "true"], path);
    assert_eq!(command.status.code(), Some(255), "{}", said(&command));
    assert!(said(&command).contains("is not a role"), "{}", said(&command));
    // A worker whose input ends at once sends its hello and ends.
    let worker = Command::new(host).arg("worker").stdin(Stdio::null()).output().unwrap();
    assert!(worker.stdout.starts_with(b"homing-wire"), "{}", said(&worker));
}

/// The process and its port end with the channel, also while nobody has connected.
#[test]
fn an_end_of_a_measurement_listens_while_its_channel_is_open() {
    let [own, other] = [1, 2].map(|host| IpAddr::from([127, 61, 0, host]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing-host"));
    let mut end = command.arg(WORD).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert!(TcpStream::connect((own, PORT)).is_err(), "it listens before it has its order");
    let pairs = vec![PairEnd { own, other, port: PORT, connects: false }];
    let order = PairsOrder { token: "secret".into(), seconds: 600.0, brief: true, sizes: Vec::new(), pairs };
    let line = serde_json::to_string(&EndOrder::Pairs(order)).unwrap();
    writeln!(end.stdin.as_ref().unwrap(), "{line}").unwrap();
    let mut stranger = loop {
        match TcpStream::connect((own, PORT)) {
            Ok(stranger) => break stranger,
            Err(_) => assert_eq!(end.try_wait().unwrap(), None, "it ended without listening"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let _ = stranger.write_all(b"secret");
    assert!(!stranger.read(&mut [0]).is_ok_and(|bytes| bytes > 0), "a stranger gets no byte");
    drop(end.stdin.take());
    assert_eq!(end.wait().unwrap().code(), Some(1));
    assert!(TcpStream::connect((own, PORT)).is_err(), "the port is left open");
}
