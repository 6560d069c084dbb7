//! Checks the messages of a leader about its branch. The order for each member: its worker is up or cannot be opened,
//! then output of the worker, then its end. Pure.

use crate::wire::CHUNK;
use crate::wire::branch::FromLeader;
use homing_model::text::shown;
use homing_model::{Ahead, HostFacts};

/// Characters that are kept of a leader's text for people.
const WORDS: usize = 2000;

/// Members of a branch, by their numbers.
#[derive(Debug)]
pub(super) struct Members {
    standing: Vec<Standing>,
    /// The difference between the leader's clock and ours.
    ahead: Option<Ahead>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Awaited,
    Up,
    Over,
}

/// An event of a member.
#[derive(Debug)]
pub(super) enum MemberEvent {
    Up(Box<HostFacts>),
    Unreached(String),
    Bytes(Vec<u8>),
    Ended { reason: String, all_ended: bool },
}

impl Members {
    pub fn new(members: usize, ahead: Option<Ahead>) -> Members {
        Members { standing: vec![Standing::Awaited; members], ahead }
    }

    /// Returns the event in a message. `Err`: the message breaks the protocol.
    pub fn accept_message(&mut self, message: FromLeader) -> Result<(usize, MemberEvent), String> {
        use Standing::{Awaited, Over, Up};
        let (member, then, now, news) = match message {
            FromLeader::Up { member, facts } => (member, Awaited, Up, MemberEvent::Up(self.facts(&facts)?)),
            FromLeader::Unreached { member, why } => (member, Awaited, Over, MemberEvent::Unreached(words(&why))),
            FromLeader::Bytes { bytes, .. } if bytes.len() > CHUNK => return Err("it sends too much at once".into()),
            FromLeader::Bytes { member, bytes } => (member, Up, Up, MemberEvent::Bytes(bytes)),
            FromLeader::Ended { member, reason, all_ended } => {
                (member, Up, Over, MemberEvent::Ended { reason: words(&reason), all_ended })
            }
        };
        let member = member as usize;
        match self.standing.get_mut(member) {
            None => Err("it reports a host that is not in its branch".into()),
            Some(standing) if *standing != then => Err("it reports an impossible event of a host".into()),
            Some(standing) => {
                *standing = now;
                Ok((member, news))
            }
        }
    }

    fn facts(&self, json: &str) -> Result<Box<HostFacts>, String> {
        let facts: HostFacts =
            serde_json::from_str(json).map_err(|e| format!("it reports invalid facts of a host: {e}"))?;
        let ahead = self.ahead.zip(facts.ahead).map(|(leader, member)| leader.and(member));
        Ok(Box::new(HostFacts { ahead, ..facts }))
    }

    /// Whether it is known of all members if they have a worker.
    pub fn all_answered(&self) -> bool {
        !self.standing.contains(&Standing::Awaited)
    }

    /// Returns the members whose end is not known. No message about them is accepted afterwards.
    pub fn give_up(&mut self) -> Vec<usize> {
        let left = (0..self.standing.len()).filter(|member| self.standing[*member] != Standing::Over).collect();
        self.standing.fill(Standing::Over);
        left
    }
}

fn words(said: &str) -> String {
    shown(said).chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str = r#"{"hostname":"far","aliases":[],"cores":2,"memory_bytes":1,"arch":"x","boot_id":"b","mounts":[],"nic_bytes_per_s":null,"now_ns":0,"ahead":{"least_ns":-5,"most_ns":7}}"#;

    fn up(member: u32) -> FromLeader {
        FromLeader::Up { member, facts: FACTS.into() }
    }

    fn bytes(member: u32, size: usize) -> FromLeader {
        FromLeader::Bytes { member, bytes: vec![0; size] }
    }

    fn ended(member: u32) -> FromLeader {
        FromLeader::Ended { member, reason: "x".repeat(9000), all_ended: true }
    }

    #[test]
    fn a_leader_tells_of_its_own_hosts_alone_and_of_each_in_its_order() {
        let mut members = Members::new(3, None);
        assert!(matches!(members.accept_message(up(0)), Ok((0, MemberEvent::Up(_)))));
        assert!(members.accept_message(up(0)).is_err(), "it is up already");
        assert!(
            matches!(members.accept_message(bytes(0, CHUNK)), Ok((0, MemberEvent::Bytes(bytes))) if bytes.len() == CHUNK)
        );
        assert!(members.accept_message(bytes(0, CHUNK + 1)).is_err());
        assert!(
            members.accept_message(bytes(1, 1)).is_err() && members.accept_message(ended(1)).is_err(),
            "it is not up"
        );
        for member in [3, u32::MAX] {
            assert!(members.accept_message(up(member)).unwrap_err().contains("not in its branch"));
        }
        assert!(members.accept_message(FromLeader::Up { member: 1, facts: "{}".into() }).is_err());
        let unreached = FromLeader::Unreached { member: 1, why: "no route".into() };
        assert!(matches!(members.accept_message(unreached), Ok((1, MemberEvent::Unreached(why))) if why == "no route"));
        assert!(members.accept_message(up(1)).is_err(), "it could not be opened");
        let Ok((0, MemberEvent::Ended { reason, all_ended: true })) = members.accept_message(ended(0)) else {
            panic!()
        };
        assert_eq!(reason.len(), WORDS);
        assert!(members.accept_message(bytes(0, 1)).is_err(), "it has ended");
        assert!(!members.all_answered());
        assert_eq!(members.give_up(), [2]);
        assert!(members.all_answered() && members.accept_message(up(2)).is_err());
    }

    #[test]
    fn the_clock_of_a_member_is_compared_through_that_of_its_leader() {
        let ahead = |leader| match Members::new(1, leader).accept_message(up(0)) {
            Ok((0, MemberEvent::Up(facts))) => facts.ahead,
            other => panic!("{other:?}"),
        };
        assert_eq!(ahead(Some(Ahead { least_ns: 100, most_ns: 200 })), Some(Ahead { least_ns: 95, most_ns: 207 }));
        assert_eq!(ahead(None), None);
    }
}
