//! Decides which waiting recipe goes first, and how many recipes a host takes at once.

/// A recipe that waits for this many typical durations goes before larger ones, because others may wait for a small
/// recipe.
const PATIENCE: f64 = 4.0;

/// Returns indexes in the order in which recipes get hosts. The largest recipe is first, because a long recipe that
/// begins last delays the end of the build. `waiting` has the bytes that each reads, and the microseconds since its
/// request; `typical_us` is the duration of a recipe so far.
pub fn order(waiting: &[(u64, u64)], typical_us: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..waiting.len()).collect();
    let late = |at: usize| waiting[at].1 as f64 > PATIENCE * typical_us;
    // Stable: equal recipes stay in make's own order, by age.
    order.sort_by_key(|at| (!late(*at), std::cmp::Reverse(if late(*at) { 0 } else { waiting[*at].0 })));
    order
}

/// A recipe that has run for this many typical durations may determine the end of the build.
const LONG: f64 = 2.0;

/// Returns the number of simultaneous recipes on a host with so many slots and processors. `ran_us` are the
/// microseconds for which its recipes have run. Slots beyond the processors are for recipes that wait for files. A
/// recipe that lasts far longer than others computes, so it should not share its processor. (Measured: one of 93
/// files of C++ needs 15 s of processor time. With two others on half a processor it took 52 s, and so did the build;
/// 46 s were enough. On a faster machine it took 27 and 31 s with the limit at four typical durations, 23 to 25 s at
/// two.)
pub fn room(slots: u32, cores: u32, ran_us: &[u64], typical_us: f64) -> u32 {
    let lasts = ran_us.iter().any(|ran| *ran as f64 > LONG * typical_us);
    if lasts { slots.min(cores.max(1)) } else { slots }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_lasts_long_shares_no_processor() {
        assert_eq!(room(3, 1, &[1_900_000, 500_000], 1e6), 3);
        assert_eq!(room(3, 1, &[500_000, 2_000_001], 1e6), 1);
        assert_eq!(room(10, 8, &[2_000_001], 1e6), 8);
        assert_eq!(room(2, 8, &[2_000_001], 1e6), 2, "a host of few slots keeps them");
        assert_eq!(room(3, 1, &[], 1e6), 3);
    }

    #[test]
    fn the_largest_goes_first_and_equal_ones_in_makes_order() {
        assert_eq!(order(&[(10, 5), (900, 4), (10, 3), (500, 2)], 1e6), [1, 3, 0, 2]);
        assert!(order(&[], 1e6).is_empty());
    }

    #[test]
    fn nobody_is_overtaken_for_ever() {
        let long = 4_000_001;
        assert_eq!(order(&[(10, long), (900, 7), (1, long), (950, 2)], 1e6), [0, 2, 3, 1]);
    }
}
