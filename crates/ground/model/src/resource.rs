//! Amounts of named resources of hosts, such as `gpu`, in hundredths of a unit.

use std::collections::BTreeMap;

/// Parts of one unit. Amounts are whole numbers of parts, so that sums of fractions are exact.
pub const PARTS: u64 = 100;
/// The largest amount, in units, that counts devices. A larger one counts a quantity such as gigabytes, which has no
/// numbered units.
pub const MOST_UNITS: u64 = 256;
/// The name of graphics processors.
pub const GPU: &str = "gpu";
/// The names of resources whose units are graphics processors.
const GPUS: [&str; 2] = [GPU, "gpus"];
/// Variables that limit a program to graphics processors: of CUDA, and of ROCm (AMD).
pub const VISIBLE_DEVICES: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];

/// Whether the units of a resource are graphics processors.
pub fn is_gpu(name: &str) -> bool {
    GPUS.contains(&name)
}

/// Reads the amount that a task takes: whole units, or a part of one with up to two decimals. Returns parts.
pub fn parse_amount(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not an amount: use a whole number of units, or a part of one, as in 0.5");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 2 || whole.is_empty() {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let hundredths: u64 = format!("{part:0<2}").parse().map_err(|_| wrong())?;
    let parts = whole.checked_mul(PARTS).and_then(|whole| whole.checked_add(hundredths)).ok_or_else(wrong)?;
    match parts > PARTS && !parts.is_multiple_of(PARTS) {
        true => Err(format!("{text} is more than one unit, but not a whole number of units")),
        false => Ok(parts),
    }
}

/// Formats an amount in units: `2`, `0.5`.
pub fn shown_amount(parts: u64) -> String {
    match parts % PARTS {
        0 => (parts / PARTS).to_string(),
        part => format!("{}.{part:02}", parts / PARTS).trim_end_matches('0').to_string(),
    }
}

/// Returns why a task fits on no host: it takes `wanted` parts of a resource, and no host has more than `most`.
pub fn too_much(name: &str, wanted: u64, most: u64) -> String {
    let (wanted, most) = (shown_amount(wanted), shown_amount(most));
    format!("it needs {wanted} of {name:?}, but no host of this run has more than {most}")
}

/// Returns the amounts of a host in parts, of amounts in units.
pub fn in_parts(units: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    units.iter().map(|(name, units)| (name.clone(), units.saturating_mul(PARTS))).collect()
}

/// Returns a variable such as `HOMING_RESOURCE_gpu`. Other characters become underscores.
pub fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("HOMING_RESOURCE_{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_whole_units_or_a_part_of_one() {
        for (text, parts) in [("2", 200), ("0.5", 50), ("0.25", 25), ("1.0", 100), ("0", 0), ("4.", 400)] {
            assert_eq!(parse_amount(text), Ok(parts), "{text}");
        }
        for text in ["", "1.5", "0.333", "-1", ".5", "x", "1e3", "99999999999999999999", "184467440737095517"] {
            assert!(parse_amount(text).is_err(), "{text}");
        }
        assert_eq!([200, 50, 25, 5].map(shown_amount), ["2", "0.5", "0.25", "0.05"]);
        assert_eq!(variable("fpga.a"), "HOMING_RESOURCE_fpga_a");
    }
}
