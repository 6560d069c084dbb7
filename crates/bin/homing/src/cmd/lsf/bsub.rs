//! `bsub`: turns LSF's request into a job of the engine.

use super::{NOT_SUBMITTED, Refusal, attach, lsf_refusal, not_submitted};
use crate::cluster::Cluster;
use crate::cmd::queue::near;
use homing_lsf::bsub::{BsubRequest, Call, Interactive, call, with_script};
use homing_lsf::request::{command_of, in_login_shell, named, queue_of};
use homing_lsf::units;
use homing_model::RawText;
use homing_model::resource::PARTS;
use homing_queue::plan::Config;
use homing_queue::require::Requirement;
use homing_queue::several::{LayError, SlotRequest};
use homing_queue::terminal::TerminalListener;
use homing_queue::{Engine, JobSpec, Private, QueueError, Style, depend};
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The longest script, in bytes; LSF's limit is smaller.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// Reads a request and submits it.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    match read(words)? {
        Some(ready) => submit(ready),
        None => Ok(0),
    }
}

/// A request, with everything that was read for it.
pub struct Ready {
    /// The options and the command, lines of the script included.
    pub request: BsubRequest,
    /// The script from standard input.
    pub script: Option<RawText>,
    /// The host on which it runs, if that is decided already.
    pub host: Option<String>,
    /// The directory of the job on that host, if it has another name there.
    pub cwd: Option<RawText>,
    /// The storage server that the job uses.
    pub storage: Option<homing_queue::Storage>,
}

/// Reads the arguments, and the script if there is no command.
pub fn read(words: &[RawText]) -> Result<Option<Ready>, Refusal> {
    let request = match call(words).map_err(not_submitted)? {
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
        let request = with_environment(request)?;
        note(&request);
        return Ok(Some(Ready { request, script: None, host: None, cwd: None, storage: None }));
    }
    if std::io::stdin().is_terminal() {
        eprint!("bsub> ");
    }
    let mut script = Vec::new();
    let read = std::io::stdin().take(LONGEST_SCRIPT + 1).read_to_end(&mut script);
    read.map_err(|e| not_submitted(format!("cannot read the script from standard input: {e}")))?;
    if script.len() as u64 > LONGEST_SCRIPT {
        return Err(not_submitted("the script is longer than 4 MiB"));
    }
    if script.trim_ascii().is_empty() {
        return Err(not_submitted("No command is specified"));
    }
    let request = with_environment(with_script(request, &script).map_err(not_submitted)?)?;
    note(&request);
    Ok(Some(Ready { request, script: Some(RawText(script)), host: None, cwd: None, storage: None }))
}

/// Returns whether a variable of bsub's environment is set and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Adds the settings of bsub's environment. The command line and the script win over them.
fn with_environment(mut request: BsubRequest) -> Result<BsubRequest, Refusal> {
    let text = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    if let Some(method) = text("LSB_ESUB_METHOD") {
        let why = "homing has no application checks (esub); unset it, and use -app or -env";
        return Err(not_submitted(format!("LSB_ESUB_METHOD={method}: {why}")));
    }
    request.wait |= is_set("BSUB_BLOCK");
    request.project = request.project.or_else(|| text("LSB_DEFAULTPROJECT"));
    if request.group.is_none() {
        let group = text("LSB_DEFAULT_JOBGROUP").map(|group| homing_lsf::choose::group(&group)).transpose();
        request.group = group.map_err(|why| not_submitted(format!("LSB_DEFAULT_JOBGROUP: {why}")))?;
    }
    Ok(request)
}

/// Prints which options do less than LSF's.
fn note(request: &BsubRequest) {
    request.notes.iter().for_each(|note| eprintln!("bsub: {note}"));
}

/// Submits a request. With -K or -I, waits for the end of the job.
pub fn submit(ready: Ready) -> Result<i32, Refusal> {
    super::load::known_names(&ready.request.require).map_err(|refusal| refusal.closing(NOT_SUBMITTED))?;
    let engine = super::engine()?;
    let config = engine.config()?;
    let (queue, by_default) = queue(&ready.request, &config)?;
    span_acts(&ready, engine.name() == "slurm").map_err(not_submitted)?;
    if engine.name() == "slurm" {
        crate::cmd::queue::slurm_keeps(&queue)?;
    }
    let (mut spec, mut private) = spec(&ready, engine.as_ref(), &config, &queue)?;
    if engine.name() == "slurm" {
        homing_cluster::licenses::take(&mut spec, &[], 1)?;
    }
    let stays = ready.request.wait || ready.request.interactive.is_some();
    let line = match ready.request.interactive {
        Some(_) if spec.host.is_none() && engine.name() == "homing" => {
            Some(TerminalListener::open().map_err(not_submitted)?)
        }
        _ => None,
    };
    if let Some(line) = &line {
        line.join(&mut spec, &mut private).map_err(not_submitted)?;
    }
    if ready.request.interactive.is_some() && engine.name() == "slurm" {
        let terminal = on_own_terminal(&ready.request, engine.as_ref());
        let joined = homing_queue::Slurm.join(&spec, &private, terminal)?;
        let said = |id| report(&submitted(id, &queue, by_default), true);
        let ended = super::joined::wait(joined, said);
        see_anew(&ready.request);
        return ended;
    }
    lay(&ready, &mut spec, engine.as_ref())?;
    if let Some(net) = &ready.request.network {
        let told = Cluster::of_queue()?.network_of(net, &spec.named_hosts());
        private.env.extend(told.map_err(|why| not_submitted(why.message))?);
    }
    if let Some(note) = engine.fit(&mut spec)? {
        eprintln!("bsub: {note}");
    }
    let id = engine.submit(&spec, &private)?;
    report(&submitted(id, &queue, by_default), stays);
    if !stays {
        return Ok(0);
    }
    let ended = match (ready.request.interactive, line) {
        (Some(_), Some(line)) => match line.serve(engine.as_ref(), id) {
            Err(QueueError::Request(why)) => Err(lsf_refusal(why)),
            served => Ok(attach::ended(&served?)),
        },
        (Some(_), None) => attach::follow(engine.as_ref(), id),
        (None, _) => wait(engine.as_ref(), id),
    };
    see_anew(&ready.request);
    ended
}

/// Prints that a job is submitted on standard output, which scripts read for its number; with `BSUB_STDERR` on
/// standard error. `stays`: bsub waits for the job.
fn report(submitted: &str, stays: bool) {
    match (is_set("BSUB_QUIET"), is_set("BSUB_STDERR")) {
        (true, _) => return,
        (false, true) => eprintln!("{submitted}"),
        // The job is submitted, even if standard output is full: bsub still waits for it.
        (false, false) => {
            if let Err(Refusal::Failed(failure)) = super::print(&format!("{submitted}\n")) {
                eprintln!("{failure}\n{submitted}");
            }
        }
    }
    if stays {
        eprintln!("{WAITING}");
    }
}

/// Looks again at the output files of the job, which the caller may read next. On NFS, this host may remember that an
/// output file did not exist a moment before.
fn see_anew(request: &BsubRequest) {
    let Ok(here) = crate::cmd::queue::sub::working_directory() else { return };
    let files = [&request.output, &request.error].into_iter().flatten().map(|file| here.join(file.as_path()));
    for path in files.chain([here.clone()]) {
        let _ = homing_fence::look_anew(&path);
    }
}

/// The second line of a job whose submitter waits.
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

/// Returns the queue, and whether it is the default and not a requested one.
fn queue(request: &BsubRequest, config: &Config) -> Result<(String, bool), Refusal> {
    let usual = std::env::var("LSB_DEFAULTQUEUE").ok().filter(|q| !q.trim().is_empty());
    queue_of(request, usual.as_deref(), config, homing_queue::uid()).map_err(not_submitted)
}

/// Returns why the queue of a request sends nothing to a host: it does not use the host, or the host takes no jobs.
pub fn refused(request: &BsubRequest, host: &str) -> Result<Option<String>, Refusal> {
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
    // The files are those of the submitter, whatever name the directory has on the job's host.
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
        return Err(not_submitted("-g and -app: Slurm has no job groups and applications; use -J"));
    }
    let (name, array) = named(request).map_err(not_submitted)?;
    let mut private = crate::cmd::queue::sub::private();
    private.env = request.env.apply(std::mem::take(&mut private.env));
    let (command, script) = command_of(request, ready.script.as_ref(), on_own_terminal(request, engine));
    if let Some(text) = &script {
        private.script = Some(in_login_shell(text, request.login_shell.as_ref()).map_err(not_submitted)?);
    }
    let host = match &ready.host {
        Some(host) => Some(host.clone()),
        None => super::server::choose(request, engine, queue)?,
    };
    let host = host.filter(|h| engine.name() != "homing" || *h != homing_queue::host_name());
    if host.is_none() && config.slots == 0 && engine.name() == "homing" {
        return Err(not_submitted("This machine takes no jobs: it has 0 slots"));
    }
    can_be_met(&meant.require, engine, host.as_deref()).map_err(|refusal| refusal.closing(NOT_SUBMITTED))?;
    if let Some(gpus) = request.gpus.filter(|gpus| host.is_none() && engine.name() == "homing" && *gpus > config.gpus) {
        return Err(not_submitted(format!("-gpu num={gpus}: this machine has {} GPUs", config.gpus)));
    }
    let slots = match (request.exclusive, config.slots_of(&host)) {
        (false, _) => request.slots.unwrap_or(1),
        (true, Some(all)) => all,
        (true, None) => {
            near::processors(host.as_deref().unwrap_or_default()).map_err(|why| not_submitted(format!("-x: {why}")))?
        }
    };
    private.env.extend(variables(request, slots));
    let spec = JobSpec {
        v: 1,
        user: super::own_name(),
        submit_ns: homing_os::clock::system_ns(),
        from: homing_queue::host_name(),
        cwd: ready.cwd.clone().unwrap_or_else(|| here.clone()),
        command,
        name,
        queue: queue.into(),
        slots,
        array,
        after: condition(request, engine).map_err(|refusal| refusal.closing(NOT_SUBMITTED))?,
        stdin: file(&request.input),
        stdout: file(&request.output),
        stderr: file(&request.error),
        overwrite: request.overwrite,
        limit_s: request.limit_s.into_iter().chain(config.limit_s(queue)).min(),
        memory_bytes: meant.memory_mib.map(units::bytes),
        gpu_parts: u64::from(request.gpus.unwrap_or(0)) * PARTS,
        host,
        asked_hosts: request.hosts.clone(),
        require: meant.require,
        project: request.project.clone(),
        group: request.group.clone(),
        app: request.app.clone(),
        held: request.hold,
        storage: ready.storage.clone(),
        style: Style::Lsf,
        ..JobSpec::default()
    };
    Ok((spec, private))
}

/// Returns LSF's variables of the request. A job's other variables are known where it starts.
fn variables(request: &BsubRequest, slots: u32) -> Vec<(RawText, RawText)> {
    let most = request.most_slots.unwrap_or(slots).max(slots);
    let interactive = request.interactive.map(|_| ("LSB_INTERACTIVE", "Y".to_string()));
    let all = interactive.into_iter().chain([("LSB_MAX_NUM_PROCESSORS", most.to_string())]);
    all.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Refuses a requirement that the host can never meet: the job would wait for ever.
pub fn can_be_met(require: &[String], engine: &dyn Engine, host: Option<&str>) -> Result<(), Refusal> {
    if engine.name() == "slurm" {
        return Ok(());
    }
    let read =
        Requirement::all(require).map_err(|why| lsf_refusal(format!("Bad resource requirement syntax: {why}")))?;
    let Some((what, has)) = super::load::never(&read, host)? else { return Ok(()) };
    let host = host.map_or_else(homing_queue::host_name, String::from);
    let unit = units::USUAL;
    Err(lsf_refusal(format!("{what} can never be satisfied: {host} has {has}; amounts are in {unit}")))
}

/// Refuses a span that another part of the request would make void.
fn span_acts(ready: &Ready, slurm: bool) -> Result<(), String> {
    let request = &ready.request;
    if slurm {
        request.require.memory_on_slurm()?;
    }
    let slots = request.most_slots.or(request.slots).unwrap_or(1);
    let Some(ptile) = request.require.per_host()?.filter(|ptile| *ptile > 0) else { return Ok(()) };
    let why = match () {
        () if request.exclusive => "-x takes one whole host; use homing sub --nodes N",
        () if ptile >= slots => return Ok(()),
        () if ready.host.is_some() => "iobsub sends a job to one host; use bsub, or span[hosts=1]",
        () if slurm && request.interactive.is_some() => {
            "an interactive job is on one node; use -K, or salloc --ntasks=N --ntasks-per-node=K"
        }
        () => return Ok(()),
    };
    Err(format!("-n {slots} with span[ptile={ptile}]: {why}"))
}

/// Chooses the hosts of a job of several slots, if one host may not be enough.
fn lay(ready: &Ready, spec: &mut JobSpec, engine: &dyn Engine) -> Result<(), Refusal> {
    let request = &ready.request;
    let per_host =
        request.require.per_host().map_err(|why| not_submitted(format!("Bad resource requirement syntax: {why}")))?;
    let most = request.most_slots.unwrap_or(spec.slots);
    if request.exclusive || most < 2 || ready.host.is_some() {
        return Ok(());
    }
    let wanted = SlotRequest { least: spec.slots, most, per_host, whole: false, anywhere: false };
    let hosts = super::server::candidates(request, engine, &spec.queue)?;
    near::lay(spec, &wanted, hosts, engine, &[]).map_err(|why| match why {
        LayError::TooMany(why) => lsf_refusal(format!("Too many processors requested. {NOT_SUBMITTED}\n{why}.")),
        LayError::Other(why) => not_submitted(why),
    })
}

/// Returns whether the engine makes the terminal of the job. Slurm does, if standard input is a terminal.
fn on_own_terminal(request: &BsubRequest, engine: &dyn Engine) -> bool {
    request.interactive == Some(Interactive::Terminal) && engine.name() == "slurm" && std::io::stdin().is_terminal()
}

/// Returns the condition of `-w`. The jobs that it names must exist.
pub fn condition(request: &BsubRequest, engine: &dyn Engine) -> Result<Option<String>, Refusal> {
    let Some(text) = &request.after else { return Ok(None) };
    depend::check(text).map_err(|why| lsf_refusal(format!("{text}: Dependency condition syntax error ({why})")))?;
    let known = homing_queue::engine::condition(text, engine)?;
    known.map(Some).map_err(|missing| lsf_refusal(format!("{missing}: No matching job found")))
}
