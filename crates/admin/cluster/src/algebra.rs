//! Computes node sets from others, and the groups that contain hosts, for `homing nodeset`.

use crate::Cluster;
use homing_model::nodeset::host_lines;
use homing_model::{Failure, NodeSet};

/// The operation of an operand on the set so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// Adds its hosts.
    Union,
    /// Removes its hosts.
    Exclude,
    /// Keeps only hosts that are in both.
    Intersect,
    /// Keeps hosts that are in exactly one of both.
    Xor,
}

impl SetOperation {
    fn apply(self, set: NodeSet, operand: &NodeSet) -> NodeSet {
        match self {
            SetOperation::Union => set.union(operand),
            SetOperation::Exclude => set.difference(operand),
            SetOperation::Intersect => set.intersection(operand),
            SetOperation::Xor => set.symmetric_difference(operand),
        }
    }
}

/// The terms from which a set is computed.
pub struct SetTerms<'a> {
    /// Whether to start with all known hosts.
    pub all: bool,
    /// Hosts of these groups.
    pub groups: &'a [String],
    /// Terms that were given before the first set.
    pub leading: Vec<(SetOperation, String)>,
    /// The sets in their order; for `-`, `input` is read.
    pub operands: Vec<(SetOperation, String)>,
    /// The source of groups that name none.
    pub source: Option<&'a str>,
    /// Whether the elements are numbers, not hosts.
    pub numbers: bool,
    /// Reads the text for `-`.
    pub input: &'a dyn Fn() -> Result<String, Failure>,
    /// The set that is used if nothing else is given.
    pub usual: Option<&'a str>,
}

/// A group, and those of its hosts that were queried.
pub struct GroupHosts {
    /// Its name in a node set.
    pub name: String,
    /// Its name without the source.
    pub group: String,
    /// Its hosts.
    pub hosts: NodeSet,
    /// The number of all its hosts.
    pub all: usize,
}

impl Cluster {
    /// Computes the set from its terms.
    pub fn computed(&self, terms: SetTerms) -> Result<NodeSet, Failure> {
        let SetTerms { all, groups, leading, mut operands, source, numbers, input, usual } = terms;
        let read = |text: &str| -> Result<NodeSet, Failure> {
            let read = if text == "-" { Some(input()?) } else { None };
            // Text from the command line has no comments: the shell removes them.
            let lines: Vec<&str> =
                read.as_deref().map_or_else(|| text.lines().collect(), |read| host_lines(read).collect());
            let mut set = NodeSet::default();
            for line in lines {
                set = set.union(&if numbers { ranges(line)? } else { self.set(line, source)? });
            }
            Ok(set)
        };
        let mut set = if all { self.set("@*", source)? } else { NodeSet::default() };
        for group in groups {
            set = set.union(&self.set(&format!("@{group}"), source)?);
        }
        if !all && groups.is_empty() && operands.is_empty() {
            operands.extend(usual.map(|text| (SetOperation::Union, text.to_string())));
        }
        // `-x` before the first set acts at the end: in ClusterShell's nodeset it would act on an empty set.
        let ordered = if all { [leading, operands].concat() } else { [operands, leading].concat() };
        for (op, text) in ordered {
            set = op.apply(set, &read(&text)?);
        }
        Ok(set)
    }

    /// Returns the groups of a source, or of all sources. If hosts are given, only groups that contain some of them.
    pub fn groups_with(&self, hosts: &NodeSet, source: Option<&str>, of_all: bool) -> Result<Vec<GroupHosts>, Failure> {
        let sources: Vec<Option<String>> = match of_all {
            true => {
                let names = self.shell().map_err(Failure::usage)?.sources().into_iter();
                names.enumerate().map(|(nth, name)| (nth > 0).then(|| name.to_string())).collect()
            }
            false => vec![source.map(String::from)],
        };
        let mut found = Vec::new();
        for source in sources.iter().map(Option::as_deref) {
            for (group, name) in self.groups_of(source, hosts)? {
                let nodes = self.set(&name, source)?;
                let all = nodes.len();
                let shown = if hosts.is_empty() { nodes } else { nodes.intersection(hosts) };
                if hosts.is_empty() || !shown.is_empty() {
                    found.push(GroupHosts { name, group, hosts: shown, all });
                }
            }
        }
        Ok(found)
    }
}

impl Cluster {
    /// Returns `set` by the names of groups of a source that lie wholly in it, the largest first, and the nodes that
    /// are left. A group that shares hosts with one before it is not used.
    pub fn regrouped(&self, set: &NodeSet, source: Option<&str>, bare: bool) -> Result<String, Failure> {
        let mut groups = self.groups_with(set, source, false)?;
        groups.retain(|group| group.hosts.len() == group.all);
        groups.sort_by(|a, b| b.all.cmp(&a.all).then_with(|| a.group.cmp(&b.group)));
        let (mut rest, mut names) = (set.clone(), Vec::new());
        for group in groups {
            if rest.intersection(&group.hosts).len() == group.all {
                rest = rest.difference(&group.hosts);
                names.push(if bare { format!("@{}", group.group) } else { group.name });
            }
        }
        // Names of groups are folded like those of hosts.
        let names = names.into_iter().collect::<NodeSet>().to_string();
        let rest = rest.to_string();
        Ok([names, rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(","))
    }
}

fn ranges(text: &str) -> Result<NodeSet, Failure> {
    let wrong = |e| Failure::usage(format!("{text:?} is not a set of numbers: {e}"));
    let mut set = NodeSet::default();
    for word in text.split_whitespace() {
        set = set.union(&NodeSet::parse_ranges(word).map_err(wrong)?);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_the_first_set_acts_at_the_end() {
        let cluster = Cluster::of(toml::from_str("[groups]\nfast = \"n[2-3]\"\n").unwrap(), Default::default());
        let input = || Ok("n[7-8] # old\n# n1 is broken\nn9".to_string());
        let of = |leading: &[(SetOperation, &str)], operands: &[(SetOperation, &str)], groups: &[String]| {
            let list = |ops: &[(SetOperation, &str)]| ops.iter().map(|(op, text)| (*op, text.to_string())).collect();
            let (leading, operands) = (list(leading), list(operands));
            let (input, source, usual) = (&input as &dyn Fn() -> _, None, Some("-"));
            let terms = SetTerms { all: false, groups, leading, operands, source, numbers: false, input, usual };
            cluster.computed(terms).map(|set| set.to_string()).map_err(|failure| failure.message)
        };
        use SetOperation::{Exclude, Intersect, Union, Xor};
        assert_eq!(of(&[(Exclude, "n2")], &[(Union, "n[1-3]")], &[]).as_deref(), Ok("n[1,3]"));
        assert_eq!(of(&[], &[(Union, "n[1-3]"), (Intersect, "@fast"), (Xor, "n[3-4]")], &[]).as_deref(), Ok("n[2,4]"));
        assert_eq!(of(&[], &[], &["fast".into()]).as_deref(), Ok("n[2-3]"));
        assert_eq!(of(&[(Exclude, "n8")], &[], &[]).as_deref(), Ok("n[7,9]"), "what is read");
    }
}
