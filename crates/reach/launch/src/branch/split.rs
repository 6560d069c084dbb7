//! Decides which hosts lead which others.

use std::ops::Range;

/// Hosts that one leader serves, and that this machine serves without leaders. Equal to the number of connections
/// that are opened at the same time: more hosts would wait for each other.
pub const WIDTH: usize = crate::FAN_OUT;

/// Splits hosts into branches of neighbours, all of about the same length; the first host of each leads the others.
/// Returns none if the hosts are at most `width`, or if `width` is below 2. A branch longer than `width` may be split
/// in turn.
pub fn branches(hosts: usize, width: usize) -> Vec<Range<usize>> {
    if width < 2 || hosts <= width {
        return Vec::new();
    }
    // A leader is served, too: with it a branch has one host more.
    let count = hosts.div_ceil(width + 1).clamp(2, width);
    let cut = |n: usize| n * hosts / count;
    (0..count).map(|n| cut(n)..cut(n + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_in_one_branch_and_few_lead() {
        assert_eq!(branches(8, 2), [0..4, 4..8]);
        assert_eq!(branches(16, 4), [0..4, 4..8, 8..12, 12..16]);
        assert_eq!(branches(3, 2), [0..1, 1..3]);
        for (hosts, width) in [(64, 64), (5000, 0), (5000, 1), (0, 4)] {
            assert_eq!(branches(hosts, width), [], "{hosts} by {width}");
        }
        for hosts in 65..9000 {
            let all = branches(hosts, WIDTH);
            assert!(all.len() <= WIDTH && all.iter().all(|branch| !branch.is_empty()), "{hosts}");
            assert_eq!(all.into_iter().flatten().collect::<Vec<_>>(), (0..hosts).collect::<Vec<_>>());
        }
    }

    #[test]
    fn depth_grows_with_the_logarithm() {
        let depth = |mut hosts: usize| {
            let mut depth = 1;
            while let Some(longest) = branches(hosts, WIDTH).iter().map(|branch| branch.len() - 1).max() {
                (hosts, depth) = (longest, depth + 1);
            }
            depth
        };
        assert_eq!([64, 65, 1000, 64 * 65, 64 * 65 + 1, 100_000].map(depth), [1, 2, 2, 2, 3, 3]);
    }
}
