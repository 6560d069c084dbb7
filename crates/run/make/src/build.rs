//! What a build is given.

use homing_launch::HostPlan;
use homing_locate::OwnLocators;
use std::path::PathBuf;

/// What is built, and where.
pub struct Build {
    /// The folder that is watched on all hosts.
    pub root: PathBuf,
    /// The hosts.
    pub plans: Vec<HostPlan>,
    /// With more hosts than this that ssh reaches, a few lead the others; below 2: none does.
    pub tree: usize,
    /// The folders are the same everywhere, although the mount tables do not say so.
    pub assume_shared: bool,
    /// Hosts are kept from seeing what is no more.
    pub fenced: bool,
    /// Commands of the site's that tell where bytes lie.
    pub locators: OwnLocators,
    /// One that prints the watts of a host; empty: none.
    pub meter: String,
}
