//! The data that a run's file publishes, as a locked byte and as a name: both are written and read here.

/// Upper bound of the leases of a run.
pub(super) const MOST: u32 = 1 << 16;
/// Start of the flag bytes, one of which is locked while the run goes on. Its offset encodes the run's limit (0:
/// none), doubled, plus one if the run waits for leases.
pub(super) const FLAGS: u32 = 1 << 17;
/// End of the flag bytes.
pub(super) const END: u32 = FLAGS + 2 * MOST;

/// Separates the constant part of a name from its data.
const MARK: char = '+';

/// The data that a run publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeaseRecord {
    /// Leases that it holds.
    pub(super) held: u32,
    /// Its own limit, from 1 to less than [`MOST`].
    pub(super) limit: Option<u32>,
    /// Whether it waits for leases.
    pub(super) waits: bool,
}

impl LeaseRecord {
    /// Returns the data of a run with these leases and wishes.
    pub(super) fn new(held: u32, limit: Option<u32>, waits: bool) -> LeaseRecord {
        LeaseRecord { held, limit: limit.map(|limit| limit.min(MOST - 1)).filter(|limit| *limit > 0), waits }
    }

    /// Returns the byte to lock.
    pub(super) fn flag(self) -> u32 {
        FLAGS + 2 * self.limit.unwrap_or(0) + u32::from(self.waits)
    }

    /// Returns the data of a locked byte and a number of leases.
    pub(super) fn of_flag(flag: u32, held: u32) -> LeaseRecord {
        LeaseRecord::new(held, Some((flag - FLAGS) / 2), (flag - FLAGS) % 2 == 1)
    }

    /// Returns the name.
    pub(super) fn named(self, stem: &str, beat: u32) -> String {
        let waits = if self.waits { "w" } else { "" };
        format!("{stem}{MARK}{}{MARK}{}{waits}{MARK}{beat}", self.held, self.limit.unwrap_or(0))
    }
}

/// The data in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseName {
    pub(super) record: LeaseRecord,
    /// Counts the names that the run's file has had: a new one shows that the run is there.
    pub(super) beat: u32,
}

impl LeaseName {
    /// Splits a name into its constant part and its data; `None` for a name without data.
    pub(super) fn of(name: &str) -> Option<(&str, LeaseName)> {
        let (rest, beat) = name.rsplit_once(MARK)?;
        let (rest, limit) = rest.rsplit_once(MARK)?;
        let (stem, held) = rest.rsplit_once(MARK)?;
        let (limit, waits) = limit.strip_suffix('w').map_or((limit, false), |limit| (limit, true));
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n < MOST);
        let said = LeaseRecord::new(number(held)?, Some(number(limit)?), waits);
        Some((stem, LeaseName { record: said, beat: beat.parse().ok()? }))
    }

    /// Joins two names of one file that is getting a new one: the wishes of the later name, and the larger number of
    /// leases.
    pub(super) fn with(self, other: LeaseName) -> LeaseName {
        let (before, after) = if self.beat < other.beat { (self, other) } else { (other, self) };
        let held = before.record.held.max(after.record.held);
        LeaseName { record: LeaseRecord { held, ..after.record }, ..after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_was_meant_and_a_strangers_says_nothing() {
        for said in [
            LeaseRecord::default(),
            LeaseRecord { held: 3, limit: Some(8), waits: true },
            LeaseRecord { held: MOST - 1, limit: None, waits: false },
        ] {
            let name = said.named("nas@h.1.0", 7);
            assert_eq!(LeaseName::of(&name), Some(("nas@h.1.0", LeaseName { record: said, beat: 7 })), "{name}");
            assert_eq!(LeaseRecord::of_flag(said.flag(), said.held), said);
        }
        for name in ["nas@h.1.0", "nas@h.1.0+3+4", "nas@h.1.0+-3+4+1", "nas@h.1.0+99999+4+1", "nas@h.1.0+3+4x+1", "+"] {
            assert_eq!(LeaseName::of(name), None, "{name}");
        }
    }

    #[test]
    fn of_two_names_the_later_wishes_count_and_the_more_that_is_held() {
        let named = |held, waits, beat| LeaseName { record: LeaseRecord { held, limit: Some(8), waits }, beat };
        for (before, after) in [(1, 3), (3, 1)] {
            let (before, after) = (named(before, true, 9), named(after, false, 10));
            assert_eq!((before.with(after), after.with(before)), (named(3, false, 10), named(3, false, 10)));
        }
    }

    #[test]
    fn a_limit_beyond_all_leases_is_the_most_that_can_be_said() {
        let said = LeaseRecord::new(0, Some(u32::MAX), true);
        assert_eq!(
            (said.limit, said.flag() < END, LeaseRecord::new(0, Some(0), false).limit),
            (Some(MOST - 1), true, None)
        );
    }
}
