use super::*;

/// From a cluster of three OSDs, of which one was stopped. Fields that are not read are left out.
const DUMP: &str = r#"{"epoch":18,"fsid":"d9c75e1a-c272-4e1b-8fcc-37ac8c86059a","pools":[
 {"pool":2,"pool_name":"data","type":1,"pg_num":32,"object_hash":2,"flags_names":"hashpspool","erasure_code_profile":"",
  "read_tier":-1},
 {"pool":4,"pool_name":"coded","type":3,"pg_num":8,"object_hash":2,"flags_names":"hashpspool,ec_overwrites",
  "erasure_code_profile":"two","read_tier":-1},
 {"pool":5,"pool_name":"tiered","type":1,"pg_num":8,"object_hash":2,"flags_names":"hashpspool","read_tier":6}],
 "osds":[{"osd":0,"up":1,"public_addr":"10.77.2.1:6801/947"},{"osd":1,"up":1,"public_addr":"[fd00::2]:6801/947"},
  {"osd":2,"up":0,"public_addr":"10.77.2.3:6801/947"}],
 "erasure_code_profiles":{"two":{"k":"2","m":"1","plugin":"jerasure"}}}"#;

fn map(group: &str, acting: &str) -> OsdMap {
    let line = format!("pool 2 pg_num 32\n{group} raw ([2,1], p2) up ([2,1], p2) acting {acting}\n#osd count\n");
    read(DUMP.as_bytes(), &line).unwrap()
}

fn hosts(map: &OsdMap, pool: &str, space: Option<&str>, from: ReadFrom) -> Vec<(String, f64)> {
    let replicas = map.replicas(map.pool(pool).unwrap(), space, OBJECT, from).unwrap();
    replicas.into_iter().map(|replica| (replica.host, replica.share)).collect()
}

const OBJECT: &str = "10000000000.00000000";

/// Hashes of names as `ceph osd map` of that cluster prints them.
#[test]
fn names_are_hashed_as_the_cluster_does() {
    for (name, told) in [
        ("a", 0x29ee_c818),
        ("abcdefghijk", 0xe52b_8e4c),
        ("abcdefghijkl", 0x0b1b_3ea5),
        ("abcdefghijklm", 0x3122_b031),
        ("10000000000.00000000", 0xf0b5_6f30),
        ("100000001f4.0000000a", 0xd529_7ca0),
        ("sp\u{1f}10000000000.00000000", 0xb084_4053),
    ] {
        assert_eq!(hash::rjenkins(name.as_bytes()), told, "{name:?}");
    }
}

#[test]
fn the_primary_is_read_unless_nearer_copies_may_be() {
    let number = hash::group(hash::rjenkins(OBJECT.as_bytes()), 32);
    let map = map(&format!("2.{number:x}"), "([1,0], p1)");
    assert_eq!(map.cluster, "d9c75e1a-c272-4e1b-8fcc-37ac8c86059a");
    assert_eq!(hosts(&map, "data", None, ReadFrom::Primary), [("fd00::2".into(), 1.0)]);
    assert_eq!(hosts(&map, "2", None, ReadFrom::Primary), [("fd00::2".into(), 1.0)], "by its number");
    let both = |share: f64| [("10.77.2.1".to_string(), share), ("fd00::2".to_string(), share)];
    assert_eq!(hosts(&map, "data", None, ReadFrom::Nearest), both(1.0));
    assert_eq!(hosts(&map, "data", None, ReadFrom::Any), both(0.5));
    assert!(map.pool("gone").is_err_and(|why| why.contains("no pool \"gone\"")));
    assert!(map.pool("tiered").is_err_and(|why| why.contains("cache tier")));
}

#[test]
fn of_shards_the_primary_has_its_own_and_a_group_may_have_lost_all() {
    let of = |pool: u64, groups| format!("{pool}.{:x}", hash::group(hash::rjenkins(OBJECT.as_bytes()), groups));
    let coded = map(&of(4, 8), "([0,2147483647,1], p0)");
    for from in [ReadFrom::Primary, ReadFrom::Nearest] {
        assert_eq!(hosts(&coded, "coded", None, from), [("10.77.2.1".into(), 0.5)]);
    }
    for lost in ["([], p-1)", "([2147483647], p-1)", "([2], p2)"] {
        assert_eq!(hosts(&map(&of(2, 32), lost), "data", None, ReadFrom::Nearest), []);
    }
    assert!(map("9.0", "([0], p0)").replicas(&coded.pools[&2], None, OBJECT, ReadFrom::Any).is_err());
}
