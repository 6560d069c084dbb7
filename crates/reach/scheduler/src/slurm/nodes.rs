//! The nodes that `sinfo` lists, and those of a reservation.

use crate::BatchNode;
use crate::allocation::expand;

/// The columns for `sinfo --noheader --BatchNode --format`; the reason comes last, since it is free text.
pub const SINFO_FORMAT: &str = "%N|%P|%T|%C|%m|%o|%n|%G|%E";

/// Parses the lines of `sinfo`: those of `partition`, else of the default partition (marked `*`), else of all. Lines
/// of another form are skipped.
pub fn parse_nodes(text: &str, partition: Option<&str>) -> Vec<BatchNode> {
    let rows: Vec<(&str, BatchNode)> = rows(text).collect();
    let has_default = rows.iter().any(|(p, _)| p.ends_with('*'));
    let wanted = |p: &str| match partition {
        Some(names) => names.split(',').any(|name| p.trim_end_matches('*') == name),
        None => !has_default || p.ends_with('*'),
    };
    let mut nodes: Vec<BatchNode> = Vec::new();
    for (partition, node) in rows {
        if wanted(partition) && !nodes.iter().any(|known| known.name == node.name) {
            nodes.push(node);
        }
    }
    nodes
}

/// Returns each line's partition and node; there is one line for each partition of a node.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = (&str, BatchNode)> {
    text.lines().filter_map(row)
}

fn row(line: &str) -> Option<(&str, BatchNode)> {
    let mut words = line.trim().splitn(9, '|');
    let (name, partition, state, cpus) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (memory, address, hostname) = (words.next()?, words.next()?, words.next()?);
    let (gpus, reason) = (gpus(words.next()?), words.next()?);
    let counts: Vec<u32> = cpus.split('/').filter_map(|n| n.parse().ok()).collect();
    let [_, idle_cpus, _, cpus] = counts[..] else { return None };
    // `4000+` means that nodes differ.
    let memory_mb = memory.trim_end_matches('+').parse().unwrap_or(0);
    let aliases = [address, hostname].into_iter().filter(|a| *a != name).map(String::from).collect();
    let reason = if reason == "none" { "" } else { reason };
    Some((
        partition,
        BatchNode {
            name: name.into(),
            aliases,
            state: state.into(),
            idle_cpus,
            cpus,
            memory_mb,
            gpus,
            reason: reason.into(),
        },
    ))
}

/// Counts the devices of a list of generic resources such as `gpu:a100:4(S:0,2),gpu:1,mps:400`, or `(null)`.
fn gpus(gres: &str) -> u32 {
    let mut depth = 0;
    let mut plain = String::new();
    for c in gres.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let count = |word: &str| {
        let mut parts = word.split(':');
        (parts.next() == Some("gpu")).then(|| parts.next_back().map_or(Some(1), |last| last.parse().ok()).unwrap_or(1))
    };
    plain.split(',').filter_map(count).fold(0u32, u32::saturating_add)
}

/// Returns the nodes of a reservation, from a line of `scontrol show reservation --oneliner`.
pub(crate) fn reserved(line: &str) -> Option<Vec<String>> {
    expand(line.split(' ').find_map(|word| word.strip_prefix("Nodes="))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Slurm 22.05; n3 was drained, slurmd of n4 killed.
    const SINFO: &str = "n1|lab*|idle|0/2/0/2|6026|n1|n1|(null)|none\nn1|urgent|idle|0/2/0/2|6026|n1|n1|(null)|none\n\
                         n2|lab*|mixed|1/1/0/2|6026|10.77.1.2|n2|(null)|none\nn3|lab*|drained|0/0/2/2|6026|n3|n3|(null)|disk | swap\n\
                         n4|lab*|down*|0/0/2/2|6026|n4|n4|(null)|Not responding\nm1|big|idle|0/64/0/64|500000+|m1|m1|(null)|none\n";

    #[test]
    fn the_default_partition_unless_another_is_named() {
        let names = |p| parse_nodes(SINFO, p).into_iter().map(|n| n.name).collect::<Vec<_>>();
        assert_eq!(names(None), ["n1", "n2", "n3", "n4"]);
        assert_eq!(names(Some("big,urgent")), ["n1", "m1"]);
        assert!(names(Some("nope")).is_empty());
        assert_eq!(parse_nodes("x|lab*|idle\n\nslurm_load error\n", None), []);
    }

    #[test]
    fn who_can_be_asked_for() {
        let nodes = parse_nodes(SINFO, None);
        let usable: Vec<bool> = nodes.iter().map(|n| n.is_usable(false)).collect();
        assert_eq!(usable, [true, true, false, false]);
        assert_eq!((nodes[1].idle_cpus, nodes[1].cpus), (1, 2));
        assert_eq!(nodes[2].reason, "disk | swap");
        assert_eq!(nodes[2].is_wanted_empty().as_deref(), Some("its state in Slurm is drained (disk | swap)"));
        assert_eq!(nodes[1].is_wanted_empty(), None);
        let state = |s: &str| BatchNode { state: s.into(), ..nodes[0].clone() };
        assert!(state("idle~").is_usable(false) && state("mixed-").is_usable(false));
        assert!(!state("idle*").is_usable(false) && !state("maint").is_usable(false));
        assert!(state("idle$").is_usable(true) && state("maint").is_usable(true));
    }

    #[test]
    fn graphics_processors_are_counted_among_the_generic_resources() {
        let lists =
            [("(null)", 0), ("gpu:2", 2), ("gpu:a100:4(S:0,2),gpu:t4:1", 5), ("gpu", 1), ("mps:400,gpu:tesla", 1)];
        lists.iter().for_each(|(list, count)| assert_eq!(gpus(list), *count, "{list}"));
    }

    #[test]
    fn storage_names_mean_nodes() {
        let nodes = parse_nodes(SINFO, None);
        assert!(nodes[1].is_called("10.77.1.2") && nodes[1].is_called("N2.example.org"));
        assert!(!nodes[1].is_called("10.77.1.3") && !nodes[0].is_called("n11"));
    }

    #[test]
    fn nodes_of_a_reservation() {
        // Recorded from Slurm 22.05.
        let line = "ReservationName=res1 StartTime=2026-11-21T11:56:20 EndTime=2026-11-21T12:56:20 Duration=01:00:00 \
                    Nodes=n[1,4] NodeCnt=2 CoreCnt=4 Features=(null) PartitionName=lab Flags=SPEC_NODES";
        assert_eq!(reserved(line), Some(vec!["n1".into(), "n4".into()]));
        assert_eq!(reserved("No reservations in the system"), None);
    }
}
