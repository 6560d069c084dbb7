//! Node sets in ClusterShell's syntax: `n[1-4,7]`, `rack[1-2]n[01-08/2]`.

/// A set of host names, kept sorted, printed folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    /// Expanded names, each once, in natural order.
    pub names: Vec<String>,
}
