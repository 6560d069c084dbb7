//! Messages between a coordinator and a leader: a worker's channel for each host of a branch, all over the one to the
//! leader. They are frames as any; what goes to a worker and comes from it is bytes here, and read by nobody on the way.

use serde::{Deserialize, Serialize};

/// A host of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// As the user names it.
    pub name: String,
    /// What the leader's `ssh` is given.
    pub target: String,
}

/// Coordinator to leader. Members are numbers: their places in `Lead`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToLeader {
    /// First message, and no other: whom it leads.
    Lead {
        /// Its own host is the first.
        members: Vec<Member>,
        /// Seconds that its ssh may take to connect.
        connect_timeout_s: u32,
    },
    /// For a member's worker.
    Bytes {
        /// The member.
        member: u32,
        /// At most [`crate::wire::CHUNK`] bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Nothing more is said to a member's worker: its input ends.
    End {
        /// The member.
        member: u32,
    },
    /// The process that carries a member's channel is ended at once.
    Kill {
        /// The member.
        member: u32,
    },
    /// Heartbeat.
    Ping,
}

/// Leader to coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLeader {
    /// A member's worker has said hello.
    Up {
        /// The member.
        member: u32,
        /// The facts of its hello, as JSON; its clock is compared with the leader's.
        facts: String,
    },
    /// There is no worker on a member that the leader could open.
    Unreached {
        /// The member.
        member: u32,
        /// For people.
        why: String,
    },
    /// Of a member's worker.
    Bytes {
        /// The member.
        member: u32,
        /// At most [`crate::wire::CHUNK`] bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A member's channel has ended; nothing more is said of it.
    Ended {
        /// The member.
        member: u32,
        /// For people.
        reason: String,
        /// The worker's guard has said that nothing which it started is left.
        all_ended: bool,
    },
}
