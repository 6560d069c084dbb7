//! What becomes of each host: the decision of `homing power save`.

use crate::{Known, Seen, Since, Work};
use std::collections::BTreeMap;

/// Who is switched off answers for a while still, until its system has ended.
const ENDING_S: u64 = 300;

/// What the site says.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Hosts that stay on, each with the reason.
    pub keep: BTreeMap<String, String>,
    /// For so long a host has to be idle, seconds.
    pub idle_s: u64,
    /// A greater load average is work.
    pub load: f64,
    /// No more hosts than so many are off at once.
    pub most_off: Option<u32>,
}

/// What a host said, or why it did not.
pub type Answer = Result<Seen, String>;

/// What becomes of a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Becomes {
    /// It is to be switched off: for so many seconds it was idle.
    SwitchedOff(u64),
    /// It is idle, for so many seconds, and not long enough.
    Idle(u64),
    /// It would be switched off, and so many hosts are off already as may be.
    Enough(u64),
    /// It stays on, whatever runs there.
    Kept(String),
    /// Something is at work there.
    Works(Work),
    /// It is off, for so many seconds.
    Off(u64),
    /// It was switched off and is on again.
    Back,
    /// Nobody switched it off, and it does not answer.
    Silent(String),
}

/// Decides, and keeps in `known` what the next decision needs: since when each host is idle. Of a host that is to be
/// switched off nothing is kept before that was done. `said` is in the order in which hosts are switched off.
pub fn save(rules: &Rules, known: &mut Known, said: &[(String, Answer)], now_s: u64) -> Vec<Becomes> {
    // Those of other cluster files count for nothing here, and are forgotten when they are on.
    // A host may have been at work meanwhile, where nobody looked for so long.
    if now_s.saturating_sub(known.looked_s) > rules.idle_s {
        known.hosts.values_mut().for_each(|since| since.idle_s = None);
    }
    known.looked_s = now_s;
    known.hosts.retain(|host, since| since.off_s.is_some() || said.iter().any(|(name, _)| name == host));
    let mut becomes: Vec<Becomes> = said
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

fn one(rules: &Rules, since: &mut Since, host: &str, answer: &Answer, now_s: u64) -> Becomes {
    let age = |from: u64| now_s.saturating_sub(from);
    let seen = match (answer, since.off_s) {
        (Err(_), Some(off)) => return Becomes::Off(age(off)),
        (Ok(_), Some(off)) if age(off) < ENDING_S && since.called_s.is_none() => return Becomes::Off(age(off)),
        (Ok(seen), Some(_)) => {
            *since = Since { cores: seen.cores, idle_s: Some(now_s), ..Since::default() };
            return Becomes::Back;
        }
        // What it did meanwhile is not known.
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
            // A clock that was set back: it begins anew.
            let from = *since.idle_s.get_or_insert(now_s).min(&mut { now_s });
            since.idle_s = Some(from);
            if age(from) >= rules.idle_s { Becomes::SwitchedOff(age(from)) } else { Becomes::Idle(age(from)) }
        }
    }
}

#[cfg(test)]
mod tests;
