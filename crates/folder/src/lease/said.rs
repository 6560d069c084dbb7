//! What a run's file says, as a byte that is locked and as a name: both are written and read here.

/// More leases than this nobody has.
pub(super) const MOST: u32 = 1 << 16;
/// From this byte on one is locked while the run goes on: its offset says the run's limit (0: none), doubled, and
/// one more when it waits for leases.
pub(super) const FLAGS: u32 = 1 << 17;
/// Behind all flags.
pub(super) const END: u32 = FLAGS + 2 * MOST;

/// Between the part of a name that stays and what it says.
const MARK: char = '+';

/// What a run says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Leases that it holds.
    pub(super) held: u32,
    /// Its own limit, from 1 to less than [`MOST`].
    pub(super) limit: Option<u32>,
    /// Whether it waits for leases.
    pub(super) waits: bool,
}

impl Said {
    /// What a run that holds so many says of its wishes.
    pub(super) fn new(held: u32, limit: Option<u32>, waits: bool) -> Said {
        Said { held, limit: limit.map(|limit| limit.min(MOST - 1)).filter(|limit| *limit > 0), waits }
    }

    /// The byte that is locked.
    pub(super) fn flag(self) -> u32 {
        FLAGS + 2 * self.limit.unwrap_or(0) + u32::from(self.waits)
    }

    /// What the byte says beside the leases.
    pub(super) fn of_flag(flag: u32, held: u32) -> Said {
        Said::new(held, Some((flag - FLAGS) / 2), (flag - FLAGS) % 2 == 1)
    }

    /// The name.
    pub(super) fn named(self, stem: &str) -> String {
        let waits = if self.waits { "w" } else { "" };
        format!("{stem}{MARK}{}{MARK}{}{waits}", self.held, self.limit.unwrap_or(0))
    }

    /// What of a name stays, and what it says; `None` of a name that says nothing.
    pub(super) fn of_name(name: &str) -> Option<(&str, Said)> {
        let (rest, limit) = name.rsplit_once(MARK)?;
        let (stem, held) = rest.rsplit_once(MARK)?;
        let (limit, waits) = limit.strip_suffix('w').map_or((limit, false), |limit| (limit, true));
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n < MOST);
        Some((stem, Said::new(number(held)?, Some(number(limit)?), waits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_was_meant_and_a_strangers_says_nothing() {
        for said in [
            Said::default(),
            Said { held: 3, limit: Some(8), waits: true },
            Said { held: MOST - 1, limit: None, waits: false },
        ] {
            let name = said.named("nas@h.1.0");
            assert_eq!(Said::of_name(&name), Some(("nas@h.1.0", said)), "{name}");
            assert_eq!(Said::of_flag(said.flag(), said.held), said);
        }
        for name in ["nas@h.1.0", "nas@h.1.0+3", "nas@h.1.0+-3+4", "nas@h.1.0+99999+4", "nas@h.1.0+3+4x", "+"] {
            assert_eq!(Said::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_limit_beyond_all_leases_is_the_most_that_can_be_said() {
        let said = Said::new(0, Some(u32::MAX), true);
        assert_eq!((said.limit, said.flag() < END, Said::new(0, Some(0), false).limit), (Some(MOST - 1), true, None));
    }
}
