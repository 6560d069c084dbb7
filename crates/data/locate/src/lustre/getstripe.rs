//! Parses the output of `lfs getstripe`, with `-y` or without: `key: value` lines, whose indentation does not matter.

use super::{Component, Pattern, lov};

fn fresh() -> Component {
    let (pattern, osts) = (Pattern::Raid0, Vec::new());
    Component { range: (0, u64::MAX), mirror: 0, usable: true, released: false, pattern, stripe_size: 0, osts }
}

/// Returns the components; `None` if the text contains no layout.
pub(super) fn parse(text: &str) -> Option<Vec<Component>> {
    let mut found: Vec<Component> = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches("- ").trim_start();
        // An object is `l_ost_idx: 5` or `0: { l_ost_idx: 5, l_fid: ... }`.
        if let Some(at) = line.find("l_ost_idx:") {
            let digits: String = line[at + 10..].trim_start().chars().take_while(char::is_ascii_digit).collect();
            found.last_mut()?.osts.push(digits.parse().ok()?);
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "lcme_id" => found.push(fresh()),
            // A plain layout begins with its stripes.
            "lmm_stripe_count" if found.is_empty() => found.push(fresh()),
            _ => {}
        }
        if let Some(component) = found.last_mut() {
            set(component, key, value)?;
        }
    }
    (!found.is_empty()).then_some(found)
}

fn set(component: &mut Component, key: &str, value: &str) -> Option<()> {
    match key {
        "lcme_mirror_id" => component.mirror = value.parse().ok()?,
        "lcme_flags" => component.usable = lov::usable(value.split(',').map(flag).sum()),
        "lcme_extent.e_start" => component.range.0 = value.parse().ok()?,
        "lcme_extent.e_end" => component.range.1 = if value == "EOF" { u64::MAX } else { value.parse().ok()? },
        "lmm_stripe_size" => component.stripe_size = value.parse().ok()?,
        "lmm_pattern" => {
            component.released = value.split(',').any(|word| word == "released");
            component.pattern = match value.split(',').next()? {
                "raid0" => Pattern::Raid0,
                "mdt" => Pattern::Mdt,
                "foreign" => Pattern::Foreign,
                number => Pattern::Other(u32::from_str_radix(number.trim_start_matches("0x"), 16).unwrap_or(0)),
            };
        }
        "lfm_magic" => component.pattern = Pattern::Foreign,
        _ => {}
    }
    Some(())
}

/// Returns a flag by its name; irrelevant flags are 0.
fn flag(name: &str) -> u32 {
    match name.trim() {
        "init" => lov::INIT,
        "stale" => lov::STALE,
        "offline" => lov::OFFLINE,
        "extension" => lov::EXTENSION,
        "parity" => lov::PARITY,
        _ => 0,
    }
}
