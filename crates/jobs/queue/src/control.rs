//! What whoever may has said of queues and hosts: that they take or start no jobs. Pure; [`crate::Spool::control`] reads
//! it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `control.json`: the last order for each name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    submission: BTreeMap<String, Order>,
    dispatch: BTreeMap<String, Order>,
    hosts: BTreeMap<String, Order>,
}

/// What an order is about.
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
pub struct Order {
    /// That it be so no more (`true`), or again.
    pub shut: bool,
    /// Whose.
    pub by: String,
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// For the others to know.
    #[serde(default)]
    pub why: Option<String>,
}

impl Control {
    fn all(&self, target: Target) -> &BTreeMap<String, Order> {
        match target {
            Target::Submission => &self.submission,
            Target::Dispatch => &self.dispatch,
            Target::Host => &self.hosts,
        }
    }

    fn all_mut(&mut self, target: Target) -> &mut BTreeMap<String, Order> {
        match target {
            Target::Submission => &mut self.submission,
            Target::Dispatch => &mut self.dispatch,
            Target::Host => &mut self.hosts,
        }
    }

    /// The order that shuts it, if one does.
    pub fn shut(&self, target: Target, name: &str) -> Option<&Order> {
        self.all(target).get(name).filter(|order| order.shut)
    }

    /// Of two orders for a name the newer one.
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

    /// With an order for each of these.
    pub fn with(mut self, target: Target, names: &[String], order: &Order) -> Control {
        names.iter().for_each(|name| drop(self.all_mut(target).insert(name.clone(), order.clone())));
        self
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "by {}, {}", self.by, day(self.at_ns))?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// A moment for people, in the time of this machine.
fn day(at_ns: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_who_may_the_last_word_counts() {
        let order = |at_ns, shut| Order { shut, by: "ann".into(), at_ns, why: None };
        let said = |at_ns, shut| Control::default().with(Target::Dispatch, &["q".into()], &order(at_ns, shut));
        let joined = said(2, false).join(said(1, true));
        assert_eq!(joined.shut(Target::Dispatch, "q"), None);
        assert_eq!(joined, said(1, true).join(said(2, false)));
        assert!(said(1, false).join(said(2, true)).shut(Target::Dispatch, "q").is_some());
        assert_eq!(said(1, true).shut(Target::Submission, "q"), None);
    }
}
