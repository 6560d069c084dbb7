//! Decides the fate of each host, for `homing power save`.

use crate::{HostActivity, PowerFacts, Since, Work};
use std::collections::BTreeMap;

/// Time for which a host that is switched off may still answer, until its system has ended.
const ENDING_S: u64 = 300;

/// The rules of the site.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Hosts that stay on, each with the reason.
    pub keep: BTreeMap<String, String>,
    /// Time for which a host has to be idle, seconds.
    pub idle_s: u64,
    /// A greater load average counts as work.
    pub load: f64,
    /// The most hosts that are off at once.
    pub most_off: Option<u32>,
}

/// The answer of a host, or the reason why it gave none.
pub type ActivityResult = Result<HostActivity, String>;

/// The fate of a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Becomes {
    /// It is to be switched off: it was idle for this many seconds.
    SwitchedOff(u64),
    /// It was idle for this many seconds, which is not long enough.
    Idle(u64),
    /// It was idle for this many seconds, but no more hosts may be off.
    Enough(u64),
    /// It stays on in any case, for this reason.
    Kept(String),
    /// It has work.
    Works(Work),
    /// It has been off for this many seconds.
    Off(u64),
    /// It was switched off and is on again.
    Back,
    /// homing did not switch it off, and it does not answer.
    Silent(String),
}

/// Decides, and keeps in `known` since when each host is idle, for the next decision. A host that is to be switched
/// off is recorded only once that was done. The answers are in the order in which hosts are switched off.
pub fn save(
    rules: &Rules,
    known: &mut PowerFacts,
    activities: &[(String, ActivityResult)],
    now_s: u64,
) -> Vec<Becomes> {
    // After a long time without a query, idle times start again: a host may have worked meanwhile. Hosts of other
    // cluster files are forgotten unless they are off.
    if now_s.saturating_sub(known.looked_s) > rules.idle_s {
        known.hosts.values_mut().for_each(|since| since.idle_s = None);
    }
    known.looked_s = now_s;
    known.hosts.retain(|host, since| since.off_s.is_some() || activities.iter().any(|(name, _)| name == host));
    let mut becomes: Vec<Becomes> = activities
        .iter()
        .map(|(host, answer)| one(rules, known.hosts.entry(host.clone()).or_default(), host, answer, now_s))
        .collect();
    let off = becomes.iter().filter(|one| matches!(one, Becomes::Off(_))).count() as u32;
    let mut left = rules.most_off.map_or(u32::MAX, |most| most.saturating_sub(off));
    for one in &mut becomes {
        if let Becomes::SwitchedOff(for_s) = *one {
            if left == 0 {
                *one = Becomes::Enough(for_s);
            }
            left = left.saturating_sub(1);
        }
    }
    becomes
}

fn one(rules: &Rules, since: &mut Since, host: &str, answer: &ActivityResult, now_s: u64) -> Becomes {
    let age = |from: u64| now_s.saturating_sub(from);
    let seen = match (answer, since.off_s) {
        (Err(_), Some(off)) => return Becomes::Off(age(off)),
        (Ok(_), Some(off)) if age(off) < ENDING_S && since.called_s.is_none() => return Becomes::Off(age(off)),
        (Ok(seen), Some(_)) => {
            *since = Since { cores: seen.cores, idle_s: Some(now_s), ..Since::default() };
            return Becomes::Back;
        }
        // Its work meanwhile is unknown.
        (Err(why), None) => {
            since.idle_s = None;
            return Becomes::Silent(why.clone());
        }
        (Ok(seen), None) => seen,
    };
    since.cores = seen.cores;
    let load = (seen.load > rules.load).then_some(Work::Load(seen.load));
    let kept = rules.keep.get(host);
    match (kept, seen.work.clone().or(load)) {
        (Some(why), _) => {
            since.idle_s = None;
            Becomes::Kept(why.clone())
        }
        (None, Some(work)) => {
            since.idle_s = None;
            Becomes::Works(work)
        }
        (None, None) => {
            // If the clock was set back, the idle time starts again.
            let from = *since.idle_s.get_or_insert(now_s).min(&mut { now_s });
            since.idle_s = Some(from);
            if age(from) >= rules.idle_s { Becomes::SwitchedOff(age(from)) } else { Becomes::Idle(age(from)) }
        }
    }
}

#[cfg(test)]
mod tests;
