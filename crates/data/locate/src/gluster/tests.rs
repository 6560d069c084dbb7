use super::*;

const DISPERSED: &str = include_str!("../../tests/fixtures/di2.vol");
const ARBITER: &str = include_str!("../../tests/fixtures/arb.vol");

fn gluster(text: &str) -> Gluster {
    let definition = volfile::parse(text).unwrap();
    let bricks = Bricks::new(&definition, Path::new("/nowhere"));
    Gluster {
        lines: Vec::new(),
        volume: Mutex::new(Arc::new(Ok(GlusterConnections { definition, bricks, mount: PathBuf::new(), graph: None }))),
        names: AddressCache::by(|_| Vec::new()),
    }
}

#[test]
fn only_an_arbiter_is_no_place() {
    let gluster = gluster(ARBITER);
    let volume = gluster.volume();
    let GlusterConnections { definition, .. } = volume.as_ref().as_ref().unwrap();
    let place = |value: &[u8]| gluster.parse_pathinfo(definition, Path::new("/f"), value);
    let reason = place(b"(<REPLICATE:arb-replicate-0> <POSIX(/bricks/3/arb):gxhost:/bricks/3/arb/f>)\0").unwrap_err();
    assert!(reason.contains("arbiter"), "{reason}");
    let (one, _) = place(b"(<REPLICATE:arb-replicate-0> <POSIX(/bricks/2/arb):gxhost:/bricks/2/arb/f>)\0").unwrap();
    assert_eq!(one, [Replica { host: "gx.cluster".into(), share: 1.0 }]);
}

#[test]
fn a_dispersed_file_is_shared_out_when_its_subvolume_is_certain() {
    let spread = |hosts: [&str; 6]| {
        let mut text = DISPERSED.to_string();
        for (i, host) in hosts.iter().enumerate() {
            let brick = format!("remote-subvolume /bricks/{}/di2", i + 1);
            let (before, after) = text.split_once(&brick).unwrap();
            let before = before.rsplit_once("remote-host gx.cluster").unwrap();
            text = format!("{}remote-host {host}{}{brick}{after}", before.0, before.1);
        }
        let definition = volfile::parse(&text).unwrap();
        disperse::any(&definition).map(|group| replicas(group, group.bricks.iter()))
    };
    let replicas = spread(["n1", "n2", "n3", "n3", "n1", "n2"]).unwrap();
    let hosts: Vec<&str> = replicas.iter().map(|r| r.host.as_str()).collect();
    assert_eq!(hosts, ["n1", "n2", "n3"]);
    assert!(replicas.iter().all(|r| r.share == 0.5));
    assert!(spread(["n1", "n2", "n3", "n4", "n5", "n6"]).is_none(), "which of the two is not told");
}

#[test]
fn the_path_from_the_volumes_root_counts_folders_and_bind_mounts() {
    let dir = std::env::temp_dir().canonicalize().unwrap();
    let table = |source: &str, root: &str| {
        let text = format!("1 0 0:50 {root} {} rw - fuse.glusterfs {source} rw\n", dir.display());
        below(&homing_mounts::parse(text.as_bytes()), &dir.join(".")).unwrap()
    };
    assert_eq!(table("n1:/v", "/"), b"/");
    assert_eq!(table("n1:v/sub", "/"), b"/sub/");
    assert_eq!(table("n1:/v/sub", "/bound"), b"/sub/bound/");
}

#[test]
fn bricks_with_whole_files_are_told_and_others_are_not() {
    let sets = |text: &str| whole_files(&volfile::parse(text).unwrap());
    let brick = |n: u32| ("gx.cluster".to_string(), PathBuf::from(format!("/bricks/{n}/arb")));
    assert_eq!(sets(ARBITER).unwrap(), [[brick(1), brick(2)]], "an arbiter has names only");
    assert_eq!(sets(DISPERSED), None, "its bricks have fragments");
    let cut = format!("{ARBITER}\nvolume arb-shard\n    type features/shard\n    subvolumes arb-dht\nend-volume\n");
    assert_eq!(sets(&cut), None, "its bricks have shards");
}
