//! Checks the messages of a leader about its branch: each host begins, sends output and ends once. Pure.

use super::Errand;
use super::words::LeaderMessage;
use crate::{CommandOutcome, HostEventKind};

const STRANGER: &str = "it reports a host that is not in its branch";

/// The hosts of a branch while its leader is connected.
#[derive(Debug)]
pub(super) struct Branch {
    ended: Vec<bool>,
    /// Whether the first host, the leader, is served by the machine above. The leader's messages about itself are
    /// ignored then.
    spares_leader: bool,
    /// Hosts that another way may still reach, with the reason why the leader did not serve them.
    pub unserved: Vec<(usize, String)>,
}

/// The event in a message of the leader.
#[derive(Debug)]
pub(super) enum LeaderEvent {
    Nothing,
    /// For the machine above.
    Event(usize, HostEventKind),
    Alive(Vec<usize>),
    Note(String),
    End,
}

impl Branch {
    pub fn new(hosts: usize, spares_leader: bool) -> Branch {
        Branch { ended: vec![false; hosts], spares_leader, unserved: Vec::new() }
    }

    /// Returns the event in a message. `Err`: the message breaks the protocol.
    pub fn accept_message(&mut self, errand: &impl Errand, message: LeaderMessage) -> Result<LeaderEvent, String> {
        let (host, what) = match message {
            LeaderMessage::Alive(hosts) if hosts.iter().all(|host| *host < self.ended.len()) => {
                return Ok(LeaderEvent::Alive(hosts));
            }
            LeaderMessage::Alive(_) => return Err(STRANGER.into()),
            LeaderMessage::Note(text) => return Ok(LeaderEvent::Note(text)),
            LeaderMessage::End if self.ended.iter().all(|ended| *ended) => return Ok(LeaderEvent::End),
            LeaderMessage::End => return Err("it ended its report before all hosts had ended".into()),
            LeaderMessage::Folder(_) => return Err("it sent a second folder".into()),
            LeaderMessage::Begun(host) => (host, HostEventKind::Begun),
            LeaderMessage::Out(host, bytes) => (host, HostEventKind::Stdout(bytes.0)),
            LeaderMessage::Err(host, bytes) => (host, HostEventKind::Stderr(bytes.0)),
            LeaderMessage::Done(host, outcome, elapsed) => (host, HostEventKind::Done(outcome, elapsed)),
        };
        match self.ended.get_mut(host) {
            None => return Err(STRANGER.into()),
            Some(true) => return Err("it reports a host that has already ended".into()),
            Some(ended) => *ended = matches!(what, HostEventKind::Done(..)),
        }
        match what {
            _ if self.spares_leader && host == 0 => Ok(LeaderEvent::Nothing),
            HostEventKind::Done(outcome, _) if errand.is_open(&outcome) => {
                self.unserved.push((host, why(outcome)));
                Ok(LeaderEvent::Nothing)
            }
            what => Ok(LeaderEvent::Event(host, what)),
        }
    }

    /// Returns the hosts whose end is not reported. No message about them is accepted afterwards.
    pub fn give_up(&mut self) -> Vec<usize> {
        let untold = self.untold().collect();
        self.ended.fill(true);
        untold
    }

    fn untold(&self) -> impl Iterator<Item = usize> {
        (usize::from(self.spares_leader)..self.ended.len()).filter(|host| !self.ended[*host])
    }

    /// Returns the hosts whose end is not known.
    pub fn open(&self) -> Vec<usize> {
        self.untold().chain(self.unserved.iter().map(|(host, _)| *host)).collect()
    }
}

fn why(outcome: CommandOutcome) -> String {
    match outcome {
        CommandOutcome::Unreachable(why) | CommandOutcome::Lost(why) => why,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputSpool, PoolEvents, Remote};
    use serde::{Deserialize, Serialize};
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Clone, Serialize, Deserialize)]
    struct Nothing;

    impl Errand for Nothing {
        fn begin(&self, _: &Remote, _: &[String]) -> PoolEvents {
            unreachable!()
        }
        fn from(&self, _: &str, _: Option<Arc<InputSpool>>) -> Nothing {
            Nothing
        }
    }

    fn done(host: usize, outcome: CommandOutcome) -> LeaderMessage {
        LeaderMessage::Done(host, outcome, Duration::ZERO)
    }

    #[test]
    fn a_leader_tells_of_its_own_hosts_alone_and_of_each_once() {
        let mut branch = Branch::new(3, false);
        let mut hear = |told| branch.accept_message(&Nothing, told);
        assert!(matches!(hear(LeaderMessage::Begun(0)), Ok(LeaderEvent::Event(0, HostEventKind::Begun))));
        assert!(matches!(hear(done(0, CommandOutcome::Exited(0))), Ok(LeaderEvent::Event(0, HostEventKind::Done(..)))));
        assert!(hear(done(0, CommandOutcome::Exited(0))).unwrap_err().contains("already ended"));
        assert!(hear(done(3, CommandOutcome::Exited(0))).unwrap_err().contains("not in its branch"));
        assert!(matches!(hear(LeaderMessage::Alive(vec![1, 2])), Ok(LeaderEvent::Alive(hosts)) if hosts == [1, 2]));
        assert!(hear(LeaderMessage::Alive(vec![1, 3])).unwrap_err().contains("not in its branch"));
        assert!(hear(LeaderMessage::Begun(usize::MAX)).is_err() && hear(LeaderMessage::Folder("/x".into())).is_err());
        assert!(hear(LeaderMessage::End).unwrap_err().contains("before all hosts had ended"));
        assert_eq!(branch.open(), [1, 2]);
    }

    #[test]
    fn a_leader_that_is_served_by_who_asks_it_tells_nothing_of_itself() {
        let mut branch = Branch::new(2, true);
        assert_eq!(branch.open(), [1]);
        assert!(matches!(branch.accept_message(&Nothing, LeaderMessage::Begun(0)), Ok(LeaderEvent::Nothing)));
        assert!(matches!(branch.accept_message(&Nothing, done(0, CommandOutcome::Killed)), Ok(LeaderEvent::Nothing)));
        assert!(matches!(
            branch.accept_message(&Nothing, LeaderMessage::Begun(1)),
            Ok(LeaderEvent::Event(1, HostEventKind::Begun))
        ));
        assert_eq!((branch.give_up(), branch.open()), (vec![1], vec![]));
    }

    #[test]
    fn a_host_that_the_leader_does_not_reach_is_left_to_another_way() {
        let mut branch = Branch::new(3, false);
        branch.accept_message(&Nothing, done(1, CommandOutcome::Unreachable("no route".into()))).unwrap();
        branch.accept_message(&Nothing, done(2, CommandOutcome::Exited(3))).unwrap();
        assert_eq!(branch.open(), [0, 1], "what failed there fails from here too");
        assert_eq!(branch.unserved, [(1, "no route".to_string())]);
        branch.accept_message(&Nothing, done(0, CommandOutcome::TimedOut)).unwrap();
        assert!(matches!(branch.accept_message(&Nothing, LeaderMessage::End), Ok(LeaderEvent::End)));
        assert_eq!((Branch::new(2, false).give_up(), branch.give_up()), (vec![0, 1], vec![]));
    }
}
