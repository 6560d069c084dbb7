use super::*;
use crate::volfile;
use proptest::prelude::*;

// Recorded from GlusterFS 10.3 on one host (brick folders and authentication shortened). A value is the result of
// getxattr, with its NUL.
const REP: &str = include_str!("../../../tests/fixtures/rep.vol");
const ARB: &str = include_str!("../../../tests/fixtures/arb.vol");
const SHARD: &str = include_str!("../../../tests/fixtures/sh.vol");
const PLAIN: &[u8] =
    b"(<DISTRIBUTE:rep-dht> (<REPLICATE:rep-replicate-1> <POSIX(/bricks/4/rep):gxhost:/bricks/4/rep/f> \
    <POSIX(/bricks/3/rep):gxhost:/bricks/3/rep/f>))\0";
const ODD: &[u8] =
    b"(<DISTRIBUTE:rep-dht> (<REPLICATE:rep-replicate-1> <POSIX(/bricks/4/rep):gxhost:/bricks/4/rep/a b>c<d(e):f)> \
    <POSIX(/bricks/3/rep):gxhost:/bricks/3/rep/a b>c<d(e):f)>))\0";
const NEWLINE: &[u8] =
    b"(<DISTRIBUTE:rep-dht> (<REPLICATE:rep-replicate-0> <POSIX(/bricks/2/rep):gxhost:/bricks/2/rep/new\nline> \
    <POSIX(/bricks/1/rep):gxhost:/bricks/1/rep/new\nline>))\0";
const ARBITER: &[u8] = b"(<REPLICATE:arb-replicate-0> <POSIX(/bricks/2/arb):gxhost:/bricks/2/arb/big> \
    <POSIX(/bricks/3/arb):gxhost:/bricks/3/arb/big> <POSIX(/bricks/1/arb):gxhost:/bricks/1/arb/big>)\0";
const ALONE: &[u8] = b"(<DISTRIBUTE:sh-dht> <POSIX(/bricks/1/sh):gxhost:/bricks/1/sh/big>)\0";

fn dirs(text: &str, value: &[u8], real: &[u8]) -> Result<Vec<String>, String> {
    let definition = volfile::parse(text).unwrap();
    let found = holders(&definition, value, &|| Some(real.to_vec()), &|_, _| None)?;
    Ok(found.bricks.iter().filter(|b| !b.arbiter).map(|b| b.dir.clone()).collect())
}

#[test]
fn recorded_values() {
    assert_eq!(dirs(REP, PLAIN, b"/f").unwrap(), ["/bricks/3/rep", "/bricks/4/rep"]);
    assert_eq!(dirs(REP, ODD, b"/a b>c<d(e):f)").unwrap(), ["/bricks/3/rep", "/bricks/4/rep"]);
    assert_eq!(dirs(REP, NEWLINE, b"/new\nline").unwrap(), ["/bricks/1/rep", "/bricks/2/rep"]);
    assert_eq!(dirs(ARB, ARBITER, b"/big").unwrap(), ["/bricks/1/arb", "/bricks/2/arb"], "an arbiter holds nothing");
    assert_eq!(dirs(SHARD, ALONE, b"/big").unwrap(), ["/bricks/1/sh"]);
}

#[test]
fn a_value_of_another_volume_is_refused() {
    assert!(dirs(ARB, PLAIN, b"/f").is_err());
    assert!(dirs(REP, b"", b"/f").is_err());
    assert!(
        dirs(REP, b"(<DISTRIBUTE:rep-dht> (<REPLICATE:rep-replicate-1> <POSIX(/else):gxhost:/else/f>))", b"/f")
            .is_err()
    );
}

/// The usual cluster: four hosts with the same brick folder.
const USUAL: &str = "volume v-client-0\n type protocol/client\n option remote-subvolume /b\n option remote-host n1\nend-volume\n\
    volume v-client-1\n type protocol/client\n option remote-subvolume /b\n option remote-host n2\nend-volume\n\
    volume v-client-2\n type protocol/client\n option remote-subvolume /b\n option remote-host n3\nend-volume\n\
    volume v-client-3\n type protocol/client\n option remote-subvolume /b\n option remote-host n4\nend-volume\n\
    volume v-replicate-0\n type cluster/replicate\n subvolumes v-client-0 v-client-1\nend-volume\n\
    volume v-replicate-1\n type cluster/replicate\n subvolumes v-client-2 v-client-3\nend-volume\n";

fn by_name(told: &str, defined: &[&str]) -> Option<usize> {
    defined.iter().position(|d| *d == told)
}

fn hosts(value: &[u8], real: Option<&[u8]>) -> Result<Vec<String>, String> {
    let definition = volfile::parse(USUAL).unwrap();
    let found = holders(&definition, value, &|| real.map(<[u8]>::to_vec), &by_name)?;
    Ok(found.bricks.iter().map(|b| b.host.clone()).collect())
}

/// Formats the value as GlusterFS does for a path on bricks that answered.
fn value(group: usize, answered: &[&str], below: &[u8]) -> Vec<u8> {
    let mut out = format!("(<DISTRIBUTE:v-dht> (<REPLICATE:v-replicate-{group}>").into_bytes();
    for host in answered {
        out.extend(format!(" <POSIX(/b):{host}:/b").bytes());
        out.extend(below);
        out.push(b'>');
    }
    out.extend(b"))\0");
    out
}

#[test]
fn a_brick_that_is_down_is_not_named() {
    assert_eq!(hosts(&value(1, &["n4"], b"/f"), None).unwrap(), ["n4"]);
    assert_eq!(hosts(&value(1, &["n3"], b"/f"), None).unwrap(), ["n3"]);
}

#[test]
fn strange_names_join_when_all_answered_and_else_say_so() {
    assert_eq!(hosts(&value(0, &["x", "y"], b"/f"), Some(b"/f")).unwrap(), ["n1", "n2"]);
    let reason = hosts(&value(0, &["x"], b"/f"), None).unwrap_err();
    assert!(reason.contains("calls itself x"), "{reason}");
}

#[test]
fn a_name_that_imitates_an_entry_is_cut_by_its_real_path_or_to_what_is_certain() {
    // n4 answered alone; the name pretends that n3 answered too.
    let evil = b"/x> <POSIX(/b):n3:/b/x";
    let told = value(1, &["n4"], evil);
    assert_eq!(hosts(&told, Some(evil)).unwrap(), ["n4"]);
    assert_eq!(hosts(&told, None).unwrap(), ["n4"]);
    assert_eq!(hosts(&told, Some(b"/x")).unwrap(), ["n3", "n4"], "an honest file of that name reads the same");
}

#[test]
fn hard_links_that_bricks_name_differently_leave_the_certain_entry() {
    let told = b"(<REPLICATE:v-replicate-0> <POSIX(/b):n2:/b/one> <POSIX(/b):n1:/b/other/link>)\0";
    assert_eq!(hosts(told, None).unwrap(), ["n2"]);
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> =
        vec![b"> <POSIX(/b):", b"n1:", b"n3:", b"evil:", b"/b/x", b">", b"))", b" ", b"<REPLICATE:v-replicate-0>"];
    prop_oneof![prop::sample::select(words).prop_map(<[u8]>::to_vec), prop::collection::vec(1u8..=255, 0..8)]
}

proptest! {
    #[test]
    fn whatever_a_file_is_called_it_lies_where_it_lies(
        pieces in prop::collection::vec(piece(), 0..12), second in any::<bool>(), both in any::<bool>(),
    ) {
        let below = [b"/".to_vec(), pieces.concat()].concat();
        let all: &[&str] = if second { &["n3", "n4"] } else { &["n1", "n2"] };
        let answered = if both { all } else { &all[1..] };
        let told = value(usize::from(second), answered, &below);
        prop_assert_eq!(hosts(&told, Some(&below)).unwrap(), answered);
        // Without the real path (a hard link) a copy may be missed, but none is invented.
        let found = hosts(&told, None).unwrap();
        prop_assert!(!found.is_empty() && found.iter().all(|h| answered.contains(&h.as_str())), "{:?}", found);
    }

    #[test]
    fn no_bytes_at_all_name_another_host(pieces in prop::collection::vec(piece(), 0..20)) {
        if let Ok(found) = hosts(&pieces.concat(), None) {
            prop_assert!(found.iter().all(|h| ["n1", "n2", "n3", "n4"].contains(&h.as_str())));
        }
    }
}
