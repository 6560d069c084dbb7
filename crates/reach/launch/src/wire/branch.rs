//! Messages between a coordinator and a leader: the worker channels of all hosts of a branch, carried over the
//! channel to the leader. They are framed like all messages. The leader passes on the bytes to and from a worker
//! without parsing them.

use serde::{Deserialize, Serialize};

/// A host of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberTarget {
    /// The name that the user gave it.
    pub name: String,
    /// The destination for the leader's `ssh`.
    pub target: String,
}

/// Messages from coordinator to leader. Members are numbers: their indices in `Lead`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToLeader {
    /// First message, sent once: the hosts that it leads.
    Lead {
        /// The hosts of the branch; the first is the leader's own host.
        members: Vec<MemberTarget>,
        /// Seconds that its ssh may take to connect.
        connect_timeout_s: u32,
    },
    /// Bytes for the worker of a member.
    Bytes {
        /// The member.
        member: u32,
        /// At most [`crate::wire::CHUNK`] bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The input of a member's worker ends: the coordinator sends nothing more to it.
    End {
        /// The member.
        member: u32,
    },
    /// The leader ends the process behind a member's channel at once.
    Kill {
        /// The member.
        member: u32,
    },
    /// Heartbeat.
    Ping,
}

/// Messages from leader to coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLeader {
    /// The hello of a member's worker has arrived.
    Up {
        /// The member.
        member: u32,
        /// The facts of its hello, as JSON. The clock in them is compared with the leader's clock.
        facts: String,
    },
    /// The leader could not start a worker on a member.
    Unreached {
        /// The member.
        member: u32,
        /// For people.
        why: String,
    },
    /// Bytes from the worker of a member.
    Bytes {
        /// The member.
        member: u32,
        /// At most [`crate::wire::CHUNK`] bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A member's channel has ended; this is the last message about it.
    Ended {
        /// The member.
        member: u32,
        /// For people.
        reason: String,
        /// Whether the worker's guard has reported that no process which it started is left.
        all_ended: bool,
    },
}
