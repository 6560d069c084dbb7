//! Real OpenSSH on both ends, without a port. Hosts h1, h2, ... are one machine.

#[path = "../../../../tests/skipped.rs"]
mod skipped;
#[path = "../../../../tests/sshd.rs"]
mod sshd;
#[path = "../../../../tests/until.rs"]
mod until;

use homing_exec::{Command, CommandInput, CommandOutcome, HostResult, InputSpool, Options, Remote};
use sshd::Sshd;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use until::until;

struct Server(Sshd);

impl Server {
    fn new() -> Option<Server> {
        Sshd::new().map(Server)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Returns options with the test's keys and without the user's own configuration. Host "dead" is a port without a
    /// listener, "mute" one that never sends anything.
    fn options(&self, identity: &str) -> Options {
        let hosts = format!(
            "Match originalhost dead\n  Hostname 127.0.0.1\n  Port 1\n\
             Match originalhost mute\n  ProxyCommand sleep 600\n\
             Match originalhost h*\n  ProxyCommand {}",
            self.0.proxy()
        );
        let file = self.0.client(identity, &hosts);
        let words = ["ssh".into(), OsString::from("-F"), file.into()];
        Options {
            ssh: words.into(),
            // No process of the test outlives it.
            persist: Duration::ZERO,
            folder: Some(self.path("s")),
            ..Options::default()
        }
    }
}

fn sorted(results: impl Iterator<Item = HostResult>) -> Vec<HostResult> {
    let mut all: Vec<_> = results.collect();
    all.sort_by(|a, b| a.host.cmp(&b.host));
    all
}

#[test]
fn one_connection_serves_many_commands() {
    let Some(server) = Server::new() else { return };
    let remote = Remote::new(server.options("user"));
    let hosts = ["h1", "h2", "localhost"];
    let connection = || {
        let shown = remote.run(&["h1"], &Command::shell("echo $PPID")).next().unwrap();
        (shown.outcome, shown.stdout)
    };
    for _ in 0..2 {
        let all = sorted(remote.run(&hosts, &Command::argv(["printf", "%s", "a  $b"])));
        let told: Vec<_> = all.iter().map(|r| (r.host.as_str(), &r.outcome, r.stdout.as_slice())).collect();
        let ok = &CommandOutcome::Exited(0);
        let same = &b"a  $b"[..];
        assert_eq!(told, [("h1", ok, same), ("h2", ok, same), ("localhost", ok, same)]);
    }
    assert_eq!(connection(), connection(), "the same sshd");
    // The sockets end with their last owner.
    let sockets = || fs::read_dir(server.path("s")).unwrap().filter(|e| is_socket(e.as_ref().unwrap())).count();
    assert_eq!(sockets(), 2);
    drop(remote);
    // A master answers that it will end before it removes its socket.
    until("the sockets are gone", || sockets() == 0);
}

fn is_socket(entry: &fs::DirEntry) -> bool {
    use std::os::unix::fs::FileTypeExt;
    entry.file_type().unwrap().is_socket()
}

#[test]
fn statuses_are_told_apart() {
    let Some(server) = Server::new() else { return };
    let remote = Remote::new(Options { connect_timeout: Duration::from_secs(1), ..server.options("user") });
    let status = |host: &str, line: &str| remote.run(&[host], &Command::shell(line)).next().unwrap().outcome;
    for host in ["h1", "localhost"] {
        assert_eq!(status(host, "exit 3"), CommandOutcome::Exited(3));
        // The status of ssh for a failed connection is an ordinary one here.
        assert_eq!(status(host, "exit 255"), CommandOutcome::Exited(255));
    }
    assert_eq!(status("h1", "kill -9 $$"), CommandOutcome::Killed);
    assert_eq!(status("localhost", "kill -9 $$"), CommandOutcome::Exited(137));
    for host in ["dead", "-oProxyCommand=true"] {
        assert!(matches!(status(host, "true"), CommandOutcome::Unreachable(_)), "{host}");
    }
    // The failure must not wait for the ten minutes for which the host is mute.
    let asked = Instant::now();
    assert!(matches!(status("mute", "true"), CommandOutcome::Unreachable(_)));
    assert!(asked.elapsed() < Duration::from_secs(300), "it waited for a host that says nothing");
    // The far end of the connection ends under a command.
    let lost = status("h1", "kill -9 $PPID; sleep 5");
    assert!(matches!(lost, CommandOutcome::Lost(_)), "{lost:?}");
    assert_eq!(status("h1", "true"), CommandOutcome::Exited(0), "and the next command has a new connection");
    let stranger = Remote::new(server.options("stranger"));
    let refused = stranger.run(&["h1"], &Command::shell("true")).next().unwrap().outcome;
    assert!(matches!(&refused, CommandOutcome::Unreachable(why) if why.contains("refuses the login")), "{refused:?}");
}

#[test]
fn what_takes_too_long_is_killed_there() {
    let Some(server) = Server::new() else { return };
    let limit = Some(Duration::from_millis(300));
    let remote = Remote::new(Options { command_timeout: limit, ..server.options("user") });
    for host in ["h1", "localhost"] {
        let mark = server.path(&format!("mark-{host}"));
        let line = format!("sleep 2; touch {}", mark.display());
        let result = remote.run(&[host], &Command::shell(line)).next().unwrap();
        assert_eq!(result.outcome, CommandOutcome::TimedOut, "{host}");
        std::thread::sleep(Duration::from_secs(2));
        assert!(!mark.exists(), "{host}: it went on");
    }
}

#[test]
fn one_input_for_all_and_output_within_bounds() {
    let Some(server) = Server::new() else { return };
    let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    // Fewer at a time than hosts: the input must still be there for the last.
    let remote = Remote::new(Options { fan_out: 2, keep: text.len(), ..server.options("user") });
    let hosts = ["h1", "h2", "h3", "localhost"];
    let input = CommandInput::Spool(InputSpool::of(&text).unwrap());
    let all = sorted(remote.run(&hosts, &Command::shell("cat; cat /dev/zero | head -c 1000000 >&2").input(input)));
    for result in &all {
        assert!(result.outcome.is_ok() && result.stdout == text, "{}", result.host);
        assert_eq!((result.stderr.len(), result.dropped), (text.len(), 1_000_000 - text.len() as u64));
    }
    assert_eq!(all.len(), hosts.len());
    // A command that does not read its input does no harm.
    let input = CommandInput::Spool(InputSpool::of(&text).unwrap());
    let all: Vec<_> = remote.run(&hosts, &Command::shell("exit 0").input(input)).collect();
    assert!(all.len() == 4 && all.iter().all(|r| r.outcome.is_ok()));
}

#[test]
fn a_host_that_hangs_holds_nobody_and_ends_with_the_caller() {
    let Some(server) = Server::new() else { return };
    let remote = Remote::new(server.options("user"));
    let begun = Instant::now();
    // The mute host would be silent for ten minutes.
    let mut results = remote.run(&["mute", "h1", "localhost"], &Command::shell("echo here"));
    let first: Vec<_> = results.by_ref().take(2).map(|r| r.host).collect();
    assert!(!first.contains(&"mute".to_string()));
    drop(results);
    assert!(begun.elapsed() < Duration::from_secs(300), "nobody waited for the mute host");
}
