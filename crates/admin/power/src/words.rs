//! Describes the fate of hosts.

use crate::{ActivityResult, Becomes};
use homing_model::document;
use homing_model::text::{aligned, shown};
use homing_model::units::seconds;
use serde_json::{Value, json};
use std::time::Duration;

/// The reason why this machine stays on: no program could switch it on again.
pub const HERE: &str = "this machine";

/// Returns the name of a user's number.
type UserLookup = fn(u32) -> String;

/// Returns `on`, `off`, or `None` if that is unknown.
fn state(one: &Becomes) -> Option<&'static str> {
    match one {
        Becomes::Off(_) => Some("off"),
        Becomes::Silent(_) => None,
        _ => Some("on"),
    }
}

/// Returns how long it has been idle or off.
fn for_s(one: &Becomes) -> Option<u64> {
    match one {
        Becomes::SwitchedOff(for_s) | Becomes::Idle(for_s) | Becomes::Enough(for_s) | Becomes::Off(for_s) => {
            Some(*for_s)
        }
        _ => None,
    }
}

fn why(host: &str, one: &Becomes, user: UserLookup) -> String {
    match one {
        Becomes::SwitchedOff(_) => "homing power save would switch it off".into(),
        Becomes::Idle(_) => "idle".into(),
        Becomes::Enough(_) => "idle; most_off hosts are off".into(),
        Becomes::Kept(why) => why.clone(),
        Becomes::Works(work) => work.description(user),
        Becomes::Off(_) => format!("`homing power on {host}` switches it on"),
        Becomes::Back => "it was off; another program or person switched it on".into(),
        Becomes::Silent(why) => why.clone(),
    }
}

/// Returns a row for each host.
pub fn text(all: &[(String, Becomes)], idle: Duration, user: UserLookup) -> String {
    let head = ["HOST", "POWER", "FOR", "WHY"].map(String::from);
    let row = |(host, one): &(String, Becomes)| {
        let state = state(one).unwrap_or("-").to_string();
        [host.clone(), state, for_s(one).map_or("-".into(), seconds), shown(&why(host, one, user)).to_string()]
    };
    let rows: Vec<[String; 4]> = [head].into_iter().chain(all.iter().map(row)).collect();
    let after = format!("homing power save switches off hosts that were idle for {}\n", seconds(idle.as_secs()));
    aligned(&rows, 2..3) + if all.iter().any(|(_, one)| matches!(one, Becomes::Idle(_))) { &after } else { "" }
}

/// Returns the same as JSON.
pub fn json(all: &[(String, Becomes)], user: UserLookup) -> String {
    let row = |(host, one): &(String, Becomes)| json!({"host": host, "power": state(one), "for_s": for_s(one), "idle": is_idle(one), "why": why(host, one, user)});
    document::line(json!({ "hosts": all.iter().map(row).collect::<Vec<Value>>() }))
}

fn is_idle(one: &Becomes) -> bool {
    matches!(one, Becomes::SwitchedOff(_) | Becomes::Idle(_) | Becomes::Enough(_))
}

/// Returns a line for a timer's log about hosts that are back or silent.
pub fn noteworthy(host: &str, one: &Becomes, user: UserLookup) -> Option<String> {
    matches!(one, Becomes::Back | Becomes::Silent(_)).then(|| format!("{host}: {}", shown(&why(host, one, user))))
}

/// Returns the objection to switching a host off by hand, and whether it is final. A load above `load` counts as
/// work.
pub fn hindered(kept: Option<&String>, answer: &ActivityResult, load: f64, user: UserLookup) -> Option<(String, bool)> {
    let why = match (kept, answer) {
        (Some(why), _) if why == HERE => return Some((why.clone(), true)),
        (Some(why), _) => why.clone(),
        (None, Err(why)) => format!("its processes are unknown: {why}"),
        (None, Ok(seen)) => match &seen.work {
            Some(work) => work.description(user),
            None if seen.load > load => format!("load {:.2}", seen.load),
            None => return None,
        },
    };
    Some((format!("{why}; --force overrides this"), false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostActivity, Work};

    #[test]
    fn force_is_the_last_word_but_for_this_machine() {
        let of = |kept: Option<&str>, answer: ActivityResult| {
            hindered(kept.map(String::from).as_ref(), &answer, 0.3, |uid| format!("u{uid}"))
        };
        let seen = |work, load| Ok(HostActivity { work, load, ..HostActivity::default() });
        assert_eq!(of(Some(HERE), seen(None, 0.0)), Some((HERE.into(), true)));
        assert_eq!(of(Some("keep"), Err("no".into())), Some(("keep; --force overrides this".into(), false)));
        assert_eq!(
            of(None, seen(Some(Work::Login(7)), 0.0)),
            Some(("u7 is logged in; --force overrides this".into(), false))
        );
        assert_eq!(of(None, seen(None, 0.5)), Some(("load 0.50; --force overrides this".into(), false)));
        assert_eq!(of(None, seen(None, 0.1)), None);
        assert!(of(None, Err("gone".into())).unwrap().0.starts_with("its processes are unknown: gone"));
    }
}
