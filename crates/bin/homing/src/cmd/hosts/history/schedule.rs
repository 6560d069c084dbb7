//! Sets the timers: units of the user's own systemd on each host, which need no root.

use homing_exec::{Command, Options, Remote};
use homing_model::{Failure, alike, exit};
use homing_snapshot::timer::quoted;
use std::time::Duration;

/// The time limit for the units of a host.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The script that sets the timers, and takes them away.
const SCRIPT: &str = include_str!("schedule.sh");
/// The result of a host without further notes.
const WELL: &str = "a sample a minute";

/// Sets the timers on each host, or takes them away.
pub fn run(names: &[String], undo: bool) -> Result<i32, Failure> {
    let program = std::env::current_exe().map_err(Failure::system)?;
    let program = program.to_str().ok_or_else(|| Failure::system("the path of this program is not UTF-8"))?;
    let (service, timer) = (service(program), timer());
    let words: &[&str] = if undo { &["off"] } else { &["on", program, &service, &timer] };
    let words = ["sh", "-c", SCRIPT, "sh"].iter().chain(words).map(|word| word.to_string());
    let options = Options { command_timeout: Some(TIMEOUT), ..Options::default() };
    let results: Vec<_> = Remote::new(options).run(names, &Command::argv(words)).collect();
    let of = |name: &String| results.iter().find(|result| result.host == *name);
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for name in names {
        match of(name) {
            Some(result) if result.outcome.is_ok() => {
                let said = String::from_utf8_lossy(&result.stdout).trim().to_string();
                let what = if undo { "timer removed" } else { WELL };
                done.push((name, if said.is_empty() { what.into() } else { format!("{what}, {said}") }));
            }
            Some(result) => failed.push((name, result.why())),
            None => failed.push((name, "no command was sent to it".into())),
        }
    }
    let lines =
        |all: &[(&String, String)]| alike::folded(all.iter().map(|(name, what)| (name.as_str(), what.as_str())));
    lines(&done).iter().for_each(|line| println!("{line}"));
    lines(&failed).iter().for_each(|line| eprintln!("homing: {line}"));
    Ok(if failed.is_empty() { 0 } else { exit::SYSTEM })
}

const HEAD: &str = "# Made by homing hosts --schedule, which overwrites it.\n";

/// Returns the unit of the service. Its starts are not logged: a line a minute carries no information.
fn service(program: &str) -> String {
    format!(
        "{HEAD}[Unit]\nDescription=A sample of this host for homing hosts --history\n\n[Service]\nType=oneshot\nNice=19\n\
         LogLevelMax=warning\nExecStart={} hosts --sample\n",
        quoted(program)
    )
}

fn timer() -> String {
    format!(
        "{HEAD}[Unit]\nDescription=A sample of this host each minute\n\n[Timer]\nOnCalendar=*-*-* *:*:00\nAccuracySec=1s\n\n\
         [Install]\nWantedBy=timers.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_run_this_program_each_minute_whatever_its_path() {
        assert!(service("/a b/100%").contains("ExecStart=\"/a b/100%%\" hosts --sample\n"));
        assert!(timer().contains("OnCalendar=*-*-* *:*:00\n") && timer().starts_with("# Made by homing"));
    }
}
