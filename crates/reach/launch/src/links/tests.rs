//! No process, no socket: the events are made up, and a fake records the hosts that it was to connect to.

use super::*;
use crate::channel_child::Led;
use crate::end::{ChannelEnd, Left};
use crate::wire::{FromWorker, ToWorker};
use crate::{BatchEnd, ChannelChild};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

struct Nobody;

impl Led for Nobody {
    fn end(&self, _: Duration) {}

    fn ended(&self) -> ChannelEnd {
        ChannelEnd { why: String::new(), last_line: None, left: Left::Nothing }
    }
}

struct LinksFixture {
    links: HostLinks<()>,
    reached: Arc<Mutex<Vec<usize>>>,
    begun: Instant,
}

fn plan(name: &str) -> HostPlan {
    HostPlan { name: name.into(), via: Via::Ssh { target: name.into() }, slots: None }
}

fn world(hosts: &[&str]) -> LinksFixture {
    let reached = Arc::<Mutex<Vec<usize>>>::default();
    let reaches = reached.clone();
    let reach = move |at, plan: HostPlan| match plan.name.as_str() {
        "unlucky" => Err(io::Error::other("no thread")),
        _ => {
            reaches.lock().unwrap().push(at);
            Ok(())
        }
    };
    LinksFixture {
        links: HostLinks::new(|_| (), hosts.iter().map(|name| plan(name)).collect(), reach),
        reached,
        begun: Instant::now(),
    }
}

fn up() -> (HostEvent, Receiver<Vec<u8>>) {
    let (to, from) = channel();
    (HostEvent::Up { facts: Box::default(), to, keeper: ChannelChild::led(Arc::new(Nobody)) }, from)
}

fn cut() -> HostEvent {
    HostEvent::Cut { reason: "no way".into() }
}

fn astray() -> HostEvent {
    HostEvent::Astray { reason: "nobody leads".into() }
}

fn gone() -> HostEvent {
    HostEvent::Gone { reason: "it ended".into(), fate: None }
}

fn words() -> HostEvent {
    HostEvent::From(vec![FromWorker::Pong])
}

fn refused() -> HostEvent {
    HostEvent::Refused(LaunchError::NotNeeded { host: "n1".into(), system: "Slurm" })
}

/// Returns a short text for an event.
fn short(news: Option<HostNews>) -> String {
    match news {
        None => "nothing".into(),
        Some(HostNews::Up(_)) => "up".into(),
        Some(HostNews::Refused(error)) => format!("refused: {error}"),
        Some(HostNews::From(_)) => "words".into(),
        Some(HostNews::Cut(reason)) => format!("cut: {reason}"),
        Some(HostNews::Astray(reason)) => format!("astray: {reason}"),
        Some(HostNews::Lost(reason, _)) => format!("lost: {reason}"),
    }
}

impl LinksFixture {
    fn handle_event(&mut self, at: usize, heard: HostEvent) -> String {
        short(self.links.handle_event(at, heard, self.begun))
    }

    fn up(&mut self, at: usize) -> Receiver<Vec<u8>> {
        let (up, from) = up();
        assert_eq!(self.handle_event(at, up), "up");
        from
    }

    fn at(&self, s: u64) -> Instant {
        self.begun + Duration::from_secs(s)
    }

    /// Looks each second up to the last one and returns the events.
    fn look_until(&mut self, seconds: std::ops::RangeInclusive<u64>) -> Vec<(usize, String)> {
        let told = seconds.flat_map(|s| self.links.look(self.at(s)));
        told.map(|(at, news)| (at, short(Some(news)))).collect()
    }

    fn reached(&self) -> Vec<usize> {
        self.reached.lock().unwrap().clone()
    }
}

#[test]
fn what_is_said_to_a_host_reaches_it_while_it_is_up() {
    let mut world = world(&["n1"]);
    assert!(world.links[0].is_pending() && !world.links[0].is_up());
    let from = world.up(0);
    world.links[0].queue_message(&ToWorker::Ping).unwrap();
    assert!(from.try_recv().is_err());
    world.links.flush();
    assert!(from.try_recv().is_ok());
    world.links[0].close();
    world.links[0].queue_message(&ToWorker::Ping).unwrap();
    world.links.flush();
    assert!(from.recv().is_err() && world.links[0].out.is_empty(), "its input has ended");
    assert_eq!(
        (world.handle_event(0, words()), world.handle_event(0, gone())),
        ("nothing".into(), "lost: it ended".into())
    );
}

#[test]
fn what_ran_on_a_host_that_is_cut_off_is_lost_when_its_lease_is_over() {
    let mut world = world(&["n1"]);
    let _from = world.up(0);
    let told = "cut: no way; its tasks may run on for up to 30 s, and are not started elsewhere before";
    assert_eq!(world.handle_event(0, cut()), told);
    assert!(!world.links[0].is_up() && !world.links[0].is_pending());
    assert_eq!((world.handle_event(0, words()), world.handle_event(0, cut())), ("nothing".into(), "nothing".into()));
    assert_eq!(world.look_until(1..=60), [], "no silence is waited for");
    assert_eq!(world.handle_event(0, gone()), "lost: it ended");
    assert_eq!(world.links.len(), 1, "nothing stood still here");
}

#[test]
fn a_host_that_is_silent_is_lost_and_not_heard_any_more() {
    let mut world = world(&["n1", "n2"]);
    let (_n1, _n2) = (world.up(0), world.up(1));
    assert_eq!(world.look_until(1..=20), []);
    let heard = world.at(20);
    assert_eq!(short(world.links.handle_event(1, words(), heard)), "words");
    let silent = (0, "lost: the connection was lost: no message for 30 s".to_string());
    assert_eq!(world.look_until(21..=50), [silent]);
    assert_eq!(world.handle_event(0, words()), "nothing");
    assert_eq!(world.handle_event(0, gone()), "lost: it ended", "as Slurm may tell why");
    assert!(world.links[1].is_up());
}

#[test]
fn what_slurm_says_of_its_end_counts_more() {
    let mut world = world(&["n1"]);
    let _from = world.up(0);
    let fate = Some(BatchEnd { text: "Slurm ended job 7: CANCELLED".into(), counts: false, ask_again: false });
    assert_eq!(
        world.handle_event(0, HostEvent::Gone { reason: "status 143".into(), fate }),
        "lost: Slurm ended job 7: CANCELLED"
    );
}

#[test]
fn what_its_leader_does_not_reach_is_connected_to_from_here() {
    let mut world = world(&["n1", "n2", "unlucky"]);
    assert_eq!((world.handle_event(0, astray()), world.reached()), ("nothing".into(), vec![0]));
    assert!(world.links[0].is_pending());
    let _n2 = world.up(1);
    assert_eq!(world.handle_event(1, astray()), "astray: nobody leads");
    world.links.follow(1, plan("n2"));
    assert!(world.links[1].is_followed() && world.links[3].is_pending());
    assert_eq!((world.handle_event(1, gone()), world.reached()), ("lost: it ended".into(), vec![0, 3]));
    assert_eq!(world.handle_event(2, astray()), "nothing");
    assert_eq!(
        world.look_until(1..=1),
        [(2, "refused: host unlucky: cannot start a thread for its connection: no thread".into())]
    );
}

#[test]
fn a_branch_whose_leader_was_silent_comes_back_when_the_leader_is_lost() {
    let mut world = world(&["n1"]);
    let _from = world.up(0);
    assert_eq!(world.look_until(1..=31).len(), 1);
    assert_eq!(world.handle_event(0, astray()), "astray: nobody leads");
    world.links.follow(0, plan("n1"));
    assert_eq!((world.handle_event(0, astray()), world.links.len()), ("nothing".into(), 2));
}

#[test]
fn after_a_pause_of_our_own_nobody_is_lost_and_who_ended_comes_back_once() {
    let mut world = world(&["n1", "n2"]);
    let (_n1, _n2) = (world.up(0), world.up(1));
    assert_eq!(world.look_until(1..=2), []);
    world.links.come_back(0, world.at(3));
    assert_eq!(world.links.len(), 2, "nothing stood still");
    assert_eq!(world.look_until(60..=61), []);
    assert_eq!(world.handle_event(0, gone()), "lost: it ended");
    world.links.come_back(0, world.at(61));
    assert_eq!(world.links.notes(world.at(62), false), ["n1 is reconnected: this run had been suspended"]);
    world.links.come_back(0, world.at(61));
    assert_eq!((world.links.len(), world.reached()), (3, vec![2]), "it has come back already");
    let _n1 = world.up(2);
    assert!(world.links[1].is_up());
    world.links[1].plan.via = Via::Local;
    assert_eq!(world.handle_event(1, gone()), "lost: it ended");
    world.links.come_back(1, world.at(62));
    assert_eq!(world.links.len(), 3, "it did not stand still alone");
}

#[test]
fn what_becomes_of_many_hosts_at_once_is_told_in_one_line() {
    let mut world = world(&["n1", "n2", "n3"]);
    let _up: Vec<_> = (0..3).map(|at| world.up(at)).collect();
    assert_eq!(world.look_until(60..=61), []);
    for at in 0..3 {
        world.handle_event(at, gone());
        world.links.add_note(at, &format!("n{} is lost: it ended", at + 1), world.at(61));
        world.links.come_back(at, world.at(61));
    }
    assert_eq!(world.links.notes(world.at(61), false), [""; 0], "others may follow");
    let both = ["n[1-3] is lost: it ended", "n[1-3] is reconnected: this run had been suspended"];
    assert_eq!(world.links.notes(world.at(62), false), both);
    world.links.add_note(0, "n1 is lost: it ended", world.at(70));
    assert_eq!(world.links.notes(world.at(70), true), ["n1 is lost: it ended"]);
}

#[test]
fn refusals_are_told_together_and_what_is_not_used_is_not_heard() {
    let mut world = world(&["n1", "n2", "n3"]);
    let _n1 = world.up(0);
    let why = |host: &str| Some(format!("host {host}: its clock is wrong"));
    world.links.refuse(0, why("n1"), world.begun);
    assert!(world.links[0].is_refused() && !world.links[0].is_up());
    assert_eq!((world.handle_event(0, words()), world.handle_event(0, gone())), ("nothing".into(), "nothing".into()));
    assert!(world.handle_event(1, refused()).starts_with("refused"));
    world.links.refuse(1, why("n2"), world.begun);
    assert!(world.links.refusals(world.begun, false).is_empty(), "another may follow");
    assert_eq!(world.links.refusals(world.at(1), false), ["host n[1-2]: its clock is wrong"]);
    assert_eq!(world.links.pending().map(|plan| plan.name.as_str()).collect::<Vec<_>>(), ["n3"]);
    world.links.refuse(2, None, world.begun);
    assert!(world.links.refusals(world.at(2), true).is_empty());
}
