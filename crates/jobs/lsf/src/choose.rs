//! Chooses jobs by number, name, group and application.

use crate::jobs::JobReport;
use crate::options::text;
use homing_model::RawText;
use homing_queue::pattern_fits;

/// A job id as bkill, bjobs and the others take it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSelector {
    /// The job; 0 means every job of the user.
    pub id: u64,
    /// Elements of it; all when empty.
    pub indices: Vec<u32>,
}

/// Parses `12`, `12[3]`, `12[1-4,7]`, `"12[2]"`, `0`.
pub fn wanted(text: &str) -> Result<JobSelector, String> {
    let bad = || format!("{text}: Illegal job ID.");
    let (id, rest) = text.split_once('[').map_or((text, None), |(id, rest)| (id, Some(rest)));
    let id = id.trim().parse().map_err(|_| bad())?;
    let mut indices = Vec::new();
    for item in rest.map(|r| r.strip_suffix(']').ok_or_else(bad)).transpose()?.into_iter().flat_map(|r| r.split(',')) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |t: &str| t.trim().parse::<u32>().map_err(|_| bad());
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first > 100_000 {
            return Err(bad());
        }
        indices.extend(first..=last);
    }
    Ok(JobSelector { id, indices })
}

/// Returns the jobs that words name. `"12 13"` is two ids, because scripts pass the output of bjobs.
pub fn all_wanted(words: &[RawText]) -> Result<Vec<JobSelector>, String> {
    let ids = |word: &RawText| text(word).split_whitespace().map(String::from).collect::<Vec<_>>();
    words.iter().flat_map(ids).map(|id| wanted(&id)).collect()
}

/// Whether a job's name fits `-J`, with `*` and elements: `name`, `na*`, `name[3]`, `name[*]`.
pub fn name_fits(pattern: &str, job: &JobReport) -> bool {
    if pattern_fits(pattern, &job.name) || pattern_fits(pattern, &job.shown_name()) {
        return true;
    }
    let Some((name, rest)) = pattern.rsplit_once('[') else { return false };
    let index = rest.strip_suffix(']').unwrap_or(rest);
    pattern_fits(name, &job.name) && (index == "*" || job.index.is_some_and(|i| index == i.to_string()))
}

/// Returns a job group in the form for comparisons: a path from the root, without a slash at its end.
pub fn group(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let sound = text.starts_with('/') && !path.contains("//") && !path.contains(char::is_whitespace);
    match (sound, path) {
        (true, "") => Ok("/".into()),
        (true, path) => Ok(path.into()),
        _ => Err(format!("{text}: Invalid job group name: it is a path such as /mine/first")),
    }
}

/// Whether a job is of the wanted group and application. As in LSF, the groups below a group are others.
pub fn is_of(job: &JobReport, group: Option<&str>, app: Option<&str>) -> bool {
    group.is_none_or(|g| self::group(g).is_ok_and(|g| g == job.group))
        && app.is_none_or(|a| job.app.as_deref() == Some(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names() {
        assert_eq!(wanted("12[1-3,7]"), Ok(JobSelector { id: 12, indices: vec![1, 2, 3, 7] }));
        assert_eq!(wanted("0"), Ok(JobSelector { id: 0, indices: vec![] }));
        for bad in ["x", "12[", "12[3-1]", "12[x]", ""] {
            assert!(wanted(bad).is_err(), "{bad}");
        }
        let element = JobReport { name: "arr".into(), index: Some(3), id: 3734, ..JobReport::default() };
        for (pattern, fits) in [
            ("arr", true),
            ("a*", true),
            ("*r[3]", true),
            ("arr[2]", false),
            ("arr[*]", true),
            ("b*", false),
            ("*a*r*", true),
        ] {
            assert_eq!(name_fits(pattern, &element), fits, "{pattern}");
        }
        assert!(!pattern_fits(&"*a".repeat(200), &"a".repeat(150)));
    }
}
