//! Switches hosts off and on.

use super::look;
use crate::cluster::{Cluster, Switching};
use crate::consent::Consent;
use crate::switched::{self, PowerLedger};
use homing_model::alike;
use homing_model::units::seconds as span;
use homing_model::{Failure, NodeSet, exit};
use homing_power::ActivityResult;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two queries whether hosts answer.
const PAUSE: Duration = Duration::from_secs(2);

/// Switches a host off, and records it at once: a process that is killed next has recorded each host. The inner error
/// is the output of the command.
pub fn off_one(switching: &Switching, book: &mut PowerLedger, host: &str) -> Result<Result<(), String>, Failure> {
    if let Err(said) = switching.off(host)?.run() {
        return Ok(Err(format!("not switched off: {said}")));
    }
    book.known.switched_off(host, switched::now_s());
    book.write().map(Ok)
}

/// Executes `homing power off`.
pub fn off(cluster: &Cluster, names: &[String], force: bool, consent: Consent) -> Result<i32, Failure> {
    let switching = cluster.switching()?;
    names.iter().try_for_each(|host| switching.off(host).map(drop))?;
    let kept = cluster.kept(&switching.keep, &homing_volume::holders(), names);
    let known = switched::all();
    let (mut going, mut failed) = (Vec::new(), Vec::new());
    for (host, answer) in look::all(names, &kept) {
        if answer.is_err() && known.off_s(&host).is_some() {
            println!("{host} is already off");
            continue;
        }
        match homing_power::hindered(kept.get(&host), &answer, switching.load, homing_queue::user_name) {
            Some((why, last)) if last || !force => failed.push((host, format!("not switched off: {why}"))),
            Some((why, _)) => going.push((host, why.trim_end_matches("; --force overrides this").to_string())),
            None => going.push((host, String::new())),
        }
    }
    if !going.is_empty() {
        consent.confirm("switching hosts off", &question(&going, &failed))?;
        let mut book = PowerLedger::open()?;
        for (host, _) in going {
            match off_one(&switching, &mut book, &host)? {
                Ok(()) => println!("{host} switched off"),
                Err(why) => failed.push((host, why)),
            }
        }
    }
    print_failures(&failed)
}

/// Returns the summary before hosts are switched off: the hosts that go, with the objection that `--force`
/// overrides, and the hosts that stay on.
fn question(going: &[(String, String)], staying: &[(String, String)]) -> String {
    let hosts: NodeSet = going.iter().map(|(host, _)| host.clone()).collect();
    let mut lines = vec![format!("{} would be switched off", alike::label(&hosts))];
    let forced = going.iter().filter(|(_, why)| !why.is_empty());
    lines.extend(alike::folded(forced.map(|(host, why)| (host.as_str(), why.as_str()))));
    lines.extend(alike::folded(staying.iter().map(|(host, why)| (host.as_str(), why.as_str()))));
    lines.join("\n  ")
}

/// Executes `homing power on`.
pub fn on(cluster: &Cluster, names: &[String], no_wait: bool) -> Result<i32, Failure> {
    let switching = cluster.switching()?;
    let commands = names.iter().map(|host| switching.on(host)).collect::<Result<Vec<_>, _>>()?;
    let begun = Instant::now();
    let switched = homing_os::threads::each(&commands, homing_launch::SwitchCommand::run);
    let mut failed = Vec::new();
    let mut coming = Vec::new();
    for (host, done) in names.iter().zip(switched) {
        match done {
            Ok(()) => coming.push(host.clone()),
            Err(said) => failed.push((host.clone(), format!("not switched on: {said}"))),
        }
    }
    forget(&coming)?;
    while !coming.is_empty() && !no_wait {
        let answers: BTreeMap<String, ActivityResult> = coming.iter().cloned().zip(look::these(&coming)).collect();
        let late = begun.elapsed() > switching.boot;
        coming.retain(|host| match &answers[host] {
            Ok(_) => {
                println!("{host} is on after {}", span(begun.elapsed().as_secs()));
                false
            }
            Err(why) if late => {
                let for_s = span(begun.elapsed().as_secs());
                failed.push((host.clone(), format!("it was switched on {for_s} ago and still does not answer: {why}")));
                false
            }
            Err(_) => true,
        });
        if !coming.is_empty() {
            sleep(PAUSE);
        }
    }
    print_failures(&failed)
}

/// Removes hosts from this user's record of hosts that are off. In root's record, `homing power save` does that.
fn forget(hosts: &[String]) -> Result<(), Failure> {
    if hosts.iter().all(|host| switched::all().off_s(host).is_none()) {
        return Ok(());
    }
    let mut book = PowerLedger::open()?;
    hosts.iter().for_each(|host| book.known.switched_on(host));
    book.write()
}

fn print_failures(failed: &[(String, String)]) -> Result<i32, Failure> {
    let lines = alike::folded(failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    lines.iter().for_each(|line| eprintln!("homing: {line}"));
    Ok(if failed.is_empty() { 0 } else { exit::SYSTEM })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_hosts_that_go_and_those_that_stay() {
        let row = |host: &str, why: &str| (host.to_string(), why.to_string());
        let going = [row("n1", ""), row("n2", "ann is logged in")];
        let text = question(&going, &[row("n3", "not switched off: load 0.50; --force overrides this")]);
        let lines = [
            "n[1-2] (2) would be switched off",
            "n2: ann is logged in",
            "n3: not switched off: load 0.50; --force overrides this",
        ];
        assert_eq!(text, lines.join("\n  "));
    }
}
