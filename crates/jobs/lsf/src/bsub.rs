//! A request to `bsub`: its options, those of a script's `#BSUB` lines, and both together.

use crate::grammar::BSUB;
use crate::options::{Grammar, Parsed, parse, text};
use crate::{env::EnvRule, line, time};
use homing_model::RawText;
use homing_queue::require::{Requirement, amount};

/// How the terminal is connected to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// `-I`: its output and input.
    Plain,
    /// `-Ip`, `-Is`: as on a terminal of its own.
    Terminal,
}

/// One submission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BsubRequest {
    /// The shell line; none if the script is the job.
    pub command: Option<RawText>,
    /// The words of the line, to find the files that they name.
    pub words: Vec<RawText>,
    /// `-J`, with its array.
    pub name: Option<String>,
    /// `-q`; several are tried in order.
    pub queues: Vec<String>,
    /// `-o` or `-oo`.
    pub output: Option<RawText>,
    /// `-e` or `-eo`.
    pub error: Option<RawText>,
    /// `-i` or `-is`.
    pub input: Option<RawText>,
    /// `-oo`: the output file is emptied first.
    pub overwrite: bool,
    /// `-eo`.
    pub overwrite_error: bool,
    /// `-n`, the smaller number.
    pub slots: Option<u32>,
    /// `-n`, the larger number.
    pub most_slots: Option<u32>,
    /// `-x`: the whole host.
    pub exclusive: bool,
    /// All `-R`.
    pub require: Requirement,
    /// `-W`, seconds.
    pub limit_s: Option<u64>,
    /// `-M` as written, an amount; [`crate::units`] reads it.
    pub memory: Option<String>,
    /// `-m`, names in order of preference.
    pub hosts: Vec<String>,
    /// `-w`.
    pub after: Option<String>,
    /// `-H`.
    pub hold: bool,
    /// `-K`.
    pub wait: bool,
    /// `-I` and its relatives.
    pub interactive: Option<Interactive>,
    /// `-cwd`.
    pub cwd: Option<RawText>,
    /// `-P`.
    pub project: Option<String>,
    /// `-g`, a path.
    pub group: Option<String>,
    /// `-app`.
    pub app: Option<String>,
    /// `-gpu`: graphics processors that it takes of its host.
    pub gpus: Option<u32>,
    /// `-network`, the name of one.
    pub network: Option<String>,
    /// Notes to the user about options that do less than LSF's, a line each.
    pub notes: Vec<String>,
    /// `-E`: runs first; if it fails, the job does not start.
    pub before: Option<RawText>,
    /// `-Ep`: runs afterwards.
    pub then: Option<RawText>,
    /// `-env`.
    pub env: EnvRule,
    /// `-L`: the shell whose login files are read.
    pub login_shell: Option<RawText>,
}

/// A parsed command line of bsub.
#[derive(Debug, PartialEq)]
pub enum Call {
    /// `-h`.
    Help,
    /// `-V`.
    Version,
    /// A job. Without a command, standard input is its script.
    Submit(Box<BsubRequest>),
}

/// Parses bsub's arguments; the error is the text that bsub prints before it exits with 255.
pub fn call(words: &[RawText]) -> Result<Call, String> {
    let parsed = parse(&BSUB, words)?;
    if parsed.has("h") {
        return Ok(Call::Help);
    }
    if parsed.has("V") {
        return Ok(Call::Version);
    }
    Ok(Call::Submit(Box::new(request(&parsed)?)))
}

/// Adds the options of a script's `#BSUB` lines; the command line's own options win.
pub fn with_script(own: BsubRequest, script: &[u8]) -> Result<BsubRequest, String> {
    let words = directives(script, "#BSUB")?;
    let parsed = parse(&Grammar { mixed: true, ..BSUB }, &words)?;
    if let Some(word) = parsed.operands.first() {
        let word = word.display();
        return Err(format!(
            "#BSUB lines: {word} is not an option; begin a remark with #, and put the command into the script"
        ));
    }
    if let Some(option) = ["h", "V"].into_iter().find(|option| parsed.has(option)) {
        return Err(format!("#BSUB lines: -{option} is for the command line"));
    }
    Ok(merge(own, request(&parsed)?))
}

/// Returns the words of a script's lines that begin with `mark`, split as a shell splits them: a word that begins
/// with `#` begins a remark. As in LSF a line needs no blank before its first dash: `#BSUB-J name`.
pub fn directives(script: &[u8], mark: &str) -> Result<Vec<RawText>, String> {
    let mut words: Vec<RawText> = Vec::new();
    for line in script.split(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some(options) = line.trim_start().strip_prefix(mark).filter(|o| o.starts_with([' ', '\t', '-'])) else {
            continue;
        };
        let split = shlex::split(options).ok_or_else(|| format!("{mark}{options}: a quote is not closed"))?;
        words.extend(split.into_iter().map(RawText::from));
    }
    Ok(words)
}

fn merge(own: BsubRequest, script: BsubRequest) -> BsubRequest {
    let list = |own: Vec<String>, other: Vec<String>| if own.is_empty() { other } else { own };
    BsubRequest {
        name: own.name.or(script.name),
        queues: list(own.queues, script.queues),
        overwrite: if own.output.is_some() { own.overwrite } else { script.overwrite },
        overwrite_error: if own.error.is_some() { own.overwrite_error } else { script.overwrite_error },
        output: own.output.or(script.output),
        error: own.error.or(script.error),
        input: own.input.or(script.input),
        most_slots: own.most_slots.or(script.most_slots),
        slots: own.slots.or(script.slots),
        exclusive: own.exclusive || script.exclusive,
        require: if own.require.text.is_empty() { script.require } else { own.require },
        limit_s: own.limit_s.or(script.limit_s),
        memory: own.memory.or(script.memory),
        hosts: list(own.hosts, script.hosts),
        after: own.after.or(script.after),
        hold: own.hold || script.hold,
        wait: own.wait || script.wait,
        interactive: own.interactive.or(script.interactive),
        cwd: own.cwd.or(script.cwd),
        project: own.project.or(script.project),
        group: own.group.or(script.group),
        app: own.app.or(script.app),
        network: own.network.or(script.network),
        notes: [own.notes, script.notes].concat(),
        before: own.before.or(script.before),
        gpus: own.gpus.or(script.gpus),
        then: own.then.or(script.then),
        env: if own.env == EnvRule::default() { script.env } else { own.env },
        login_shell: own.login_shell.or(script.login_shell),
        ..own
    }
}

/// Returns the request in the options of `bsub` or `bmod`.
pub fn request(parsed: &Parsed) -> Result<BsubRequest, String> {
    let mut require = Requirement::default();
    for (_, value) in parsed.options.iter().filter(|(n, _)| *n == "R") {
        require.add(&text(value)).map_err(|why| format!("Bad resource requirement syntax: {why}"))?;
    }
    let either = |a: &str, b: &str| parsed.last(a).or(parsed.last(b)).cloned();
    let (least, most) = parsed.text("n").map(|n| slots(&n)).transpose()?.unzip();
    Ok(BsubRequest {
        command: (!parsed.operands.is_empty()).then(|| line::command_line(&parsed.operands)),
        words: parsed.operands.clone(),
        name: parsed.text("J"),
        queues: words(parsed, "q"),
        output: either("oo", "o"),
        error: either("eo", "e"),
        input: either("is", "i"),
        overwrite: parsed.has("oo"),
        overwrite_error: parsed.has("eo"),
        slots: least,
        most_slots: most,
        exclusive: parsed.has("x"),
        require,
        limit_s: parsed.text("W").map(|w| time::run_limit(&w)).transpose()?,
        memory: parsed.text("M").map(memory).transpose()?,
        hosts: hosts(parsed),
        after: parsed.text("w"),
        hold: parsed.has("H"),
        wait: parsed.has("K"),
        interactive: interactive(parsed),
        cwd: parsed.last("cwd").cloned(),
        project: parsed.text("P"),
        group: parsed.text("g").map(|g| crate::choose::group(&g)).transpose()?,
        app: parsed.text("app"),
        gpus: parsed.text("gpu").map(|text| gpus(&text)).transpose()?,
        network: parsed.text("network").map(network).transpose()?,
        notes: parsed.notes.clone(),
        before: parsed.last("E").cloned(),
        then: parsed.last("Ep").cloned(),
        env: parsed.text("env").map(|e| EnvRule::parse(&e)).transpose()?.unwrap_or_default(),
        login_shell: parsed.last("L").cloned(),
    })
}

/// Reads `-gpu num=N` or `-gpu -`, which is one. Devices are always given to one job alone. The other parts choose
/// kinds of devices and ways to share them, which homing does not know.
fn gpus(text: &str) -> Result<u32, String> {
    let mut number = 1;
    let refuse = |why: String| Err(format!("-gpu {text}: {why}"));
    for part in text.split(':').filter(|part| !part.is_empty() && *part != "-") {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let count = value.strip_suffix("/host").unwrap_or(value);
        match (key, count.parse::<u32>()) {
            ("num", Ok(count)) if count > 0 => number = count,
            ("num", _) => {
                return refuse("num=N is a number of devices on the job's host, from 1".into());
            }
            ("j_exclusive", _) if value == "yes" => {}
            (
                "j_exclusive" | "mode" | "mps" | "aff" | "block" | "gvendor" | "gmodel" | "gtile" | "gmem" | "glink"
                | "gpack",
                _,
            ) => {
                return refuse(format!("homing has no {key}: a job never shares its devices; use num=N"));
            }
            _ => return refuse(format!("{key} is no part of a GPU requirement; use num=N")),
        }
    }
    Ok(number)
}

/// Checks that a network is given by its name. LSF's types and windows are for a switch that LSF no longer supports.
fn network(text: String) -> Result<String, String> {
    match text.contains([':', '=']) {
        true => Err(format!(
            "-network {text}: give the name of a network from [host.NAME] addresses, such as -network storage"
        )),
        false => Ok(text),
    }
}

fn words(parsed: &Parsed, option: &str) -> Vec<String> {
    parsed.text(option).map(|t| t.split_whitespace().map(String::from).collect()).unwrap_or_default()
}

/// Parses `"h1+2 h2! others"`: `+N` is a preference, which the order keeps; `!` marks the first host.
fn hosts(parsed: &Parsed) -> Vec<String> {
    let mut found: Vec<(i64, String)> = Vec::new();
    for word in words(parsed, "m") {
        let (name, more) = word.split_once('+').unwrap_or((&word, "0"));
        let preference = if more.is_empty() { 1 } else { more.parse().unwrap_or(0) };
        found.push((-preference, name.trim_end_matches('!').to_string()));
    }
    found.sort_by_key(|(preference, _)| *preference);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Parses `4` or `2,4`.
fn slots(text: &str) -> Result<(u32, u32), String> {
    let (least, most) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0);
    let both = number(least).zip(number(most)).filter(|(least, most)| least <= most);
    both.ok_or_else(|| format!("{text}: Bad argument for option -n"))
}

fn memory(text: String) -> Result<String, String> {
    let sound = amount(text.trim_end_matches('!')).is_some_and(|m| m > 0.0);
    if sound { Ok(text) } else { Err(format!("{text}: Bad MEMLIMIT specification")) }
}

fn interactive(parsed: &Parsed) -> Option<Interactive> {
    let any = |names: &[&str]| names.iter().any(|n| parsed.has(n));
    if any(&["Is", "Ip", "ISs", "ISp"]) {
        return Some(Interactive::Terminal);
    }
    any(&["I", "IS"]).then_some(Interactive::Plain)
}

/// Returns the name of a job without `-J`: its command, with a script's lines joined.
pub fn default_name(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<BsubRequest, String> {
        match call(&words.iter().map(|w| RawText::from(*w)).collect::<Vec<_>>())? {
            Call::Submit(request) => Ok(*request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_options_in_real_use() {
        let r = of(&[
            "-J",
            "a[1-3]%2",
            "-q",
            "storage",
            "-n4",
            "-W01:30",
            "-M",
            "2GB",
            "-R",
            "select[mem>=5]",
            "-R",
            "span[hosts=1]",
            "-m",
            "h1 h2+3",
            "-w",
            "done(1)",
            "-oo",
            "o.%J",
            "-e",
            "e",
            "-cwd",
            "/x",
            "-env",
            "all",
            "-K",
            "-H",
            "sleep",
            "10",
            "-x",
        ])
        .unwrap();
        assert_eq!(r.name.as_deref(), Some("a[1-3]%2"));
        assert_eq!(r.queues, ["storage"]);
        assert_eq!((r.slots, r.limit_s, r.memory.as_deref()), (Some(4), Some(5400), Some("2GB")));
        assert_eq!(r.require.text.len(), 2);
        assert_eq!(r.hosts, ["h2", "h1"]);
        assert_eq!((r.after.as_deref(), r.output, r.overwrite), (Some("done(1)"), Some("o.%J".into()), true));
        assert!(r.wait && r.hold && !r.exclusive);
        assert_eq!(r.command, Some("sleep 10 -x".into()));
        assert_eq!(of(&["-Is", "bash"]).unwrap().interactive, Some(Interactive::Terminal));
    }

    #[test]
    fn what_nextflow_pipes() {
        let script = b"#!/bin/bash\n#BSUB -o /w/.command.log\n#BSUB -q long\n#BSUB -n 4\n#BSUB -R \"span[hosts=1]\"\n\
            #BSUB -W 01:00\n#BSUB -M 1024\n#BSUB -R \"select[mem>=1024] rusage[mem=1024]\"\n#BSUB -J nf-one_(1)\n\
            # NEXTFLOW TASK: one\n#BSUBnot -x\necho '#BSUB -q other' >/dev/null\n";
        let r = with_script(BsubRequest::default(), script).unwrap();
        assert_eq!((r.name.as_deref(), r.slots, r.limit_s), (Some("nf-one_(1)"), Some(4), Some(3600)));
        assert_eq!(r.require.text.len(), 2);
        assert_eq!(r.output, Some("/w/.command.log".into()));
        assert_eq!(r.queues, ["long"]);
        assert!(!r.exclusive);
    }

    #[test]
    fn a_line_of_a_script_needs_no_blank_and_may_end_in_a_remark() {
        let script = b"#BSUB-J nm          # it's the name\n#BSUB-o 'a #1.%J'\t# out\n#BSUB\t-n 2\n#BSUBnot -x\n\
            #BSUB # -q none\n##BSUB -q none\n";
        let r = with_script(BsubRequest::default(), script).unwrap();
        assert_eq!((r.name.as_deref(), r.output, r.slots), (Some("nm"), Some("a #1.%J".into()), Some(2)));
        assert!(r.queues.is_empty() && !r.exclusive);
    }

    #[test]
    fn a_line_of_a_script_holds_options_alone() {
        for (line, says) in [
            ("#BSUB -q night by day", "by is not an option"),
            ("#BSUB -h", "-h is for the command line"),
            ("#BSUB -nosuch", "illegal option -- nosuch"),
            ("#BSUB-gpu num=1:mode=shared", "-gpu num=1:mode=shared: homing has no mode"),
        ] {
            let said = with_script(BsubRequest::default(), line.as_bytes()).unwrap_err();
            assert!(said.contains(says), "{line}: {said}");
        }
    }

    #[test]
    fn a_gpu_requirement_is_a_number() {
        for (text, count) in [("num=2", 2), ("-", 1), ("num=3/host:j_exclusive=yes", 3)] {
            assert_eq!(of(&["-gpu", text, "x"]).unwrap().gpus, Some(count), "{text}");
        }
        for text in ["num=0", "num=2/task", "num=1:gmodel=TeslaV100", "num=1:mps=yes", "nmu=1", "num=1:j_exclusive=no"]
        {
            assert!(
                of(&["-gpu", text, "x"]).unwrap_err().contains("use num=N")
                    || text.starts_with("num=0")
                    || text.contains("task"),
                "{text}"
            );
        }
        assert_eq!(of(&["x"]).unwrap().gpus, None);
    }

    #[test]
    fn a_network_is_a_name() {
        let r = with_script(of(&["-n", "4"]).unwrap(), b"#BSUB -network storage\n").unwrap();
        assert_eq!((r.network.as_deref(), r.slots), (Some("storage"), Some(4)));
        assert!(of(&["-network", "protocol=mpi:type=sn_all", "x"]).unwrap_err().contains("-network storage"));
    }

    #[test]
    fn the_command_line_wins_over_the_script() {
        let own = of(&["-q", "a", "-o", "mine"]).unwrap();
        let r = with_script(own, b"#BSUB -q b -oo theirs -n 2 # two of them\n").unwrap();
        assert_eq!(
            (r.queues, r.output, r.overwrite, r.slots),
            (vec!["a".to_string()], Some("mine".into()), false, Some(2))
        );
    }

    #[test]
    fn mistakes_are_said_as_lsf_says_them() {
        assert!(of(&["-W", "x", "y"]).unwrap_err().contains("Bad RUNLIMIT"));
        assert!(of(&["-R", "select[mem", "y"]).unwrap_err().contains("Bad resource requirement syntax"));
        assert!(of(&["-n", "0", "y"]).is_err());
        assert!(of(&["-b", "12:00", "y"]).unwrap_err().contains("homing has no begin time"));
        assert_eq!(call(&["-h".into()]), Ok(Call::Help));
    }
}
