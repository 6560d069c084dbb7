//! `lsrun`: runs one command now, on a named host or on the least loaded one. Its exit status is that of the command,
//! which LSF's was not.

use super::{Refusal, load, lsf_refusal, options};
use homing_lsf::grammar::LSRUN;
use homing_lsf::options::text;
use homing_model::RawText;
use homing_model::text::quoted;
use homing_queue::require::Requirement;
use std::ffi::OsStr;
use std::process::Command;

/// Runs the command.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsrun", &LSRUN, words)? else { return Ok(0) };
    if parsed.operands.is_empty() {
        return Err(lsf_refusal("lsrun: no command specified"));
    }
    let requirement = parsed.text("R").map(|r| Requirement::all(&[r])).transpose();
    let requirement = requirement.map_err(|why| lsf_refusal(format!("Bad resource requirement syntax: {why}")))?;
    requirement.as_ref().map_or(Ok(()), load::known_names)?;
    let asked: Vec<String> =
        parsed.text("m").map(|m| m.split_whitespace().map(String::from).collect()).unwrap_or_default();
    let host = place(&asked, requirement.as_ref())?;
    if parsed.has("v") {
        eprintln!("<<Execute {} on remote host {host}>>", text(&parsed.operands[0]));
    }
    let mut command = command(&host, &parsed.operands)?;
    let failed = homing_os::process::become_program(&mut command, OsStr::new(homing_os::process::SHELL));
    Err(lsf_refusal(format!("lsrun: cannot start {}: {failed}", text(&parsed.operands[0]))))
}

/// Chooses the host. If one host is named and there is no requirement, its load is not queried.
fn place(asked: &[String], requirement: Option<&Requirement>) -> Result<String, Refusal> {
    if let ([host], None) = (asked, requirement) {
        load::known(host)?;
        return Ok(host.clone());
    }
    let mut found = load::loaded(asked, requirement)?;
    homing_lsf::tables::by_load(&mut found);
    let best = found.into_iter().find(|host| host.is_up());
    best.map(|host| host.name).ok_or_else(|| lsf_refusal("lsrun: no host satisfies the resource requirement"))
}

/// Returns the command for this machine as it is. For another host it goes through `homing exec`, in the same
/// directory.
fn command(host: &str, words: &[RawText]) -> Result<Command, Refusal> {
    if host == homing_queue::host_name() {
        let mut command = Command::new(words[0].as_os());
        command.args(words[1..].iter().map(RawText::as_os));
        return Ok(command);
    }
    let cwd = crate::cmd::queue::sub::working_directory()?;
    let mut line = [b"cd ".as_slice(), &quoted(RawText::from(cwd.as_path()).0.as_slice()), b" && exec"].concat();
    words.iter().for_each(|w| line.extend([b" ".as_slice(), &quoted(&w.0)].concat()));
    let exe = std::env::current_exe()
        .map_err(|e| lsf_refusal(format!("lsrun: cannot find the path of this program: {e}")))?;
    let mut command = Command::new(exe);
    command.args(["exec", "-S", "-N", "-q", "-w", host, "--"]).arg(RawText(line).as_os());
    Ok(command)
}
