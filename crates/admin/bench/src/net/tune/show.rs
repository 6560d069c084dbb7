//! Shows trials as sentences and as JSON.

use super::apply::{TrialResult, Tried};
use super::compare::{Compared, Quantity};
use super::trials::Trial;
use homing_model::{NodeSet, document};
use serde_json::json;
use std::fmt::Write;

fn hosts(trial: &Trial) -> NodeSet {
    trial.wanted.keys().cloned().collect()
}

fn compared(one: &Compared) -> String {
    let (what, unit) = match one.quantity {
        Quantity::OneWay => ("one way", "Mbit/s"),
        Quantity::AtOnce => ("both at once", "Mbit/s"),
        Quantity::Latency => ("one byte", "us"),
        Quantity::Written => ("written", "Mbit/s"),
        Quantity::Read => ("read", "Mbit/s"),
    };
    let digits = if one.before < 100.0 { 1 } else { 0 };
    let how = match () {
        () if one.is_better() => "better",
        () if one.is_worse() => "worse",
        () => "within the noise",
    };
    let (before, after) = (one.before, one.after);
    format!(
        "    {what:<12} {before:>9.digits$} -> {after:>9.digits$} {unit:<6}  {:>+6.1} %, noise {:>4.1} %: {how}\n",
        one.gain * 100.0,
        one.noise * 100.0
    )
}

fn fate(trial: &Trial, fate: &TrialResult) -> String {
    match fate {
        TrialResult::Kept { .. } if trial.through.is_some() => {
            "kept from the next mount on: unmount all exports of this server and mount them again, or reboot".into()
        }
        TrialResult::Left if trial.through.is_some() => {
            "not kept: the gain is below the noise, or another rate fell".into()
        }
        TrialResult::Kept { lasting: true } => "kept, also after a boot".into(),
        TrialResult::Kept { lasting: false } => "kept until the next boot".into(),
        TrialResult::Left => "undone: the gain is below the noise, or another rate fell".into(),
        TrialResult::Failed(why) => format!("not possible: {why}"),
    }
}

/// Returns trials as text for people.
pub fn text(tried: &[Tried], left: &[String]) -> String {
    let mut text = String::new();
    for one in tried {
        let _ = writeln!(text, "{} on {}: {}", one.trial.name, hosts(&one.trial), fate(&one.trial, &one.fate));
        one.compared.iter().for_each(|one| text += &compared(one));
    }
    left.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

/// Returns the planned trials as text for people.
pub fn planned(trials: &[Trial], left: &[String]) -> String {
    let tried = trials.iter().map(|trial| format!("{} on {}: would be tried\n", trial.name, hosts(trial)));
    tried.chain(left.iter().map(|line| format!("{line}\n"))).collect()
}

/// Returns the planned trials as JSON.
pub fn planned_json(trials: &[Trial], left: &[String]) -> String {
    let one = |trial: &Trial| json!({ "setting": trial.name, "kind": trial.kind, "hosts": trial.wanted.keys().collect::<Vec<_>>() });
    document::line(json!({ "would_try": trials.iter().map(one).collect::<Vec<_>>(), "not_tried": left }))
}

/// Returns trials as JSON.
pub fn json(tried: &[Tried], left: &[String], status: i32) -> String {
    let one = |tried: &Tried| {
        let (fate, lasting, why) = match &tried.fate {
            TrialResult::Kept { lasting } => ("kept", Some(*lasting), None),
            TrialResult::Left => ("left", None, None),
            TrialResult::Failed(why) => ("failed", None, Some(why)),
        };
        json!({
            "setting": tried.trial.name,
            "kind": tried.trial.kind,
            "hosts": tried.trial.wanted.keys().collect::<Vec<_>>(),
            "fate": fate,
            "lasting": lasting,
            "why": why,
            "compared": tried.compared,
        })
    };
    let tried: Vec<_> = tried.iter().map(one).collect();
    document::line(json!({ "tried": tried, "not_tried": left, "exit": status }))
}
