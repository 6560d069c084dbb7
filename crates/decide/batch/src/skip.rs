//! `--skip-newer`: decides whether a task's work is done already. Times are arguments.

use homing_model::RawText;
use std::fmt;

/// Whether a task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// All outputs are newer than all inputs: skip it.
    Fresh,
    /// It runs, for this reason.
    Stale(Stale),
}

/// The reason why a task is not skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It declares no output: its state is unknown.
    NoOutputs,
    /// An earlier attempt did not finish.
    Unfinished,
    /// This output does not exist.
    Missing(RawText),
    /// This input cannot be seen, so its time is unknown.
    InputUnknown(RawText),
    /// `output` is not newer than `input`.
    Older {
        /// The oldest output.
        output: RawText,
        /// The newest input.
        input: RawText,
    },
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stale::NoOutputs => f.write_str("it declares no outputs"),
            Stale::Unfinished => f.write_str("an earlier attempt did not finish"),
            Stale::Missing(path) => write!(f, "{} does not exist", path.display()),
            Stale::InputUnknown(path) => write!(f, "the time of its input {} is not known", path.display()),
            Stale::Older { output, input } => {
                write!(f, "{} is not newer than {}", output.display(), input.display())
            }
        }
    }
}

/// Decides from modification times in nanoseconds since the epoch, `None` for a file that does not exist.
/// `unfinished`: whether a marker shows that an attempt began and did not end well. Equal times count as not newer: a
/// file system with coarse times cannot distinguish them, and running again is safe.
pub fn freshness(inputs: &[(RawText, Option<i64>)], outputs: &[(RawText, Option<i64>)], unfinished: bool) -> Freshness {
    match stale(inputs, outputs, unfinished) {
        Some(reason) => Freshness::Stale(reason),
        None => Freshness::Fresh,
    }
}

fn stale(inputs: &[(RawText, Option<i64>)], outputs: &[(RawText, Option<i64>)], unfinished: bool) -> Option<Stale> {
    let absent = |files: &[(RawText, Option<i64>)]| files.iter().find(|(_, t)| t.is_none()).map(|(p, _)| p.clone());
    if unfinished {
        return Some(Stale::Unfinished);
    }
    let Some(oldest) = outputs.iter().min_by_key(|(_, time)| *time) else { return Some(Stale::NoOutputs) };
    if let Some(path) = absent(outputs) {
        return Some(Stale::Missing(path));
    }
    if let Some(path) = absent(inputs) {
        return Some(Stale::InputUnknown(path));
    }
    let newest = inputs.iter().max_by_key(|(_, time)| *time)?;
    (oldest.1 <= newest.1).then(|| Stale::Older { output: oldest.0.clone(), input: newest.0.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_only_what_is_surely_done() {
        let file = |name: &str, time: Option<i64>| (RawText::from(name), time);
        let (old, new, gone) = (file("old", Some(1)), file("new", Some(2)), file("gone", None));
        let older =
            |output: &str, input: &str| Freshness::Stale(Stale::Older { output: output.into(), input: input.into() });
        let missing = Freshness::Stale(Stale::Missing("gone".into()));
        let unknown = Freshness::Stale(Stale::InputUnknown("gone".into()));
        for (inputs, outputs, want) in [
            (vec![&old], vec![&new], Freshness::Fresh),
            (vec![], vec![&new], Freshness::Fresh),
            (vec![&old], vec![], Freshness::Stale(Stale::NoOutputs)),
            (vec![&new], vec![&old], older("old", "new")),
            (vec![&new], vec![&new], older("new", "new")),
            (vec![&old], vec![&new, &old], older("old", "old")),
            (vec![&old], vec![&new, &gone], missing),
            (vec![&gone], vec![&new], unknown),
        ] {
            let owned = |files: Vec<&(RawText, Option<i64>)>| files.into_iter().cloned().collect::<Vec<_>>();
            assert_eq!(freshness(&owned(inputs), &owned(outputs), false), want);
        }
        assert_eq!(freshness(&[old], &[new], true), Freshness::Stale(Stale::Unfinished));
    }
}
