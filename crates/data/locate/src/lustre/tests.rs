//! Layouts as in the manual and in lustre_user.h.

use super::*;
use homing_model::{FileLayout, RawText};

const MIB: u64 = 1 << 20;

fn targets() -> Targets {
    let osts = (0..8).map(|n| (n, format!("oss{}", n / 2))).collect();
    Targets { osts, mdts: HashMap::from([(0, "mds0".into())]) }
}

fn layout(size: u64, components: &[Component]) -> FileLayout {
    let mut layout = FileLayout {
        path: RawText::from("/lfs/f"),
        size,
        volume: String::new(),
        extents: vec![],
        reason: None,
        missing: false,
        server_path: None,
    };
    place::place(components, &targets(), &|| Some("mds0".into()), &mut layout);
    keeps_the_contract(&layout);
    layout
}

/// Checks that extents are in order, without overlap, within the size, and that missing bytes have a reason.
fn keeps_the_contract(layout: &FileLayout) {
    let mut end = 0;
    for extent in &layout.extents {
        assert!(extent.offset >= end && extent.length > 0 && !extent.replicas.is_empty(), "{layout:?}");
        assert!(extent.replicas.iter().all(|r| r.share > 0.0 && r.share <= 1.0), "{layout:?}");
        end = extent.offset + extent.length;
    }
    let told: u64 = layout.extents.iter().map(|e| e.length).sum();
    assert!(end <= layout.size && (told == layout.size || layout.reason.is_some()), "{layout:?}");
}

fn per_host(layout: &FileLayout) -> Vec<(String, u64)> {
    layout.bytes_per_host().into_iter().collect()
}

/// Returns a plain layout in binary: version 1, or 3 with a pool's name.
fn plain(v3: bool, pattern: u32, stripe_size: u32, count: u16, osts: &[u32]) -> Vec<u8> {
    let magic: u32 = if v3 { 0x0BD3_0BD0 } else { 0x0BD1_0BD0 };
    let mut bytes = [magic.to_le_bytes(), pattern.to_le_bytes()].concat();
    bytes.extend([0xaa; 16]);
    bytes.extend(stripe_size.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend([0; 2]);
    if v3 {
        bytes.extend(b"flash\0\0\0\0\0\0\0\0\0\0\0");
    }
    for ost in osts {
        bytes.extend([0xbb; 16]);
        bytes.extend([0; 4]);
        bytes.extend(ost.to_le_bytes());
    }
    bytes
}

/// Returns a composite layout of parts (id, flags, start, end, layout).
fn composite(parts: &[(u32, u32, u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut offset = 32 + 48 * parts.len();
    let (mut entries, mut blobs) = (Vec::new(), Vec::new());
    for (id, flags, start, end, blob) in parts {
        entries.extend([id.to_le_bytes(), flags.to_le_bytes()].concat());
        entries.extend([start.to_le_bytes(), end.to_le_bytes()].concat());
        entries.extend([(offset as u32).to_le_bytes(), (blob.len() as u32).to_le_bytes()].concat());
        entries.extend([0; 16]);
        offset += blob.len();
        blobs.extend_from_slice(blob);
    }
    let mut bytes = [0x0BD6_0BD0u32.to_le_bytes(), (offset as u32).to_le_bytes(), 1u32.to_le_bytes()].concat();
    bytes.extend(0u16.to_le_bytes());
    bytes.extend((parts.len() as u16).to_le_bytes());
    bytes.extend([0; 16]);
    [bytes, entries, blobs].concat()
}

const INIT: u32 = 0x10;

#[test]
fn plain_layouts_of_both_versions_are_striped_from_the_first_byte() {
    for v3 in [false, true] {
        let components = lov::parse(&plain(v3, 1, MIB as u32, 2, &[0, 2])).unwrap();
        let file = layout(3 * MIB + 5, &components);
        assert_eq!(file.reason, None);
        let told: Vec<(u64, u64, &str)> =
            file.extents.iter().map(|e| (e.offset, e.length, e.replicas[0].host.as_str())).collect();
        assert_eq!(told, [(0, MIB, "oss0"), (MIB, MIB, "oss1"), (2 * MIB, MIB, "oss0"), (3 * MIB, 5, "oss1")]);
    }
    // Two targets of one host are one extent.
    let file = layout(4 * MIB, &lov::parse(&plain(false, 1, MIB as u32, 2, &[0, 1])).unwrap());
    assert_eq!((file.extents.len(), per_host(&file)), (1, vec![("oss0".into(), 4 * MIB)]));
}

#[test]
fn long_files_are_told_in_shares_that_add_up() {
    let size = 1000 * MIB + 12_345;
    let file = layout(size, &lov::parse(&plain(false, 0x201, MIB as u32, 3, &[0, 2, 4])).unwrap());
    assert_eq!(file.extents.len(), 1);
    let sum: u64 = per_host(&file).iter().map(|(_, bytes)| bytes).sum();
    assert!(size - sum <= 3, "{file:?}");
    assert_eq!(per_host(&file)[0], ("oss0".into(), 334 * MIB - MIB + MIB), "stripes 0, 3, ... 999");
}

#[test]
fn a_progressive_layout_has_objects_where_it_was_written() {
    let parts = [
        (1, INIT, 0, 4 * MIB, plain(false, 1, MIB as u32, 1, &[6])),
        (2, INIT, 4 * MIB, 64 * MIB, plain(true, 1, MIB as u32, 2, &[0, 2])),
        (3, 0, 64 * MIB, u64::MAX, plain(false, 1, MIB as u32, 0xffff, &[])),
    ];
    let components = lov::parse(&composite(&parts)).unwrap();
    let file = layout(6 * MIB, &components);
    assert_eq!(file.reason, None);
    let told: Vec<(u64, &str)> = file.extents.iter().map(|e| (e.offset, e.replicas[0].host.as_str())).collect();
    assert_eq!(told, [(0, "oss3"), (4 * MIB, "oss0"), (5 * MIB, "oss1")]);
    // The file was extended by truncate, so the last component has no objects yet.
    let file = layout(100 * MIB, &components);
    assert!(file.reason.is_some_and(|r| r.contains("nothing was written")));
}

#[test]
fn mirrors_are_copies_and_stale_ones_are_none() {
    let parts = |flags: u32| {
        [
            (0x1_0001, INIT, 0, u64::MAX, plain(false, 1, MIB as u32, 2, &[0, 2])),
            (0x2_0002, flags, 0, u64::MAX, plain(false, 1, 4 * MIB as u32, 1, &[6])),
        ]
    };
    let file = layout(8 * MIB, &lov::parse(&composite(&parts(INIT))).unwrap());
    assert_eq!(per_host(&file), [("oss0".into(), 4 * MIB), ("oss1".into(), 4 * MIB), ("oss3".into(), 8 * MIB)]);
    for flags in [INIT | lov::STALE, INIT | lov::OFFLINE, INIT | lov::PARITY] {
        let file = layout(8 * MIB, &lov::parse(&composite(&parts(flags))).unwrap());
        assert_eq!(per_host(&file).len(), 2, "{file:?}");
    }
}

#[test]
fn data_on_the_metadata_target_and_what_is_elsewhere() {
    let dom = [
        (1, INIT, 0, MIB, plain(false, 0x100, MIB as u32, 0, &[])),
        (2, INIT, MIB, u64::MAX, plain(false, 1, MIB as u32, 1, &[4])),
    ];
    let file = layout(2 * MIB, &lov::parse(&composite(&dom)).unwrap());
    assert_eq!(per_host(&file), [("mds0".into(), MIB), ("oss2".into(), MIB)]);
    let reason = |bytes: &[u8]| layout(MIB, &lov::parse(bytes).unwrap()).reason.unwrap();
    assert!(reason(&plain(false, 0x8000_0001, MIB as u32, 1, &[])).contains("archive"));
    assert!(reason(&plain(false, 0x4, MIB as u32, 1, &[])).contains("pattern 0x4"));
    // Magic, length, type, flags, value.
    let foreign = [&0x0BD7_0BD0u32.to_le_bytes()[..], &[5, 0, 0, 0], &[0; 8], b"value"].concat();
    assert!(reason(&foreign).contains("foreign"));
}

#[test]
fn damaged_attributes_are_refused() {
    let good = composite(&[(1, INIT, 0, u64::MAX, plain(false, 1, MIB as u32, 2, &[0, 1]))]);
    assert!(lov::parse(&good).is_some());
    for cut in 0..good.len() {
        assert!(lov::parse(&good[..cut]).is_none(), "cut at {cut}");
    }
    assert!(lov::parse(b"\xd0\x0b\xd2\x0bxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx").is_none());
    // A target that is not in the client's table.
    let file = layout(MIB, &lov::parse(&plain(false, 1, MIB as u32, 1, &[77])).unwrap());
    assert!(file.extents.is_empty() && file.reason.is_some_and(|r| r.contains("OST004d")));
}

#[test]
fn what_lfs_prints_means_the_same() {
    let parse = |text: &str| getstripe::parse(text).unwrap();
    let yaml = include_str!("recorded/pfl.yaml");
    let binary = lov::parse(&composite(&[
        (1, INIT, 0, 4 * MIB, plain(false, 1, MIB as u32, 1, &[5])),
        (2, 0, 4 * MIB, u64::MAX, plain(false, 1, MIB as u32, 4, &[])),
    ]));
    assert_eq!(Some(parse(yaml)), binary);
    let mirrored = parse(include_str!("recorded/mirrors.txt"));
    assert_eq!(mirrored.iter().map(|c| (c.mirror, c.usable)).collect::<Vec<_>>(), [(1, true), (2, true), (3, false)]);
    assert_eq!(mirrored[0].osts, [1, 0]);
    let dom = parse(include_str!("recorded/dom.txt"));
    assert_eq!((dom[0].pattern, dom[1].usable), (Pattern::Mdt, false));
    let plain = parse(include_str!("recorded/plain.yaml"));
    assert_eq!((plain.len(), &plain[0].osts[..], plain[0].stripe_size), (1, &[3, 7][..], 4 * MIB));
    assert_eq!(getstripe::parse("lfs getstripe: cannot open"), None);
}

#[test]
fn targets_are_told_by_the_clients_tables() {
    assert_eq!(file_system_of("10.0.0.1@tcp:10.0.0.2@tcp:/lfs1/folder"), "lfs1");
    let line = "osc.lfs1-OST001a-osc-ffff88003c5e8000.ost_conn_uuid=10.0.0.5@o2ib";
    assert_eq!(lctl_line("lfs1", line), Some((26, "10.0.0.5".into())));
    assert_eq!(lctl_line("lfs", line), None);
    assert_eq!(target("lfs1", "lfs1-MDT0000-mdc-ffff88003c5e8000", "10.0.0.2@tcp\n"), Some((0, "10.0.0.2".into())));
}
