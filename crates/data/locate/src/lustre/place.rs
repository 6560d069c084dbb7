//! Turns components into extents. Pure.

use super::{Component, Pattern, Targets};
use homing_model::{Extent, FileLayout, Replica};
use std::collections::BTreeMap;

/// The most stripes of one range that are listed one by one. With more, only each host's share is given.
const PIECES: u64 = 256;

/// Bytes of a range by host.
type Shares = BTreeMap<String, u64>;

/// Fills in extents and reason.
pub(super) fn place(
    components: &[Component],
    targets: &Targets,
    mds: &dyn Fn() -> Option<String>,
    layout: &mut FileLayout,
) {
    for range in ranges(components, layout.size) {
        match extents(components, targets, mds, range) {
            Ok(extents) => layout.extents.extend(extents),
            Err(reason) => layout.reason = Some(layout.reason.take().unwrap_or(reason)),
        }
    }
}

/// Cuts the file wherever a component begins or ends.
fn ranges(components: &[Component], size: u64) -> Vec<(u64, u64)> {
    let mut cuts: Vec<u64> = components.iter().flat_map(|c| [c.range.0, c.range.1]).filter(|at| *at < size).collect();
    cuts.extend([0, size]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Places one range, which each component holds whole or not at all. Its mirrors are copies.
fn extents(
    components: &[Component],
    targets: &Targets,
    mds: &dyn Fn() -> Option<String>,
    range: (u64, u64),
) -> Result<Vec<Extent>, String> {
    let covers = |c: &&Component| c.range.0 <= range.0 && range.1 <= c.range.1;
    let here: Vec<&Component> = components.iter().filter(covers).collect();
    let mirrors: Vec<&Component> = here.iter().copied().filter(|c| c.usable && !c.released).collect();
    if mirrors.is_empty() {
        return Err(why_none(&here, range));
    }
    if let [only] = mirrors[..]
        && only.pattern == Pattern::Raid0
        && only.stripe_size > 0
        && (range.1 - range.0) / only.stripe_size <= PIECES
    {
        return pieces(only, targets, range);
    }
    let mut sum = Shares::new();
    for mirror in mirrors {
        for (host, bytes) in shares(mirror, targets, mds, range)? {
            *sum.entry(host).or_default() += bytes;
        }
    }
    let length = range.1 - range.0;
    let share = |bytes: u64| (bytes as f64 / length as f64).min(1.0);
    let replicas = sum.into_iter().filter(|(_, b)| *b > 0).map(|(host, b)| Replica { host, share: share(b) });
    Ok(vec![Extent { offset: range.0, length, replicas: replicas.collect() }])
}

fn why_none(here: &[&Component], range: (u64, u64)) -> String {
    if here.iter().any(|c| c.released) {
        return "its data was moved to an archive (HSM); reading the file brings it back".into();
    }
    match here {
        [] => format!("its layout does not describe the bytes from {}", range.0),
        _ => format!("no mirror of the bytes from {} is up to date and online, or nothing was written there", range.0),
    }
}

fn host_of(targets: &Targets, ost: u32) -> Result<&str, String> {
    let known = targets.osts.get(&ost).map(String::as_str);
    known.ok_or_else(|| {
        format!("the client does not report which host serves OST{ost:04x}; see lctl get_param osc.*.ost_conn_uuid")
    })
}

/// Places stripes one by one; neighbours on one host are one extent.
fn pieces(component: &Component, targets: &Targets, range: (u64, u64)) -> Result<Vec<Extent>, String> {
    let mut found: Vec<Extent> = Vec::new();
    let mut at = range.0;
    while at < range.1 {
        let stripe = at / component.stripe_size;
        let end = ((stripe + 1) * component.stripe_size).min(range.1);
        let host = host_of(targets, object(component, stripe)?)?;
        match found.last_mut() {
            Some(last) if last.replicas[0].host == host => last.length += end - at,
            _ => {
                let replicas = vec![Replica { host: host.to_string(), share: 1.0 }];
                found.push(Extent { offset: at, length: end - at, replicas });
            }
        }
        at = end;
    }
    Ok(found)
}

/// Returns the OST of a stripe, counted from the file's first byte.
fn object(component: &Component, stripe: u64) -> Result<u32, String> {
    let count = component.osts.len() as u64;
    let nth = stripe.checked_rem(count).ok_or("its layout names no objects")?;
    Ok(component.osts[nth as usize])
}

fn shares(
    component: &Component,
    targets: &Targets,
    mds: &dyn Fn() -> Option<String>,
    range: (u64, u64),
) -> Result<Shares, String> {
    match component.pattern {
        Pattern::Raid0 => striped(component, targets, range),
        Pattern::Mdt => {
            let host = mds()
                .ok_or("its bytes are on a metadata target, and the client does not report which host serves that")?;
            Ok(Shares::from([(host, range.1 - range.0)]))
        }
        Pattern::Foreign => Err("its layout is foreign: another system stores the bytes".into()),
        Pattern::Other(number) => Err(format!("its layout has the pattern {number:#x}, which homing does not know")),
    }
}

fn striped(component: &Component, targets: &Targets, range: (u64, u64)) -> Result<Shares, String> {
    let (size, count) = (component.stripe_size, component.osts.len() as u64);
    if size == 0 || count == 0 {
        return Err("its layout names no objects".into());
    }
    let mut sum = Shares::new();
    for (nth, ost) in component.osts.iter().enumerate() {
        let bytes = held(range.1, size, count, nth as u64) - held(range.0, size, count, nth as u64);
        *sum.entry(host_of(targets, *ost)?.to_string()).or_default() += bytes;
    }
    Ok(sum)
}

/// Returns the bytes of object `nth` before the file's offset `end`.
fn held(end: u64, size: u64, count: u64, nth: u64) -> u64 {
    let (round, rest) = (end / (size * count), end % (size * count));
    round * size + rest.saturating_sub(nth * size).min(size)
}
