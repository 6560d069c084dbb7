//! Workers behind leaders, all on this machine: a fake ssh gives each "host" a home of its own.

#[path = "../../../../tests/script.rs"]
mod script;
#[path = "../../../../tests/until.rs"]
mod until;

use homing_launch::wire::{FromWorker, ToWorker};
use homing_launch::{BranchMember, ChannelChild, HostEvent, HostPlan, Options, Via, attend_all};
use script::script;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use until::until;

/// A fake ssh. It records its pid under the names of source and target, and fails if that way is cut. It runs the
/// remote command in the target's folder.
const SSH: &str = r#"at=${0%/*}; for c in "$@"; do target=$to; to=$c; done
way=${FROM-here}-$target
[ -e $at/cut-$way ] && { echo "ssh: connect to host $target port 22: No route to host" >&2; exit 255; }
[ -e $at/liar ] && case $c in *r=lead\;*) c=". $at/liar"; esac
mkdir -p $at/$target; cd $at/$target
echo $$ > $at/pid.$way.new; mv $at/pid.$way.new $at/pid-$way
unset XDG_CACHE_HOME; export HOME=$at/$target TMPDIR=$at/$target FROM=$target HOMING_SSH=$0
exec sh -c "$c""#;

/// Longest wait; only a faulty program reaches it.
const HANGS: Duration = Duration::from_secs(120);

struct World(tempfile::TempDir);

struct Heads {
    heard: Receiver<(usize, HostEvent)>,
    notes: Receiver<String>,
    up: BTreeMap<usize, (Sender<Vec<u8>>, ChannelChild)>,
    answered: BTreeMap<usize, &'static str>,
    whys: BTreeMap<usize, String>,
    asked: bool,
}

impl World {
    fn new() -> World {
        let world = World(tempfile::tempdir().unwrap());
        script(&world.path("ssh"), SSH);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cut(&self, from: &str, to: &str) {
        fs::write(self.path(&format!("cut-{from}-{to}")), "").unwrap();
    }

    /// Connects to hosts with these numbers, until each has answered.
    fn attend(&self, hosts: std::ops::RangeInclusive<usize>, width: usize) -> Heads {
        let options = Options {
            exe: env!("CARGO_BIN_EXE_homing-worker").into(),
            ssh: vec![self.path("ssh").into()],
            // The shortest patience for leaders that send nothing.
            connect_timeout_s: if self.path("liar").exists() { 0 } else { 10 },
            ..Options::default()
        };
        let ((tell, heard), (tell_note, notes)) = (channel(), channel());
        let count = hosts.clone().count();
        let members = hosts.map(|n| {
            let (name, tell) = (format!("n{n}"), tell.clone());
            let plan = HostPlan { via: Via::Ssh { target: name.clone() }, name, slots: None };
            BranchMember { plan, on_event: Arc::new(move |heard| tell.send((n, heard)).is_ok()) }
        });
        attend_all(members, width, &options, move |note| drop(tell_note.send(note))).unwrap();
        let (up, answered, whys) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut heads = Heads { heard, notes, up, answered, whys, asked: false };
        while heads.answered.len() < count {
            heads.next();
        }
        heads
    }

    /// Returns the connections that were made, as `SOURCE-TARGET`.
    fn ways(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut ways: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("pid-")?.to_string())).collect();
        ways.sort();
        ways
    }

    fn pid(&self, way: &str) -> i32 {
        fs::read_to_string(self.path(&format!("pid-{way}"))).unwrap().trim().parse().unwrap()
    }

    /// Returns the guarded process of that connection.
    fn leader(&self, way: &str) -> i32 {
        children(self.pid(way))[0]
    }

    /// Waits until the processes of these connections have ended.
    fn until_ended(&self, ways: &[&str]) {
        for way in ways {
            let pid = self.pid(way);
            until(&format!("{way} ends"), || !Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}

fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

impl Heads {
    fn next(&mut self) -> (usize, &'static str) {
        let (n, heard) = self.heard.recv_timeout(HANGS).expect("something is heard");
        let what = match heard {
            HostEvent::Up { to, keeper, .. } => {
                self.up.insert(n, (to, keeper));
                "up"
            }
            HostEvent::Refused(error) => self.why(n, error.to_string(), "refused"),
            HostEvent::Astray { reason } => self.why(n, reason, "astray"),
            HostEvent::Cut { reason } => self.why(n, reason, "cut"),
            HostEvent::Gone { reason, .. } => self.why(n, reason, "gone"),
            HostEvent::From(messages) if messages.contains(&FromWorker::Bye) => "bye",
            // The launch itself also pings a slow worker.
            HostEvent::From(messages) if self.asked && messages.contains(&FromWorker::Pong) => "pong",
            HostEvent::From(_) => "word",
        };
        if what != "word" {
            self.answered.insert(n, what);
        }
        (n, what)
    }

    fn why(&mut self, n: usize, why: String, what: &'static str) -> &'static str {
        self.whys.insert(n, why);
        what
    }

    /// Waits until this is the last event of all these hosts.
    fn until(&mut self, hosts: impl IntoIterator<Item = usize> + Clone, what: &str) {
        let deadline = Instant::now() + HANGS;
        while !hosts.clone().into_iter().all(|n| self.answered.get(&n) == Some(&what)) {
            assert!(Instant::now() < deadline, "never {what}: {:?} {:?}", self.answered, self.whys);
            self.next();
        }
    }

    fn say(&mut self, n: usize, message: &ToWorker) {
        self.asked |= matches!(message, ToWorker::Ping);
        let mut frame = Vec::new();
        homing_launch::wire::encode(message, &mut frame).unwrap();
        self.up[&n].0.send(frame).unwrap();
    }

    fn answered(&self) -> Vec<&'static str> {
        self.answered.values().copied().collect()
    }
}

#[test]
fn workers_of_a_branch_come_over_one_channel_and_end_one_by_one() {
    let world = World::new();
    let mut heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered(), ["up"; 8], "{:?}", heads.whys);
    assert_eq!(world.ways(), ["here-n1", "here-n5", "n1-n2", "n1-n3", "n1-n4", "n5-n6", "n5-n7", "n5-n8"]);
    // The worker of the leader's own host is no child of the coordinator: it has a lease.
    let words = |pid: i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let led: Vec<String> = children(world.leader("here-n1")).into_iter().map(words).collect();
    assert!(led.len() == 4 && led.iter().all(|words| words.ends_with("\0worker\0")), "{led:?}");
    (1..=8).for_each(|n| heads.say(n, &ToWorker::Ping));
    heads.until(1..=8, "pong");
    for n in 1..=8 {
        heads.say(n, &ToWorker::Finish);
        heads.until([n], "bye");
        let (to, keeper) = heads.up.remove(&n).unwrap();
        drop(to);
        heads.until([n], "gone");
        keeper.end(Duration::from_secs(60));
        // The last keeper of a branch waits for its leader.
        let leader = world.pid(if n < 5 { "here-n1" } else { "here-n5" });
        assert_eq!(Path::new(&format!("/proc/{leader}")).exists(), n != 4 && n != 8, "n{n}");
    }
    assert!(heads.notes.try_recv().is_err());
}

#[test]
fn a_leader_that_is_killed_takes_its_branch_alone_with_it() {
    let world = World::new();
    let mut heads = world.attend(1..=8, 2);
    let leader = rustix::process::Pid::from_raw(world.leader("here-n1")).unwrap();
    rustix::process::kill_process(leader, rustix::process::Signal::KILL).unwrap();
    heads.until(1..=4, "astray");
    let why = "n1 no longer leads its branch: its connection has ended (homing: the leader was killed by signal 9; \
        its links are ended)";
    assert!((1..=4).all(|n| heads.whys[&n] == why), "{:?}", heads.whys);
    let note = format!("connected directly, not through the tree: n[1-4] (4): {why}");
    assert_eq!(heads.notes.recv().unwrap(), note);
    world.until_ended(&["here-n1", "n1-n2", "n1-n3", "n1-n4"]);
    (5..=8).for_each(|n| heads.say(n, &ToWorker::Ping));
    heads.until(5..=8, "pong");
    assert!(heads.notes.try_recv().is_err(), "one note for a leader");
}

#[test]
fn a_leader_ends_with_its_guard_and_with_whoever_asked_for_it() {
    let world = World::new();
    let mut heads = world.attend(1..=8, 2);
    let guard = rustix::process::Pid::from_raw(world.pid("here-n1")).unwrap();
    rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    heads.until(1..=4, "astray");
    world.until_ended(&["here-n1", "n1-n2", "n1-n3", "n1-n4"]);
    // As when the coordinator dies: no messages come any more.
    drop(std::mem::take(&mut heads.up));
    world.until_ended(&["here-n5", "n5-n6", "n5-n7", "n5-n8"]);
}

#[test]
fn a_host_that_its_leader_does_not_reach_is_left_to_another_way() {
    let world = World::new();
    world.cut("n1", "n3");
    world.cut("n1", "n4");
    let heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered(), ["up", "up", "astray", "astray", "up", "up", "up", "up"]);
    let note = heads.notes.recv().unwrap();
    let begin = "connected directly, not through the tree: n[3-4] (2): host n[3-4] cannot be reached: ssh: ";
    assert!(note.starts_with(begin), "{note}");
    assert!(heads.notes.try_recv().is_err(), "one note for a leader");
}

#[test]
fn another_leads_where_the_first_cannot_be_used() {
    let world = World::new();
    world.cut("here", "n1");
    let heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered()[..4], ["refused", "up", "up", "up"]);
    assert_eq!(world.ways()[..3], ["here-n2", "here-n5", "n2-n3"]);
    assert!(heads.notes.try_recv().is_err());
    drop(heads);
    let world = World::new();
    ["n1", "n2", "n3"].iter().for_each(|host| world.cut("here", host));
    let heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered()[..4], ["refused", "refused", "refused", "astray"]);
    assert!(heads.notes.recv().unwrap().contains("through the tree: n4: host n[1-3] cannot be reached"));
}

/// Makes all leaders send a hello, then this text, and nothing more.
fn lies(world: &World, said: &str) {
    let facts = r#"{"hostname":"far","aliases":[],"cores":1,"memory_bytes":1,"arch":"x","boot_id":"b","mounts":[],"nic_bytes_per_s":null,"now_ns":0}"#;
    let hello = format!("homing-wire {} {} {facts}", homing_launch::wire::VERSION, homing_launch::wire::release());
    fs::write(world.path("liar"), format!("echo '{hello}'; printf '{said}'; cat > /dev/null\n")).unwrap();
}

#[test]
fn a_leader_that_tells_of_others_is_not_believed() {
    let world = World::new();
    // The message that member 9 cannot be reached.
    lies(&world, r"\003\000\000\000\001\011\000");
    let heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered(), ["astray"; 8]);
    let why = "n1 no longer leads its branch: it reports a host that is not in its branch";
    assert!((1..=4).all(|n| heads.whys[&n] == why), "{:?}", heads.whys);
    world.until_ended(&["here-n1", "here-n5"]);
}

#[test]
fn members_of_a_leader_that_says_hello_and_nothing_more_are_left_to_another_way() {
    let world = World::new();
    lies(&world, "");
    let heads = world.attend(1..=8, 2);
    assert_eq!(heads.answered(), ["astray"; 8]);
    assert!(
        (1..=4).all(|n| heads.whys[&n] == "n1 no longer leads its branch: it has sent nothing for 20 s"),
        "{:?}",
        heads.whys
    );
    world.until_ended(&["here-n1", "here-n5"]);
}
