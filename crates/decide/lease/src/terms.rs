//! What is asked and told of leases.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the leases of a server are, and what its administrator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder, on a volume that all who use the server have mounted.
    pub folder: PathBuf,
    /// Tells servers apart whose leases lie in the same folder.
    pub server: String,
    /// Tasks at once of everybody together; `None`: as few as any of those allows who are there.
    pub limit: Option<u32>,
    /// Why locks there would tell other machines nothing.
    pub unfit: Option<String>,
}

/// What a run would do with leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Tasks that it could have at the server now.
    pub wanted: u32,
    /// Leases that it must keep: its tasks there.
    pub used: u32,
    /// Its own limit.
    pub limit: Option<u32>,
}

/// Who has how many, and what this run may use of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// It may begin tasks while it has fewer than this; [`u32::MAX`] where nobody has said a limit.
    pub may_use: u32,
    /// Leases of all.
    pub total: u32,
    /// Those of this run among them.
    pub own: u32,
    /// The limit of all; `None`: nobody has said one.
    pub limit: Option<u32>,
    /// Leases of each user who has some, by user id.
    pub users: BTreeMap<u32, u32>,
    /// Others are there, so that it pays to look often.
    pub others: bool,
    /// It has waited for very long and goes on without leases.
    pub gave_up: bool,
}

/// Who uses a server, for people: `nas serves 8 of 8, 3 of them by user b`. Those of `me` are not named.
pub fn serves(server: &str, limit: Option<u32>, users: &[(String, u32)], me: &str) -> String {
    format!("{server} serves {}{}", number(limit, users), by_others(users, me))
}

/// The same of slots: `queue io has 8 of 8 slots in use, 3 of them by user b`.
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

/// What one run has of a server's leases, as everybody sees it.
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
