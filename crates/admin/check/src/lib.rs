//! Checks a cluster: answers of all hosts in, findings out. The crate is pure.
//!
//! A [`HostCheck`] is a part of one script, which all hosts run once, and a function from the answers of *all* hosts to
//! findings. Where possible, hosts are compared with each other: a value that differs from most hosts' is reported,
//! and no constant decides. A missing answer is unknown, and never a fault.
//!
//! Each file of `checks` holds a question, its judgement and its remedy. Main types: [`HostCheck`], [`Answers`],
//! [`HostFinding`] with its [`Code`] and [`Remedy`].
//!
//! It does not: connect to hosts (`relay`), or mend anything: a remedy is a command to paste.

mod answers;
mod checks;
mod compare;
mod doubt;
mod finding;
pub mod mute;
pub mod pages;
pub mod prometheus;
pub mod report;
mod script;
pub mod slurm_health;
pub mod volume;

pub use answers::{Answers, HostAnswers, OutputChunk};
pub use checks::{CHECKS, burn_in};
pub use doubt::{Doubts, asked_again, doubts};
pub use finding::{Code, HostFinding, Remedy, Severity};
pub use script::script;

use serde::Serialize;

/// The areas of checks, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Names and addresses.
    Names,
    /// Time.
    Clocks,
    /// Logging in.
    Ssh,
    /// Users and groups.
    Users,
    /// Mounts.
    Mounts,
    /// Disks.
    Disks,
    /// Memory and processors.
    Memory,
    /// Network.
    Network,
    /// Services, versions, settings.
    Services,
    /// Volumes that homing knows.
    Volumes,
}

impl Area {
    /// All areas, in order.
    pub const ALL: [Area; 10] = [
        Area::Names,
        Area::Clocks,
        Area::Ssh,
        Area::Users,
        Area::Mounts,
        Area::Disks,
        Area::Memory,
        Area::Network,
        Area::Services,
        Area::Volumes,
    ];

    /// Returns its name, for users and for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Area::Names => "names",
            Area::Clocks => "clocks",
            Area::Ssh => "ssh",
            Area::Users => "users",
            Area::Mounts => "mounts",
            Area::Disks => "disks",
            Area::Memory => "memory",
            Area::Network => "network",
            Area::Services => "services",
            Area::Volumes => "volumes",
        }
    }

    /// Returns the area of that name; `clock` means `clocks`, too.
    pub fn named(name: &str) -> Option<Area> {
        let name = name.trim();
        Area::ALL.into_iter().find(|a| a.name() == name || a.name().strip_suffix('s') == Some(name))
    }
}

/// A check.
pub struct HostCheck {
    /// The name of its part of the script.
    pub key: &'static str,
    /// POSIX shell that prints lines of fields separated by tabs. `$@` are the names of all hosts, `$T` is a tab.
    /// `$NETWORK` and `$OWN` are [`homing_mounts::network_patterns`], `$HOMES` and `$HOMES_LINE` are
    /// [`homing_setup::homes_mark`], `$WAIT` are the seconds for a mount or a server. In a part that does not wait,
    /// `first NAME FILE` prints a row with the first line of a file of /sys.
    pub script: &'static str,
    /// Whether it may have to wait for another host, a daemon or a mount. If so, it runs beside the others, with a
    /// time limit of its own.
    pub waits: bool,
    /// Whether a quick check leaves it out.
    pub slow: bool,
    /// The answers that only root gets.
    pub root: Option<&'static str>,
    /// The codes of its findings.
    pub codes: &'static [&'static Code],
    /// Returns findings from the answers of all hosts, one host each; equal ones are folded later.
    pub judge: fn(&Answers) -> Vec<HostFinding>,
}

impl HostCheck {
    /// Whether it can find a fault of that area.
    pub fn is_about(&self, area: Area) -> bool {
        self.codes.iter().any(|code| code.area() == area)
    }
}

/// Returns the checks of these areas (none: all).
pub fn chosen(only: &[Area], quick: bool) -> Vec<&'static HostCheck> {
    of_areas(CHECKS, only).filter(|c| !(quick && c.slow)).collect()
}

/// Returns the parts of a burn-in for these areas (none: all).
pub fn burn_in_of(only: &[Area]) -> Vec<&'static HostCheck> {
    of_areas(burn_in::CHECKS, only).collect()
}

fn of_areas(checks: &[&'static HostCheck], only: &[Area]) -> impl Iterator<Item = &'static HostCheck> {
    let about = |c: &&HostCheck| only.is_empty() || only.iter().any(|area| c.is_about(*area));
    checks.iter().copied().filter(about)
}

/// Returns the areas for which these checks query hosts, in order.
pub fn queried_areas(checks: &[&HostCheck]) -> impl Iterator<Item = Area> {
    Area::ALL.into_iter().filter(|area| checks.iter().any(|c| !c.script.is_empty() && c.is_about(*area)))
}

/// Returns the areas that may still change, because some of their hosts have not answered yet, in order. A check may
/// use the answers of other checks that do not wait (a host's mounts, its processor). An area is therefore known only
/// after these.
pub fn open(checks: &[&HostCheck], asking: &[HostAnswers]) -> Vec<Area> {
    let silent = |check: &HostCheck| asking.iter().any(|host| host.unknown(check.key).is_some());
    let asks = || checks.iter().copied().filter(|check| !check.script.is_empty());
    let all = asks().any(|check| !check.waits && !check.slow && silent(check));
    let lacks: Vec<&HostCheck> = asks().filter(|check| silent(check)).collect();
    queried_areas(checks).filter(|area| all || lacks.iter().any(|check| check.is_about(*area))).collect()
}

/// Returns all findings of these checks, with equal ones joined.
pub fn findings(checks: &[&HostCheck], answers: &Answers) -> Vec<HostFinding> {
    let found = checks.iter().flat_map(|check| (check.judge)(answers));
    let users = answers.hosts.iter().filter(|h| h.uid().is_some_and(|uid| uid != 0)).map(|h| h.name.as_str()).collect();
    finding::folded(found.map(|finding| finding.with_sudo(&users)).collect())
}

/// Returns the code with that name.
pub fn code(name: &str) -> Option<&'static Code> {
    all_codes().find(|code| code.name.eq_ignore_ascii_case(name.trim()))
}

/// Returns every code, in the order of the checks.
pub fn all_codes() -> impl Iterator<Item = &'static Code> {
    let of_load = burn_in::CHECKS.iter().filter(|check| CHECKS.iter().all(|usual| usual.key != check.key));
    CHECKS.iter().chain(of_load).flat_map(|check| check.codes).chain(volume::CODES).copied()
}
