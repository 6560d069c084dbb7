//! Node sets in ClusterShell's syntax.
//!
//! ```
//! use homing_model::NodeSet;
//! let set = NodeSet::parse("n[1-4,7],head!n3").unwrap();
//! assert_eq!(set.to_string(), "head,n[1-2,4,7]");
//! assert_eq!(set.len(), 5);
//! ```
//!
//! Ranges may be padded (`n[01-10]`), have a step (`n[1-9/2]`) and several dimensions (`r[1-2]n[0-3]`). Operators
//! work from left to right: `,` union, `!` difference, `&` intersection, `^` symmetric difference. `@name` is a
//! group, from the given resolver, `@source:name` a group of another source, `@*` all nodes. `n*` and `n?` are all
//! nodes that match the mask.

mod fold;
mod groups;
mod name;
mod pattern;

pub use fold::FoldStyle;
pub use groups::{NoGroups, NodeGroups};

use name::Name;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

/// The most hosts of a set. Parsing stops with an error at a larger set: it is a mistake, or an attack.
const MOST: usize = 1_000_000;

/// A set of host names, printed folded and listed in ClusterShell's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    names: BTreeSet<Name>,
}

/// Why a text is no node set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSetError {
    /// Byte position in the text.
    pub position: usize,
    /// The fault at that position.
    pub message: String,
}

impl fmt::Display for NodeSetError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.position + 1)
    }
}

impl std::error::Error for NodeSetError {}

impl NodeSet {
    /// Reads a text without groups.
    pub fn parse(text: &str) -> Result<NodeSet, NodeSetError> {
        NodeSet::parse_with(text, &NoGroups)
    }

    /// Reads a text with groups, which `groups` resolves.
    pub fn parse_with(text: &str, groups: &dyn NodeGroups) -> Result<NodeSet, NodeSetError> {
        NodeSet::parse_in(text, None, groups)
    }

    /// As [`NodeSet::parse_with`]; groups without a source are from `source`.
    pub fn parse_in(text: &str, source: Option<&str>, groups: &dyn NodeGroups) -> Result<NodeSet, NodeSetError> {
        pattern::parse(text, pattern::Context { groups, source, depth: 0, brought: &Cell::new(0), masks: true })
    }

    /// Reads numbers alone, `1-4,7,10-20/5`: ClusterShell's range sets.
    pub fn parse_ranges(text: &str) -> Result<NodeSet, NodeSetError> {
        Ok(pattern::ranges(text, 0)?.into_iter().collect())
    }

    /// Returns the union. It adds the smaller set to the larger. `append` merges both, which costs the whole of a
    /// large set for each of many small ones.
    fn united(self, other: NodeSet) -> NodeSet {
        let (mut large, small) = if self.len() < other.len() { (other, self) } else { (self, other) };
        large.names.extend(small.names);
        large
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the set has no hosts.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names in ClusterShell's order: by the text around the numbers, then by number. Names with several
    /// numbers are listed block by block.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        fold::listed(self.names.iter()).into_iter()
    }

    /// Returns the names at these positions of the list. `places` is a set of numbers from zero.
    pub fn slice(&self, places: &NodeSet) -> NodeSet {
        let wanted: BTreeSet<usize> = places.iter().filter_map(|p| p.parse().ok()).collect();
        let listed = self.iter().enumerate();
        listed.filter(|(place, _)| wanted.contains(place)).map(|(_, name)| name.to_string()).collect()
    }

    /// Whether this host is in the set.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(&Name::new(name.to_string()))
    }

    /// Returns the hosts in either set.
    pub fn union(&self, other: &NodeSet) -> NodeSet {
        NodeSet { names: &self.names | &other.names }
    }

    /// Returns the hosts in this set and not in the other.
    pub fn difference(&self, other: &NodeSet) -> NodeSet {
        NodeSet { names: &self.names - &other.names }
    }

    /// Returns the hosts in both sets.
    pub fn intersection(&self, other: &NodeSet) -> NodeSet {
        NodeSet { names: &self.names & &other.names }
    }

    /// Returns the hosts in exactly one of the sets.
    pub fn symmetric_difference(&self, other: &NodeSet) -> NodeSet {
        NodeSet { names: &self.names ^ &other.names }
    }

    /// Returns the shortest text that means the same, in a style.
    pub fn folded(&self, style: &FoldStyle) -> String {
        fold::fold(self.names.iter(), style)
    }

    /// Returns the parts whose numbers have no gap: `n[1-2,5]` are `n[1-2]` and `n5`.
    pub fn contiguous(&self) -> Vec<NodeSet> {
        fold::contiguous(self.names.iter()).into_iter().map(|names| names.into_iter().collect()).collect()
    }

    /// Splits the set into `parts` sets of nearly equal size. Returns fewer if there are fewer hosts.
    pub fn split(&self, parts: usize) -> Vec<NodeSet> {
        let parts = parts.clamp(1, self.len().max(1));
        let (each, more) = (self.len() / parts, self.len() % parts);
        let mut names = self.iter().map(String::from);
        (0..parts)
            .map(|i| names.by_ref().take(each + usize::from(i < more)).collect::<NodeSet>())
            .filter(|set| !set.is_empty())
            .collect()
    }
}

/// Returns the lines of a list of hosts that are not empty, without comments. A comment begins at the first `#` of a
/// line, as ClusterShell's `nodeset` reads standard input. All lists of hosts go through this function.
pub fn host_lines(text: &str) -> impl Iterator<Item = &str> {
    // An editor of Windows may begin the file with a byte order mark.
    let lines =
        text.trim_start_matches('\u{feff}').lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

impl FromIterator<String> for NodeSet {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> NodeSet {
        NodeSet { names: names.into_iter().map(Name::new).collect() }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.folded(&FoldStyle::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expand(text: &str) -> Vec<String> {
        NodeSet::parse(text).unwrap().iter().map(String::from).collect()
    }

    #[test]
    fn comments_are_no_hosts() {
        let lines = |text| host_lines(text).collect::<Vec<_>>();
        assert_eq!(lines("n1\n# n2 is broken\nn3 # old\n  \n\tn[4-5],n6#x\r\n#"), ["n1", "n3", "n[4-5],n6"]);
        assert!(lines("").is_empty() && lines("#\n").is_empty());
        assert_eq!(lines("\u{feff}n1\r\nn2\r\n"), ["n1", "n2"], "as an editor of Windows writes it");
    }

    /// Each expectation is the answer of ClusterShell 1.9.
    #[test]
    fn padding_goes_on_over_a_gap_after_a_single_number() {
        for (asked, folded) in [
            ("m[00,0-100]", "m[0-9,00,10-99,100]"),
            ("m[00-01,10-100]", "m[00-01,10-100]"),
            ("m[00,03,10-100,110]", "m[00,03,10-99,100,110]"),
            ("m[001,05,10-101,98-99]", "m[05,10-99,001,100-101]"),
            ("m[00,10-12,20-100]", "m[00,10-12,20-100]"),
            ("m[00,10,20,30-100]", "m[00,10,20,30-99,100]"),
        ] {
            assert_eq!(NodeSet::parse(asked).unwrap().to_string(), folded);
        }
    }

    /// Each group names the next one eight times; the last one is empty.
    struct Chain;

    impl NodeGroups for Chain {
        fn group(&self, _: Option<&str>, name: &str) -> Result<Option<String>, String> {
            let next = name.parse::<usize>().map_err(|e| e.to_string())? + 1;
            Ok(Some(if next > 12 { String::new() } else { vec![format!("@{next}"); 8].join(",") }))
        }
        fn all(&self, _: Option<&str>) -> Result<Option<String>, String> {
            Ok(None)
        }
        fn list(&self, _: Option<&str>) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_chain_of_groups_that_grows_with_each_link_is_refused() {
        assert!(NodeSet::parse_in("@1", None, &Chain).unwrap_err().to_string().contains("counting repetitions"));
        assert_eq!(NodeSet::parse_in("@11", None, &Chain).unwrap().len(), 0);
    }

    #[test]
    fn a_number_that_brackets_do_not_take_is_not_folded() {
        let long = "r1234567890123456789,r1234567890123456790";
        assert_eq!(NodeSet::parse(long).unwrap().to_string(), long);
        let most = NodeSet::parse("r123456789012345678,r123456789012345679").unwrap().to_string();
        assert_eq!(most, "r[123456789012345678-123456789012345679]");
    }

    #[test]
    fn clustershells_examples() {
        assert_eq!(expand("n[1-3]"), ["n1", "n2", "n3"]);
        assert_eq!(expand("n[01-03]"), ["n01", "n02", "n03"]);
        assert_eq!(expand("n[1-10/3]"), ["n1", "n4", "n7", "n10"]);
        assert_eq!(expand("r[1-2]n[0-1]"), ["r1n0", "r1n1", "r2n0", "r2n1"]);
        assert_eq!(expand("n[1-5]!n[2-3]"), ["n1", "n4", "n5"]);
        assert_eq!(expand("n[1-5]&n[4-9]"), ["n4", "n5"]);
        assert_eq!(expand("n[1-3]^n[3-4]"), ["n1", "n2", "n4"]);
        assert_eq!(expand("a-1.x,b"), ["a-1.x", "b"]);
    }

    #[test]
    fn folding_is_nodesets() {
        for (text, folded) in [
            ("n1,n2,n3", "n[1-3]"),
            ("n10,n9,n1", "n[1,9-10]"),
            ("n01,n02", "n[01-02]"),
            ("a,b", "a,b"),
            ("n1", "n1"),
            ("r1n1,r1n2,r2n1,r2n2", "r[1-2]n[1-2]"),
            ("n9,n08", "n[9,08]"),
            ("n[08-11],n[9-11]", "n[9,08-11]"),
            ("r1n[1-2],r2n1,r3n[1-2]", "r[2-3]n1,r1n[1-2],r3n2"),
            ("n2-ib,n1,n1-ib,b", "b,n1,n[1-2]-ib"),
        ] {
            let set = NodeSet::parse(text).unwrap();
            assert_eq!(NodeSet::parse(&set.to_string()).unwrap(), set, "{text}");
            assert_eq!(set.to_string(), folded, "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for text in [
            "n[1-",
            "n[]",
            "n[3-1]",
            "n[a]",
            "n[1-99999999]",
            "n1,,",
            "@gone",
            "n[1/0]",
            "!n1x]",
            "n[01-2]",
            "n[1-2][3-4]",
            "n1[9-10]",
            "n[0-10]0",
            "n[5/2]",
        ] {
            let error = NodeSet::parse(text).unwrap_err();
            assert!(error.position <= text.len(), "{text}: {error}");
        }
        assert!(NodeSet::parse("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_what_was_meant(
            names in proptest::collection::btree_set("[a-c]{0,2}[0-9]{1,3}([a-b][0-9]{1,2})?", 0..40)
        ) {
            let set: NodeSet = names.into_iter().collect();
            prop_assert_eq!(NodeSet::parse(&set.to_string()).unwrap(), set);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[n0-9\\[\\],\\-/!&^@a]{0,20}") {
            let _ = NodeSet::parse(&text);
        }
    }
}
