//! The coordinator's decisions without a socket, a clock or a process.

use super::*;
use homing_batch::Halt;
use homing_launch::wire::{AttemptEnd, ToWorker};
use homing_model::{Command, FileChange, IoCounters, Mount, Outcome, Task};
use homing_os::clock::{Moment, Mono};

mod coming;
mod ends;
mod fences;
mod held_back;
mod losses;
mod moving;
mod own_files;
mod power;
mod room;
mod scenarios;
mod servers;
mod storage;
mod turns;
mod way;

/// Microseconds.
const S: u64 = 1_000_000;

fn at(us: u64) -> Moment {
    Moment { mono: Mono::from_us(us), wall_ns: us as i64 * 1000 }
}

fn policy() -> Policy {
    Policy {
        tries: None,
        halt: Halt::Never,
        delay_us: 0,
        memfree: 0,
        load: None,
        timeout_ms: None,
        output_limit: None,
        timeout_of_median: None,
        locality: true,
        prefetch: false,
        resources: Resources::default(),
        needs: Vec::new(),
        power: vec![],
        links: Default::default(),
        io: Io::Off,
        learnt: HashMap::new(),
        movers: vec![],
        shared: false,
        licensed: vec![],
    }
}

fn io(io: Io) -> Policy {
    Policy { io, ..policy() }
}

fn core(policy: Policy, hosts: &[(&str, u32)]) -> Core {
    let mut core = Core::new(policy, Counts::default());
    for (name, slots) in hosts {
        let facts = HostFacts { hostname: (*name).into(), memory_bytes: 8 << 30, ..HostFacts::default() };
        core.host_up(name, *slots, facts);
    }
    core.take_actions();
    core
}

fn task(id: TaskId) -> Task {
    Task {
        id,
        command: Command::Shell(format!("task {id}").as_str().into()),
        cwd: None,
        env: vec![],
        args: vec![],
        inputs: vec![],
        outputs: vec![],
        cpus: 1,
        memory: None,
        timeout_ms: None,
        stdin: Vec::new(),
        folders: Vec::new(),
        name: None,
        after: vec![],
        resources: vec![],
    }
}

fn offer(id: TaskId, holders: &[&str]) -> Offer {
    Offer {
        task: task(id),
        total: if holders.is_empty() { 0 } else { 100 << 20 },
        per_host: holders.iter().map(|h| (h.to_string(), 100 << 20)).collect(),
        served: vec![],
        own: None,
        volumes: vec![],
        requires: vec![],
        located: !holders.is_empty(),
        read_before: false,
        guessed: false,
        reads: vec![],
        recent: vec![],
    }
}

/// Returns the starts since the last call, as (task, host, ticket).
fn starts(core: &mut Core) -> Vec<(TaskId, HostIx, u64)> {
    let run = |action: &Action| match action {
        Action::Send(host, ToWorker::Run { ticket, task, .. }) => Some((task.id, *host, *ticket)),
        _ => None,
    };
    core.take_actions().iter().filter_map(run).collect()
}

fn assign(core: &mut Core, now_us: u64) -> Vec<(TaskId, HostIx, u64)> {
    core.assign(at(now_us).mono);
    starts(core)
}

fn ended(ticket: u64, outcome: Outcome) -> AttemptEnd {
    AttemptEnd {
        ticket,
        outcome,
        wall_us: 1_000_000,
        io: IoCounters::default(),
        io_wait: None,
        stdout: vec![],
        stderr: vec![],
        set_aside: vec![],
        wrote: vec![],
    }
}

/// Returns the notes to the user since the last call.
fn notes(core: &mut Core) -> Vec<String> {
    let note = |action| if let Action::Note(text) = action { Some(text) } else { None };
    core.take_actions().into_iter().filter_map(note).collect()
}

/// Returns the last records among the actions, as (task, outcome).
fn verdicts(actions: Vec<Action>) -> Vec<(TaskId, Outcome)> {
    let last = |action: Action| match action {
        Action::Ended { record } if record.last => Some((record.task.id, record.outcome)),
        _ => None,
    };
    actions.into_iter().filter_map(last).collect()
}

#[test]
fn inputs_that_count_as_read_before_are_no_lack_of_inputs() {
    let mut core = core(policy(), &[("n1", 4)]);
    core.offer(Offer { located: true, read_before: true, ..offer(1, &[]) });
    core.offer(offer(2, &[]));
    core.assign(at(0).mono);
    let why = |action: Action| match action {
        Action::Journal(EventKind::TaskStarted { why, .. }) => Some(why),
        _ => None,
    };
    let why: Vec<Option<String>> = core.take_actions().into_iter().filter_map(why).collect();
    assert_eq!(why, [Some("its inputs count as read there before".to_string()), None]);
}

#[test]
fn what_is_sent_was_journalled_before() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.assign(at(0).mono);
    let actions = core.take_actions();
    let journalled = actions.iter().position(|a| matches!(a, Action::Journal(EventKind::TaskStarted { .. })));
    let sent = actions.iter().position(|a| matches!(a, Action::Send(_, ToWorker::Run { .. })));
    assert!(journalled.unwrap() < sent.unwrap());
}

#[test]
fn a_host_without_the_volume_is_not_used_for_it_and_that_is_said_once() {
    let mut core = core(policy(), &[("n1", 4)]);
    let mount = Mount { point: "/data".into(), fstype: "fuse.glusterfs".into(), source: "n1:/data".into() };
    let sees = HostFacts { hostname: "n2".into(), mounts: vec![mount.clone()], ..HostFacts::default() };
    core.host_up("n2", 1, sees);
    let volume = core.volume(mount);
    for id in 1..=3 {
        core.offer(Offer { volumes: vec![volume], ..offer(id, &["n1"]) });
    }
    core.assign(at(0).mono);
    let actions = core.take_actions();
    let notes = actions.iter().filter(|a| matches!(a, Action::Note(text) if text.contains("not mounted"))).count();
    assert_eq!(notes, 1);
    let hosts = actions.iter().filter_map(|a| match a {
        Action::Send(host, ToWorker::Run { .. }) => Some(*host),
        _ => None,
    });
    assert_eq!(hosts.collect::<Vec<_>>(), [1], "only where it is mounted, however busy that is");
}

#[test]
fn a_task_whose_file_a_host_does_not_see_moves_on_and_fails_when_none_does() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &[]));
    let (_, first, ticket) = assign(&mut core, 0)[0];
    core.unfit(first, ticket, &"input".into(), at(S));
    core.take_actions();
    let (_, second, ticket) = assign(&mut core, S)[0];
    assert_ne!(first, second);
    core.unfit(second, ticket, &"input".into(), at(S));
    core.assign(at(S).mono);
    let verdicts = verdicts(core.take_actions());
    assert!(matches!(&verdicts[..], [(1, Outcome::CannotStart(_))]), "{verdicts:?}");
}

#[test]
fn starts_keep_their_distance() {
    let mut core = core(Policy { delay_us: 500_000, ..policy() }, &[("n1", 4)]);
    (1..=4).for_each(|id| core.offer(offer(id, &[])));
    let counts: Vec<usize> = [0, S / 4, S / 2, S].map(|at| assign(&mut core, at).len()).to_vec();
    assert_eq!(counts, [1, 0, 1, 1]);
}

#[test]
fn declared_memory_is_not_given_out_twice() {
    let mut core = core(policy(), &[("n1", 4)]);
    let heavy = |id, memory| {
        let mut offer = offer(id, &[]);
        offer.task.memory = Some(memory);
        offer
    };
    (1..=3).for_each(|id| core.offer(heavy(id, 3 << 30)));
    let begun = assign(&mut core, 0);
    assert_eq!(begun.len(), 2, "two times 3 GiB fit into 8");
    assert!(assign(&mut core, S).is_empty());
    core.ended(0, ended(begun[0].2, Outcome::Exit(0)), at(S));
    assert_eq!(assign(&mut core, S).len(), 1);
    // A task that fits on no host is reported, and does not wait.
    let mut core = self::core(policy(), &[("n1", 4)]);
    core.offer(heavy(9, 9 << 30));
    core.assign(at(0).mono);
    let text =
        "it needs 9.7 GB ('memory'), but no host of this run has more than 8.6 GB; lower 'memory' or add a larger host";
    assert_eq!(verdicts(core.take_actions()), [(9, Outcome::CannotStart(text.into()))]);
    // Rounded, both amounts would be the same.
    core.offer(heavy(10, (8 << 30) + 1));
    core.assign(at(0).mono);
    let verdicts = verdicts(core.take_actions());
    let exact = "8589934593 bytes ('memory'), but no host of this run has more than 8589934592 bytes";
    assert!(matches!(&verdicts[..], [(10, Outcome::CannotStart(why))] if why.contains(exact)), "{verdicts:?}");
}

fn change(path: &str, mtime_ns: i64) -> FileChange {
    let now = Some(homing_model::FileStamp { size: 1, ino: 1, mtime_ns, dir: false });
    FileChange { path: path.into(), now, fresh: false, was: None }
}

#[test]
fn an_attempt_that_did_not_start_leaves_nothing_behind_in_the_placer() {
    let mut core = core(policy(), &[("n1", 4), ("n2", 4)]);
    let wide = |id: TaskId| Offer { task: Task { cpus: 2, ..task(id) }, ..offer(id, &["n1"]) };
    core.offer(wide(1));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.late(host, ticket, &change("/vol/a", 1), "it is not seen", true, at(0));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.ended(host, ended(ticket, Outcome::Exit(0)), at(S));
    (2..=4).for_each(|id| core.offer(wide(id)));
    let hosts: Vec<HostIx> = assign(&mut core, 1000 * S).iter().map(|(_, host, _)| *host).collect();
    assert_eq!(hosts, [0; 2], "the third waits a second for its home rather than four for the network");
}

#[test]
fn a_task_that_no_host_can_run_is_journalled_and_counted_before_it_is_told() {
    let mut core = core(policy(), &[("n1", 4)]);
    core.offer(Offer { task: Task { memory: Some(64 << 30), ..task(1) }, ..offer(1, &[]) });
    core.source_ended();
    core.assign(at(S).mono);
    let actions = core.take_actions();
    let journalled = actions.iter().position(|a| matches!(a, Action::Journal(EventKind::TaskEnded { last: true, .. })));
    let told = actions.iter().position(|a| matches!(a, Action::Ended { .. }));
    assert!(journalled.is_some() && journalled < told, "{actions:?}");
    let (exit, ending) = core.finish();
    assert!(
        exit == 1 && matches!(ending, EventKind::RunEnded { counts, .. } if counts["failed"] == 1 && counts.len() == 1)
    );
}
