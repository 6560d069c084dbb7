//! Tasks without named inputs that move bytes.

use super::*;
use homing_model::{Mover, StorageSample};

fn unnamed(id: TaskId, command: &str) -> Offer {
    let mut offer = offer(id, &[]);
    offer.task.command = Command::Shell(command.into());
    offer
}

fn offers(core: &mut Core, ids: std::ops::RangeInclusive<TaskId>, command: &str) {
    ids.for_each(|id| core.offer(unnamed(id, command)));
}

fn pulse(core: &mut Core, host: HostIx, ticket: u64, disk: u64) {
    let pulse = StorageSample { mover: Some(Mover { ticket, disk, read: 0, written: 0 }), ..StorageSample::default() };
    core.pulse(host, &pulse, Mono::from_us(0));
}

fn wrote(ticket: u64, bytes: u64) -> AttemptEnd {
    let io = IoCounters { write_bytes: bytes, ..IoCounters::default() };
    AttemptEnd { io, ..ended(ticket, Outcome::Exit(0)) }
}

/// Assigns after the beginning of a run, in which few tasks start at once.
fn assign_all(core: &mut Core) -> Vec<(TaskId, HostIx, u64)> {
    [assign(core, 0), assign(core, S / 4)].concat()
}

#[test]
fn a_run_begins_with_few_tasks_of_which_nothing_is_known() {
    let mut core = core(io(Io::Auto), &[("n1", 16)]);
    offers(&mut core, 1..=6, "sleep 9");
    assert_eq!(assign(&mut core, 0).len(), 1);
    assert_eq!(assign(&mut core, S / 5).len(), 0);
    assert_eq!(assign(&mut core, S / 4).len(), 5, "nobody waits longer for what they show");
    offers(&mut core, 7..=9, "dd of=out");
    assert_eq!(assign(&mut core, S).len(), 3, "the beginning is over for all kinds");
}

#[test]
fn one_that_has_ended_and_moved_nothing_ends_the_beginning_of_its_kind() {
    let mut core = core(io(Io::Auto), &[("n1", 16)]);
    offers(&mut core, 1..=6, "true");
    let first = assign(&mut core, 0);
    core.ended(0, wrote(first[0].2, 0), at(S / 100));
    assert_eq!((first.len(), assign(&mut core, S / 100).len()), (1, 5));
}

#[test]
fn those_under_way_count_as_soon_as_one_is_seen_to_move_bytes() {
    let mut core = core(io(Io::Auto), &[("n1", 16)]);
    offers(&mut core, 1..=6, "dd of=out");
    offers(&mut core, 7..=9, "sleep 9");
    let begun = assign_all(&mut core);
    assert_eq!(begun.len(), 9, "nothing is known of them");
    core.admission.set(Io::Fixed(2));
    pulse(&mut core, 0, begun[0].2, 100 << 10);
    assert!(!core.admission.is_full(StorageIx::Host(0)), "a little is nothing");
    pulse(&mut core, 0, begun[0].2, 2 << 20);
    assert!(core.admission.is_full(StorageIx::Host(0)));
    begun[1..5].iter().for_each(|(_, host, ticket)| assert!(core.ended(*host, wrote(*ticket, 8 << 20), at(S))));
    assert!(core.admission.is_full(StorageIx::Host(0)), "two of `dd` are left, and what sleeps does not count");
    offers(&mut core, 10..=10, "dd of=out");
    offers(&mut core, 11..=11, "sleep 9");
    assert_eq!(assign(&mut core, S).iter().map(|s| s.0).collect::<Vec<_>>(), [11]);
    assert_eq!(core.movers(), ["dd"]);
}

#[test]
fn a_task_that_ended_tells_what_its_kind_moves() {
    let mut core = core(io(Io::Auto), &[("n1", 2)]);
    offers(&mut core, 1..=2, "dd of=out");
    let begun = assign_all(&mut core);
    core.ended(0, wrote(begun[0].2, 8 << 20), at(S));
    core.admission.set(Io::Fixed(1));
    offers(&mut core, 3..=3, "dd of=out");
    assert!(assign(&mut core, S).is_empty(), "the second counts");
    core.ended(0, wrote(begun[1].2, 8 << 20), at(S));
    assert_eq!(assign(&mut core, S).len(), 1);
}

#[test]
fn a_kind_that_moves_nothing_any_more_waits_no_longer() {
    let mut core = core(Policy { movers: vec!["dd".into()], ..io(Io::Fixed(1)) }, &[("n1", 8)]);
    offers(&mut core, 1..=40, "dd of=out");
    for nth in 0..10 {
        let begun = assign(&mut core, nth * S);
        assert_eq!(begun.len(), 1, "an earlier run saw it moving bytes; {nth}");
        core.ended(0, wrote(begun[0].2, 0), at(nth * S));
    }
    assert_eq!(assign(&mut core, 20 * S).len(), 8);
}

#[test]
fn a_fixed_limit_holds_from_the_start_until_a_task_shows_that_it_moves_nothing() {
    let mut core = core(io(Io::Fixed(2)), &[("n1", 8)]);
    offers(&mut core, 1..=8, "sleep 9");
    let begun = assign(&mut core, 0);
    assert_eq!(begun.len(), 2);
    core.tick(at(S / 2).mono);
    assert!(assign(&mut core, S / 2).is_empty());
    core.tick(at(S).mono);
    assert_eq!(assign(&mut core, S).len(), 6);
    offers(&mut core, 9..=12, "dd of=out");
    begun.iter().for_each(|(_, host, ticket)| assert!(core.ended(*host, wrote(*ticket, 0), at(S))));
    let writers = assign(&mut core, 2 * S);
    assert_eq!(writers.len(), 2);
    pulse(&mut core, 0, writers[0].2, 8 << 20);
    core.tick(at(5 * S).mono);
    assert!(assign(&mut core, 5 * S).is_empty(), "they have shown that they do");
}

#[test]
fn tasks_that_move_bytes_go_where_storage_takes_more() {
    let movers = vec!["dd".into()];
    let mut core = core(Policy { movers, ..io(Io::Fixed(1)) }, &[("n1", 4), ("n2", 4)]);
    offers(&mut core, 1..=4, "dd of=out");
    let mut hosts: Vec<HostIx> = assign(&mut core, 0).iter().map(|s| s.1).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [0, 1]);
}

#[test]
fn named_inputs_count_whatever_the_kind_shows() {
    let mut core = core(io(Io::Fixed(1)), &[("n1", 8)]);
    (1..=20).for_each(|id| core.offer(offer(id, &["n1"])));
    for nth in 0..20 {
        let begun = assign(&mut core, nth * S);
        assert_eq!(begun.len(), 1);
        core.ended(0, wrote(begun[0].2, 0), at(nth * S));
    }
}
