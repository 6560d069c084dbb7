//! The tables of LSF's commands.

use crate::BatchNode;
use std::collections::HashMap;

/// Returns the rows of a table below its header, each word by the name of its column. The words after the last column
/// belong to it.
fn rows(text: &str) -> impl Iterator<Item = HashMap<&str, &str>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("HOST_NAME"));
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    lines
        .filter(|line| !line.trim().is_empty())
        .map(move |line| header.iter().copied().zip(line.split_whitespace()).collect())
}

/// Returns the nodes from the tables of `bhosts -w` and `lshosts -w`.
pub fn nodes(bhosts: &str, lshosts: &str) -> Vec<BatchNode> {
    let kinds: HashMap<&str, (u32, u64)> = rows(lshosts)
        .filter_map(|row| {
            let cpus = row.get("ncpus").and_then(|text| text.parse().ok()).unwrap_or(0);
            Some((*row.get("HOST_NAME")?, (cpus, row.get("maxmem").map_or(0, |text| mib(text)))))
        })
        .collect();
    rows(bhosts).filter_map(|row| node(&row, &kinds)).collect()
}

fn node(row: &HashMap<&str, &str>, kinds: &HashMap<&str, (u32, u64)>) -> Option<BatchNode> {
    let (name, status) = (*row.get("HOST_NAME")?, *row.get("STATUS")?);
    let (ncpus, memory_mb) = kinds.get(name).copied().unwrap_or_default();
    let count = |column: &str| row.get(column).and_then(|text| text.parse::<u32>().ok());
    // No limit of job slots: as many as processors.
    let cpus = count("MAX").unwrap_or(ncpus);
    let used = count("NJOBS").unwrap_or(0);
    let idle_cpus = if status == "ok" { cpus.saturating_sub(used) } else { 0 };
    Some(BatchNode {
        name: name.into(),
        aliases: Vec::new(),
        state: state(status, used).into(),
        idle_cpus,
        cpus,
        memory_mb,
        // LSF has no common way to count them; a request names their number.
        gpus: u32::MAX,
        reason: if status == "ok" { String::new() } else { format!("its status in LSF is {status}") },
    })
}

/// Returns the state in the words of [`BatchNode`]. A host that is full, or busy for now, takes jobs later.
fn state(status: &str, used: u32) -> &'static str {
    match status {
        "ok" if used == 0 => "idle",
        "ok" => "mixed",
        "closed_Full" | "closed_Excl" | "closed_cu_Excl" | "closed_Busy" | "closed" => "allocated",
        "closed_Adm" | "closed_EGO" | "closed_Lock" | "closed_Wind" => "drained",
        _ => "down",
    }
}

/// Returns the hosts that an administrator has closed, with the reason, from `bhosts -w`.
pub fn closed(bhosts: &str) -> Vec<(String, String)> {
    let of = |row: HashMap<&str, &str>| {
        let (name, status) = (*row.get("HOST_NAME")?, *row.get("STATUS")?);
        (state(status, 0) == "drained").then(|| (name.to_string(), format!("its status in LSF is {status}")))
    };
    rows(bhosts).filter_map(of).collect()
}

/// Leaves the nodes of a queue, from `bqueues -l`: its line `HOSTS:` has `all`, or names. Groups and other words leave
/// all nodes; LSF itself refuses a host outside of the queue.
pub fn of_queue(nodes: Vec<BatchNode>, bqueues: &str) -> Vec<BatchNode> {
    let Some(list) = bqueues.lines().find_map(|line| line.trim().strip_prefix("HOSTS:")) else { return nodes };
    // `n1+2`: a preference.
    let names: Vec<&str> = list.split_whitespace().map(|word| word.split('+').next().unwrap_or(word)).collect();
    let known = |name: &&str| nodes.iter().any(|node| node.is_called(name));
    match !names.is_empty() && names.iter().all(known) {
        true => nodes.into_iter().filter(|node| names.iter().any(|name| node.is_called(name))).collect(),
        false => nodes,
    }
}

/// Returns the hosts of a reservation, from `brsvs -w`: its last words are `USED/ALL:HOST`.
pub fn reserved(brsvs: &str) -> Vec<String> {
    let words = brsvs.lines().skip_while(|line| !line.starts_with("RSVID")).skip(1).flat_map(str::split_whitespace);
    let host = |word: &str| {
        let (counts, host) = word.split_once(':')?;
        let is_count = |text: &str| text == "-" || text.bytes().all(|byte| byte.is_ascii_digit());
        let (used, all) = counts.split_once('/')?;
        (is_count(used) && is_count(all)).then(|| host.to_string())
    };
    words.filter_map(host).collect()
}

/// Reads a size of memory, `24105M` or `23.5G`, in MiB; 0 if it is unknown (`-`).
fn mib(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - usize::from(text.ends_with(char::is_alphabetic)));
    let factor = match unit {
        "K" => 1.0 / 1024.0,
        "G" => 1024.0,
        "T" => 1024.0 * 1024.0,
        _ => 1.0,
    };
    number.parse::<f64>().map_or(0, |number| (number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from OpenLava 4.0, with states that its manual lists.
    const BHOSTS: &str = "\
HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
n1                 ok              -      2      0      0      0      0      0
n2                 closed_Full     -      2      2      2      0      0      0
n3                 closed_Adm      -      -      0      0      0      0      0
n4                 ok              -      -      1      1      0      0      0
n5                 unavail         -      2      0      0      0      0      0
";
    const LSHOSTS: &str = "\
HOST_NAME                       type       model  cpuf ncpus maxmem maxswp server RESOURCES
n1                             linux    IntelI5 100.0     2 24105M      -    Yes (cs)
n4                             linux    IntelI5 100.0     8   1.5T      -    Yes (cs)
n5                             linux    IntelI5 100.0     -      -      -    Yes (cs)
";

    #[test]
    fn hosts_have_the_slots_and_the_states_of_the_table() {
        let nodes = nodes(BHOSTS, LSHOSTS);
        let of = |name: &str| nodes.iter().find(|node| node.name == name).unwrap();
        let room = |name: &str| (of(name).idle_cpus, of(name).cpus, of(name).memory_mb);
        assert_eq!((room("n1"), room("n2")), ((2, 2, 24_105), (0, 2, 0)));
        assert_eq!(room("n4"), (7, 8, 1_572_864), "without a limit of slots, the processors count");
        let usable: Vec<&str> = nodes.iter().filter(|n| n.is_usable(false)).map(|n| n.name.as_str()).collect();
        assert_eq!(usable, ["n1", "n2", "n4"], "a full host is free again later");
        assert_eq!(closed(BHOSTS), [("n3".into(), "its status in LSF is closed_Adm".into())]);
        assert!(super::nodes("batch system daemon not responding", "").is_empty());
    }

    #[test]
    fn a_queue_has_all_hosts_or_those_that_it_names() {
        let of = |line: &str| {
            let nodes = of_queue(nodes(BHOSTS, LSHOSTS), &format!("QUEUE: q\n  -- a queue\nUSERS:  all\n{line}\n"));
            nodes.into_iter().map(|node| node.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("HOSTS:  n2 n4+1"), "n2 n4");
        for all in ["HOSTS:  all", "HOSTS:  fast/", "HOSTS:  n2 others", ""] {
            assert_eq!(of(all), "n1 n2 n3 n4 n5", "{all}");
        }
    }

    #[test]
    fn hosts_of_a_reservation() {
        let text = "RSVID      TYPE      USER     NCPUS       RSV_HOSTS  TIME_WINDOW\n\
                    user1#0    user      user1     0/2        0/1:n1     11/12/14/0-11/12/18/0\n\
                    \x20                                        -/1:n2\n";
        assert_eq!(reserved(text), ["n1", "n2"]);
    }
}
