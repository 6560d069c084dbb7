//! `homing sub`: submits a command that runs detached.

mod batch;
mod host;
mod input;
mod promised;
mod sbatch;
mod script;

use super::attached;
use crate::cluster::{Cluster, ClusterArgs};
use crate::cmd::run;
use crate::nodes::Nodes;
use homing_model::resource::{PARTS, shown_amount};
use homing_model::{Command, Failure, RawText};
use homing_queue::plan::Config;
use homing_queue::several::SlotRequest;
use homing_queue::{Engine, JobSpec, Private, array, depend};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Arguments of `homing sub`.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the job; NAME[1-50]%8 is an array of 50 of which 8 run at once
    #[arg(short = 'J', long, value_name = "NAME")]
    name: Option<String>,
    /// Queue (default: the cluster file's)
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Slots of the job
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// Most slots of the job on one host: with -n 32 --ptile 8 it takes four hosts, all at once, and starts on the host
    /// with most of its bytes
    #[arg(long, value_name = "K", requires = "slots", conflicts_with_all = ["batch", "host"], value_parser = clap::value_parser!(u32).range(1..))]
    ptile: Option<u32>,
    /// Number of hosts, or as many as are free from MIN to MAX, each with --ppn slots, all at once. The job starts on
    /// the first; rank k of an MPI program runs on the host that holds part k of its inputs
    #[arg(long, value_name = "N|MIN-MAX", conflicts_with_all = ["batch", "host", "slots", "ptile"])]
    nodes: Option<Nodes>,
    /// Slots on each of --nodes (default: 1)
    #[arg(long, value_name = "N", requires = "nodes", value_parser = clap::value_parser!(u32).range(1..))]
    ppn: Option<u32>,
    /// Network of the job's MPI programs: a name in `[host.NAME] addresses` of the cluster file
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    net: Option<String>,
    /// Of these hosts alone
    #[arg(long, hide = true, value_name = "NODESET", requires = "nodes")]
    among: Option<String>,
    /// Print its output, exit with its status, and end it with this process; another process serves the queue
    #[arg(long, hide = true, conflicts_with_all = ["wait", "output", "error", "after"])]
    attach: bool,
    /// Start when these jobs have succeeded: ID, or a condition in LSF's notation, done(1) && ended(2)
    #[arg(long, value_name = "ID|CONDITION")]
    after: Vec<String>,
    /// Append standard output to FILE (%J: job id, %I: index); default: kept for `homing peek`
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<OsString>,
    /// Append standard error to FILE; default: with the output
    #[arg(short = 'e', long, value_name = "FILE")]
    error: Option<OsString>,
    /// Standard input
    #[arg(short = 'i', long, value_name = "FILE")]
    stdin: Option<OsString>,
    /// Input file that the words of the job do not name; may be repeated
    #[arg(long, value_name = "PATH")]
    near: Vec<PathBuf>,
    /// On Slurm: prefer the hosts that hold the job's files, use only them, or use any
    #[arg(long, value_name = "HOW", default_value = "prefer")]
    place: super::near::How,
    /// End the job after this time: 30, 5m, 1h (Slurm counts whole minutes)
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Graphics processors of the job on its host, or a part of one (0.5; whole ones on Slurm); CUDA_VISIBLE_DEVICES
    /// holds their numbers
    #[arg(long, value_name = "N", value_parser = run::gpus, conflicts_with_all = ["batch", "nodes", "ptile"])]
    gpus_per_task: Option<u64>,
    /// Run CMD on this machine after the end of the job, with HOMING_EXIT, HOMING_JOB and HOMING_NAME; not on Slurm
    #[arg(long, value_name = "CMD")]
    on_exit: Option<OsString>,
    /// End the job when its processes use more memory than SIZE: 500M, 2G (on Slurm: --mem)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    mem: Option<u64>,
    /// Run the job on HOST, by ssh (default: this machine)
    #[arg(short = 'w', long, visible_alias = "hosts", value_name = "HOST")]
    host: Option<String>,
    /// Wait for the end of the job, and exit with its status
    #[arg(short = 'K', long)]
    wait: bool,
    /// Submit a batch: all words that follow are words of `homing run`
    #[arg(long, value_name = "WORDS", num_args = 1.., allow_hyphen_values = true, conflicts_with = "words")]
    batch: Vec<OsString>,
    /// Run jobs again that a restart of the machine, or a kill of their keeper, interrupted
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["batch", "name"])]
    again: Vec<String>,
    /// Print only the job ID
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    slurm: sbatch::Words,
    #[command(flatten)]
    engine: super::EngineArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// One word: a command line for the shell. More: a program and its arguments. None: a script on standard input,
    /// with further options in lines that begin with #HOMING
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// Submits a job.
pub fn run(args: Args) -> Result<i32, Failure> {
    input::refuse_list(&args.words)?;
    let (mut args, script) = script::read(args)?;
    args.cluster.enter()?;
    if let Some(file) = args.cluster.file() {
        let file = std::fs::canonicalize(file)
            .map_err(|e| Failure::usage(format!("cannot read the cluster file {}: {e}", file.display())))?;
        // SAFETY: this program has no other thread here.
        unsafe { std::env::set_var("HOMING_CLUSTER", file) };
    }
    let engine: Box<dyn Engine> = match args.attach {
        true => Box::new(crate::embedded::open()?.served_by_another()),
        false => args.engine.open()?,
    };
    if !args.again.is_empty() {
        return again(engine.as_ref(), &args.again);
    }
    let slurm = engine.name() == "slurm";
    let batch = batch::read(&mut args)?;
    let mut spec = spec(&args, script.as_ref(), batch.as_ref(), &engine.config()?, slurm)?;
    if slurm {
        super::slurm_keeps(&spec.queue)?;
    }
    // Slurm forgets ended jobs within minutes, and reports unknown jobs itself.
    if let Some(text) = spec.after.as_mut().filter(|_| !slurm) {
        *text = known(engine.as_ref(), text)?;
    }
    if slurm {
        super::near::wish(&mut spec, &args.near, args.place)?;
        let each = if batch.is_some() { spec.slots } else { 1 };
        homing_cluster::licenses::take(&mut spec, &args.near, each)?;
    }
    if let Some(wanted) = wanted(&args, spec.slots) {
        let hosts = match &args.among {
            Some(hosts) => Cluster::of_queue()?.hosts(Some(hosts))?,
            None => Cluster::of_queue()?.hosts_of(engine.config()?.queues.get(&spec.queue))?,
        };
        super::near::lay(&mut spec, &wanted, hosts, engine.as_ref(), &args.near)
            .map_err(|why| Failure::usage(why.to_string()))?;
    }
    let asked = args.attach.then(attached::EndSignal::listen);
    spec.bound = args.attach.then(homing_queue::ProcessIdentity::own);
    if let Some(note) = engine.fit(&mut spec)? {
        eprintln!("homing: {note}");
    }
    let input = match () {
        () if args.attach => input::piped()?,
        () if args.stdin.is_none() && batch.as_ref().is_some_and(input::is_read) => Some(input::of_batch()?),
        () => None,
    };
    let opening = promised::Opening { elsewhere: slurm, later: spec.after.is_some() };
    promised::refuse(&spec, opening)?;
    if let Some(batch) = &batch {
        batch::refuse(batch, &spec, input.as_ref(), opening)?;
    }
    let on_exit = args.on_exit.clone().map(RawText::from);
    let mut private = Private { input, script, on_exit, ..private() };
    if let Some(net) = &args.net {
        private.env.extend(Cluster::of_queue()?.network_of(net, &spec.named_hosts())?);
    }
    let id = engine.submit(&spec, &private)?;
    if let Some(asked) = asked {
        return attached::follow(engine.as_ref(), id, &asked);
    }
    match args.quiet {
        true => println!("{id}"),
        false => println!("job {id} is in queue {}", spec.queue),
    }
    if args.wait { super::act::wait_for(engine.as_ref(), &[id.to_string()], true) } else { Ok(0) }
}

/// Returns how the slots are to be spread over hosts, if an option requests that.
fn wanted(args: &Args, slots: u32) -> Option<SlotRequest> {
    let anywhere = args.place == super::near::How::Any;
    let by_ptile = |ptile| SlotRequest { least: slots, most: slots, per_host: Some(ptile), whole: false, anywhere };
    args.nodes
        .map(|nodes| SlotRequest::of((nodes.least, nodes.most), args.ppn.unwrap_or(1), anywhere))
        .or(args.ptile.map(by_ptile))
}

/// Returns a condition with its `name*` expanded. A job that does not exist is refused: the condition would never hold.
fn known(engine: &dyn Engine, condition: &str) -> Result<String, Failure> {
    let known = homing_queue::engine::condition(condition, engine)?;
    known.map_err(|missing| {
        Failure::usage(format!("--after {condition}: there is no job {missing}")).hint("homing jobs -a")
    })
}

fn again(engine: &dyn Engine, ids: &[String]) -> Result<i32, Failure> {
    for text in ids {
        let (job, index) = super::find_own(engine, text)?;
        let count = engine.again(&job, index, false)?;
        if count == 0 {
            return Err(Failure::usage(format!("job {text} was not interrupted")));
        }
        println!("job {text} is in queue {} again", job.spec.queue);
    }
    Ok(0)
}

/// Returns the parts of a job that only its submitter may read.
pub fn private() -> Private {
    // They are those of a job of which this process is a part.
    let own = |name: &OsStr| name == "LSB_INTERACTIVE" || name == "LSB_JOBFILENAME";
    let env = std::env::vars_os().filter(|(name, _)| !own(name));
    let env = env.map(|(n, v)| (RawText::from(n), RawText::from(v))).collect();
    Private { env, umask: homing_os::process::umask(), ..Private::default() }
}

fn spec(
    args: &Args,
    script: Option<&RawText>,
    batch: Option<&run::Args>,
    config: &Config,
    slurm: bool,
) -> Result<JobSpec, Failure> {
    let queue = args.queue.clone().unwrap_or_else(|| config.default_queue().to_string());
    if !config.queues.contains_key(&queue) {
        let known: Vec<&str> = config.queues.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("{queue}: no such queue")).hint(known.join(", ")));
    }
    if let Some(why) = config.refuses(&queue, homing_queue::uid()) {
        return Err(Failure::usage(format!("{queue}: {why}")));
    }
    let (name, array) = array::parse(args.name.as_deref().unwrap_or_default()).map_err(Failure::usage)?;
    let after = (!args.after.is_empty()).then(|| args.after.join(" && "));
    if let Some(text) = &after {
        depend::check(text).map_err(|e| Failure::usage(format!("--after {text}: {e}")))?;
    }
    let host = args.host.as_deref().map(|text| host::one(text, config, slurm)).transpose()?;
    let label = || batch.and_then(|batch| batch.name.clone()).unwrap_or_default();
    // A batch on this machine runs as many tasks at once as it has slots, by default all slots. On Slurm, a batch is
    // a coordinator with its workers in one allocation, on any number of nodes.
    let stays = !slurm && !batch.map_or(Ok(true), goes_away)?;
    let spread = slurm && batch.is_some();
    let slots = args.slots.unwrap_or(if stays { config.slots } else { 1 }).max(1);
    if args.host.is_none() && !spread && !slurm && config.slots == 0 {
        return Err(Failure::usage("this machine takes no jobs: it has 0 slots").hint("--host HOST"));
    }
    if args.host.is_none() && !spread && args.ptile.is_none() && args.nodes.is_none() && slots > config.slots {
        let whose = if slurm { "a node" } else { "this machine" };
        return Err(Failure::usage(format!("{slots} slots requested, {whose} has {}", config.slots)));
    }
    let gpu_parts = args.gpus_per_task.unwrap_or(0);
    if args.host.is_none() && !slurm && gpu_parts > u64::from(config.gpus) * PARTS {
        let wanted = shown_amount(gpu_parts);
        return Err(Failure::usage(format!("--gpus-per-task {wanted}: this machine has {} GPUs", config.gpus))
            .hint("[host.NAME] gpus = N in the cluster file sets their number"));
    }
    if args.on_exit.is_some() && slurm {
        return Err(Failure::usage("--on-exit: on Slurm, no process of this machine waits for the end of a job")
            .hint("--slurm-arg=--mail-type=END, or homing wait ID; COMMAND"));
    }
    let timeout = args.timeout.as_deref().map(|text| homing_batch::parse_duration("--timeout", text)).transpose();
    let timeout =
        timeout.map_err(Failure::usage)?.filter(|time| !time.is_zero()).map(|time| time.as_secs_f64().ceil() as u64);
    let path = |p: &Option<OsString>| p.clone().map(RawText::from);
    Ok(JobSpec {
        v: 1,
        user: homing_queue::user_name(homing_queue::uid()),
        submit_ns: homing_os::clock::system_ns(),
        from: homing_queue::host_name(),
        cwd: RawText::from(working_directory()?.as_path()),
        command: match script {
            Some(script) => Command::Shell(homing_lsf::bsub::default_name(&script.0).into()),
            None => command(args, stays.then_some(slots))?,
        },
        name: if name.is_empty() { label() } else { name },
        limit_s: timeout.or(config.limit_s(&queue)),
        queue,
        slots,
        array,
        after,
        stdin: path(&args.stdin),
        stdout: path(&args.output),
        stderr: path(&args.error),
        memory_bytes: args.mem,
        gpu_parts,
        host,
        spread,
        extra: args.slurm.words(slurm)?,
        ..JobSpec::default()
    })
}

/// Returns whether the tasks of a batch run on other hosts. They then take no slots here.
fn goes_away(batch: &run::Args) -> Result<bool, Failure> {
    Ok(match batch.on {
        run::On::Local => false,
        run::On::Auto => batch.node_set().is_some() || batch.cluster.names_hosts()?,
        _ => true,
    })
}

fn command(args: &Args, slots: Option<u32>) -> Result<Command, Failure> {
    let raw = |words: &[OsString]| words.iter().map(|w| RawText::from(w.clone())).collect::<Vec<_>>();
    if !args.batch.is_empty() {
        let exe = crate::programs::own_path()?;
        let mut all = vec![RawText::from(exe.as_path()), "run".into()];
        all.extend(slots.map(|slots| format!("-j{slots}").into()));
        all.extend(raw(&args.batch));
        return Ok(Command::Argv(all));
    }
    let words = raw(&args.words);
    if words.is_empty() {
        return Err(Failure::usage("a job needs a command")
            .hint("homing sub 'sort big > sorted'; or a script: homing sub < job.sh"));
    }
    Ok(match <[RawText; 1]>::try_from(words) {
        Ok([line]) => Command::Shell(line),
        Err(words) => Command::Argv(words),
    })
}

/// Returns the working directory by the user's name for it, `$PWD`, if that is the same folder.
pub fn working_directory() -> Result<PathBuf, Failure> {
    let real = std::env::current_dir().map_err(|e| {
        Failure::system(format!("cannot read the working directory: {e}")).hint("cd to a directory that exists")
    })?;
    let told = std::env::var_os("PWD").map(PathBuf::from).filter(|p| p.is_absolute());
    Ok(told.filter(|p| p.canonicalize().is_ok_and(|c| c == real)).unwrap_or(real))
}

fn memory(text: &str) -> Result<u64, String> {
    homing_batch::parse_size("--mem", text).map_err(|e| e.to_string())
}
