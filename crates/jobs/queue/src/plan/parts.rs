//! Orders the hosts of a job if the parts of its inputs lie on different hosts. Pure.

use super::HostRoom;
use super::spread::{likeliest, spread};
use crate::job::{Reads, Share};
use std::cmp::Reverse;
use std::ops::Range;

/// A run of bytes of the inputs, in the order in which they are read: an extent of a file, file after file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes.
    pub bytes: u64,
    /// The hosts that hold them.
    pub hosts: Vec<String>,
}

/// Returns slots as [`spread`] does, with the hosts in an order that puts rank k next to part k. Each rank is assumed
/// to read an equal number of bytes of the inputs, the first rank the first bytes. Programs that read otherwise lose
/// nothing, because another order would not fit them either. A part that no host holds gets the hosts of [`spread`].
/// A host that has only this part comes before one that has later parts too.
pub fn by_parts(
    rooms: &[HostRoom],
    pieces: &[Piece],
    least: u32,
    most: u32,
    per_host: Option<u32>,
) -> Result<Vec<Share>, u32> {
    let shares = spread(rooms, least, most, per_host)?;
    let ranks: u32 = shares.iter().map(|share| share.slots).sum();
    let total: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    if shares.len() < 2 || total == 0 {
        return Ok(shares);
    }
    let before = |rank: u32| before(total, rank, ranks);
    let mut free = likeliest(rooms);
    let mut ordered: Vec<Share> = Vec::new();
    let mut next = 0;
    while next < ranks {
        let slots = |room: &HostRoom| room.slots.min(per_host.unwrap_or(u32::MAX)).min(ranks - next);
        let at_home = |room: &HostRoom| held(pieces, &room.host, before(next)..before(next + slots(room)));
        let later = |room: &HostRoom| held(pieces, &room.host, before(next + slots(room))..total);
        let best = free.iter().enumerate().min_by_key(|(_, room)| (Reverse(at_home(room)), later(room)));
        let Some((at, _)) = best else { break };
        let room = free.remove(at);
        let slots = slots(room);
        next += slots;
        ordered.push(Share { host: room.host.clone(), slots });
    }
    Ok(ordered)
}

/// Returns the bytes that each rank reads on its host and elsewhere, with its part as [`by_parts`] assumes it. Empty
/// if no host is known to hold any.
pub fn by_rank(shares: &[Share], pieces: &[Piece]) -> Vec<Reads> {
    let ranks: u32 = shares.iter().map(|share| share.slots).sum();
    let total: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    if total == 0 || pieces.iter().all(|piece| piece.hosts.is_empty()) {
        return Vec::new();
    }
    let hosts = shares.iter().flat_map(|share| std::iter::repeat_n(&share.host, share.slots as usize));
    let reads = |(rank, host): (u32, &String)| {
        let part = before(total, rank, ranks)..before(total, rank + 1, ranks);
        let home = held(pieces, host, part.clone());
        Reads { home, away: part.end - part.start - home }
    };
    (0..).zip(hosts).map(reads).collect()
}

/// Returns the bytes before the part of a rank, without overflow for the largest files.
fn before(total: u64, rank: u32, ranks: u32) -> u64 {
    (u128::from(total) * u128::from(rank) / u128::from(ranks)) as u64
}

/// Returns the bytes of a range of the inputs that a host holds.
fn held(pieces: &[Piece], host: &str, range: Range<u64>) -> u64 {
    let (mut sum, mut at) = (0, 0);
    for piece in pieces {
        let (from, to) = (range.start.max(at), range.end.min(at + piece.bytes));
        if from < to && piece.hosts.iter().any(|holder| holder == host) {
            sum += to - from;
        }
        at += piece.bytes;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(hosts: u32, slots: u32) -> Vec<HostRoom> {
        (1..=hosts).map(|n| HostRoom { host: format!("n{n}"), slots, requested: 0, bytes: 0 }).collect()
    }
    /// Parses `n3 n1+n2`: two pieces of 10 bytes, the second with two copies.
    fn pieces(text: &str) -> Vec<Piece> {
        let hosts = |hosts: &str| hosts.split('+').map(String::from).collect();
        text.split(' ').map(|piece| Piece { bytes: 10, hosts: hosts(piece) }).collect()
    }
    fn share_list(shares: Result<Vec<Share>, u32>) -> String {
        let share = |s: &Share| format!("{}:{}", s.host, s.slots);
        shares.unwrap().iter().map(share).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rank_k_is_next_to_part_k() {
        let four = rooms(4, 2);
        assert_eq!(share_list(by_parts(&four, &pieces("n3 n1 n4 n2"), 4, 4, Some(1))), "n3:1 n1:1 n4:1 n2:1");
        // Two ranks on each of two hosts read two pieces each.
        assert_eq!(share_list(by_parts(&four, &pieces("n3 n3 n2 n2"), 4, 4, Some(2))), "n3:2 n2:2");
        // Two of four hosts: each rank has half of its part on its host, whichever two of the holders are chosen.
        assert_eq!(share_list(by_parts(&four, &pieces("n1 n2 n3 n4"), 2, 2, Some(1))), "n1:1 n3:1");
        // No host has the first half: it gets any host except the one with the second half.
        assert_eq!(share_list(by_parts(&rooms(2, 1), &pieces("nas n1"), 2, 2, Some(1))), "n2:1 n1:1");
    }

    #[test]
    fn what_each_rank_reads_at_home_is_told() {
        let shares = [("n3", 2), ("n1", 1)].map(|(host, slots)| Share { host: host.into(), slots });
        let told = by_rank(&shares, &pieces("n3 n1 n1"));
        assert_eq!(told.iter().map(|r| (r.home, r.away)).collect::<Vec<_>>(), [(10, 0), (0, 10), (10, 0)]);
        assert_eq!(by_rank(&shares, &[Piece { bytes: 9, hosts: vec![] }]), []);
        assert_eq!(by_rank(&shares, &[]), []);
    }

    #[test]
    fn of_two_copies_that_is_read_whose_host_has_nothing_else() {
        assert_eq!(share_list(by_parts(&rooms(2, 1), &pieces("n1+n2 n1"), 2, 2, Some(1))), "n2:1 n1:1");
    }

    #[test]
    fn without_pieces_and_where_it_never_fits_it_is_as_without_parts() {
        let two = rooms(2, 2);
        assert_eq!(by_parts(&two, &[], 4, 4, Some(2)), spread(&two, 4, 4, Some(2)));
        assert_eq!(by_parts(&two, &pieces("n2 n1"), 5, 5, None), Err(4));
        assert_eq!(share_list(by_parts(&two, &pieces("n2 n1"), 2, 9, None)), "n2:2 n1:2");
    }
}
