//! `bsub`: from LSF's request to a job of the engine.

use super::{Refusal, attach, said};
use crate::cmd::queue::several;
use homing_lsf::bsub::{Call, Interactive, Request, call, default_name, with_script};
use homing_lsf::require::Requirement;
use homing_lsf::units;
use homing_model::text::quoted;
use homing_model::{Command, RawText};
use homing_queue::plan::Config;
use homing_queue::{Engine, JobSpec, Private, Style, array, depend};
use std::io::{IsTerminal, Read};
use std::path::Path;

/// A script is not longer; LSF's limit is smaller.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// Submits.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    match read(words)? {
        Some(ready) => submit(ready),
        None => Ok(0),
    }
}

/// A request with all that was read for it.
pub struct Ready {
    /// What is asked for, script lines included.
    pub request: Request,
    /// The script from standard input.
    pub script: Option<RawText>,
    /// Where it runs, when that is decided already.
    pub host: Option<String>,
    /// The directory that it runs in there, when it is called otherwise than here.
    pub cwd: Option<RawText>,
    /// The storage server that it uses.
    pub storage: Option<homing_queue::Storage>,
}

/// Reads arguments, and the script where there is no command.
pub fn read(words: &[RawText]) -> Result<Option<Ready>, Refusal> {
    let bad = |why: String| said(format!("{why}. Job not submitted."));
    let request = match call(words).map_err(bad)? {
        Call::Help => {
            eprintln!("Usage: bsub [options] command [arguments], or bsub [options] < script with #BSUB lines");
            return Ok(None);
        }
        Call::Version => {
            eprintln!("{}", super::version());
            return Ok(None);
        }
        Call::Submit(request) => *request,
    };
    if request.command.is_some() {
        note(&request);
        return Ok(Some(Ready { request, script: None, host: None, cwd: None, storage: None }));
    }
    if std::io::stdin().is_terminal() {
        eprint!("bsub> ");
    }
    let mut script = Vec::new();
    let read = std::io::stdin().take(LONGEST_SCRIPT + 1).read_to_end(&mut script);
    read.map_err(|e| said(format!("cannot read the script from standard input: {e}. Job not submitted.")))?;
    if script.len() as u64 > LONGEST_SCRIPT {
        return Err(said("the script is longer than 4 MiB. Job not submitted."));
    }
    if script.trim_ascii().is_empty() {
        return Err(said("No command is specified. Job not submitted."));
    }
    let request = with_script(request, &script).map_err(bad)?;
    note(&request);
    Ok(Some(Ready { request, script: Some(RawText(script)), host: None, cwd: None, storage: None }))
}

/// Says which options do less than LSF's.
fn note(request: &Request) {
    request.notes.iter().for_each(|note| eprintln!("bsub: {note}"));
}

/// Submits what was read, and with -K or -I stays.
pub fn submit(ready: Ready) -> Result<i32, Refusal> {
    super::load::known_names(&ready.request.require)?;
    let engine = super::engine()?;
    let config = engine.config()?;
    let (queue, by_default) = queue(&ready.request, &config)?;
    if engine.name() == "slurm" {
        crate::cmd::queue::slurm_keeps(&queue)?;
    }
    let (mut spec, mut private) = spec(&ready, engine.as_ref(), &config, &queue)?;
    if engine.name() == "slurm" {
        crate::cmd::queue::licenses::take(&mut spec, &[], 1)?;
    }
    let stays = ready.request.wait || ready.request.interactive.is_some();
    let line = match ready.request.interactive {
        Some(_) if spec.host.is_none() && engine.name() == "homing" => Some(attach::Line::open()?),
        _ => None,
    };
    if let Some(line) = &line {
        line.join(&mut spec, &mut private)?;
    }
    if ready.request.interactive.is_some() && engine.name() == "slurm" {
        let terminal = on_own_terminal(&ready.request, engine.as_ref());
        let joined = homing_queue::Slurm.join(&spec, &private, terminal)?;
        let said = |id| eprintln!("{}\n{WAITING}", submitted(id, &queue, by_default));
        let ended = super::joined::wait(joined, said);
        see_anew(&ready.request);
        return ended;
    }
    lay(&ready, &mut spec, engine.as_ref())?;
    if let Some(net) = &ready.request.network {
        let told = crate::cmd::queue::net::variables(net, &spec);
        private.env.extend(told.map_err(|why| said(format!("{}. Job not submitted.", why.message)))?);
    }
    if let Some(note) = engine.fit(&mut spec)? {
        eprintln!("bsub: {note}");
    }
    let id = engine.submit(&spec, &private)?;
    let text = submitted(id, &queue, by_default);
    if !stays {
        return super::print(&(text + "\n"));
    }
    eprintln!("{text}\n{WAITING}");
    let ended = match (ready.request.interactive, line) {
        (Some(_), Some(line)) => line.serve(engine.as_ref(), id),
        (Some(_), None) => attach::follow(engine.as_ref(), id),
        (None, _) => wait(engine.as_ref(), id),
    };
    see_anew(&ready.request);
    ended
}

/// Who stayed goes on with what the job wrote, and on NFS this host may have been
/// told a moment before that the output file does not exist.
fn see_anew(request: &Request) {
    let Ok(here) = crate::cmd::queue::sub::working_directory() else { return };
    let files = [&request.output, &request.error].into_iter().flatten().map(|file| here.join(file.as_path()));
    for path in files.chain([here.clone()]) {
        let _ = homing_fence::look_anew(&path);
    }
}

/// What is said of a job that stays with its submitter, next.
const WAITING: &str = "<<Waiting for dispatch ...>>";

fn submitted(id: u64, queue: &str, by_default: bool) -> String {
    let default = if by_default { "default " } else { "" };
    format!("Job <{id}> is submitted to {default}queue <{queue}>.")
}

fn wait(engine: &dyn Engine, id: u64) -> Result<i32, Refusal> {
    let status = crate::cmd::queue::act::wait_for(engine, &[id.to_string()], true)?;
    eprintln!("<<Job is finished>>");
    Ok(status)
}

/// The queue, and whether it was not asked for.
fn queue(request: &Request, config: &Config) -> Result<(String, bool), Refusal> {
    let told = std::env::var("LSB_DEFAULTQUEUE").ok().filter(|q| !q.trim().is_empty());
    if let Some(name) = told.as_ref().filter(|q| request.queues.is_empty() && !config.queues.contains_key(*q)) {
        return Err(said(format!("{name} (of LSB_DEFAULTQUEUE): No such queue. Job not submitted.")));
    }
    let default = || (told.unwrap_or_else(|| config.default_queue().to_string()), true);
    let (name, by_default) = match request.queues.iter().find(|q| config.queues.contains_key(*q)) {
        Some(name) => (name.clone(), false),
        None if request.queues.is_empty() => default(),
        None => return Err(said(format!("{}: No such queue. Job not submitted.", request.queues[0]))),
    };
    match config.refuses(&name, homing_queue::uid()) {
        Some(why) => Err(said(format!("{name}: {why}. Job not submitted."))),
        None => Ok((name, by_default)),
    }
}

/// Why the queue of a request sends nothing to a host: it does not use it, or the host takes no jobs.
pub fn refused(request: &Request, host: &str) -> Result<Option<String>, Refusal> {
    let engine = super::engine()?;
    let config = engine.config()?;
    let (queue, _) = queue(request, &config)?;
    let closed = engine.machines()?.iter().any(|m| m.name == host && !m.open);
    Ok(match super::server::uses(&config, &queue, host)? {
        false => Some(format!("queue {queue} does not use it")),
        true => closed.then(|| "it takes no jobs".into()),
    })
}

fn spec(ready: &Ready, engine: &dyn Engine, config: &Config, queue: &str) -> Result<(JobSpec, Private), Refusal> {
    let request = &ready.request;
    let meant = units::meant(request, super::config::unit()?);
    meant.note.iter().for_each(|note| eprintln!("bsub: {note}"));
    let here = match &request.cwd {
        Some(cwd) => RawText::from(crate::cmd::queue::sub::working_directory()?.join(cwd.as_path()).as_path()),
        None => RawText::from(crate::cmd::queue::sub::working_directory()?.as_path()),
    };
    // Files of the job are the submitter's, whatever the directory is called where it runs.
    let file = |name: &Option<RawText>| {
        let path = name.as_ref().map(|n| here.as_path().join(n.as_path()));
        let into = |p: &Path| if p.is_dir() { p.join("%J.out") } else { p.to_path_buf() };
        match ready.cwd {
            Some(_) => path.map(|p| RawText::from(into(&p).as_path())),
            None => name.clone().map(|n| {
                if here.as_path().join(n.as_path()).is_dir() { RawText::from(into(n.as_path()).as_path()) } else { n }
            }),
        }
    };
    if engine.name() == "slurm" && (request.group.is_some() || request.app.is_some()) {
        return Err(said("-g and -app: Slurm keeps no job groups and applications; use -J. Job not submitted."));
    }
    let (name, array) = named(request)?;
    let (command, private) = what(ready, on_own_terminal(request, engine));
    let host = match &ready.host {
        Some(host) => Some(host.clone()),
        None => super::server::choose(request, engine, queue)?,
    };
    let host = host.filter(|h| engine.name() != "homing" || *h != homing_queue::host_name());
    if host.is_none() && config.slots == 0 && engine.name() == "homing" {
        return Err(said("This machine takes no jobs: it has 0 slots. Job not submitted."));
    }
    can_be_met(&meant.require, engine, host.as_deref())?;
    let slots = match (request.exclusive, config.slots_of(&host)) {
        (false, _) => request.slots.unwrap_or(1),
        (true, Some(all)) => all,
        (true, None) => several::processors(host.as_deref().unwrap_or_default())
            .map_err(|why| said(format!("-x: {why}. Job not submitted.")))?,
    };
    let limit = config.queues.get(queue).and_then(|q| q.run_limit).map(|minutes| minutes * 60);
    let spec = JobSpec {
        v: 1,
        user: super::own_name(),
        submit_ns: homing_clock::system_ns(),
        from: homing_queue::host_name(),
        cwd: ready.cwd.clone().unwrap_or_else(|| here.clone()),
        command,
        name,
        queue: queue.into(),
        slots,
        array,
        after: condition(request, engine)?,
        stdin: file(&request.input),
        stdout: file(&request.output),
        stderr: file(&request.error),
        overwrite: request.overwrite,
        limit_s: request.limit_s.map_or(limit, |own| Some(limit.map_or(own, |l| l.min(own)))),
        memory_bytes: meant.memory_mib.map(units::bytes),
        host,
        near: Vec::new(),
        near_only: false,
        bound: None,
        ranks: Vec::new(),
        origin: None,
        not_on: Vec::new(),
        spread: false,
        hosts: Vec::new(),
        gated: false,
        require: meant.require,
        project: request.project.clone(),
        group: request.group.clone(),
        app: request.app.clone(),
        extra: Vec::new(),
        order: 0,
        held: request.hold,
        storage: ready.storage.clone(),
        style: Style::Lsf,
    };
    Ok((spec, private))
}

/// Refuses what is more than the host has, which would wait for ever.
pub fn can_be_met(require: &[String], engine: &dyn Engine, host: Option<&str>) -> Result<(), Refusal> {
    if engine.name() == "slurm" {
        return Ok(());
    }
    let read = Requirement::all(require).map_err(|why| said(format!("Bad resource requirement syntax: {why}")))?;
    let Some((what, has)) = super::load::never(&read, host)? else { return Ok(()) };
    let host = host.map_or_else(homing_queue::host_name, String::from);
    let unit = units::USUAL;
    Err(said(format!("{what} can never be satisfied: {host} has {has}; amounts are in {unit}. Job not submitted.")))
}

/// Chooses the hosts of a job of several slots, where one does not do.
fn lay(ready: &Ready, spec: &mut JobSpec, engine: &dyn Engine) -> Result<(), Refusal> {
    let request = &ready.request;
    let per_host = request.require.per_host().map_err(|why| said(format!("Bad resource requirement syntax: {why}")))?;
    let most = request.most_slots.unwrap_or(spec.slots);
    if request.exclusive || most < 2 || ready.host.is_some() {
        return Ok(());
    }
    let wanted = several::Wanted { least: spec.slots, most, per_host, whole: false, anywhere: false };
    let hosts = super::server::candidates(request, engine, &spec.queue)?;
    several::lay(spec, &wanted, hosts, engine, &[]).map_err(|why| said(format!("{why}. Job not submitted.")))
}

/// Name and array; what LSF cannot read as an array is a plain name. Without
/// -J there is none: bjobs shows the command then, to those who may see it.
fn named(request: &Request) -> Result<(String, Option<array::Array>), Refusal> {
    let Some(name) = &request.name else { return Ok((String::new(), None)) };
    // Snakemake's names hold brackets nowhere, but other people's do: only `name[1-5]` is an array.
    let looks = name.rfind('[').is_some_and(|at| {
        let rest = name[at + 1..].trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('%');
        rest.strip_suffix(']').is_some_and(|r| r.chars().all(|c| c.is_ascii_digit() || "-,: ".contains(c)))
    });
    match looks {
        true => array::parse(name).map_err(|why| said(format!("{why}. Job not submitted."))),
        false => Ok((name.clone(), None)),
    }
}

/// Whether the engine makes the terminal that the job is to have: Slurm does, of one that is there.
fn on_own_terminal(request: &Request, engine: &dyn Engine) -> bool {
    request.interactive == Some(Interactive::Terminal) && engine.name() == "slurm" && std::io::stdin().is_terminal()
}

/// The command or script, with what comes before and after it.
fn what(ready: &Ready, on_own_terminal: bool) -> (Command, Private) {
    let request = &ready.request;
    let mut private = crate::cmd::queue::sub::private();
    private.env = request.env.apply(std::mem::take(&mut private.env));
    let mut around = Vec::new();
    if let Some(before) = &request.before {
        around.extend([b"( ".as_slice(), &before.0, b"\n) </dev/null >/dev/null 2>&1 || exit 125\n"].concat());
    }
    if let Some(then) = &request.then {
        around.extend([b"trap ".as_slice(), &quoted(&then.0), b" EXIT\n"].concat());
    }
    if let Some(script) = &ready.script {
        let (first, rest) = match script.0.starts_with(b"#!") {
            true => script.0.split_at(script.0.iter().position(|b| *b == b'\n').map_or(script.0.len(), |at| at + 1)),
            false => (&b""[..], &script.0[..]),
        };
        private.script = Some(RawText([first, &around, rest].concat()));
        return (Command::Shell(default_name(&script.0).into()), private);
    }
    let line = request.command.clone().unwrap_or_default();
    let mut line = RawText([around.as_slice(), &line.0].concat());
    if request.interactive == Some(Interactive::Terminal) && !on_own_terminal {
        // script(1) makes the terminal and passes the exit status on.
        line = RawText([b"exec script -qefc ".as_slice(), &quoted(&line.0), b" /dev/null"].concat());
    }
    match &request.login_shell {
        Some(shell) => (Command::Argv(vec![shell.clone(), "-l".into(), "-c".into(), line]), private),
        None => (Command::Shell(line), private),
    }
}

/// `-w`, whose jobs must be there.
pub fn condition(request: &Request, engine: &dyn Engine) -> Result<Option<String>, Refusal> {
    let Some(text) = &request.after else { return Ok(None) };
    depend::check(text)
        .map_err(|why| said(format!("{text}: Dependency condition syntax error ({why}). Job not submitted.")))?;
    let jobs = engine.own_jobs()?;
    for named in depend::jobs(text) {
        let known = match array::job_id(&named) {
            Some((id, _)) => engine.job(id).is_ok(),
            None => jobs.iter().any(|j| j.spec.name == named),
        };
        if !known {
            return Err(said(format!("{named}: No matching job found. Job not submitted.")));
        }
    }
    Ok(Some(text.clone()))
}
