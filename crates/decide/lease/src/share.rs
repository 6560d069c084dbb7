//! Decides how many leases each run may have. Each run decides for itself, from data that is the same for all.

use super::Claim;
use std::collections::{BTreeMap, BTreeSet};

/// The decision for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighed {
    /// Leases that it may take now.
    pub take: u32,
    /// How many of its leases it need not give back when tasks end.
    pub keep: u32,
    /// Leases that no run has.
    pub room: u32,
    /// Whether a waiting run has less than this one, or its user has less than this one's.
    pub yields: bool,
    /// Whether all together have more than the limit.
    pub excess: bool,
}

/// Returns the limit of all: the administrator's, or the smallest of the runs that are there.
pub(super) fn limit(site: Option<u32>, own: &Claim, others: &[Claim]) -> Option<u32> {
    let said = others.iter().chain([own]).filter_map(|claim| claim.limit).min();
    site.or(said).map(|limit| limit.max(1))
}

/// Decides for one run. All users get equal numbers of leases, and so do the runs of one user. While another run waits
/// that has fewer, a run gives leases back as its tasks end. If both have about as many, it gives back one at a time:
/// two users of one lease take turns.
pub(super) fn weigh(site: Option<u32>, own: &Claim, wanted: u32, others: &[Claim]) -> Weighed {
    let total: u32 = others.iter().map(|claim| claim.held).fold(own.held, u32::saturating_add);
    let Some(limit) = limit(site, own, others) else {
        let (take, keep) = (wanted.saturating_sub(own.held), own.held.min(wanted));
        return Weighed { take, keep, room: u32::MAX, yields: false, excess: false };
    };
    let room = limit.saturating_sub(total);
    let ranks = Ranks::of(own, others);
    let waiting = others.iter().any(|other| other.waits);
    let yields = others.iter().any(|other| other.waits && ranks.is_behind(other, own));
    let fair = ranks.fair(own, limit);
    let more = match (waiting, yields) {
        (false, _) => wanted.saturating_sub(own.held),
        (true, false) => wanted.saturating_sub(own.held).min(fair.saturating_sub(own.held).max(1)),
        (true, true) => 0,
    };
    let excess = total.saturating_sub(limit);
    let asked_back = if yields { ranks.missing(others, own, limit).max(1).saturating_sub(room) } else { 0 };
    let asked_back = asked_back.max(excess);
    // The least that it keeps, also after a run with a smaller limit has come.
    let least = fair.min(own.held.saturating_sub(1));
    let keep = own.held.saturating_sub(asked_back).max(least).min(wanted);
    Weighed { take: more.min(room), keep, room, yields, excess: excess > 0 }
}

/// The leases of each user, and the runs of each user who takes part.
struct Ranks<'a> {
    users: BTreeMap<u32, u32>,
    runs: BTreeSet<(u32, &'a str)>,
}

impl<'a> Ranks<'a> {
    fn of(own: &'a Claim, others: &'a [Claim]) -> Ranks<'a> {
        let (mut users, mut runs) = (BTreeMap::new(), BTreeSet::new());
        for claim in others.iter().filter(|claim| claim.waits || claim.held > 0).chain([own]) {
            *users.entry(claim.uid).or_insert(0u32) += claim.held;
            runs.insert((claim.uid, claim.name.as_str()));
        }
        Ranks { users, runs }
    }

    /// Whether `other` has less than `own`. Compares the users, or the runs themselves if both belong to one user.
    fn is_behind(&self, other: &Claim, own: &Claim) -> bool {
        match other.uid == own.uid {
            true => other.held < own.held,
            false => self.users[&other.uid] < self.users[&own.uid],
        }
    }

    /// Returns an equal part of the limit for each user, divided equally among the user's runs.
    fn fair(&self, of: &Claim, limit: u32) -> u32 {
        let runs = self.runs.iter().filter(|(uid, _)| *uid == of.uid).count() as u32;
        limit / self.users.len().max(1) as u32 / runs.max(1)
    }

    /// Returns how many leases the waiting runs that are behind lack of their parts.
    fn missing(&self, others: &[Claim], own: &Claim, limit: u32) -> u32 {
        let behind = others.iter().filter(|other| other.waits && self.is_behind(other, own));
        behind.map(|other| self.fair(other, limit).saturating_sub(other.held)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uid: u32, name: &str, held: u32, waits: bool) -> Claim {
        Claim { name: name.into(), uid, held, waits, limit: Some(8) }
    }

    #[test]
    fn alone_it_takes_what_it_wants_up_to_the_smallest_limit_or_the_sites() {
        let own = claim(1, "a", 2, true);
        assert_eq!(weigh(None, &own, 20, &[]).take, 6);
        assert_eq!(weigh(None, &own, 3, &[]).take, 1);
        assert_eq!(weigh(Some(4), &own, 20, &[]).take, 2);
        let small = Claim { limit: Some(3), ..claim(2, "b", 0, false) };
        assert_eq!(weigh(None, &own, 20, std::slice::from_ref(&small)).take, 1);
        assert_eq!(weigh(Some(8), &own, 20, &[small]).take, 6, "the administrator has decided");
        let auto = Claim { limit: None, ..own };
        assert_eq!((weigh(None, &auto, 20, &[]).take, weigh(None, &auto, 0, &[]).keep), (18, 0));
    }

    #[test]
    fn who_has_more_than_one_who_waits_gives_back_down_to_an_equal_part() {
        let (own, other) = (claim(1, "a", 8, true), claim(2, "b", 0, true));
        let weighed = weigh(None, &own, 8, std::slice::from_ref(&other));
        assert_eq!((weighed.take, weighed.keep, weighed.yields), (0, 4, true));
        let even = [claim(2, "b", 4, true)];
        let weighed = weigh(None, &claim(1, "a", 4, true), 8, &even);
        assert_eq!((weighed.take, weighed.keep, weighed.yields), (0, 4, false));
        let idle = [claim(2, "b", 0, false)];
        assert_eq!(weigh(None, &own, 8, &idle).keep, 8, "who wants nothing gets nothing");
    }

    #[test]
    fn users_are_even_and_not_runs() {
        let others = [claim(1, "b", 4, true), claim(2, "c", 0, true)];
        assert_eq!(weigh(None, &claim(1, "a", 4, true), 8, &others).keep, 2);
        let weighed = weigh(None, &claim(2, "c", 0, true), 8, &[claim(1, "a", 2, true), claim(1, "b", 3, true)]);
        assert_eq!(weighed.take, 3);
    }

    /// In each round one run looks, and sometimes one of its tasks ends.
    #[test]
    fn in_the_long_run_users_have_had_as_much_and_never_more_than_the_limit() {
        for (limit, users) in [(1, 2), (3, 2), (4, 3), (8, 2), (8, 5)] {
            let mut claims: Vec<Claim> = (0..users).map(|uid| claim(uid, &uid.to_string(), 0, true)).collect();
            let mut had = vec![0u64; users as usize];
            for round in 0..4000 {
                let at = round % claims.len();
                let own = Claim { limit: Some(limit), ..claims[at].clone() };
                let others: Vec<Claim> = claims.iter().filter(|c| c.uid != own.uid).cloned().collect();
                let weighed = weigh(None, &own, limit, &others);
                claims[at].held = if weighed.keep < own.held { own.held - 1 } else { own.held + weighed.take };
                let total: u32 = claims.iter().map(|c| c.held).sum();
                assert!(total <= limit, "{claims:?}");
                for claim in &claims {
                    had[claim.uid as usize] += u64::from(claim.held);
                }
            }
            let (sum, squares) = had.iter().fold((0.0, 0.0), |(s, q), h| (s + *h as f64, q + (*h as f64).powi(2)));
            let jain = sum * sum / (f64::from(users) * squares);
            assert!(jain >= 0.95, "limit {limit}, {users} users: {had:?}, {jain}");
        }
    }
}
