//! The inputs and results of leases.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The folder for the leases of a server, and the administrator's limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFolder {
    /// The folder, on a volume that all users of the server have mounted.
    pub folder: PathBuf,
    /// Name of the server: one folder may hold the leases of several.
    pub server: String,
    /// Most tasks at once of all users; `None` for the smallest limit of the runs that are there.
    pub limit: Option<u32>,
    /// The reason why other machines would not see locks there.
    pub unfit: Option<String>,
}

/// The leases that a run could use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseDemand {
    /// Tasks that it could have at the server now.
    pub wanted: u32,
    /// Leases that it must keep for its running tasks.
    pub used: u32,
    /// Its own limit.
    pub limit: Option<u32>,
}

/// The leases of all users, and the number that this run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// It may begin tasks while it has fewer than this; [`u32::MAX`] if there is no limit.
    pub may_use: u32,
    /// Leases of all.
    pub total: u32,
    /// The leases of this run among them.
    pub own: u32,
    /// The limit of all; `None` if no run has one.
    pub limit: Option<u32>,
    /// Leases of each user with at least one, by user id.
    pub users: BTreeMap<u32, u32>,
    /// Whether others take part, which makes frequent looks worthwhile.
    pub others: bool,
    /// Whether it has waited for very long and goes on without leases.
    pub gave_up: bool,
}

/// Returns a line on the users of a server: `nas serves 8 of 8, 3 of them by user b`. Does not name `me`.
pub fn serves(server: &str, limit: Option<u32>, users: &[(String, u32)], me: &str) -> String {
    format!("{server} serves {}{}", number(limit, users), by_others(users, me))
}

/// Returns the same for slots: `queue io has 8 of 8 slots in use, 3 of them by user b`.
pub fn has_in_use(queue: &str, limit: Option<u32>, users: &[(String, u32)], me: &str) -> String {
    format!("{queue} has {} slots in use{}", number(limit, users), by_others(users, me))
}

fn number(limit: Option<u32>, users: &[(String, u32)]) -> String {
    let total: u32 = users.iter().map(|(_, held)| held).sum();
    let of = limit.map_or(String::new(), |limit| format!(" of {limit}"));
    format!("{total}{of}")
}

fn by_others(users: &[(String, u32)], me: &str) -> String {
    let others = users.iter().filter(|(user, held)| user != me && *held > 0);
    others.map(|(user, held)| format!(", {held} of them by user {user}")).collect()
}

/// One run's part of a server's leases, as all see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) held: u32,
    pub(super) waits: bool,
    pub(super) limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_what_is_told_but_for_oneself() {
        let users = [("ann".to_string(), 5), ("bob".to_string(), 3), ("cid".to_string(), 0)];
        assert_eq!(serves("nas", Some(8), &users, "ann"), "nas serves 8 of 8, 3 of them by user bob");
        assert_eq!(
            has_in_use("queue io", Some(8), &users, "ann"),
            "queue io has 8 of 8 slots in use, 3 of them by user bob"
        );
        assert_eq!(has_in_use("queue io", None, &[], "ann"), "queue io has 0 slots in use");
    }
}
