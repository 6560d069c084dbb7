use super::*;
use crate::plan::plan;
use crate::wanted::HostRequirement;
use crate::{MountState, Undone, undo};

const NAME: &str = "/dev/disk/by-id/ata-WD-1";
const BLANK: &str = "node /dev/sdb\nid WD-1\nmodel WDC WD40\nbytes 4000787030016\n";

fn host(facts: &str) -> Observed {
    let mut seen = Observed::default();
    seen.disks.extend(DiskFacts::read(facts).map(|disk| (NAME.to_string(), disk)));
    seen
}

fn fs() -> DiskFs {
    DiskFs { kind: "ext4".into(), uuid: DiskFacts::read(BLANK).unwrap().uuid("n1", NAME) }
}

fn own() -> String {
    format!("{BLANK}sign ext4 /dev/sdb {}\n", fs().uuid)
}

fn wanted(wipe: Option<&str>) -> [HostRequirement; 1] {
    [HostRequirement::Disk { name: NAME.into(), fs: fs(), wipe: wipe.map(String::from) }]
}

/// The description of the single step, or the objections to it.
fn plan_description(facts: &str, wipe: Option<&str>) -> Result<String, String> {
    match plan(&wanted(wipe), &mut host(facts)) {
        Ok(steps) => Ok(steps.iter().map(|step| step.change.description()).collect()),
        Err(why) => Err(why.join("; ")),
    }
}

#[test]
fn a_disk_that_holds_nothing_gets_its_file_system_and_then_nothing_is_left_to_do() {
    let made = format!("disk {NAME} (WDC WD40, 4.0 TB, WD-1): ext4 is made");
    assert_eq!(plan_description(BLANK, None), Ok(made.clone()));
    assert_eq!(plan_description(BLANK, Some("WD-1")), Ok(made), "there is nothing to erase");
    for there in [own(), format!("{}use mounted at /data\n", own())] {
        assert!(
            plan_description(&there, None).unwrap().ends_with("the ext4 that homing made on it is kept"),
            "its id is noted"
        );
        assert_eq!(plan(&wanted(None), &mut taken(&there)), Ok(Vec::new()));
    }
    let mut seen = host(BLANK);
    let step = plan(&wanted(None), &mut seen).unwrap().remove(0);
    seen.journal.push(("00000001.json".into(), step.change));
    assert_eq!(plan(&wanted(None), &mut seen), Ok(Vec::new()));
}

#[test]
fn whatever_a_disk_holds_stands_against_it_until_its_own_serial_number_is_said() {
    let all = [
        ("sign ext4 /dev/sdb 0-1\n", "ext4"),
        ("sign gpt /dev/sdb \nsign gpt /dev/sdb \nsign ntfs /dev/sdb1 77\n", "gpt, ntfs on /dev/sdb1"),
        ("sign LVM2_member /dev/sdb 7\n", "LVM2_member"),
        ("sign linux_raid_member /dev/sdb 7\n", "linux_raid_member"),
        ("sign zfs_member /dev/sdb 7\n", "zfs_member"),
        ("sign swap /dev/sdb 7\n", "swap"),
        ("hidden ext4 that begins at byte 1048576\n", "ext4 that begins at byte 1048576"),
        ("data at byte 0 and behind it\n", "bytes at byte 0 and behind it that are not zero"),
        ("data at byte 4000785981440 and behind it\n", "bytes at byte 4000785981440 and behind it that are not zero"),
    ];
    for (line, holds) in all {
        let facts = format!("{BLANK}{line}");
        let why = plan_description(&facts, None).unwrap_err();
        assert!(why.contains(&format!("it holds {holds}; to erase all of that, set wipe = \"WD-1\"")), "{why}");
        let why = plan_description(&facts, Some("WD-2")).unwrap_err();
        assert!(why.contains("wipe names \"WD-2\", which is another disk"), "{why}");
        assert!(plan_description(&facts, Some("")).is_err(), "{line}");
        let done = plan_description(&facts, Some("WD-1")).unwrap();
        assert!(done.contains(&format!("EVERYTHING ON IT IS ERASED ({holds}), ext4 is made")), "{done}");
    }
}

#[test]
fn no_word_sets_aside_that_a_disk_is_in_use_the_roots_or_unfit() {
    let all = [
        ("root\n", "it holds the root file system"),
        ("use mounted at /srv\n", "it is in use (mounted at /srv)"),
        ("use swap\n", "it is in use (swap)"),
        ("use part of dm-0\nuse part of md1\n", "it is in use (part of dm-0, part of md1)"),
        ("use somebody's, the kernel says\n", "it is in use (somebody's"),
        ("not writable\n", "it is not writable"),
        ("not a whole disk, but a partition\n", "it is not a whole disk"),
        ("not large enough\n", "it is not large enough"),
        ("unread /dev/sdb1\n", "/dev/sdb1 cannot be read, so its content is unknown"),
    ];
    for (line, why) in all {
        for wipe in [None, Some("WD-1")] {
            for more in ["", "sign ext4 /dev/sdb 7\n"] {
                let against = plan_description(&format!("{BLANK}{line}{more}"), wipe).unwrap_err();
                assert!(against.contains(why) && !against.contains("wipe ="), "{line}: {against}");
            }
        }
        // A file system that homing has begun on it lifts no objection.
        let half = format!("{BLANK}{line}begun {}\n", fs().uuid);
        assert!(plan_description(&half, None).is_err(), "{line}");
    }
    let nameless = BLANK.replace("id WD-1", "id ") + "sign ext4 /dev/sdb 7\n";
    for wipe in [None, Some("")] {
        assert!(plan_description(&nameless, wipe).is_err(), "no serial number, no word for it");
    }
    assert!(plan_description(&nameless, None).unwrap_err().contains("blkdiscard -z /dev/sdb"));
}

#[test]
fn half_of_homings_own_is_made_again_and_nobody_elses_bytes_are_taken_for_it() {
    let half = format!("{BLANK}data at byte 0 and behind it\nbegun {}\n", fs().uuid);
    assert!(plan_description(&half, None).unwrap().ends_with("WD-1): ext4 is made"));
    // XFS writes its UUID first.
    assert!(plan_description(&format!("{}empty\nbegun {}\n", own(), fs().uuid), None).unwrap().ends_with("is made"));
    let theirs = format!("{BLANK}sign xfs /dev/sdb 7\nbegun {}\n", fs().uuid);
    assert!(plan_description(&theirs, None).unwrap_err().contains("it holds xfs"));
    let other = format!("{BLANK}data at byte 0 and behind it\nbegun 0-1\n");
    assert!(plan_description(&other, None).unwrap_err().contains("it holds bytes"));
    let full = format!("{}begun {}\n", own(), fs().uuid);
    assert!(plan_description(&full, None).unwrap().ends_with("is kept"), "somebody has put files into it: it is whole");
}

#[test]
fn the_word_to_erase_a_disk_is_good_for_what_was_there_then() {
    let theirs = format!("{BLANK}sign xfs /dev/sdb 7\n");
    let again = |facts: &str| plan(&wanted(Some("WD-1")), &mut taken(facts));
    let why = again(&theirs).unwrap_err().remove(0);
    assert!(why.contains("xfs was put there since"), "{why}");
    let killed = format!("{theirs}begun {}\n", fs().uuid);
    assert_eq!(again(&killed).unwrap().len(), 1, "it was being erased");
    assert_eq!(again(BLANK).unwrap().len(), 1);
}

/// Facts of a host on which homing has made a file system on this disk.
fn taken(facts: &str) -> Observed {
    let step = plan(&wanted(None), &mut host(BLANK)).unwrap().remove(0);
    Observed { journal: vec![("00000001.json".into(), step.change)], ..host(facts) }
}

#[test]
fn a_disk_that_is_gone_or_another_is_named_and_nothing_is_done() {
    let against = |seen: &mut Observed, wipe| plan(&wanted(wipe), seen).unwrap_err().join("; ");
    assert_eq!(against(&mut host(""), None), format!("there is no disk {NAME}"));
    let gone = against(&mut taken(""), None);
    assert!(gone.ends_with("homing made a file system on WD-1, which is gone"), "{gone}");
    let other = BLANK.replace("WD-1", "WD-2");
    let why = against(&mut taken(&other), None);
    assert!(
        why.contains("a file system on WD-1, and this is another disk") && why.contains("wipe = \"WD-2\""),
        "{why}"
    );
    assert!(against(&mut taken(&other), Some("WD-1")).contains("another disk"));
    assert_eq!(plan(&wanted(Some("WD-2")), &mut taken(&other)).unwrap().len(), 1, "it was said");
    let why = plan_description(&own().replace("sign ext4", "sign xfs"), None).unwrap_err();
    assert!(why.contains("is xfs, and homing does not change its type"), "{why}");
}

#[test]
fn the_way_back_takes_no_file_of_anybodys() {
    let back = |facts: &str| undo(&taken(facts));
    let empty = back(&format!("{}use mounted at /data\nempty\n", own()));
    assert!(
        empty.stay.is_empty() && empty.steps[0].change.description().contains("its empty file system is removed"),
        "{empty:?}"
    );
    for (facts, why) in [(own(), "with the files in it"), (String::new(), "is missing")] {
        let Undone { steps, void, changed, stay } = back(&facts);
        assert_eq!((steps.len(), changed.len(), void.len()), (0, 0, 1));
        assert!(stay.len() == 1 && stay[0].contains(why), "{stay:?}");
    }
    // A file system that stayed from before stays, with files or without.
    let mut again = host(&format!("{}empty\n", own()));
    let kept = plan(&wanted(None), &mut again).unwrap().remove(0).change;
    again.journal.push(("00000001.json".into(), kept));
    assert!(undo(&again).steps.is_empty() && undo(&again).stay.len() == 1);
    let theirs = back(&format!("{BLANK}sign btrfs /dev/sdb 7\n"));
    assert_eq!((theirs.steps.len(), theirs.void.len(), theirs.stay.len()), (0, 1, 0), "it is somebody else's now");
}

#[test]
fn a_disk_that_is_gone_holds_up_no_way_back() {
    let state = |exists, mounted| MountState { exists, mounted };
    let (from, to) = (state(false, false), state(true, true));
    let mut seen = taken("");
    let mount = HostChange::Mount { point: "/data".into(), from, to, over: None, disk: true };
    seen.journal.push(("00000002.json".into(), mount));
    seen.mounts.insert("/data".into(), (state(true, false), false));
    let Undone { steps, changed, .. } = undo(&seen);
    let away = HostChange::Mount { point: "/data".into(), from: state(true, false), to: from, over: None, disk: true };
    assert_eq!((steps[0].change.clone(), changed.len()), (away, 0));
}

#[test]
fn a_uuid_is_of_one_host_and_one_disk() {
    let disk = DiskFacts::read(BLANK).unwrap();
    let uuid = disk.uuid("n1", NAME);
    assert_eq!((uuid.len(), &uuid[14..15], uuid.matches('-').count()), (36, "8", 4));
    assert_eq!(uuid, disk.uuid("n1", "/dev/sdb"), "whatever it is called");
    assert_ne!(uuid, disk.uuid("n2", NAME));
    assert_ne!(uuid, DiskFacts { id: "WD-2".into(), ..disk }.uuid("n1", NAME));
}

/// Runs on this machine, where the root file system lies on a disk.
#[test]
fn the_disk_of_the_root_file_system_is_known_for_it() {
    let say = |program: &str, words: &[&str]| {
        let output = std::process::Command::new(program).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    let source = say("findmnt", &["-nvro", "SOURCE", "/"]);
    if !source.starts_with("/dev/") {
        return;
    }
    let below = say("lsblk", &["-snro", "NAME,TYPE", &source]);
    let whole: Vec<&str> = below.lines().filter_map(|line| line.strip_suffix(" disk")).collect();
    for name in whole {
        let question = crate::FactQuery { disks: [format!("/dev/{name}")].into(), ..crate::FactQuery::default() };
        let seen = Observed::read(&say("sh", &["-c", &question.script()])).unwrap();
        let disk = &seen.disks[&format!("/dev/{name}")];
        assert!(disk.is_root && !disk.uses.is_empty(), "{disk:?}");
        assert!(disk.mounted_at().any(|point| point == "/") || disk.node != source, "{disk:?}");
    }
}

/// Runs functions about disks on this machine.
fn look(command: &str) -> String {
    let text = format!("PATH=$PATH:/usr/sbin:/sbin; export LC_ALL=C\n{}\n{command}", include_str!("../disk.sh"));
    let done = std::process::Command::new("sh").args(["-c", &text]).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn bytes_anywhere_on_a_disk_are_found() {
    use std::os::unix::fs::FileExt;
    const MIB: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    for size in [20 * MIB, 300 * MIB] {
        for (at, bytes) in [(32256, 16), (MIB + 1024, 1000), (size / 2, 2 * MIB), (10 * MIB, MIB), (size - 1, 1)] {
            let file = std::fs::File::create(&path).unwrap();
            file.set_len(size).unwrap();
            let zero = || look(&format!("disk_zero {} {size}", path.display()));
            let print = || look(&format!("disk_print {} {size}", path.display()));
            assert_eq!(zero(), "", "{size}");
            let blank = print();
            file.write_all_at(&vec![0xa5; bytes as usize], at).unwrap();
            let found = zero();
            let first =
                found.strip_prefix("data at byte ").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            assert!(first.is_some_and(|first| (at..at + bytes).contains(&first)), "{at} of {size}: {found}");
            assert_ne!(print(), blank);
        }
    }
    let places: Vec<u64> =
        look("disk_places 4000787030016").lines().filter_map(|l| l.split(' ').next()?.parse().ok()).collect();
    assert!(places.len() > 200 && places.is_sorted(), "{places:?}");
}
