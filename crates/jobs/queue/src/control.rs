//! Orders of administrators that a queue takes or starts no jobs, or that a host starts none. Pure;
//! [`crate::JobSpool::control`] reads them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `control.json`: the last order for each name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    submission: BTreeMap<String, ControlOrder>,
    dispatch: BTreeMap<String, ControlOrder>,
    hosts: BTreeMap<String, ControlOrder>,
}

/// The thing that an order closes or opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Whether a queue takes jobs.
    Submission,
    /// Whether a queue starts jobs.
    Dispatch,
    /// Whether a host starts jobs.
    Host,
}

/// One order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlOrder {
    /// Whether it closes (`true`) or opens again.
    pub shut: bool,
    /// The user who gave it.
    pub by: String,
    /// When it was given, ns since the epoch.
    pub at_ns: i64,
    /// The reason, for other users.
    #[serde(default)]
    pub why: Option<String>,
}

impl Control {
    fn all(&self, target: Target) -> &BTreeMap<String, ControlOrder> {
        match target {
            Target::Submission => &self.submission,
            Target::Dispatch => &self.dispatch,
            Target::Host => &self.hosts,
        }
    }

    fn all_mut(&mut self, target: Target) -> &mut BTreeMap<String, ControlOrder> {
        match target {
            Target::Submission => &mut self.submission,
            Target::Dispatch => &mut self.dispatch,
            Target::Host => &mut self.hosts,
        }
    }

    /// Returns the order that closes `name`, if one does.
    pub fn shut(&self, target: Target, name: &str) -> Option<&ControlOrder> {
        self.all(target).get(name).filter(|order| order.shut)
    }

    /// Joins both; of two orders for a name the newer one is kept.
    pub(crate) fn join(mut self, other: Control) -> Control {
        for target in [Target::Submission, Target::Dispatch, Target::Host] {
            for (name, order) in other.all(target) {
                let known = self.all_mut(target).entry(name.clone()).or_insert_with(|| order.clone());
                if known.at_ns < order.at_ns {
                    *known = order.clone();
                }
            }
        }
        self
    }

    /// Adds an order for each of these names.
    pub fn with(mut self, target: Target, names: &[String], order: &ControlOrder) -> Control {
        names.iter().for_each(|name| drop(self.all_mut(target).insert(name.clone(), order.clone())));
        self
    }
}

impl std::fmt::Display for ControlOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "by {}, {}", self.by, day(self.at_ns))?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// Formats a time for people, in the time zone of this machine.
fn day(at_ns: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_who_may_the_last_word_counts() {
        let order = |at_ns, shut| ControlOrder { shut, by: "ann".into(), at_ns, why: None };
        let said = |at_ns, shut| Control::default().with(Target::Dispatch, &["q".into()], &order(at_ns, shut));
        let joined = said(2, false).join(said(1, true));
        assert_eq!(joined.shut(Target::Dispatch, "q"), None);
        assert_eq!(joined, said(1, true).join(said(2, false)));
        assert!(said(1, false).join(said(2, true)).shut(Target::Dispatch, "q").is_some());
        assert_eq!(said(1, true).shut(Target::Submission, "q"), None);
    }
}
