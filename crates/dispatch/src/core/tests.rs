//! The coordinator's decisions without a socket, a clock or a process.

use super::*;
use homing_batch::Halt;
use homing_clock::{Moment, Mono};
use homing_launch::MOST_LOSSES;
use homing_model::{Change, Command, IoCounters, Mount, Outcome, Task};
use homing_wire::{Ended, Stream, ToWorker};

mod held_back;
mod moving;
mod power;
mod room;
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
        volumes: vec![],
        requires: vec![],
        located: !holders.is_empty(),
        guessed: false,
        reads: vec![],
        recent: vec![],
    }
}

/// Starts since the last call, as (task, host, ticket).
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

fn ended(ticket: u64, outcome: Outcome) -> Ended {
    Ended {
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

/// Last records among the actions, as (task, outcome).
fn verdicts(actions: Vec<Action>) -> Vec<(TaskId, Outcome)> {
    let last = |action: Action| match action {
        Action::Ended { record } if record.last => Some((record.task.id, record.outcome)),
        _ => None,
    };
    actions.into_iter().filter_map(last).collect()
}

#[test]
fn what_is_sent_was_journalled_before() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.assign(at(0).mono);
    let actions = core.take_actions();
    let journalled = actions.iter().position(|a| matches!(a, Action::Journal(What::TaskStarted { .. })));
    let sent = actions.iter().position(|a| matches!(a, Action::Send(_, ToWorker::Run { .. })));
    assert!(journalled.unwrap() < sent.unwrap());
}

#[test]
fn who_prints_too_much_is_ended_and_not_tried_again() {
    let mut core = core(Policy { output_limit: Some(100), tries: Some(3), ..policy() }, &[("n1", 3)]);
    (1..=3).for_each(|id| core.offer(offer(id, &[])));
    let tickets: Vec<u64> = assign(&mut core, 0).iter().map(|(_, _, ticket)| *ticket).collect();
    let ended_now = |core: &mut Core| -> Vec<u64> {
        let kill = |action: &Action| match action {
            Action::Send(0, ToWorker::Kill { ticket, timed_out: false, .. }) => Some(*ticket),
            _ => None,
        };
        core.take_actions().iter().filter_map(kill).collect()
    };
    core.printed(tickets[0], Stream::Out, &[0; 60]);
    core.printed(tickets[1], Stream::Out, &[0; 70]);
    assert!(ended_now(&mut core).is_empty());
    core.printed(tickets[0], Stream::Err, &[0; 41]);
    core.printed(tickets[0], Stream::Err, &[0; 1]);
    assert_eq!(ended_now(&mut core), [tickets[0]], "above the limit, and once");
    assert_eq!(core.end_largest_output(), Some(tickets[1]), "the most of those that still run");
    assert_eq!(ended_now(&mut core), [tickets[1]]);
    core.ended(0, ended(tickets[0], Outcome::Killed), at(S));
    // It was through before the signal came; what it printed was cut all the same.
    core.ended(0, ended(tickets[1], Outcome::Exit(0)), at(S));
    // Its output came with its end.
    core.ended(0, Ended { stdout: vec![b'x'; 101], ..ended(tickets[2], Outcome::Exit(0)) }, at(S));
    let all = (1..=3).map(|id| (id, Outcome::OutputLimit)).collect::<Vec<_>>();
    assert_eq!(verdicts(core.take_actions()), all);
}

#[test]
fn tasks_of_a_lost_host_run_on_the_host_of_the_other_copy_and_count_once() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1), ("n3", 1)]);
    core.offer(offer(1, &["n2", "n3"]));
    let (_, first, ticket) = assign(&mut core, 0)[0];
    assert!(first == 1 || first == 2, "a holder");
    core.host_lost(first, "cut", false, at(S));
    assert!(verdicts(core.take_actions()).is_empty(), "a lost attempt is no outcome");
    let again = assign(&mut core, S);
    assert_eq!((again.len(), again[0].1), (1, 3 - first), "the other holder");
    // What the host that was given up still says changes nothing.
    assert!(!core.ended(first, ended(ticket, Outcome::Exit(0)), at(2 * S)));
    assert!(core.ended(again[0].1, ended(again[0].2, Outcome::Exit(0)), at(2 * S)));
    assert!(!core.ended(again[0].1, ended(again[0].2, Outcome::Exit(0)), at(2 * S)), "an outcome is told once");
    assert_eq!(verdicts(core.take_actions()), [(1, Outcome::Exit(0))]);
    core.source_ended();
    assert!(core.is_over());
}

#[test]
fn a_task_that_takes_its_hosts_down_is_given_up_before_it_has_taken_all() {
    let hosts: Vec<String> = (1..=5).map(|n| format!("n{n}")).collect();
    let hosts: Vec<(&str, u32)> = hosts.iter().map(|h| (h.as_str(), 1)).collect();
    let mut core = core(policy(), &hosts);
    core.offer(offer(1, &[]));
    for loss in 1..=MOST_LOSSES {
        let (_, host, _) = assign(&mut core, S)[0];
        core.host_lost(host, "down", false, at(S));
        let verdicts = verdicts(core.take_actions());
        assert_eq!(verdicts.len(), usize::from(loss == MOST_LOSSES), "loss {loss}");
    }
    assert!(assign(&mut core, S).is_empty());
}

#[test]
fn a_failed_task_is_tried_again_elsewhere_as_often_as_retries_say() {
    let mut core = core(Policy { tries: Some(2), ..policy() }, &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    assert_eq!(host, 0);
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert!(verdicts(core.take_actions()).is_empty());
    let (_, host, ticket) = assign(&mut core, S)[0];
    assert_eq!(host, 1, "not where it failed");
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert_eq!(verdicts(core.take_actions()), [(1, Outcome::Exit(7))]);
    assert!(assign(&mut core, S).is_empty());
}

#[test]
fn the_first_interrupt_drains_and_the_second_kills() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.offer(offer(2, &[]));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(2, false);
    assert!(!core.is_over(), "it waits for what runs");
    let kills = |core: &mut Core| {
        core.take_actions().iter().filter(|a| matches!(a, Action::Send(_, ToWorker::Kill { .. }))).count()
    };
    assert_eq!(kills(&mut core), 0);
    core.interrupt(2, true);
    core.interrupt(2, true);
    assert_eq!(kills(&mut core), 1, "each once");
    core.ended(host, ended(ticket, Outcome::Killed), at(S));
    assert!(assign(&mut core, S).is_empty() && core.is_over());
    core.source_ended();
    assert_eq!(core.finish().0, 130);
}

#[test]
fn a_failure_after_an_interrupt_is_not_the_last_word_while_retries_are_left() {
    let mut core = core(Policy { tries: Some(2), ..policy() }, &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.source_ended();
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(2, false);
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert_eq!(verdicts(core.take_actions()), [], "`homing resume` tries it again");
    assert!(assign(&mut core, S).is_empty() && core.is_over());
    assert_eq!(core.finish().0, 130);
}

#[test]
fn a_signal_that_kills_does_not_say_that_it_waits() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    assign(&mut core, 0);
    core.interrupt(15, true);
    let notes: Vec<String> = core.take_actions().into_iter().filter_map(note).collect();
    assert_eq!(notes, ["no new tasks; ending 1 that run"]);
}

fn note(action: Action) -> Option<String> {
    match action {
        Action::Note(text) => Some(text),
        _ => None,
    }
}

#[test]
fn a_signal_before_any_host_is_up_is_why_nothing_was_done() {
    let mut core = core(policy(), &[]);
    core.offer(offer(1, &[]));
    core.interrupt(15, true);
    assert!(core.is_over());
    assert_eq!(core.finish().0, 143);
}

#[test]
fn a_signal_shows_in_the_exit_status_only_where_it_left_something_undone() {
    for (waits, status) in [(true, 143), (false, 0)] {
        let mut core = core(policy(), &[("n1", 1)]);
        (1..=1 + TaskId::from(waits)).for_each(|id| core.offer(offer(id, &[])));
        core.source_ended();
        let (_, host, ticket) = assign(&mut core, 0)[0];
        core.interrupt(15, false);
        core.ended(host, ended(ticket, Outcome::Exit(0)), at(S));
        assert!(core.is_over());
        assert_eq!(core.finish().0, status, "another waits: {waits}");
    }
}

#[test]
fn a_signal_is_told_of_a_run_whose_input_broke_off_too() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.source_broken(254);
    let (_, host, ticket) = assign(&mut core, 0)[0];
    core.interrupt(15, true);
    core.ended(host, ended(ticket, Outcome::Killed), at(S));
    assert_eq!(core.finish().0, 143);
}

#[test]
fn halt_now_kills_and_halt_soon_lets_run() {
    for (halt, killed) in [("now,fail=1", 1), ("soon,fail=1", 0)] {
        let mut core = core(Policy { halt: halt.parse().unwrap(), ..policy() }, &[("n1", 2)]);
        (1..=3).for_each(|id| core.offer(offer(id, &[])));
        let begun = assign(&mut core, 0);
        core.ended(0, ended(begun[0].2, Outcome::Exit(1)), at(S));
        let actions = core.take_actions();
        let kills = actions.iter().filter(|a| matches!(a, Action::Send(_, ToWorker::Kill { .. }))).count();
        assert_eq!(kills, killed, "{halt}");
        assert!(assign(&mut core, S).is_empty(), "{halt}: nothing new starts");
    }
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
    // What fits on no host at all is told, not waited for.
    let mut core = self::core(policy(), &[("n1", 4)]);
    core.offer(heavy(9, 9 << 30));
    core.assign(at(0).mono);
    assert!(matches!(&verdicts(core.take_actions())[..], [(9, Outcome::CannotStart(_))]));
}

#[test]
fn tasks_far_over_the_median_are_ended() {
    let mut core = core(Policy { timeout_of_median: Some(2.0), ..policy() }, &[("n1", 4)]);
    (1..=4).for_each(|id| core.offer(offer(id, &[])));
    let begun = assign(&mut core, 0);
    begun[..3].iter().for_each(|(_, host, ticket)| {
        core.ended(*host, ended(*ticket, Outcome::Exit(0)), at(S));
    });
    core.take_actions();
    core.tick(at(S * 19 / 10).mono);
    assert!(core.take_actions().is_empty(), "not before twice the median of 1 s");
    core.tick(at(S * 21 / 10).mono);
    let kill = |a: &Action| matches!(a, Action::Send(0, ToWorker::Kill { ticket, timed_out: true, .. }) if *ticket == begun[3].2);
    assert!(core.take_actions().iter().any(kill));
}

#[test]
fn a_run_whose_hosts_are_all_gone_ends_and_says_so() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.host_lost(0, "cut", false, at(S));
    assert!(core.is_stranded() && !core.is_over(), "a host that is still asked for may take it up");
    let (exit, ending) = core.finish();
    assert_eq!(exit, 254);
    assert!(matches!(ending, What::RunEnded { counts, .. } if counts["unfinished"] == 1));
}

#[test]
fn a_host_that_drains_ends_what_it_runs_and_gets_nothing_new() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    (1..=3).for_each(|id| core.offer(offer(id, &["n1"])));
    let begun = assign(&mut core, 0);
    let on_n1 = begun.iter().find(|(_, host, _)| *host == 0).expect("its own data").2;
    core.host_draining(0, "drained by its administrator");
    core.host_draining(0, "told once");
    let notes = core.take_actions().iter().filter(|a| matches!(a, Action::HostNote(0, _))).count();
    assert!(notes == 1 && !core.hosts().is_up(0) && !core.is_idle(0));
    core.ended(0, ended(on_n1, Outcome::Exit(0)), at(S));
    assert!(assign(&mut core, S).iter().all(|(_, host, _)| *host == 1) && core.is_idle(0));
    // It may also be lost while it drains: what it runs is not forgotten.
    let mut core = self::core(policy(), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    assign(&mut core, 0);
    core.host_draining(0, "maintenance");
    core.host_lost(0, "power", false, at(S));
    assert_eq!(assign(&mut core, 2 * S).len(), 1, "again, on the other");
}

#[test]
fn a_host_that_comes_back_is_where_its_data_lies() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    core.host_lost(0, "time limit", true, at(0));
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    let back = core.host_up("n1", 1, facts);
    core.offer(offer(1, &["n1"]));
    assert_eq!(assign(&mut core, S)[0].1, back);
}

#[test]
fn what_ran_behind_a_lost_leader_runs_again_when_its_lease_is_over() {
    let mut core = core(policy(), &[("n1", 1)]);
    (1..=2).for_each(|id| core.offer(offer(id, &["n1"])));
    let begun = assign(&mut core, 0)[0];
    core.host_replaced(0, "its leader is lost");
    core.host_replaced(0, "told once");
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    let back = core.host_up("n1", 2, facts);
    let actions = core.take_actions();
    let records: Vec<&What> =
        actions.iter().filter_map(|a| if let Action::Journal(what) = a { Some(what) } else { None }).collect();
    assert!(matches!(records[..], [What::HostLost { .. }, What::HostUp { .. }]), "the second is not taken for lost");
    assert!(
        !actions.iter().any(|a| matches!(a, Action::Note(_) | Action::HostNote(..))),
        "who lost the leader tells of it"
    );
    let other = assign(&mut core, S)[0];
    assert!(other.0 != begun.0 && other.1 == back, "a slot is free, and what ran is not run twice at once");
    core.host_lost(0, "its leader is lost", false, at(30 * S));
    let again = assign(&mut core, 30 * S);
    assert_eq!((again.len(), again[0].0, again[0].1), (1, begun.0, back));
    assert!(
        !core.take_actions().iter().any(|a| matches!(a, Action::Journal(What::HostLost { .. }) | Action::HostNote(..)))
    );
}

#[test]
fn tasks_wait_for_hosts_that_may_still_come() {
    let mut core = core(Policy { tries: Some(3), ..policy() }, &[("n1", 1), ("n2", 1)]);
    core.host_released(1);
    core.offer(Offer { task: Task { cpus: 4, ..task(1) }, ..offer(1, &[]) });
    core.expect_hosts(true);
    core.assign(at(0).mono);
    assert!(core.take_actions().iter().all(|a| !matches!(a, Action::Ended { .. })));
    core.expect_hosts(false);
    core.assign(at(0).mono);
    assert!(matches!(&verdicts(core.take_actions())[..], [(1, Outcome::CannotStart(_))]));
}

#[test]
fn a_loss_that_may_be_the_tasks_own_fault_counts_as_a_try() {
    for (counts, again) in [(true, 0), (false, 1)] {
        let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
        core.offer(offer(1, &[]));
        let begun = assign(&mut core, 0);
        core.host_lost(begun[0].1, "Slurm killed job 7: TIMEOUT", counts, at(S));
        assert_eq!(assign(&mut core, S).len(), again);
    }
}

#[test]
fn retries_decide_for_every_kind_of_loss() {
    // In vain at each try, whether the task may be to blame or not.
    let attempts = |tries: Option<u32>, counts: bool| {
        let mut core = core(Policy { tries, ..policy() }, &[("n1", 1)]);
        core.offer(offer(1, &[]));
        let mut attempts = 0;
        while let [(_, host, _)] = assign(&mut core, S)[..] {
            attempts += 1;
            core.host_lost(host, "Slurm killed job 7: PREEMPTED", counts, at(S));
            core.host_up("n1", 1, HostFacts::default());
        }
        attempts
    };
    for counts in [true, false] {
        assert_eq!([1, 2, 5].map(|tries| attempts(Some(tries), counts)), [1, 2, 5]);
    }
    assert_eq!((attempts(None, true), attempts(None, false)), (1, MOST_LOSSES));
}

/// A core with client n2, which mounts /data from n1, and n1, which does not.
fn nfs_core() -> (Core, VolumeIx) {
    let mount = Mount { point: "/data".into(), fstype: "nfs4".into(), source: "n1:/".into() };
    let mut core = core(policy(), &[("n1", 1)]);
    let facts = HostFacts { hostname: "n2".into(), mounts: vec![mount.clone()], ..HostFacts::default() };
    core.host_up("n2", 1, facts);
    let served = Served { mount: mount.clone(), path: "/".into(), nonce: "n".into(), secret: "s".into() };
    core.served(served);
    let volume = core.volume(mount);
    let question = |action: &Action| match action {
        Action::Send(host, ToWorker::Stand { .. }) => Some(*host),
        _ => None,
    };
    let asked: Vec<HostIx> = core.take_actions().iter().filter_map(question).collect();
    assert_eq!(asked, [0], "who has the mount is not asked");
    (core, volume)
}

#[test]
fn a_server_that_proved_to_have_the_files_gets_their_tasks() {
    let (mut core, volume) = nfs_core();
    for id in [1, 2] {
        core.offer(Offer { volumes: vec![volume], ..offer(id, &["n1"]) });
    }
    assert_eq!(assign(&mut core, S).iter().map(|s| s.1).collect::<Vec<_>>(), [1], "not before its answer");
    core.stands(0, volume, true, "it serves /data".into());
    assert_eq!(assign(&mut core, 2 * S).iter().map(|s| s.1).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_server_that_could_not_prove_it_is_told_and_not_used() {
    let (mut core, volume) = nfs_core();
    core.host_lost(1, "gone", false, at(S));
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    core.source_ended();
    assert!(assign(&mut core, S).is_empty() && core.waiting() == 1, "it may still answer");
    core.stands(0, volume, false, "no such directory".into());
    core.assign(at(2 * S).mono);
    let actions = core.take_actions();
    let told = |a: &Action| matches!(a, Action::Note(text) if text.contains("no such directory"));
    assert!(actions.iter().any(told) && core.is_over(), "{actions:?}");
}

/// The fence with which the only task that starts now is sent, and its ticket.
fn fence(core: &mut Core) -> (u64, Vec<Change>) {
    core.assign(at(S).mono);
    let run = |action: Action| match action {
        Action::Send(_, ToWorker::Run { ticket, fence, .. }) => Some((ticket, fence)),
        _ => None,
    };
    core.take_actions().into_iter().find_map(run).unwrap()
}

fn change(path: &str, mtime_ns: i64) -> Change {
    let now = Some(homing_model::Stamp { size: 1, ino: 1, mtime_ns, dir: false });
    Change { path: path.into(), now, fresh: false, was: None }
}

#[test]
fn what_a_task_wrote_is_looked_at_by_other_hosts_that_read_it() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    core.offer(offer(2, &["n2"]));
    assert_eq!(assign(&mut core, 0), [(1, 0, 1), (2, 1, 2)]);
    core.ended(0, Ended { wrote: vec![change("/d/a", 5)], ..ended(1, Outcome::Exit(0)) }, at(S));
    let reads = |id, holder| Offer { reads: vec!["/d/a".into()], ..offer(id, &[holder]) };
    core.offer(reads(3, "n1"));
    assert_eq!(fence(&mut core).1, [], "its writer knows");
    core.ended(1, ended(2, Outcome::Exit(0)), at(S));
    core.offer(Offer { recent: vec![change("/d/b", 1)], ..reads(4, "n2") });
    let (ticket, told) = fence(&mut core);
    assert_eq!(told, [change("/d/b", 1), change("/d/a", 5)]);
    // What a program outside of the run changed since is not waited for again.
    core.late(1, ticket, &change("/d/b", 1), "old", true, at(S));
    let (ticket, told) = fence(&mut core);
    assert_eq!(told, [change("/d/a", 5)]);
    core.late(1, ticket, &change("/d/a", 5), "/d/a is not visible", false, at(S));
    let said = "n2: /d/a is not visible".to_string();
    assert_eq!(verdicts(core.take_actions()), [(4, Outcome::CannotStart(said))]);
}

#[test]
fn a_fence_too_long_for_one_message_goes_ahead_of_its_task() {
    let mut core = core(policy(), &[("n1", 1)]);
    let recent: Vec<Change> = (0..100_000).map(|n| change(&format!("/d/{}/{n}", "folder/".repeat(30)), n)).collect();
    core.offer(Offer { recent: recent.clone(), ..offer(1, &["n1"]) });
    core.assign(at(S).mono);
    let (mut told, mut last) = (Vec::new(), false);
    for action in core.take_actions() {
        let Action::Send(0, message) = action else { continue };
        homing_wire::encode(&message, &mut Vec::new()).unwrap();
        assert!(!last, "nothing follows the task");
        match message {
            ToWorker::Written { changes } => told.extend(changes),
            ToWorker::Run { fence, .. } => (last, told) = (true, [told, fence].concat()),
            other => panic!("{other:?}"),
        }
    }
    assert!(last && told == recent, "{} of {}", told.len(), recent.len());
}

const PATIENCE: Patience = Patience { least_us: 3_000_000, most_us: 10_000_000 };

#[test]
fn a_task_waits_for_its_home_while_that_costs_less_than_fetching() {
    let mut core = core(policy(), &[("n2", 1)]);
    core.connecting(["n1.lab"].into_iter(), 0, PATIENCE);
    // 10 GB take more than a minute to fetch; what lies nowhere, or with who is there, starts at once.
    core.offer(Offer { total: 10 << 30, per_host: vec![("N1".into(), 10 << 30)], ..offer(1, &["n1"]) });
    core.offer(offer(2, &["n3"]));
    assert_eq!(assign(&mut core, S), [(2, 0, 1)]);
    core.ended(0, ended(1, Outcome::Exit(0)), at(S));
    core.take_actions();
    core.connecting(["n1.lab"].into_iter(), 9_000_000, PATIENCE);
    core.connecting(["n1.lab"].into_iter(), 9_100_000, PATIENCE);
    let actions = core.take_actions();
    assert!(matches!(&actions[..], [Action::Note(text)] if text.contains("connecting to n1;")), "{actions:?}");
    assert_eq!(assign(&mut core, 9 * S), []);
    assert!(core.waiting() == 1 && !core.is_over());
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    core.host_up("n1", 1, facts);
    assert_eq!(assign(&mut core, 9 * S), [(1, 1, 2)]);
}

#[test]
fn a_home_that_does_not_come_is_not_waited_for() {
    // 100 MB: nearly two seconds over a link of which nothing is told, beside the least.
    for (over_us, refused) in [(2_000_000, true), (5_000_000, false), (10_000_000, false)] {
        let mut core = core(policy(), &[("n2", 1)]);
        core.connecting(["n1"].into_iter(), 0, PATIENCE);
        core.offer(offer(1, &["n1"]));
        core.connecting(["n1"].into_iter(), 2_000_000, PATIENCE);
        assert_eq!(assign(&mut core, 2 * S), []);
        core.connecting(["n1"].into_iter().filter(|_| !refused), over_us, PATIENCE);
        assert_eq!(assign(&mut core, 10 * S), [(1, 0, 1)]);
    }
}

#[test]
fn a_server_is_waited_for_until_it_has_answered() {
    let (mut core, volume) = nfs_core();
    core.connecting([].into_iter(), 0, PATIENCE);
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    assert_eq!(assign(&mut core, S), []);
    core.stands(0, volume, true, "it serves /data".into());
    assert_eq!(assign(&mut core, S), [(1, 0, 1)]);
    let (mut core, volume) = nfs_core();
    core.connecting([].into_iter(), 0, PATIENCE);
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    core.stands(0, volume, false, "no such directory".into());
    assert_eq!(assign(&mut core, S), [(1, 1, 1)]);
}

#[test]
fn before_all_hosts_are_there_each_does_what_it_holds() {
    let mut core = core(policy(), &[("n1", 3), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    core.offer(offer(2, &[]));
    core.assign_at_home(at(0).mono);
    assert_eq!(starts(&mut core), [(1, 0, 1)]);
    assert_eq!(assign(&mut core, 0).iter().map(|s| s.0).collect::<Vec<_>>(), [2]);
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
    let journalled = actions.iter().position(|a| matches!(a, Action::Journal(What::TaskEnded { last: true, .. })));
    let told = actions.iter().position(|a| matches!(a, Action::Ended { .. }));
    assert!(journalled.is_some() && journalled < told, "{actions:?}");
    let (exit, ending) = core.finish();
    assert!(exit == 1 && matches!(ending, What::RunEnded { counts, .. } if counts["failed"] == 1 && counts.len() == 1));
}
