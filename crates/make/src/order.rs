//! Which of the recipes that wait goes first.

/// A recipe that waits so many times what one takes goes before larger ones: what
/// others wait for may be small.
const PATIENCE: f64 = 4.0;

/// Indexes in the order in which hosts are sought for: the largest first, since what is begun
/// last and takes long is what a build ends with. `waiting` are bytes that each reads,
/// and the microseconds since it was asked for; `typical_us` is what one took so far.
pub fn order(waiting: &[(u64, u64)], typical_us: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..waiting.len()).collect();
    let late = |at: usize| waiting[at].1 as f64 > PATIENCE * typical_us;
    // Stable: those that are equal stay in make's own order, which is that of their age.
    order.sort_by_key(|at| (!late(*at), std::cmp::Reverse(if late(*at) { 0 } else { waiting[*at].0 })));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

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
