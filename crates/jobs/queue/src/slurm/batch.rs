//! The options and the script for `sbatch`. Pure.

use super::comment::{comment, plain};
use super::{ending, several};
use crate::job::Style;
use crate::require::Requirement;
use crate::{JobSpec, Private};
use homing_model::resource::PARTS;
use homing_model::text::quoted;
use homing_model::{Command, RawText};
use homing_scheduler::BatchNode;
use std::collections::BTreeMap;

/// Reduces the hosts that a job should be near to a request that this Slurm can express; returns a note for the user.
/// `features` are those of each node.
///
/// Slurm's only soft wish for nodes is `--prefer`, by features. It serves if each node has its own name among its
/// features. The hard wish needs no features: all other nodes are excluded (`--nodelist` would request all of the
/// nodes at once).
pub(super) fn fit(
    spec: &mut JobSpec,
    nodes: &[BatchNode],
    features: &BTreeMap<String, Vec<String>>,
) -> Result<Option<String>, String> {
    let wanted = std::mem::take(&mut spec.near);
    let fits = |n: &&BatchNode| wanted.iter().any(|host| n.is_called(host));
    let known: Vec<&BatchNode> = nodes.iter().filter(fits).collect();
    let usable: Vec<String> = known.iter().filter(|n| n.is_usable(false)).map(|n| n.name.clone()).collect();
    if usable.is_empty() {
        let what = if known.is_empty() { "is a node of this partition" } else { "can be used now" };
        let text = format!("none of the hosts that hold its data ({}) {what}", wanted.join(", "));
        return if spec.near_only { Err(text) } else { Ok(Some(text + "; the job may run on any node")) };
    }
    if spec.near_only {
        spec.not_on = nodes.iter().map(|n| n.name.clone()).filter(|n| !usable.contains(n)).collect();
        spec.near = usable;
        return Ok(None);
    }
    let named = |node: &String| features.get(node).is_some_and(|f| f.contains(node));
    let (good, bad): (Vec<String>, Vec<String>) = usable.into_iter().partition(named);
    spec.near = good;
    Ok((!bad.is_empty()).then(|| {
        format!(
            "Slurm cannot prefer {0}, which holds its data: for that, the node must have a feature of its own name \
             (scontrol update NodeName=... AvailableFeatures=...); --place only enforces it",
            bad.join(", ")
        )
    }))
}

/// Returns `sbatch` and its options.
pub(super) fn words(spec: &JobSpec, dependency: Option<&str>) -> Vec<String> {
    // A script with #BSUB lines has been read already; sbatch would read them again, in its own way.
    let mut all: Vec<String> = vec!["sbatch".into(), "--parsable".into(), "--ignore-pbs".into()];
    if spec.held {
        all.push("--hold".into());
    }
    let mut add = |name: &str, value: String| all.push(format!("--{name}={value}"));
    let command = spec.command.display();
    add("job-name", if spec.name.is_empty() { default_name(&command) } else { plain(&spec.name) });
    add("comment", comment(spec));
    add("chdir", text(&spec.cwd));
    if !spec.queue.is_empty() {
        add("partition", spec.queue.clone());
    }
    match spec.spread {
        true => add("ntasks", spec.slots.to_string()),
        false => {
            add("ntasks", "1".into());
            add("cpus-per-task", spec.slots.to_string());
        }
    }
    if let Some(array) = &spec.array {
        let limit = array.limit.map_or(String::new(), |n| format!("%{n}"));
        add("array", format!("{}{limit}", array.folded()));
    }
    if let Some(text) = dependency {
        add("dependency", text.into());
        // LSF leaves a job pending that can never start; homing ends it.
        add("kill-on-invalid-dep", if spec.style == Style::Homing { "yes" } else { "no" }.into());
    }
    if let Some(seconds) = spec.limit_s {
        add("time", format!("{}:{:02}", seconds / 60, seconds % 60));
    }
    match (spec.memory_bytes, memory(spec)) {
        (Some(bytes), _) => add("mem", format!("{}K", bytes.div_ceil(1024))),
        (None, Some(megabytes)) => add("mem", format!("{megabytes}M")),
        (None, None) => {}
    }
    if spec.gpu_parts > 0 {
        add("gres", homing_scheduler::slurm::gres(spec.gpu_parts.div_ceil(PARTS)));
    }
    for (name, file) in [("input", &spec.stdin), ("output", &spec.stdout), ("error", &spec.stderr)] {
        if let Some(file) = file {
            add(name, pattern(&text(file), spec.array.is_some()));
        }
    }
    add("open-mode", if spec.overwrite { "truncate" } else { "append" }.into());
    match &spec.host {
        Some(host) => add("nodelist", host.clone()),
        None if spec.near_only && !spec.not_on.is_empty() => add("exclude", spec.not_on.join(",")),
        None if !spec.near_only && !spec.near.is_empty() => add("prefer", spec.near.join("|")),
        None => {}
    }
    all.extend(spec.extra.iter().cloned());
    all
}

fn text(raw: &RawText) -> String {
    String::from_utf8_lossy(&raw.0).into_owned()
}

/// Returns the name of a job without one: its program.
pub(super) fn default_name(command: &str) -> String {
    let first = command.split_ascii_whitespace().next().unwrap_or("job");
    plain(first.rsplit('/').next().unwrap_or(first))
}

/// Translates `%J` and `%I` into Slurm's letters; every other `%` is literal.
fn pattern(name: &str, array: bool) -> String {
    let (job, index) = if array { ("%A", "%a") } else { ("%j", "0") };
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        out += before;
        let (said, left) = match after.chars().next() {
            Some('J') => (job, &after[1..]),
            Some('I') => (index, &after[1..]),
            _ => ("%%", after),
        };
        out += said;
        rest = left;
    }
    out + rest
}

/// Returns the MiB of `select[mem>=M] rusage[mem=M]`. Other parts of a requirement were refused at submission.
fn memory(spec: &JobSpec) -> Option<u64> {
    let asked = Requirement::all(&spec.require).ok()?.memory_on_slurm().ok()??;
    Some(asked.ceil() as u64)
}

/// Returns the batch script. Its variables are those of the embedded queue.
pub(super) fn script(spec: &JobSpec, private: &Private) -> Vec<u8> {
    let mut out = b"#!/bin/sh\n".to_vec();
    out.extend_from_slice(VARIABLES.as_bytes());
    out.extend(crate::network::lines(&private.env).bytes());
    // Once for each slot.
    let slots = if spec.spread { 1 } else { spec.slots.clamp(1, 4096) as usize };
    out.extend(format!("LSB_HOSTS=\"{}\"; export LSB_HOSTS\n", vec!["$SLURMD_NODENAME"; slots].join(" ")).bytes());
    if spec.spread {
        out.extend(several::lines(&spec.hosts).bytes());
    }
    let of_spec = [
        ("LSB_JOBNAME", &spec.name),
        ("LSB_SUB_HOST", &spec.from),
        ("LS_SUBCWD", &text(&spec.cwd)),
        ("LSFUSER", &spec.user),
    ];
    for (name, value) in of_spec {
        out.extend(
            format!("{name}=").bytes().chain(quoted(value.as_bytes())).chain(format!("; export {name}\n").bytes()),
        );
    }
    if let Some(input) = &private.input {
        // In a file that has no name any more.
        out.extend_from_slice(b"homing_input=$(mktemp) || exit 255\nprintf %s ");
        out.extend(quoted(&input.0));
        out.extend_from_slice(b" > \"$homing_input\"\nexec < \"$homing_input\"; rm -f \"$homing_input\"\n");
    }
    let mut words = match &spec.command {
        Command::Argv(words) => words.clone(),
        Command::Shell(line) => vec![crate::words::shell(spec, private), "-c".into(), line.clone()],
    };
    if let Some(script) = &private.script {
        // The same for the script; standard input stays the job's own.
        out.extend_from_slice(b"homing_script=$(mktemp) || exit 255\nprintf %s ");
        out.extend(quoted(&script.0));
        out.extend_from_slice(b" > \"$homing_script\"\nexec 9< \"$homing_script\"; rm -f \"$homing_script\"\n");
        words = crate::words::interpreter(&script.0);
        words.push("/dev/fd/9".into());
    }
    let line: Vec<u8> = words.iter().flat_map(|w| [b" ".to_vec(), quoted(&w.0)].concat()).collect();
    match spec.style == Style::Lsf && spec.stdout.is_some() {
        true => out.extend(ending::reported(&line, spec, private)),
        false => out.extend([b"exec", &line[..], b"\n"].concat()),
    }
    out
}

const VARIABLES: &str = "\
HOMING_JOB=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} HOMING_JOB_INDEX=${SLURM_ARRAY_TASK_ID:-0}\n\
LSB_JOBID=$HOMING_JOB LSB_JOBINDEX=$HOMING_JOB_INDEX LSB_QUEUE=$SLURM_JOB_PARTITION\n\
LSB_MCPU_HOSTS=\"$SLURMD_NODENAME ${SLURM_CPUS_PER_TASK:-1} \" LSB_DJOB_NUMPROC=${SLURM_CPUS_PER_TASK:-1} LS_JOBPID=$$\n\
export HOMING_JOB HOMING_JOB_INDEX LSB_JOBID LSB_JOBINDEX LSB_QUEUE LSB_MCPU_HOSTS LSB_DJOB_NUMPROC LS_JOBPID\n";

#[cfg(test)]
mod tests {
    use super::*;
    use homing_scheduler::slurm::parse_nodes;

    fn spec() -> JobSpec {
        let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"sort 'a b' > c"},
                       "name":"","queue":"","slots":2}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn options() {
        let mut s = spec();
        let of = |s: &JobSpec| words(s, Some("afterok:1")).join(" ");
        assert_eq!(
            of(&s),
            "sbatch --parsable --ignore-pbs --job-name=sort --comment=homing: sort 'a b' > c --chdir=/w --ntasks=1 --cpus-per-task=2 \
             --dependency=afterok:1 --kill-on-invalid-dep=yes --open-mode=append"
        );
        s.array = crate::array::parse("a[1-3,7]%2").unwrap().1;
        s.stdout = Some("o.%J.%I.%d".into());
        s.limit_s = Some(90);
        s.require = vec!["select[mem>5] rusage[mem=500]".into()];
        s.gpu_parts = 200;
        (s.held, s.project) = (true, Some("p: x".into()));
        s.extra = vec!["--account=physics".into()];
        let text = of(&s);
        assert!(text.ends_with(" --account=physics"), "the user's own words win: {text}");
        for part in ["--hold", "--gres=gpu:2", "--array=1-3,7%2", "--output=o.%A.%a.%%d", "--time=1:30", "--mem=500M"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_wish_for_nodes() {
        let sinfo = "n1|lab*|idle|0/2/0/2|100|n1|n1|(null)|none\nn2|lab*|idle|0/2/0/2|100|10.0.0.2|n2|(null)|none\n\
                     n3|lab*|down*|0/2/0/2|100|n3|n3|(null)|none\n";
        let nodes = parse_nodes(sinfo, None);
        let own = BTreeMap::from([("n2".to_string(), vec!["n2".to_string()])]);
        let mut s = JobSpec { near: vec!["10.0.0.2".into(), "n3".into()], ..spec() };
        assert_eq!(fit(&mut s, &nodes, &own), Ok(None));
        assert!(words(&s, None).contains(&"--prefer=n2".to_string()));
        // Without features there is no soft wish, and the user gets a note.
        s.near = vec!["n1".into()];
        assert!(fit(&mut s, &nodes, &own).unwrap().unwrap().contains("cannot prefer n1"));
        assert!(s.near.is_empty());
        // The hard wish takes any of the hosts.
        let mut s = JobSpec { near: vec!["n1".into(), "n2".into()], near_only: true, ..spec() };
        assert_eq!(fit(&mut s, &nodes, &BTreeMap::new()), Ok(None));
        assert!(words(&s, None).contains(&"--exclude=n3".to_string()));
        s.near = vec!["n3".into()];
        assert!(fit(&mut s, &nodes, &own).unwrap_err().contains("can be used now"));
        s.near_only = false;
        s.near = vec!["nas".into()];
        assert!(fit(&mut s, &nodes, &own).unwrap().unwrap().contains("may run on any node"));
    }

    #[test]
    fn scripts_keep_every_byte() {
        let run = |s: &JobSpec, p: &Private| {
            use std::io::Write;
            let mut child = std::process::Command::new("sh")
                .envs([("SLURM_JOB_ID", "5"), ("SLURM_JOB_PARTITION", "lab")])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&script(s, p)).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        let mut s = spec();
        s.command = Command::Argv(["printf", "%s|", "a b", "c'd\n", "$x"].map(RawText::from).to_vec());
        assert_eq!(run(&s, &Private::default()), "a b|c'd\n|$x|");
        s.command = Command::Argv(vec!["cat".into()]);
        let input = Some(RawText::from("a'b\n%s\n"));
        assert_eq!(run(&s, &Private { input, ..Private::default() }), "a'b\n%s\n");
        s.command = Command::Shell("echo $HOMING_JOB $LSB_JOBINDEX \"it's\"".into());
        assert_eq!(run(&s, &Private::default()), "5 0 it's\n");
        let script = Some(RawText::from("#!/bin/bash -u\necho \"$LSB_JOBID ${BASH_VERSION:+bash}\" 'x'\n"));
        assert_eq!(run(&s, &Private { script, ..Private::default() }), "5 bash x\n");
    }
}
