//! Makes a job of the queue from a request of `bsub`: its queue, its name and its command. Errors are in LSF's words.

use crate::bsub::{BsubRequest, Interactive, default_name};
use homing_model::text::quoted;
use homing_model::{Command, RawText};
use homing_queue::array::{self, Array};
use homing_queue::plan::Config;

/// Returns the queue, and whether it is a default; `usual` is the one that the user's environment names.
pub fn queue_of(
    request: &BsubRequest,
    usual: Option<&str>,
    config: &Config,
    uid: u32,
) -> Result<(String, bool), String> {
    let is_there = |name: &str| config.queues.contains_key(name);
    let (name, by_default) = match (request.queues.iter().find(|name| is_there(name)), request.queues.first(), usual) {
        (Some(name), ..) => (name.as_str(), false),
        (None, Some(first), _) => return Err(format!("{first}: No such queue")),
        (None, None, Some(usual)) if !is_there(usual) => {
            return Err(format!("{usual} (of LSB_DEFAULTQUEUE): No such queue"));
        }
        (None, None, usual) => (usual.unwrap_or_else(|| config.default_queue()), true),
    };
    match config.refuses(name, uid) {
        Some(why) => Err(format!("{name}: {why}")),
        None => Ok((name.into(), by_default)),
    }
}

/// Returns name and array; a name that is no array of LSF is a plain name. Without -J it is empty: bjobs then shows
/// the command, to users who may see it.
pub fn named(request: &BsubRequest) -> Result<(String, Option<Array>), String> {
    let Some(name) = &request.name else { return Ok((String::new(), None)) };
    // Names in Snakemake have no brackets, but others do: only `name[1-5]` is an array.
    let looks = name.rfind('[').is_some_and(|at| {
        let rest = name[at + 1..].trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('%');
        rest.strip_suffix(']').is_some_and(|r| r.chars().all(|c| c.is_ascii_digit() || "-,: ".contains(c)))
    });
    array::check_name(name)?;
    if looks { array::parse(name) } else { Ok((name.clone(), None)) }
}

/// Returns the command, or the script with the name that represents it, with the commands before and after it.
/// `on_own_terminal`: the engine makes the job's terminal.
pub fn command_of(
    request: &BsubRequest,
    script: Option<&RawText>,
    on_own_terminal: bool,
) -> (Command, Option<RawText>) {
    let mut around = Vec::new();
    if let Some(before) = &request.before {
        around.extend([b"( ".as_slice(), &before.0, b"\n) </dev/null >/dev/null 2>&1 || exit 125\n"].concat());
    }
    if let Some(then) = &request.then {
        around.extend([b"trap ".as_slice(), &quoted(&then.0), b" EXIT\n"].concat());
    }
    if let Some(script) = script {
        let (first, rest) = match script.0.starts_with(b"#!") {
            true => script.0.split_at(script.0.iter().position(|b| *b == b'\n').map_or(script.0.len(), |at| at + 1)),
            false => (&b""[..], &script.0[..]),
        };
        let whole = RawText([first, &around, rest].concat());
        return (Command::Shell(default_name(&script.0).into()), Some(whole));
    }
    let line = request.command.clone().unwrap_or_default();
    let mut line = RawText([around.as_slice(), &line.0].concat());
    if request.interactive == Some(Interactive::Terminal) && !on_own_terminal {
        // script(1) makes the terminal and passes the exit status on.
        line = RawText([b"exec script -qefc ".as_slice(), &quoted(&line.0), b" /dev/null"].concat());
    }
    match &request.login_shell {
        Some(shell) => (Command::Argv(vec![shell.clone(), "-l".into(), "-c".into(), line]), None),
        None => (Command::Shell(line), None),
    }
}

/// Returns the script with an interpreter that reads its login files, for `-L SHELL`; the error is why it cannot.
pub fn in_login_shell(script: &RawText, shell: Option<&RawText>) -> Result<RawText, String> {
    let Some(shell) = shell else { return Ok(script.clone()) };
    let Some(rest) = script.0.strip_prefix(b"#!") else {
        return Ok(RawText([b"#!", &shell.0[..], b" -l\n", &script.0].concat()));
    };
    let (first, rest) = rest.split_at(rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()));
    let words = String::from_utf8_lossy(first);
    match words.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        [own, options @ ..] if own.as_bytes() == shell.0 && matches!(options, [] | ["-l" | "--login"]) => {
            Ok(RawText([b"#!", &shell.0[..], b" -l", rest].concat()))
        }
        _ => {
            let (shell, first) = (shell.display(), words.trim());
            Err(format!("-L {shell}: the script begins with #!{first}; begin it with #!{shell} -l, or leave -L out"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_queue::plan::Queue;

    #[test]
    fn the_first_queue_that_is_there_is_taken_and_one_that_is_closed_is_not() {
        let queue = |closed| Queue { closed, ..Queue::default() };
        let queues =
            [("normal".to_string(), queue(false)), ("night".into(), queue(false)), ("old".into(), queue(true))];
        let config = Config { queues: queues.into(), ..Config::default() };
        let of = |named: &[&str], usual| {
            let queues = named.iter().map(|name| name.to_string()).collect();
            queue_of(&BsubRequest { queues, ..BsubRequest::default() }, usual, &config, 1)
        };
        assert_eq!(of(&["no", "night"], Some("no")), Ok(("night".into(), false)));
        assert_eq!(of(&["no", "nor"], None), Err("no: No such queue".into()));
        assert_eq!(of(&[], None), Ok(("normal".into(), true)));
        assert_eq!(of(&[], Some("night")), Ok(("night".into(), true)));
        assert_eq!(of(&[], Some("no")), Err("no (of LSB_DEFAULTQUEUE): No such queue".into()));
        assert_eq!(of(&["old"], None), Err("old: Queue has been closed".into()));
    }

    #[test]
    fn a_script_is_run_by_a_login_shell_or_refused() {
        let of = |script: &str| in_login_shell(&script.into(), Some(&"/bin/bash".into())).map(|text| text.display());
        assert_eq!(in_login_shell(&"w".into(), Some(&"/b".into())), Ok("#!/b -l\nw".into()));
        for first in ["#!/bin/bash", "#! /bin/bash", "#!/bin/bash -l"] {
            assert!(of(&format!("{first}\nwork")).unwrap().starts_with("#!/bin/bash -l"), "{first}");
        }
        for first in ["#!/usr/bin/python3", "#!/bin/bash -e", "#!"] {
            assert!(of(&format!("{first}\nwork")).unwrap_err().contains("#!/bin/bash -l"), "{first}");
        }
        assert_eq!(in_login_shell(&"work".into(), None), Ok("work".into()));
    }

    #[test]
    fn only_brackets_with_numbers_are_an_array() {
        let of = |name: &str| named(&BsubRequest { name: Some(name.into()), ..BsubRequest::default() });
        let arrays = |name: &str| of(name).map(|(name, array)| (name, array.is_some()));
        assert_eq!(arrays("a[1-5]%2"), Ok(("a".into(), true)));
        assert_eq!(arrays("nf[one]_(1)"), Ok(("nf[one]_(1)".into(), false)));
        assert!(of("a[5-1]").is_err());
        assert_eq!(named(&BsubRequest::default()), Ok((String::new(), None)));
    }

    #[test]
    fn what_comes_before_a_script_stands_behind_its_first_line() {
        let request =
            BsubRequest { before: Some("mount /x".into()), then: Some("umount /x".into()), ..BsubRequest::default() };
        let (name, script) = command_of(&request, Some(&"#!/bin/bash\nwork\n".into()), false);
        assert_eq!(name, Command::Shell("#!/bin/bash;work".into()));
        let wanted = "#!/bin/bash\n( mount /x\n) </dev/null >/dev/null 2>&1 || exit 125\ntrap 'umount /x' EXIT\nwork\n";
        assert_eq!(script.unwrap().display(), RawText::from(wanted).display());
        let terminal = BsubRequest { command: Some("top".into()), interactive: Some(Interactive::Terminal), ..request };
        let own = command_of(&BsubRequest { before: None, then: None, ..terminal.clone() }, None, true);
        assert_eq!(own, (Command::Shell("top".into()), None));
        let Command::Shell(line) = command_of(&terminal, None, false).0 else { panic!() };
        assert!(line.0.starts_with(b"exec script -qefc ") && line.0.ends_with(b" /dev/null"));
    }
}
