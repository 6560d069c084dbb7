//! Compares the answers of dirvish 1.2.1 to random dates, rules and banks with those of this crate.

use homing_snapshot::expiry;
use homing_snapshot::image::Image;
use homing_snapshot::keep;
use homing_snapshot::order::ordered;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};

/// Columns: time (s), default, rules with `|` between them, dirvish's expiry, the rule that matched.
const RULES: &str = include_str!("dirvish-rules.tsv");
/// Columns: vault, branch, image, end of its copy, expiry, status, tree, the action of `dirvish-expire`.
const EXPIRE: &str = include_str!("dirvish-expire.tsv");

#[test]
fn a_thousand_dates_and_rules_end_at_the_same_second() {
    // The time zone of the recorded answers: TZ=CET-1CEST,M3.5.0,M10.5.0/3.
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let mut compared = 0;
    for line in RULES.lines() {
        let [now, default, rules, answer, rule] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let rules: Vec<String> = rules.split('|').filter(|r| !r.is_empty()).map(String::from).collect();
        let now = Timestamp::from_second(now.parse().unwrap()).unwrap();
        let found = expiry::of(&rules, default, now, &zone).unwrap_or_else(|e| panic!("{line}: {e}"));
        let words = match (&found.words, found.at) {
            (Some(words), Some(at)) => format!("{words} == {}", expiry::written(at, &zone)),
            _ => "Never".into(),
        };
        assert_eq!((words.as_str(), found.rule.as_deref().unwrap_or("")), (answer, rule), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 1000);
}

#[test]
fn images_go_as_with_dirvish_expire_but_the_last_good_ones_never_do() {
    let now: Timestamp = "2026-11-23T03:00:00Z".parse().unwrap();
    let mut banks: BTreeMap<&str, Vec<(Image, bool)>> = BTreeMap::new();
    for line in EXPIRE.lines() {
        let [vault, branch, name, at, expire, status, tree, did] =
            line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let summary =
            format!("branch: {branch}\nImage: {name}\nExpire: {expire}\nBackup-complete: {at}\nStatus: {status}\n");
        let image = Image::of(name, &summary, tree == "tree", &TimeZone::UTC).unwrap();
        banks.entry(vault).or_default().push((image, did == "removed"));
    }
    let (mut same, mut faults) = (0, 0);
    for (vault, images) in &banks {
        let all = ordered(images.iter().map(|(image, _)| image.clone()).collect());
        let gone: BTreeSet<&str> = keep::expired(&all, now).into_iter().map(|image| image.name.as_str()).collect();
        for branch in all.iter().map(|image| image.branch.as_str()).collect::<BTreeSet<_>>() {
            let of_branch = || images.iter().filter(|(image, _)| image.branch == branch);
            let good = || all.iter().filter(|image| image.branch == branch && image.is_good());
            let last: Vec<&str> = good().rev().take(keep::KEPT).map(|image| image.name.as_str()).collect();
            let sound = good().any(|image| image.expires.is_none_or(|at| at > now));
            for (image, removed) in of_branch() {
                if last.contains(&image.name.as_str()) {
                    assert!(!gone.contains(image.name.as_str()), "{vault} {image:?}");
                    faults += usize::from(*removed);
                } else if sound {
                    assert_eq!(gone.contains(image.name.as_str()), *removed, "{vault} {image:?}");
                    same += 1;
                }
            }
        }
    }
    assert!(same > 250 && faults > 50, "{same} images compared, {faults} last good ones that dirvish took");
}
