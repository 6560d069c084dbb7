//! Decides which hosts meet in a round.

/// Returns all hosts in a random order, from a seed.
pub fn mixed(hosts: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts).collect();
    let mut state = seed;
    for i in (1..hosts).rev() {
        order.swap(i, (drawn(&mut state) % (i as u64 + 1)) as usize);
    }
    order
}

/// Draws a number by SplitMix64 (Steele, Lea and Flood, 2014).
fn drawn(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns rounds in which each host meets each other once, like a tournament: one host stays, the rest go round.
/// With an odd number, one host pauses in each round. The hosts move by many seats at a time. By one seat, hosts of
/// two switches that sit in two halves would meet in nearly the same way again.
pub fn circle(order: &[usize]) -> Vec<Vec<(usize, usize)>> {
    let mut seats: Vec<Option<usize>> = order.iter().copied().map(Some).collect();
    if seats.len() % 2 == 1 {
        seats.push(None);
    }
    let n = seats.len();
    let seats_on = (n * 3 / 8..=n).find(|step| common(*step, n.saturating_sub(1)) == 1).unwrap_or(1);
    let mut rounds = Vec::new();
    for _ in 1..n {
        rounds.push((0..n / 2).filter_map(|i| Some((seats[i]?, seats[n - 1 - i]?))).collect());
        seats[1..].rotate_right(seats_on % (n - 1));
    }
    rounds
}

/// Returns the greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_meets_each_other_once_and_nobody_twice_in_a_round() {
        for n in 0..20 {
            let rounds = circle(&mixed(n, 7));
            let all: Vec<(usize, usize)> = rounds.iter().flatten().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            assert_eq!(all.len(), n * n.saturating_sub(1) / 2, "{n}");
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{n}");
            for round in &rounds {
                let hosts: BTreeSet<usize> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                assert_eq!((hosts.len(), round.len()), (round.len() * 2, n / 2));
            }
        }
    }

    #[test]
    fn the_order_is_of_the_seed() {
        assert_eq!(mixed(16, 3), mixed(16, 3));
        assert_ne!(mixed(16, 3), mixed(16, 4));
    }
}
