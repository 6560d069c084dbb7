//! Decides which host gets a recipe: the one where it is expected to end first.

use crate::words::RecipeWork;
use std::fmt;

/// A host with room for a recipe. Unknown is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Index of the host.
    pub host: usize,
    /// Processors that a process may use there.
    pub cores: f64,
    /// Recipes of this build that run there.
    pub running: u32,
    /// Processors that other programs keep busy.
    pub busy: f64,
    /// Memory left, bytes.
    pub memory: Option<u64>,
    /// Part of the time in which some process waits for I/O, 0 to 1.
    pub io_pressure: f64,
    /// Bytes of the recipe's inputs that other hosts hold.
    pub remote_bytes: u64,
    /// Existing files of its folder that were changed elsewhere and not yet seen there.
    pub fences: usize,
    /// Whether the last recipe of the same folder ran there.
    pub same_folder: bool,
}

/// Why a host was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// No other host had room.
    OnlyRoom,
    /// More processor time is left there than elsewhere.
    Load,
    /// It holds the inputs.
    Bytes,
    /// Its folder's last recipe ran there, so fewer files have to be looked at again.
    Folder,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::OnlyRoom => "only room",
            Why::Load => "least loaded",
            Why::Bytes => "its inputs",
            Why::Folder => "same folder",
        })
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostChoice {
    /// Index of the host.
    pub host: usize,
    /// The strongest reason.
    pub why: Why,
}

/// Assumed bytes per second over a link of unknown rate: 1 Gbit/s.
const LINK: f64 = 110e6;
/// Microseconds of one look at a changed file; measured on GlusterFS.
const FENCE_US: f64 = 3_000.0;
/// With less memory than this the host would swap.
const LEAST_MEMORY: u64 = 192 << 20;
/// Hosts within this many microseconds count as equal, and the folder decides.
const EQUAL_US: f64 = 20_000.0;

/// Chooses among the hosts with room. Returns `None` if there is none; then the recipe waits. `typical_us` is the
/// duration of a recipe so far.
pub fn choose(step: RecipeWork, typical_us: f64, candidates: &[Candidate]) -> Option<HostChoice> {
    let roomy = |c: &&Candidate| c.memory.is_none_or(|m| m > LEAST_MEMORY);
    let mut fit: Vec<&Candidate> = candidates.iter().filter(roomy).collect();
    if fit.is_empty() {
        // A slow host is better than none, so all hosts are considered.
        fit = candidates.iter().collect();
    }
    let cost = |c: &Candidate| time(c, typical_us) + bytes(c, step) + c.fences as f64 * FENCE_US;
    let best = *fit.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let lowest = cost(best);
    let near = fit.iter().copied().filter(|c| cost(c) <= lowest + EQUAL_US.min(typical_us / 10.0));
    let near: Vec<&Candidate> = near.collect();
    let chosen = near.iter().copied().find(|c| c.same_folder).unwrap_or(best);
    Some(HostChoice { host: chosen.host, why: reason(chosen, &fit, step, typical_us) })
}

/// Returns the expected time there: the typical time, multiplied by the processes per processor.
fn time(c: &Candidate, typical_us: f64) -> f64 {
    let demand = c.busy + f64::from(c.running) + 1.0;
    let share = (demand / c.cores.max(0.1)).max(1.0 / c.cores.clamp(0.1, 1.0));
    typical_us * (share + c.io_pressure)
}

fn bytes(c: &Candidate, step: RecipeWork) -> f64 {
    // A link step reads each input once and whole. A compilation reads mostly headers, which are in every host's
    // cache, and its source is the smaller part.
    let weight = if step == RecipeWork::Gather { 1.0 } else { 0.5 };
    c.remote_bytes as f64 / LINK * 1e6 * weight
}

fn reason(chosen: &Candidate, fit: &[&Candidate], step: RecipeWork, typical_us: f64) -> Why {
    let others = || fit.iter().filter(|c| c.host != chosen.host);
    if others().next().is_none() {
        return Why::OnlyRoom;
    }
    let gain = |of: &dyn Fn(&Candidate) -> f64| others().map(|c| of(c) - of(chosen)).fold(0.0, f64::max);
    let load = gain(&|c| time(c, typical_us));
    let near = gain(&|c| bytes(c, step));
    match () {
        () if near > load && near > 0.0 => Why::Bytes,
        () if chosen.same_folder && load <= EQUAL_US => Why::Folder,
        () => Why::Load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(host: usize) -> Candidate {
        Candidate {
            host,
            cores: 1.0,
            running: 0,
            busy: 0.0,
            memory: Some(4 << 30),
            io_pressure: 0.0,
            remote_bytes: 0,
            fences: 0,
            same_folder: false,
        }
    }

    fn of(step: RecipeWork, candidates: &[Candidate]) -> Option<(usize, Why)> {
        choose(step, 500_000.0, candidates).map(|c| (c.host, c.why))
    }

    #[test]
    fn nobody_with_room_means_wait() {
        assert_eq!(of(RecipeWork::Other, &[]), None);
    }

    #[test]
    fn the_least_loaded_host_is_chosen() {
        let busy = Candidate { running: 1, ..idle(0) };
        assert_eq!(of(RecipeWork::Other, &[busy.clone(), idle(1)]), Some((1, Why::Load)));
        let others = Candidate { busy: 0.9, ..idle(0) };
        assert_eq!(of(RecipeWork::Other, &[others, idle(1)]), Some((1, Why::Load)));
        let waits = Candidate { io_pressure: 0.5, ..idle(0) };
        assert_eq!(of(RecipeWork::Other, &[waits, idle(1)]), Some((1, Why::Load)));
        let wide = Candidate { running: 1, cores: 4.0, ..idle(2) };
        assert_eq!(of(RecipeWork::Other, &[busy, wide]), Some((2, Why::Load)));
    }

    #[test]
    fn a_link_goes_to_the_bytes_until_that_host_is_full() {
        let far = Candidate { remote_bytes: 20 << 20, ..idle(0) };
        assert_eq!(of(RecipeWork::Gather, &[far.clone(), idle(1)]), Some((1, Why::Bytes)));
        let full = Candidate { running: 1, ..idle(1) };
        assert_eq!(of(RecipeWork::Gather, &[far, full]), Some((0, Why::Load)));
    }

    #[test]
    fn equal_hosts_keep_a_folder_together() {
        let last = Candidate { same_folder: true, ..idle(1) };
        assert_eq!(of(RecipeWork::Other, &[idle(0), last]), Some((1, Why::Folder)));
        let unseen = Candidate { fences: 30, ..idle(0) };
        assert_eq!(of(RecipeWork::Other, &[unseen, idle(1)]).map(|c| c.0), Some(1));
    }

    #[test]
    fn a_host_without_memory_is_the_last_resort() {
        let poor = Candidate { memory: Some(1 << 20), ..idle(0) };
        let busy = Candidate { running: 3, ..idle(1) };
        assert_eq!(of(RecipeWork::Other, &[poor.clone(), busy]).map(|c| c.0), Some(1));
        assert_eq!(of(RecipeWork::Other, &[poor]), Some((0, Why::OnlyRoom)));
    }
}
