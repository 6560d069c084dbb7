//! `badmin`: closes and opens queues and hosts, and prints the settings that Snakemake and other programs read before
//! they submit.

use super::{Refusal, lsf_refusal, options, print};
use homing_lsf::grammar::{BADMIN, LSADMIN};
use homing_lsf::options::text;
use homing_model::RawText;
use homing_queue::control::Target;

/// Verbs: the target, whether they close it, and the words that report it.
const VERBS: [(&str, Target, bool, &str); 6] = [
    ("qclose", Target::Submission, true, "is closed"),
    ("qopen", Target::Submission, false, "is opened"),
    ("qinact", Target::Dispatch, true, "is inactivated"),
    ("qact", Target::Dispatch, false, "is activated"),
    ("hclose", Target::Host, true, "is closed"),
    ("hopen", Target::Host, false, "is opened"),
];

/// Executes the verb that is the first word.
pub fn badmin(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("badmin", &BADMIN, words)? else { return Ok(0) };
    let Some((verb, names)) = parsed.operands.split_first() else { return Err(unknown("no word")) };
    let verb = text(verb);
    if verb == "showconf" {
        return showconf();
    }
    let Some((_, target, shut, done)) = VERBS.into_iter().find(|(name, ..)| *name == verb) else {
        return Err(unknown(&verb));
    };
    let engine = super::engine()?;
    let known: Vec<String> = match target {
        Target::Host => engine.machines()?.into_iter().map(|machine| machine.name).collect(),
        _ => engine.config()?.queues.into_keys().collect(),
    };
    let names = named(target, &known, names)?;
    engine.control(target, &names, shut, parsed.text("C"))?;
    let what = if target == Target::Host { "Host" } else { "Queue" };
    print(&names.iter().map(|name| format!("{what} <{name}> {done}\n")).collect::<String>())
}

/// Executes `lsadmin showconf lim`: prints the folders of the installation. Hosts are closed and opened by badmin.
pub fn lsadmin(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsadmin", &LSADMIN, words)? else { return Ok(0) };
    match parsed.operands.first().map(text).as_deref() {
        Some("showconf") => {
            let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
            print(&format!("LIM configuration at {now}\n{}", folders("lsadmin")?))
        }
        other => {
            let verb = other.unwrap_or("no word");
            Err(lsf_refusal(format!(
                "lsadmin: {verb}: only showconf is supported; homing has no daemons, and badmin opens hosts"
            )))
        }
    }
}

fn unknown(verb: &str) -> Refusal {
    let verbs: Vec<&str> = VERBS.iter().map(|(name, ..)| *name).collect();
    lsf_refusal(format!("badmin: {verb}: supported are showconf, {}", verbs.join(", ")))
}

/// Returns the queues or hosts that are named. Without a name it is this host; a queue must be named.
fn named(target: Target, known: &[String], words: &[RawText]) -> Result<Vec<String>, Refusal> {
    let names: Vec<String> = words.iter().map(text).collect();
    match (names.as_slice(), target) {
        ([], Target::Host) => return Ok(vec![homing_queue::host_name()]),
        ([], _) => return Err(lsf_refusal("badmin: Queue name must be specified; all means all queues")),
        ([all], _) if all == "all" => return Ok(known.to_vec()),
        _ => {}
    }
    match (names.iter().find(|name| !known.contains(name)), target) {
        (None, _) => Ok(names),
        (Some(odd), Target::Host) => Err(lsf_refusal(format!("{odd}: Bad host name, host group name or cluster name"))),
        (Some(odd), _) => Err(lsf_refusal(format!("{odd}: No such queue"))),
    }
}

/// Executes `badmin showconf mbd`: prints the units, and the folder in which Snakemake looks for lsb.params.
fn showconf() -> Result<i32, Refusal> {
    let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
    print(&format!("MBD configuration at {now}\n{}        LSB_JOBINDEX = 1\n", folders("badmin")?))
}

/// Returns the lines that LSF's daemons print about their configuration.
fn folders(verb: &str) -> Result<String, Refusal> {
    let missing = || lsf_refusal(format!("{verb}: call it by the link that `homing lsf install` has made"));
    let folder = super::install::folder().ok_or_else(missing)?;
    let (folder, unit) = (folder.display(), super::config::unit()?);
    Ok(format!(
        "        LSB_SHAREDIR = {folder}/lsf/work\n        LSF_CONFDIR = {folder}/lsf/conf\n        \
         LSF_ENVDIR = {folder}/lsf/conf\n        LSF_UNIT_FOR_LIMITS = {unit}\n"
    ))
}
