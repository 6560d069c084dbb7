//! What a shared folder and a network give, measured from the hosts that use them.
//!
//! [`volume`] runs fio and small scripts on hosts, through an executor of
//! `steps`; [`net`] lets pairs of hosts send to each other. Both say what they
//! measure by [`Tell`], and print nothing themselves.
//!
//! Main types: [`volume`] has plans of measurements and their results, [`net`] rounds of pairs and the tuning of hosts,
//! [`topology`] reads LLDP and SNMP.
//!
//! It does not: judge a network (`network`), or change a volume (`volume`).

pub mod net;
pub mod topology;
pub mod volume;

/// Who hears of a measurement while it goes on.
#[derive(Clone, Copy)]
pub struct Tell {
    /// What is measured now: for somebody who waits at a terminal.
    pub progress: fn(&str),
    /// What everybody should know.
    pub note: fn(&str),
}
