//! The units that a task or a job wants of its host's resources, and the variables that name them for it.

use crate::{Pool, Taker, UnitLease};
use homing_model::resource::{PARTS, VISIBLE_DEVICES, is_gpu, variable};
use homing_os::folder::shared::make_base;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two tries to take units, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// The place of the unit that the next task of this process tries first.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Units of a resource that a task takes of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitWish {
    /// The name of the resource.
    pub name: String,
    /// The amount that the task takes, in parts of a unit ([`homing_model::resource::PARTS`]).
    pub parts: u64,
    /// The units that the host has.
    pub all: u64,
}

/// Why a task has not received its units.
#[derive(Debug)]
pub enum UnitError {
    /// It is no longer wanted.
    Unwanted,
    /// The leases cannot be kept; for people.
    Unkept(String),
}

/// Variables of a task, names and values.
pub type UnitVariables = Vec<(String, String)>;

/// Waits for the units of a task and takes them. Returns the leases and the variables that name the units. `goes_on`
/// is called after each try that found too few, with the time since the first, and returns whether to go on.
pub fn take_units(
    wishes: &[UnitWish],
    mut goes_on: impl FnMut(&UnitWish, Duration) -> bool,
) -> Result<(Vec<UnitLease>, UnitVariables), UnitError> {
    let (mut leases, mut variables) = (Vec::new(), Vec::new());
    // All tasks take the resources in the order of their names. Otherwise two tasks could wait for each other.
    let mut wishes: Vec<&UnitWish> = wishes.iter().collect();
    wishes.sort_by(|a, b| a.name.cmp(&b.name));
    for wish in wishes {
        let unkept = |place: &Path, error: io::Error| {
            UnitError::Unkept(format!("cannot lease {} in {}: {error}", wish.name, place.display()))
        };
        let base = make_base().map_err(|(place, error)| unkept(&place, error))?;
        let own = own(wish, &base, |name| std::env::var(name).ok());
        let parts = u32::try_from(wish.parts).unwrap_or(u32::MAX);
        // Whole devices are used in turn; tasks with parts of one fill the first.
        let whole = (wish.parts / PARTS) as usize;
        let first = if whole == 0 { 0 } else { NEXT.fetch_add(whole, Ordering::Relaxed) };
        let mut taker = Taker::new(own.pool, parts, first);
        let (began, [mut pause, longest]) = (Instant::now(), PAUSES);
        let lease = loop {
            if let Some(lease) = taker.try_take().map_err(|error| unkept(&base, error))? {
                break lease;
            }
            if !goes_on(wish, began.elapsed()) {
                return Err(UnitError::Unwanted);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
        };
        let labels: Vec<&str> = lease.units.iter().map(|at| own.labels[*at].as_str()).collect();
        let labels = labels.join(",");
        let names = is_gpu(&wish.name).then_some(VISIBLE_DEVICES).into_iter().flatten().map(String::from);
        variables.extend(names.chain([variable(&wish.name)]).map(|name| (name, labels.clone())));
        leases.push(lease);
    }
    Ok((leases, variables))
}

/// The units of a resource that tasks of this process may have.
#[derive(Debug, PartialEq)]
struct Own {
    pool: Pool,
    /// The names of the units, as programs know them.
    labels: Vec<String>,
}

/// Returns the units for a wish. A process inside of a task or of a job of Slurm has the units of that task or job, and
/// nobody else has these. Elsewhere they are those of `CUDA_VISIBLE_DEVICES`, if it is set, or the first numbers.
fn own(wish: &UnitWish, base: &Path, env: impl Fn(&str) -> Option<String>) -> Own {
    let all = wish.all as usize;
    let listed = |name: &str| {
        let labels: Vec<String> = env(name)?.split(',').map(|label| label.trim().to_string()).collect();
        (labels.len() >= all).then_some(labels)
    };
    let outer = listed(&variable(&wish.name));
    let visible = || VISIBLE_DEVICES.iter().filter(|_| is_gpu(&wish.name)).find_map(|name| listed(name));
    let scope = match (&outer, env("SLURM_JOB_ID")) {
        (Some(_), _) => {
            format!("-in-{}-{}", env("HOMING_RUN").unwrap_or_default(), env("HOMING_TASK").unwrap_or_default())
        }
        (None, Some(job)) => format!("-slurm-{job}"),
        (None, None) => String::new(),
    };
    let mut labels = outer.or_else(visible).unwrap_or_else(|| (0..all).map(|n| n.to_string()).collect());
    labels.truncate(all);
    // The same device has the same number in all pools, if its label is a number.
    let numbers: Option<Vec<u32>> = labels.iter().map(|label| label.parse().ok()).collect();
    let units = numbers.filter(|_| scope.is_empty()).unwrap_or_else(|| (0..labels.len() as u32).collect());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name = format!("{}.{}{scope}", homing_os::names::own_name(), wish.name).chars().map(plain).collect();
    Own { pool: Pool { base: base.into(), name, units }, labels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, all: u64, env: &[(&str, &str)]) -> (Vec<String>, Vec<u32>, bool) {
        let wish = UnitWish { name: name.into(), parts: 100, all };
        let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        let Own { pool, labels } = own(&wish, Path::new("/b"), env);
        let host = format!("{}.{name}", homing_os::names::own_name());
        (labels, pool.units, pool.name == host)
    }

    #[test]
    fn units_are_numbered_or_those_that_the_environment_names() {
        let labels = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        assert_eq!(of("gpu", 2, &[]), (labels(&["0", "1"]), vec![0, 1], true));
        let visible = [("CUDA_VISIBLE_DEVICES", "3,5")];
        assert_eq!(of("gpu", 2, &visible), (labels(&["3", "5"]), vec![3, 5], true), "leases are by device");
        assert_eq!(of("fpga", 2, &visible), (labels(&["0", "1"]), vec![0, 1], true));
        assert_eq!(of("gpu", 3, &visible).0, labels(&["0", "1", "2"]), "--resource names more than are visible");
        // Slurm numbers the devices of each job from 0: jobs with the same numbers have different devices.
        let job = [("CUDA_VISIBLE_DEVICES", "0,1"), ("SLURM_JOB_ID", "7")];
        assert_eq!(of("gpu", 2, &job), (labels(&["0", "1"]), vec![0, 1], false));
        // A run inside of a task has the units of that task, which holds their leases.
        let task = [("HOMING_RESOURCE_gpu", "4,6"), ("HOMING_TASK", "1"), ("CUDA_VISIBLE_DEVICES", "4,6")];
        assert_eq!(of("gpu", 2, &task), (labels(&["4", "6"]), vec![0, 1], false));
    }
}
