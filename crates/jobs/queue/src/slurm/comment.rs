//! Keeps facts about a job in Slurm's comment: its command, its project and the bytes that its ranks read.

use crate::JobSpec;
use crate::job::{Reads, Share};

/// Marks a job's comment as homing's.
const MARK: &str = "homing";
/// The most characters of a part of it, and of a name: slurmctld holds them in memory and prints a job in one line.
const LONGEST: usize = 1000;

/// Returns the comment of a job, as `homing -R n1:10+0,7+3;n2:10+0 -P project: command`. A rank's numbers are the
/// bytes that it reads on its host and over the network.
pub(super) fn comment(spec: &JobSpec) -> String {
    let ranks = Some(ranks(spec)).filter(|text| !text.is_empty() && text.len() <= LONGEST);
    let ranks = ranks.map_or_else(String::new, |text| format!(" -R {text}"));
    let project = spec.project.as_ref().map_or_else(String::new, |p| format!(" -P {}", plain(p).replace(':', "_")));
    format!("{MARK}{ranks}{project}: {}", plain(&spec.command.display()))
}

fn ranks(spec: &JobSpec) -> String {
    let mut all = spec.ranks.iter();
    let host = |share: &Share| {
        let reads = all.by_ref().take(share.slots as usize).map(|reads| format!("{}+{}", reads.home, reads.away));
        format!("{}:{}", share.host, reads.collect::<Vec<_>>().join(","))
    };
    if spec.ranks.is_empty() { String::new() } else { spec.hosts.iter().map(host).collect::<Vec<_>>().join(";") }
}

/// Cleans text for names and comments.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

/// The content of a comment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlurmComment<'t> {
    pub project: Option<&'t str>,
    pub command: &'t str,
    /// The hosts of a job over several, in the order of its ranks.
    pub hosts: Vec<Share>,
    /// The bytes that each rank reads.
    pub ranks: Vec<Reads>,
}

/// Parses a comment; returns none if another program has written it.
pub(super) fn parsed(comment: &str) -> Option<SlurmComment<'_>> {
    let (mut head, command) = comment.strip_prefix(MARK)?.split_once(": ")?;
    let mut parts = SlurmComment { command, ..SlurmComment::default() };
    if let Some(rest) = head.strip_prefix(" -R ") {
        let (text, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        (parts.hosts, parts.ranks) = hosts(text)?;
        head = rest;
    }
    parts.project = match head {
        "" => None,
        _ => Some(head.strip_prefix(" -P ")?),
    };
    Some(parts)
}

fn hosts(text: &str) -> Option<(Vec<Share>, Vec<Reads>)> {
    let (mut shares, mut ranks) = (Vec::new(), Vec::new());
    for one in text.split(';') {
        let (host, reads) = one.split_once(':')?;
        let before = ranks.len();
        for rank in reads.split(',') {
            let (home, away) = rank.split_once('+')?;
            ranks.push(Reads { home: home.parse().ok()?, away: away.parse().ok()? });
        }
        shares.push(Share { host: host.into(), slots: (ranks.len() - before) as u32 });
    }
    Some((shares, ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> JobSpec {
        let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"sort 'a b' > c: d"},
                       "name":"","queue":"","slots":3}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let mut spec = spec();
        let command = "sort 'a b' > c: d";
        assert_eq!(parsed(&comment(&spec)), Some(SlurmComment { command, ..SlurmComment::default() }));
        spec.project = Some("p: x".into());
        spec.hosts = [("n2", 2), ("n1", 1)].map(|(host, slots)| Share { host: host.into(), slots }).into();
        let of = |spec: &JobSpec| comment(spec);
        assert_eq!(of(&spec), format!("homing -P p_ x: {command}"), "of ranks nothing is known");
        spec.ranks = [(10, 0), (7, 3), (0, 9)].map(|(home, away)| Reads { home, away }).into();
        let text = of(&spec);
        assert_eq!(text, format!("homing -R n2:10+0,7+3;n1:0+9 -P p_ x: {command}"));
        let hosts = spec.hosts.clone();
        assert_eq!(
            parsed(&text),
            Some(SlurmComment { project: Some("p_ x"), command, hosts, ranks: spec.ranks.clone() })
        );
        spec.ranks = vec![Reads { home: u64::MAX, away: 0 }; 50];
        spec.hosts[0].slots = 50;
        assert_eq!(of(&spec), format!("homing -P p_ x: {command}"), "so many are not kept");
    }

    #[test]
    fn what_others_wrote_is_not_ours() {
        for text in ["mine: x", "homing", "homing -R n1: x", "homing -R n1:a+b: x", "homing other: x"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed("homing: a: b"), Some(SlurmComment { command: "a: b", ..SlurmComment::default() }));
    }
}
