use super::hearing::{Hearing, QueryRoute};
use homing_exec::{CommandOutcome, Giver, HostEventKind, HostProgress};
use std::time::{Duration, Instant};

const LED: Giver = Giver::Leader(0);

/// n0 leads n1 to n3. Times are in seconds.
struct HearingFixture {
    hearing: Hearing,
    begun: Instant,
}

impl HearingFixture {
    fn new() -> HearingFixture {
        let begun = Instant::now();
        HearingFixture { hearing: Hearing::new(4, vec![0], Duration::from_secs(8), begun), begun }
    }

    fn record_event(&mut self, s: u64, way: QueryRoute, host: usize, giver: Giver, what: HostEventKind) {
        self.hearing.record_event(
            way,
            s as f64,
            HostProgress { host, giver, what },
            self.begun + Duration::from_secs(s),
        );
    }

    fn led(&mut self, s: u64, host: usize, what: HostEventKind) {
        self.record_event(s, QueryRoute::First, host, LED, what);
    }

    fn besides(&mut self, s: u64, host: usize, what: HostEventKind) {
        self.record_event(s, QueryRoute::Besides, host, Giver::Here, what);
    }

    fn take_quiet(&mut self, s: u64) -> Vec<usize> {
        self.hearing.take_quiet(self.begun + Duration::from_secs(s))
    }

    fn left(&self, s: u64) -> u64 {
        self.hearing.left(self.begun + Duration::from_secs(s)).as_secs()
    }
}

fn word(text: &str) -> HostEventKind {
    HostEventKind::Stdout(text.as_bytes().to_vec())
}

fn done(outcome: CommandOutcome) -> HostEventKind {
    HostEventKind::Done(outcome, Duration::ZERO)
}

#[test]
fn a_host_that_hangs_costs_its_deadline_once_while_its_leader_tells_of_it() {
    let mut world = HearingFixture::new();
    for host in 0..4 {
        world.led(0, host, HostEventKind::Begun);
        world.led(0, host, word("half"));
    }
    (0..3).for_each(|host| world.led(1, host, done(CommandOutcome::Exited(0))));
    for s in 2..8 {
        world.led(s, 3, HostEventKind::Alive);
        assert_eq!((world.take_quiet(s), world.left(s)), (vec![], 8 - s));
    }
    assert_eq!(world.left(8), 0);
    assert!(!world.hearing.has_ended() && world.hearing.states[3].outcome.is_none());
    assert_eq!(world.hearing.states[3].chunks().len(), 1, "what it has said before is kept");
}

#[test]
fn hosts_of_a_leader_that_hangs_are_asked_from_here_at_once_and_not_after_their_deadline() {
    let mut world = HearingFixture::new();
    (0..4).for_each(|host| world.led(0, host, HostEventKind::Begun));
    world.led(0, 1, word("half"));
    world.led(1, 0, done(CommandOutcome::Exited(0)));
    assert_eq!((world.take_quiet(2), world.take_quiet(3), world.take_quiet(4)), (vec![], vec![1, 2, 3], vec![]));
    (1..4).for_each(|host| world.besides(3, host, HostEventKind::Begun));
    assert_eq!(world.left(3), 8);
    world.besides(4, 1, word("whole"));
    world.besides(4, 1, done(CommandOutcome::Exited(0)));
    world.led(5, 1, word("late"));
    let heard = &world.hearing.states;
    assert_eq!(heard[1].chunks(), [(4.0, b"whole".to_vec())]);
    // The host has come back: the answer that ends first counts.
    world.led(6, 2, done(CommandOutcome::Exited(0)));
    world.besides(7, 3, done(CommandOutcome::Unreachable("no route".into())));
    assert!(world.hearing.has_ended());
    assert_eq!(world.hearing.served_besides().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_host_that_nobody_reaches_is_asked_by_both_ways_at_the_same_time() {
    let mut world = HearingFixture::new();
    (0..4).for_each(|host| world.led(0, host, HostEventKind::Begun));
    (0..3).for_each(|host| world.led(1, host, done(CommandOutcome::Exited(0))));
    assert_eq!(world.take_quiet(3), [3]);
    world.besides(3, 3, HostEventKind::Begun);
    // The tree also retries from here a host that its leader could not reach: homing waits for nothing else.
    world.record_event(8, QueryRoute::First, 3, Giver::Here, HostEventKind::Begun);
    assert_eq!(world.left(8), 3);
    world.besides(10, 3, done(CommandOutcome::Unreachable("no route".into())));
    assert!(world.hearing.has_ended() && world.hearing.served_besides().next().is_none());
}

#[test]
fn a_host_that_its_leader_alone_reaches_is_left_to_it() {
    let mut world = HearingFixture::new();
    (0..4).for_each(|host| world.led(0, host, HostEventKind::Begun));
    world.led(0, 3, word("half"));
    assert_eq!(world.take_quiet(3), [0, 1, 2, 3]);
    world.besides(4, 3, done(CommandOutcome::Unreachable("no route".into())));
    world.led(5, 3, word("rest"));
    world.led(5, 3, done(CommandOutcome::Exited(0)));
    assert_eq!(
        (world.hearing.states[3].chunks().len(), &world.hearing.states[3].outcome),
        (2, &Some(CommandOutcome::Exited(0)))
    );
}

#[test]
fn leaders_have_time_to_begin_and_one_that_does_not_is_asked_itself_meanwhile() {
    let mut world = HearingFixture::new();
    assert_eq!((world.left(3), world.take_quiet(1), world.take_quiet(3)), (57, vec![], vec![0]));
    assert_eq!((world.take_quiet(59), world.take_quiet(60)), (vec![], vec![1, 2, 3]));
    world.besides(60, 1, HostEventKind::Begun);
    assert_eq!(world.left(60), 8);
}

#[test]
fn one_that_is_begun_once_more_tells_all_once_more_and_one_that_is_late_is_left() {
    let mut world = HearingFixture::new();
    world.led(0, 1, HostEventKind::Begun);
    world.led(0, 1, word("half"));
    world.record_event(1, QueryRoute::First, 1, Giver::Here, HostEventKind::Begun);
    world.record_event(1, QueryRoute::First, 1, Giver::Here, word("whole"));
    assert_eq!(world.hearing.states[1].chunks(), [(1.0, b"whole".to_vec())]);
    assert_eq!(world.take_quiet(9), [0], "the one that was begun from here is not asked a second time");
}

#[test]
fn of_a_host_that_prints_without_end_a_bounded_part_is_kept_whichever_way_it_comes() {
    let mut world = HearingFixture::new();
    let piece = || HostEventKind::Stdout(vec![0; 3 << 20]);
    (0..4).for_each(|_| world.led(0, 1, piece()));
    (0..4).for_each(|_| world.besides(1, 2, piece()));
    world.besides(1, 2, done(CommandOutcome::Exited(0)));
    assert_eq!([1, 2].map(|host: usize| world.hearing.states[host].chunks().len()), [2, 2]);
}
