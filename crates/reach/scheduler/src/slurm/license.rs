//! Slurm's licences: counted resources that jobs share and that belong to no node, such as a file server.

use std::collections::BTreeMap;

/// A licence that Slurm counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct License {
    /// `nas`, or `nas@slurmdb` for one of several clusters.
    pub name: String,
    /// Number for all jobs together.
    pub total: u32,
    /// Number that jobs have now.
    pub used: u32,
    /// The number that the running jobs of each user of this cluster have.
    pub users: BTreeMap<String, u32>,
}

/// Whether this can be the name of a licence.
pub fn is_license(name: &str) -> bool {
    let (own, server) = name.split_once('@').unwrap_or((name, "any"));
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    plain(own) && plain(server)
}

/// Parses the licences of a job, such as `nas:2,scratch@slurmdb`: names with numbers, by default 1.
pub fn taken(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let words = text.split(',').filter(|word| !word.is_empty() && *word != "(null)");
    words.map(|word| word.split_once([':', '*']).map_or((word, 1), |(name, n)| (name, n.parse().unwrap_or(1))))
}

/// Parses the lines of `scontrol show licenses --oneliner`, and the users' numbers from those of `squeue --format
/// '%u|%W'`. Lines of another form are skipped.
pub fn parse_licenses(text: &str, jobs: &str) -> Vec<License> {
    let mut users: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
    for (user, taken_by) in jobs.lines().filter_map(|line| line.trim().split_once('|')) {
        for (name, count) in taken(taken_by) {
            *users.entry(name).or_default().entry(user.into()).or_default() += count;
        }
    }
    let line = |line: &str| {
        let field = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| field(key)?.parse().ok();
        let name = field("LicenseName")?;
        let users = users.get(name).cloned().unwrap_or_default();
        Some(License { name: name.into(), total: number("Total")?, used: number("Used")?, users })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_read() {
        let text = "LicenseName=nas Total=4 Used=1 Free=3 Reserved=0 Remote=no\n\
                    LicenseName=scratch@slurmdb Total=10 Used=0 Free=10 Reserved=0 Remote=yes\n\
                    No licenses configured in Slurm.\n";
        let all = parse_licenses(text, "ann|nas:1\nbob|(null)\nbob|scratch@slurmdb,nas:2\nann|nas\n");
        let told: Vec<_> = all.iter().map(|l| (l.name.as_str(), l.total, l.used)).collect();
        assert_eq!(told, [("nas", 4, 1), ("scratch@slurmdb", 10, 0)]);
        assert_eq!(all[0].users, [("ann".to_string(), 2), ("bob".to_string(), 2)].into());
        assert_eq!(all[1].users, [("bob".to_string(), 1)].into());
    }

    #[test]
    fn names_hold_nothing_that_slurm_reads_otherwise() {
        assert!(["nas", "nas_1", "nas@slurmdb"].into_iter().all(is_license));
        assert!(!["", "nas:1", "a,b", "a|b", "@x", "nas@", "a b"].into_iter().any(is_license));
    }
}
