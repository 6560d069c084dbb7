//! Chooses the hosts for the slots of a job over several hosts. Pure.

use crate::job::Share;

/// The resources of a host for such a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoom {
    /// Its name.
    pub host: String,
    /// All its slots: the used ones will be free later.
    pub slots: u32,
    /// Slots of it that jobs have or wait for.
    pub requested: u32,
    /// Bytes of the job's inputs on it.
    pub bytes: u64,
}

/// Returns from `least` to `most` slots, at most `per_host` on each host. The hosts with most bytes come first, among
/// equals the least crowded, then in the order of the list. One host is enough if it has room for all and `per_host`
/// permits it. The error is the number of slots that would fit.
pub fn spread(rooms: &[HostRoom], least: u32, most: u32, per_host: Option<u32>) -> Result<Vec<Share>, u32> {
    let room = |room: &HostRoom| room.slots.min(per_host.unwrap_or(u32::MAX));
    let sorted = likeliest(rooms);
    if let Some(one) = sorted.iter().find(|r| room(r) >= most) {
        return Ok(vec![Share { host: one.host.clone(), slots: most }]);
    }
    let (mut left, mut shares) = (most, Vec::new());
    for one in sorted {
        let slots = room(one).min(left);
        left -= slots;
        if slots > 0 {
            shares.push(Share { host: one.host.clone(), slots });
        }
    }
    if most - left >= least { Ok(shares) } else { Err(most - left) }
}

/// Returns the hosts that have slots: most bytes first, among equals the least crowded.
pub(super) fn likeliest(rooms: &[HostRoom]) -> Vec<&HostRoom> {
    let crowd = |room: &HostRoom| u64::from(room.requested) * 100 / u64::from(room.slots.max(1));
    let mut sorted: Vec<&HostRoom> = rooms.iter().filter(|r| r.slots > 0).collect();
    sorted.sort_by_key(|r| (std::cmp::Reverse(r.bytes), crowd(r)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(all: &[(&str, u32, u32, u64)]) -> Vec<HostRoom> {
        let room = |&(host, slots, asked, bytes): &(&str, _, _, _)| HostRoom {
            host: host.into(),
            slots,
            requested: asked,
            bytes,
        };
        all.iter().map(room).collect()
    }
    fn share_list(shares: Result<Vec<Share>, u32>) -> Result<String, u32> {
        Ok(shares?.iter().map(|s| format!("{}:{}", s.host, s.slots)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hosts_with_most_bytes_come_first_then_those_with_most_room() {
        let four = rooms(&[("n1", 4, 0, 5), ("n2", 4, 4, 90), ("n3", 4, 0, 0), ("n4", 4, 4, 0)]);
        assert_eq!(share_list(spread(&four, 4, 4, Some(1))), Ok("n2:1 n1:1 n3:1 n4:1".into()));
        assert_eq!(share_list(spread(&four, 6, 6, Some(2))), Ok("n2:2 n1:2 n3:2".into()));
        assert_eq!(share_list(spread(&four, 6, 6, None)), Ok("n2:4 n1:2".into()));
        assert_eq!(share_list(spread(&four, 4, 4, None)), Ok("n2:4".into()), "one host has room for all");
        assert_eq!(share_list(spread(&four, 2, 100, Some(3))), Ok("n2:3 n1:3 n3:3 n4:3".into()));
    }

    #[test]
    fn what_never_fits_is_told_with_what_would() {
        let two = rooms(&[("n1", 4, 0, 0), ("n2", 2, 0, 0), ("n3", 0, 0, 9)]);
        assert_eq!(spread(&two, 8, 8, None), Err(6));
        assert_eq!(spread(&two, 4, 4, Some(1)), Err(2));
        assert_eq!(share_list(spread(&two, 6, 9, None)), Ok("n1:4 n2:2".into()));
    }
}
