//! Job arrays: `name[1-50]%8`, `name[1-9:2,20]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The elements of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// Indices, ascending, from 1. In records they are ranges: `1-100000`.
    #[serde(serialize_with = "as_ranges", deserialize_with = "of_ranges")]
    pub indices: Vec<u32>,
    /// The most elements that run at once.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The longest array. LSF's own default limit is 1000, Slurm's 1001.
pub(crate) const LONGEST: usize = 100_000;

/// Refuses a name with a control character: tables of jobs have a line for each job, and other programs read them.
pub fn check_name(name: &str) -> Result<(), String> {
    match name.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("the job name {name:?} has the control character {c:?}; leave it out")),
        None => Ok(()),
    }
}

/// Splits a job name into its plain name and its array.
pub fn parse(name: &str) -> Result<(String, Option<Array>), String> {
    check_name(name)?;
    let Some((plain, rest)) = name.split_once('[') else { return Ok((name.into(), None)) };
    let bad = |what: &str| format!("{name:?}: {what}: an array is name[1-50]%8");
    let (list, tail) = rest.split_once(']').ok_or_else(|| bad("no closing bracket"))?;
    let limit = match tail.strip_prefix('%') {
        Some(n) => Some(n.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad("a limit is a number above 0"))?),
        None if tail.is_empty() => None,
        None => return Err(bad("something after the bracket")),
    };
    let mut indices = Vec::new();
    for item in list.split(',') {
        indices.extend(range(item, 1).ok_or_else(|| bad("an index is N, N-M or N-M:STEP, from 1"))?);
        if indices.len() > LONGEST {
            return Err(bad("too many elements"));
        }
    }
    indices.sort_unstable();
    indices.dedup();
    Ok((plain.into(), Some(Array { indices, limit })))
}

fn as_ranges<S: Serializer>(indices: &[u32], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&folded(indices))
}

fn of_ranges<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
    let text = String::deserialize(from)?;
    let bad = || serde::de::Error::custom("the indices of an array are ranges: 1-50,60");
    let mut all = Vec::new();
    for item in text.split(',') {
        all.extend(range(item, 0).ok_or_else(bad)?);
        // A record may come from another user, and must not cost its readers more than the longest array does.
        if all.len() > LONGEST {
            return Err(bad());
        }
    }
    Ok(all)
}

fn folded(indices: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*index) => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let text = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    text.collect::<Vec<_>>().join(",")
}

/// Parses indices such as `0-3,7`. Slurm's indices begin at 0.
pub(crate) fn indices(list: &str) -> Option<Vec<u32>> {
    let ranges: Option<Vec<Vec<u32>>> = list.split(',').map(|item| range(item, 0)).collect();
    Some(ranges?.concat())
}

impl Array {
    /// Returns the indices as `1-3,7`.
    pub fn folded(&self) -> String {
        folded(&self.indices)
    }
}

fn range(item: &str, least: u32) -> Option<Vec<u32>> {
    let (span, step) = item.split_once(':').map_or((item, "1"), |(s, t)| (s, t));
    let (first, last) = span.split_once('-').unwrap_or((span, span));
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n >= least);
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    let count = last.checked_sub(first)?.checked_div(step)?;
    (count as usize <= LONGEST).then(|| (first..=last).step_by(step as usize).collect())
}

/// Parses a job id with an optional index: `12` or `12[3]`.
pub fn job_id(text: &str) -> Option<(u64, Option<u32>)> {
    match text.split_once('[') {
        None => Some((text.parse().ok()?, None)),
        Some((id, rest)) => Some((id.parse().ok()?, Some(rest.strip_suffix(']')?.parse().ok()?))),
    }
}

/// Formats a job id with its optional index; the inverse of [`job_id`].
pub fn name(id: u64, index: Option<u32>) -> String {
    index.map_or(id.to_string(), |index| format!("{id}[{index}]"))
}

/// Returns the name of the job in which this process runs, by the variables that a job has.
pub fn own_name(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let id = variable("HOMING_JOB")?.parse().ok()?;
    let index = variable("HOMING_JOB_INDEX").and_then(|index| index.parse().ok()).filter(|index| *index > 0);
    Some(name(id, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_newline_is_refused() {
        for name in ["a\nb", "a\tb[1-3]", "\u{1b}[2J", "a\u{85}"] {
            assert!(parse(name).unwrap_err().contains("control character"), "{name:?}");
        }
        assert_eq!(parse("two words").unwrap(), ("two words".to_string(), None));
    }

    #[test]
    fn arrays() {
        let of = |text: &str| parse(text).unwrap().1.unwrap();
        assert_eq!(of("a[1-3]%8"), Array { indices: vec![1, 2, 3], limit: Some(8) });
        assert_eq!(of("a[9,1-5:2]").indices, [1, 3, 5, 9]);
        assert_eq!(parse("plain").unwrap(), ("plain".into(), None));
        for bad in ["a[", "a[]", "a[0]", "a[3-1]", "a[1]x", "a[1]%0", "a[1-4000000000]", "a[1-2:0]"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn records_hold_ranges_and_no_record_is_more_than_an_array_may_be() {
        let array = parse("a[1-99999,7]%3").unwrap().1.unwrap();
        let text = serde_json::to_string(&array).unwrap();
        assert_eq!(text, r#"{"indices":"1-99999","limit":3}"#);
        assert_eq!(serde_json::from_str::<Array>(&text).unwrap(), array);
        for bad in ["1-4000000000", "1-90000,1-90000", "", "x"] {
            assert!(serde_json::from_str::<Array>(&format!("{{\"indices\":\"{bad}\"}}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids() {
        assert_eq!(job_id("12"), Some((12, None)));
        assert_eq!(job_id("12[3]"), Some((12, Some(3))));
        assert_eq!(job_id("x"), None);
        assert_eq!(job_id("12[3"), None);
    }
}
