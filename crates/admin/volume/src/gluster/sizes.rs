//! Computes the bytes of a movement from the folders of the bricks. GlusterFS itself counts entries that are behind
//! and bytes that were moved, but never the remaining bytes.

use super::xml::GlusterVolume;
use crate::step::script;
use std::collections::BTreeMap;

/// Bytes by brick, as `HOST:PATH`; bricks without an answer are left out.
pub type Sizes = BTreeMap<String, u64>;

/// Sums up files, without GlusterFS's own folder and the pointers (mode 1000, empty) to files elsewhere. An
/// incomplete sum counts as unknown.
const HELD: &str = r#"
    for b; do printf '%s\t' "$b"
    { timeout 100 find "$b" -ignore_readdir_race -path "$b/.glusterfs" -prune -o -type f ! '(' -perm 1000 -size 0 ')' -printf '%s\n' && echo end; } |
    awk '$1 == "end" {e = 1; next} {s += $1} END {if (e) printf "%.0f\n", s; else print "?"}'
    done
"#;
/// The index of the files that other bricks of the set lack contains GFIDs as names. If it is a file, the entry of
/// that GFID is a hard link; if a folder, a symbolic link.
const BEHIND: &str = r#"
    export LC_ALL=C
    for b; do printf '%s\t' "$b"
    cd "$b/.glusterfs/indices/xattrop" 2>/dev/null || { echo '?'; continue; }
    ls -U | grep -E '^[0-9a-f]{8}-' | sed 's|^\(..\)\(..\).*|../../\1/\2/&|' | xargs -r stat -c '%s %F' 2>/dev/null |
    awk '/regular/ {s += $1} END {printf "%.0f\n", s}'
    done
"#;

/// Returns the query of each host for the bytes that its bricks hold.
pub fn held_questions(volume: &GlusterVolume) -> Vec<(String, Vec<String>)> {
    questions(volume, HELD)
}

/// Returns the query of each host for the bytes of files that its bricks have and other bricks of their sets lack.
pub fn behind_questions(volume: &GlusterVolume) -> Vec<(String, Vec<String>)> {
    questions(volume, BEHIND)
}

fn questions(volume: &GlusterVolume, text: &str) -> Vec<(String, Vec<String>)> {
    let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for brick in &volume.bricks {
        hosts.entry(&brick.host).or_default().push(&brick.path);
    }
    hosts.into_iter().map(|(host, paths)| (host.into(), script(text, &paths))).collect()
}

/// Adds a host's answer.
pub fn read(sizes: &mut Sizes, host: &str, text: &str) {
    let told = text.lines().filter_map(|l| l.rsplit_once('\t')).filter_map(|(b, n)| Some((b, n.parse().ok()?)));
    sizes.extend(told.map(|(brick, bytes)| (format!("{host}:{brick}"), bytes)));
}

/// Returns the largest value and the sum of the sizes that the bricks of a set reported.
fn of_set(set: &[super::xml::Brick], sizes: &Sizes) -> Option<(u64, u64)> {
    let told: Vec<u64> = set.iter().filter(|b| !b.arbiter).filter_map(|b| sizes.get(&b.word()).copied()).collect();
    Some((*told.iter().max()?, told.iter().sum()))
}

/// Returns the bytes of the files in sets with one of these bricks: each is moved once, whatever its copies.
pub fn to_drain(volume: &GlusterVolume, sizes: &Sizes, leaving: &[String]) -> Option<u64> {
    let sets = volume.sets().filter(|set| set.iter().any(|b| leaving.contains(&b.word())));
    sets.map(|set| Some(of_set(set, sizes)?.0)).sum()
}

/// Returns the bytes that sets hold above an even share. GlusterFS spreads names, not bytes: the moved bytes are only
/// near this.
pub fn to_spread(volume: &GlusterVolume, sizes: &Sizes) -> Option<u64> {
    let held: Vec<u64> = volume.sets().map(|set| Some(of_set(set, sizes)?.0)).collect::<Option<_>>()?;
    let fair = held.iter().sum::<u64>() / held.len().max(1) as u64;
    Some(held.iter().map(|h| h.saturating_sub(fair)).sum())
}

/// Returns the bytes of files that have a copy behind. Two bricks of a set lack different files; in sets of three or
/// more, the other bricks all name the same files.
pub fn behind(volume: &GlusterVolume, sizes: &Sizes) -> Option<u64> {
    let told: Vec<(u64, u64)> = volume.sets().filter_map(|set| of_set(set, sizes)).collect();
    let total = told.iter().map(|(most, sum)| if volume.copies() > 2 { most } else { sum }).sum();
    (!told.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::super::xml::Brick;
    use super::*;

    fn volume(hosts: &[&str], set_size: usize) -> GlusterVolume {
        let brick = |h: &&str| Brick { host: h.to_string(), path: "/b/data".into(), arbiter: false };
        GlusterVolume {
            name: "data".into(),
            set_size,
            bricks: hosts.iter().map(brick).collect(),
            ..GlusterVolume::default()
        }
    }

    fn brick_sizes(each: &[(&str, u64)]) -> Sizes {
        let mut sizes = Sizes::new();
        each.iter().for_each(|(h, n)| read(&mut sizes, h, &format!("/b/data\t{n}\n")));
        sizes
    }

    #[test]
    fn copies_are_counted_once() {
        let two = volume(&["n1", "n2", "n3", "n4"], 2);
        let sizes = brick_sizes(&[("n1", 100), ("n2", 90), ("n3", 20), ("n4", 20)]);
        assert_eq!(to_drain(&two, &sizes, &["n2:/b/data".into()]), Some(100));
        assert_eq!(to_spread(&two, &sizes), Some(40));
        // n1 has 5 that n2 lacks, and n2 has 7 that n1 lacks.
        assert_eq!(behind(&two, &brick_sizes(&[("n1", 5), ("n2", 7)])), Some(12));
        assert_eq!(behind(&volume(&["n1", "n2", "n3"], 3), &brick_sizes(&[("n1", 5), ("n2", 5), ("n3", 0)])), Some(5));
    }

    #[test]
    fn what_was_not_told_is_unknown() {
        let one = volume(&["n1", "n2"], 1);
        let mut sizes = brick_sizes(&[("n1", 100)]);
        assert_eq!((to_spread(&one, &sizes), to_drain(&one, &sizes, &["n2:/b/data".into()])), (None, None));
        read(&mut sizes, "n2", "/b/data\t?\n");
        assert_eq!(to_spread(&one, &sizes), None);
        assert_eq!(behind(&one, &Sizes::new()), None);
    }

    /// Runs the scripts on a folder that looks like a brick.
    #[test]
    fn a_brick_is_added_up_as_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let brick = folder.path().join("it's a brick");
        let make = r#"mkdir -p "$1/d" "$1/.glusterfs/indices/xattrop" "$1/.glusterfs/ab/cd" && cd "$1" || exit
            head -c 1000 /dev/zero > d/f; head -c 500 /dev/zero > g; : > pointer; chmod 1000 pointer
            id=abcd1111-0000-4000-8000-000000000000; ln d/f .glusterfs/ab/cd/$id
            ln -s ../../../d .glusterfs/ab/cd/abcd2222-0000-4000-8000-000000000000
            cd .glusterfs/indices/xattrop; : > xattrop-77; : > $id; : > abcd2222-0000-4000-8000-000000000000"#;
        let path = brick.to_str().unwrap();
        let run = |argv: Vec<String>| {
            let said = std::process::Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
            assert!(said.status.success(), "{said:?}");
            String::from_utf8(said.stdout).unwrap()
        };
        run(script(make, &[path]));
        assert_eq!(run(script(HELD, &[path, "/nowhere"])), format!("{path}\t1500\n/nowhere\t?\n"));
        assert_eq!(run(script(BEHIND, &[path, "/nowhere"])), format!("{path}\t1000\n/nowhere\t?\n"));
    }
}
