use super::*;
use homing_model::RawText;

fn layout(size: u64) -> FileLayout {
    FileLayout {
        path: RawText::from("/data/f"),
        size,
        volume: String::new(),
        extents: vec![],
        reason: None,
        missing: false,
        server_path: None,
    }
}

fn copies(list: &[(u8, CopyState)]) -> ChunkState {
    ChunkState::Copies(list.iter().map(|(n, state)| (Ipv4Addr::new(10, 0, 0, *n), *state)).collect())
}

use CopyState::{Leaving, Useless, Valid};

#[test]
fn neighbours_on_the_same_hosts_are_one_extent() {
    let mut file = layout(2 * CHUNK + 7);
    let both = [(2, Valid), (1, Valid)];
    place(&[copies(&both), copies(&[(1, Valid), (2, Valid), (2, Valid)]), copies(&[(3, Valid)])], &mut file);
    assert_eq!(file.reason, None);
    let told: Vec<(u64, u64, usize)> = file.extents.iter().map(|e| (e.offset, e.length, e.replicas.len())).collect();
    assert_eq!(told, [(0, 2 * CHUNK, 2), (2 * CHUNK, 7, 1)]);
}

#[test]
fn a_copy_that_leaves_counts_when_it_is_the_only_one() {
    let mut file = layout(5);
    place(&[copies(&[(1, Leaving), (2, Valid), (3, Useless)])], &mut file);
    assert_eq!(file.bytes_per_host().into_keys().collect::<Vec<_>>(), ["10.0.0.2"]);
    let mut file = layout(5);
    place(&[copies(&[(1, Leaving), (3, Useless)])], &mut file);
    assert_eq!(file.bytes_per_host().into_keys().collect::<Vec<_>>(), ["10.0.0.1"]);
}

#[test]
fn holes_and_lost_chunks_are_told_and_the_rest_is_placed() {
    let mut file = layout(3 * CHUNK);
    place(&[ChunkState::Empty, copies(&[(1, Valid)]), copies(&[(2, Useless)])], &mut file);
    assert_eq!(file.extents.len(), 1);
    assert!(file.reason.as_deref().is_some_and(|r| r.contains("1 of its chunks (2)")), "{file:?}");
    let mut file = layout(CHUNK + 1);
    place(&[ChunkState::Empty, copies(&[(1, Valid)])], &mut file);
    assert!(file.reason.as_deref().is_some_and(|r| r.contains("hole")), "{file:?}");
    let mut file = layout(CHUNK + 1);
    place(&[copies(&[(1, Valid)])], &mut file);
    assert!(file.reason.is_some(), "{file:?}");
}
