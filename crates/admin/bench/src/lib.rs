//! Measures the speed of a shared folder and of the network, from the hosts that use them.
//!
//! [`volume`] runs fio and small scripts on hosts, through an executor of `steps`; [`net`] lets pairs of hosts send
//! to each other. Both report their progress through callbacks, and print nothing themselves. [`ends`] is this program
//! at both ends of a pair, and the only part that a program without the feature `admin` has.
//!
//! Main types: [`volume`] has plans of measurements and their results, [`net`] rounds of pairs and the tuning of
//! hosts, [`topology`] reads LLDP and SNMP.
//!
//! If a host is lost, [`volume`] ends with an error and without results. [`net`] leaves out
//! hosts that cannot be reached at the start, or fails, as its caller wants. After that it records the reason for each
//! pair of a lost host, and goes on.
//!
//! It does not: judge a network (`network`), or change a volume (`volume`).

pub mod ends;
pub mod net;
pub mod topology;
pub mod volume;

/// The receivers of messages while a measurement runs.
#[derive(Clone, Copy)]
pub struct ProgressReporter {
    /// Shows the current measurement to a user who waits at a terminal.
    pub progress: fn(&str),
    /// Shows a message that must not be lost.
    pub note: fn(&str),
}
