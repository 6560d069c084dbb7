//! The settings of a build.

use homing_launch::HostPlan;
use homing_locate::OwnLocators;
use std::path::PathBuf;

/// The folder and the hosts of a build, with its options.
pub struct Build {
    /// The folder that is watched on all hosts.
    pub root: PathBuf,
    /// The hosts.
    pub plans: Vec<HostPlan>,
    /// If ssh reaches more hosts than this, a few lead the others; below 2: none does.
    pub tree: usize,
    /// Whether the folders are the same everywhere, although the mount tables do not show it.
    pub assume_shared: bool,
    /// Whether fences keep hosts from seeing outdated files.
    pub fenced: bool,
    /// Commands of the site that locate bytes.
    pub locators: OwnLocators,
    /// A command that prints the watts of a host; empty: none.
    pub meter: String,
}
