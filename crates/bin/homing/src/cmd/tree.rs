//! The option of commands that reach hosts along a tree.

use homing_exec::{Options, WIDTH};
use homing_steps::{Along, SshExecutor};

/// The option `--tree`.
#[derive(Clone, Copy, clap::Args)]
pub struct TreeArgs {
    /// With more than N hosts, reach a few of them from here and the others through these, by ssh; 0: reach all from
    /// here
    #[arg(help_heading = "Connections", long, default_value_t = WIDTH, value_name = "N", value_parser = width)]
    tree: usize,
}

/// Parses the width of a tree: 0, or 2 and more.
pub fn width(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(1) => Err("a tree has at least 2 hosts at each step: 0 for no tree, or 2 and more".into()),
        Ok(width) => Ok(width),
        Err(_) => Err("not a whole number: 0 for no tree, or 2 and more".into()),
    }
}

impl Default for TreeArgs {
    fn default() -> TreeArgs {
        TreeArgs { tree: WIDTH }
    }
}

impl TreeArgs {
    /// No tree.
    pub fn none() -> TreeArgs {
        TreeArgs { tree: 0 }
    }

    /// Returns these options for connections, with the width of the tree.
    pub fn of(&self, options: Options) -> Options {
        Options { tree: self.tree, ..options }
    }

    /// Returns the option again as words, if it is not the default.
    pub fn words(&self) -> Vec<String> {
        if self.tree == WIDTH { Vec::new() } else { vec!["--tree".into(), self.tree.to_string()] }
    }

    /// Returns the executor of steps along a tree of that width.
    pub fn along(&self, direct: SshExecutor) -> Along {
        homing_relay::along(direct, self.tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_at_least_two_branches() {
        assert_eq!((width("0"), width("64")), (Ok(0), Ok(64)));
        assert!(width("1").unwrap_err().contains("no tree") && width("-2").is_err());
    }
}
