//! Finds answers that may only have come late, because a host or a server is busy. They are requested once more
//! before homing reports a fault.

use crate::checks::{answering, clock};
use crate::{Answers, Area, HostAnswers, HostCheck};
use std::collections::{BTreeMap, BTreeSet};

/// The areas with doubtful answers, and their hosts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doubts(BTreeMap<Area, Vec<String>>);

/// Returns doubts about clocks that look behind the others', and about mounts that did not answer.
pub fn doubts(answers: &Answers) -> Doubts {
    let all = [(Area::Clocks, clock::doubtful(answers)), (Area::Mounts, answering::silent(answers))];
    Doubts(all.into_iter().filter(|(_, hosts)| !hosts.is_empty()).collect())
}

impl Doubts {
    /// Returns the areas that are not reported before the second answer.
    pub fn areas(&self) -> impl Iterator<Item = Area> {
        self.0.keys().copied()
    }

    /// Keeps only the doubts about areas of these checks.
    pub fn about(self, checks: &[&HostCheck]) -> Doubts {
        Doubts(self.0.into_iter().filter(|(area, _)| checks.iter().any(|check| check.is_about(*area))).collect())
    }

    /// Returns the hosts to query again.
    pub fn hosts(&self) -> Vec<String> {
        self.0.values().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the parts to run again, besides the time, which every script prints.
    pub fn parts(&self) -> Vec<&'static HostCheck> {
        if self.0.contains_key(&Area::Mounts) { vec![&answering::CHECK] } else { vec![] }
    }
}

/// Joins the second answers of hosts to the first ones.
pub fn asked_again(answers: &mut Answers, again: &[HostAnswers]) {
    for first in &mut answers.hosts {
        if let Some(second) = again.iter().find(|second| second.name == first.name) {
            join(first, second);
        }
    }
}

fn join(first: &mut HostAnswers, second: &HostAnswers) {
    first.clock.extend(&second.clock);
    let key = answering::CHECK.key;
    let rows = match (first.rows(key), second.rows(key)) {
        (Some(before), Some(now)) => answering::with_second(before, now),
        // The first look did not end: the second one, which has three times as long, counts alone.
        (None, Some(now)) => now.to_vec(),
        (_, None) => return,
    };
    first.set_rows(key, rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CHECKS, findings};

    fn host(answering: &str) -> HostAnswers {
        let text = format!("=now\t5.0\n=who\t0\n=end\twho\t0\n{answering}=end\tanswering\t0\n");
        HostAnswers::read("n1", &[(5.0, text.into_bytes())])
    }

    #[test]
    fn a_mount_hangs_when_it_has_not_answered_twice() {
        let first = "=answering\t/a\t137\t\n=answering\t/b\t0\t\n=answering\t/c\t137\t\n=answering\t/d\t137\t\n";
        let mut answers = Answers { hosts: vec![host(first)] };
        let doubted = doubts(&answers);
        assert_eq!(doubted.areas().collect::<Vec<_>>(), [Area::Mounts]);
        assert_eq!((doubted.hosts(), doubted.parts().len()), (vec!["n1".to_string()], 1));
        assert!(doubted.about(&crate::chosen(&[Area::Clocks], false)).hosts().is_empty(), "nobody asked for it");
        // The second answer lacks /d, and /b was not in doubt.
        let second = "=answering\t/a\t0\t\n=answering\t/b\t137\t\n=answering\t/c\t1\tStale file handle\n";
        asked_again(&mut answers, &[host(second)]);
        let told: Vec<_> = findings(CHECKS, &answers).iter().map(|f| (f.code.name, f.what.clone())).collect();
        let told: Vec<_> = told.iter().map(|(code, what)| (*code, what.as_str())).collect();
        assert_eq!(
            told,
            [
                ("HC-MOUNT-08", "/c: Stale file handle"),
                ("HC-MOUNT-07", "/d does not answer"),
                ("HC-MOUNT-11", "/a answers slowly")
            ]
        );
        // If a host is silent the second time, its first answer counts.
        answers = Answers { hosts: vec![host(first)] };
        asked_again(&mut answers, &[HostAnswers::named("n1")]);
        assert_eq!(findings(CHECKS, &answers).len(), 3);
    }

    #[test]
    fn a_look_that_did_not_end_is_taken_again_and_a_frozen_mount_is_told_then() {
        let cut = || {
            let text = "=now\t5.0\n=who\t0\n=end\twho\t0\n=answering\t/b\t0\t\n";
            HostAnswers::read("n1", &[(5.0, text.as_bytes().to_vec())])
        };
        let mut answers = Answers { hosts: vec![cut()] };
        assert_eq!(doubts(&answers).hosts(), ["n1"]);
        asked_again(&mut answers, &[host("=answering\t/a\t137\t\n=answering\t/b\t0\t\n")]);
        let told: Vec<_> = findings(CHECKS, &answers).iter().map(|f| (f.code.name, f.what.clone())).collect();
        assert_eq!(told, [("HC-MOUNT-07", "/a does not answer".to_string())]);
        answers = Answers { hosts: vec![cut()] };
        asked_again(&mut answers, &[cut()]);
        assert!(findings(CHECKS, &answers).is_empty() && answers.hosts[0].unknown("answering").is_some());
    }

    #[test]
    fn well_hosts_are_asked_once() {
        let answers = Answers { hosts: vec![host("=answering\t/a\t0\t\n=answering\t/b\t1\tgone\n")] };
        assert_eq!(doubts(&answers), Doubts::default());
    }
}
