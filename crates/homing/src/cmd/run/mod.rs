//! `homing run`, `homing plan`, and the second half of `homing resume`:
//! options become a batch, hosts and a policy; dispatch does the rest.

mod args;
mod config;
mod env_digest;
mod environment;
mod inputs;
mod joblog;
mod lessons;
mod licenses;
mod listen;
pub(crate) mod nonce;
mod order;
mod parallel;
mod plan;
mod seats;
mod slurm;
mod source;
mod stream;
mod targets;
mod unbegun;
mod wide;

pub use args::{Args, On, args_of};
pub use config::with_defaults;
pub use joblog::{Unlisted, unlisted};
pub use parallel::unknown;
pub use plan::plan;

use crate::cmd::gateway;
use crate::cmd::opening::{hostname, opening};
use crate::cmd::report::tell_run;
use crate::failure::{Failure, exit};
use crate::progress::has_colors;
use homing_batch::{Batch, BatchError, Files, Halt, InputOptions, Timeout};
use homing_dispatch::{DispatchError, Io, OutputOptions, Policy, Resources, Settings};
use homing_journal::Journal;
use homing_launch::Via;
use homing_locate::{Finder, Locator};
use homing_model::event::What;
use homing_model::{RawText, TaskId};
use homing_report::Tally;
use homing_wire::Stream;
use inputs::Inputs;
use listen::Screen;
use nonce::Nonces;
use source::{Source, Sourcing};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;
use unbegun::Unbegun;

/// `--jobs 0` means as many as possible; each slot is a thread of the worker.
const MOST_SLOTS: u32 = 1024;

/// A run to be taken up again.
pub struct Again {
    /// Its journal, opened for appending.
    pub journal: Journal,
    /// Tasks that need not run again, with the hash of what ran where that is known.
    pub done: HashMap<TaskId, Option<u64>>,
    /// The evidence of its earlier parts.
    pub tally: Tally,
    /// Of those that need not run again: ends that its job log lacks.
    pub unlisted: Unlisted,
}

/// `homing run`.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(ended) = at_gateway(&args) {
        return ended;
    }
    if args.dry_run {
        return dry_run(&args);
    }
    start(args, None)
}

/// The same command line on the member that it names.
fn at_gateway(args: &Args) -> Option<Result<i32, Failure>> {
    let host = args.gateway.as_ref()?;
    let words = gateway::without_gateway(std::env::args_os().skip(1).collect(), args.words.len());
    Some(gateway::run(host, &words))
}

/// Looks for inputs, and asks the site's own commands where they lie.
fn finder(args: &Args) -> Result<Finder, Failure> {
    let locator = Locator::new().map_err(Failure::system)?;
    Ok(Finder::over(locator.with_own(args.cluster.load()?.locators())))
}

/// Runs, from the beginning or from where an earlier coordinator stopped.
pub fn start(args: Args, again: Option<Again>) -> Result<i32, Failure> {
    // Links to hosts, and files for the output of tasks, may be thousands.
    homing_process::raise_files();
    let now_ns = homing_clock::wall_ns();
    let mut policy = policy(&args)?;
    let cwd =
        std::env::current_dir().map_err(|e| Failure::system(format!("cannot tell the working directory: {e}")))?;
    let lesson = if policy.io == Io::Auto { lessons::key(&args, &cwd) } else { None };
    (policy.learnt, policy.movers) = lessons::known(lesson.as_deref());
    let finder = finder(&args)?;
    let _tender = args.ppn.map(|_| wide::Tender::begin()).transpose()?;
    let resumed = again.is_some();
    let (journal, done, tally, unlisted) = match again {
        Some(again) => (again.journal, again.done, again.tally, again.unlisted),
        None => {
            let name = homing_journal::new_run_name(now_ns, std::process::id());
            if let Some(note) = homing_journal::root_note().filter(|_| !args.quiet) {
                eprintln!("homing: {note}");
            }
            let journal = Journal::create(&homing_journal::root(), &name).map_err(unrecorded)?;
            (journal, HashMap::new(), Tally::new(), Unlisted::default())
        }
    };
    let name = journal.dir().file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let unbegun = Unbegun::new(journal.dir(), resumed);
    let mut inputs = Inputs::new(&cwd, journal.dir(), resumed);
    let typed = inputs.stdin_is_typed();
    let batch = batch(&args, &cwd, &name, &mut inputs, typed)?;
    inputs.said.iter().for_each(|text| eprintln!("homing: {text}"));
    let mut listed = joblog::done(&args)?;
    // What the run itself has added to the log and is to try again is not skipped for that.
    listed.retain(|task, _| !tally.counts().has_failed(*task));
    let total = batch.total();
    let tag = batch.tag().cloned();
    let targets = targets::targets(&args, &cwd, &name, total)?;
    policy.links = targets.links;
    policy.licensed = targets.licensed;
    let host_count = targets.hosts.len();
    let slurm = targets.hosts.iter().any(|h| matches!(h.via, Via::Slurm(_)));
    let _guard = slurm.then(|| homing_launch::Guard::over(&homing_slurm::job_name(&name)));
    let here = targets.hosts.iter().all(|t| t.via == Via::Local);
    let opening = if resumed {
        What::RunResumed { host: hostname(), pid: std::process::id() }
    } else {
        opening(&name, config::words(), &cwd, total)
    };
    let away = targets.hosts.iter().chain(&targets.spares).any(|t| !matches!(t.via, homing_launch::Via::Local));
    // Kept to the end of the run: a host that joins late is asked too.
    let nonces = away.then(Nonces::default);
    let joblog = args.joblog.as_deref().map(|p| joblog::open(p, &args, resumed)).transpose()?;
    let missing = joblog.as_ref().map(|file| joblog::Missing::new(unlisted, file, here)).transpose()?;
    let sourcing = Sourcing {
        cwd: cwd.clone(),
        detect: !args.no_detect,
        handed_on: args.ppn.is_some(),
        skip_newer: args.skip_newer,
        makes_workdir: args.parallel.workdir.is_some(),
        done,
        listed,
        missing,
        hosts: host_count,
        fenced: away && !args.no_fence,
        nonces: nonces.clone(),
        servers: args.cluster.load()?.servers(),
        own: args.cluster.load()?.locators(),
        fs_timeout: std::time::Duration::from_secs(args.fs_timeout.into()),
    };
    let linked = batch.has_links();
    let source = Source::new(batch, sourcing, finder);
    let counts = tally.counts().clone();
    let limit = policy.output_limit;
    // Nothing could come between what one task prints, and what was printed is not printed again by another attempt:
    // its reader need not wait for its end, which may never come (`yes | head`).
    let alone = total == Some(1) && here && policy.tries.unwrap_or(1) == 1;
    let mut screen = Screen::new(tally, args.bar || args.eta, args.explain, joblog, here);
    let seats = seats::seats(&args, &targets.hosts);
    let settings = Settings {
        name: name.clone(),
        opening,
        policy,
        hosts: targets.hosts,
        spares: targets.spares,
        need_all: args.need_all_hosts,
        in_step: !args.no_fence,
        nice: args.parallel.nice.unwrap_or(0),
        around: wide::words(&args)?,
        seats,
        slots: slots(&args)?,
        user_name: homing_queue::user_name,
        launch: homing_launch::Options::default(),
        cwd: cwd.as_path().into(),
        env: environment(&args, here, journal.dir())?,
        later: linked.then(|| source.later()),
        source: Box::new(source),
        counts,
        output: OutputOptions {
            keep_order: args.keep_order && !alone,
            line_buffer: args.line_buffer || args.parallel.ungroup || alone,
            tag,
            commands: if args.parallel.verbose {
                Some(Stream::Out)
            } else {
                args.parallel.trace.then_some(Stream::Err)
            },
            limit,
            spill: journal.dir().to_path_buf(),
        },
        terminal: screen.terminal.clone(),
        results: args.results.as_deref().map(results_files).transpose()?,
        interrupts: environment::count_interrupts()?,
        journal,
    };
    let result = homing_dispatch::run(settings, &mut screen);
    nonces.iter().for_each(Nonces::remove);
    screen.terminal.begin_line();
    lessons::keep(lesson.as_deref(), &screen.learnt, &screen.movers, now_ns);
    let status = result.map_err(|e| match unbegun.is_certain() {
        true => Failure::system(e).hint("nothing has run: the same command again, once there is room"),
        false => explain(e, &name, slurm),
    })?;
    // With --halt a success may leave tasks that can still be run; a job log that lacks lines is mended with the input.
    if status == 0 && args.parallel.pipe && args.halt == "never" && screen.unlogged.is_none() {
        inputs.forget_stdin();
    }
    // Nobody who has seen enough asks how much there would have been.
    if status != exit::UNREAD || args.json {
        evidence(&args, &screen, &name, here, host_count > 1);
    }
    match screen.unlogged {
        Some(e) => Err(Failure::system(format!("cannot write the job log: {e}"))
            .hint(format!("homing resume {name}, once there is room: it writes what is missing"))),
        None => Ok(status),
    }
}

/// What tasks are given; says what differs in it from an earlier part of the run.
fn environment(args: &Args, here: bool, dir: &Path) -> Result<Vec<(RawText, RawText)>, Failure> {
    let mut env = environment::exported(&args.env, here)?;
    env.extend(args.ppn.and_then(|_| wide::agent()));
    let differing = env_digest::differing(dir, &env);
    let differing = differing
        .map_err(|e| Failure::system(format!("cannot compare the environment with that in {}: {e}", dir.display())))?;
    if !differing.is_empty() {
        let names = differing.join(", ");
        eprintln!("homing: the environment is not that of the run: {names}; tasks that run from here on get this one");
    }
    Ok(env)
}

fn unrecorded(error: homing_journal::JournalError) -> Failure {
    Failure::system(error).hint("HOMING_RUNS=FOLDER names another place for the record of runs")
}

fn evidence(args: &Args, screen: &Screen, name: &str, here: bool, spread: bool) {
    if args.json {
        eprintln!("{}", screen.tally.json());
    } else if !args.quiet {
        let color = has_colors(io::stderr());
        let brief = here && !spread;
        eprint!("{}", if brief { screen.tally.brief(color) } else { screen.tally.text(color) });
        if let Some(elsewhere) = screen.tally.elsewhere().filter(|_| !spread) {
            eprintln!("homing: {elsewhere}; with --on ssh their commands run there");
        }
        if !brief {
            tell_run(name);
        }
    }
}

fn explain(error: DispatchError, name: &str, slurm: bool) -> Failure {
    let failure = Failure::system(&error);
    match error {
        DispatchError::NoHosts(_) if slurm => failure.hint("sinfo -N -l; or `srun -w NODE hostname` by hand"),
        DispatchError::NoHosts(_) | DispatchError::NotAllHosts(_) => {
            failure.hint("ssh to one of these hosts by hand, then `homing hosts`")
        }
        DispatchError::Output(e) if e.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
            failure.hint(format!("homing resume {name}, with standard output open"))
        }
        _ => failure.hint(format!("homing resume {name}, once there is room")),
    }
}

/// Commands as they would be run.
fn dry_run(args: &Args) -> Result<i32, Failure> {
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let mut inputs = Files::new(&cwd, Box::new(BufReader::new(io::stdin())));
    let batch = batch(args, &cwd, "dry", &mut inputs, io::stdin().is_terminal())?;
    let tag = batch.tag().cloned();
    order::in_order(batch.map(|task| task.map_err(Failure::usage)), |task| {
        let mut command = task.command.clone();
        homing_batch::fill_slot(&mut command, 1);
        let mut line = Vec::new();
        if let Some(tag) = &tag {
            line = tag.of(task, 1).0;
            line.push(b'\t');
        }
        line.extend(homing_batch::command_line(&command));
        line.push(b'\n');
        io::stdout().write_all(&line).map_err(|e| Failure::unwritten("cannot write to standard output", &e))
    })?;
    Ok(0)
}

/// What the user gave as a batch of tasks. `typed`: standard input is a terminal.
pub(crate) fn batch(
    args: &Args,
    cwd: &Path,
    run: &str,
    inputs: &mut dyn homing_batch::Inputs,
    typed: bool,
) -> Result<Batch, Failure> {
    environment::check_shell()?;
    let raw = |words: &[std::ffi::OsString]| words.iter().map(|w| RawText::from(w.as_os_str())).collect::<Vec<_>>();
    let options = InputOptions {
        cwd: cwd.to_path_buf(),
        // The same order when the run is resumed: the seed is the run's name.
        shuf: args.shuf.then(|| run.bytes().fold(5381, |h: u64, b| h.wrapping_mul(33) ^ u64::from(b))),
        null: args.null,
        delimiter: args.delimiter.clone().map(RawText::from),
        quote: args.quote,
        trim: args.trim.map(Into::into),
        functions: environment::functions(),
        colsep: args.colsep.clone().map(RawText::from),
        packing: args.parallel.packing(args.max_args, slots_here(args)?),
        blocks: args.parallel.blocks(args.max_args, slots_here(args)?)?,
        header: args.parallel.has_header()?,
        link: args.parallel.link,
        arg_sep: args.parallel.arg_sep.clone().map_or_else(|| ":::".into(), RawText::from),
        arg_file_sep: args.parallel.arg_file_sep.clone().map_or_else(|| "::::".into(), RawText::from),
        replacements: args.parallel.replacements(),
        tag: args.parallel.tagstring.clone().map(RawText::from).or(args.tag.then(|| "{}".into())),
        workdir: args.parallel.workdir.clone().map(RawText::from),
        no_run_if_empty: args.no_run_if_empty,
        arg_files: args.arg_file.clone(),
        outputs: raw(&args.output),
        inputs_extra: raw(&args.near),
        shell: environment::shell(),
        resources: resources(args)?.most(),
    };
    if args.retry_failed {
        return Ok(Batch::listed(joblog::failed(args)?, args.tag));
    }
    let Some(file) = &args.tasks else {
        if args.words.is_empty() && typed && args.arg_file.is_empty() {
            return Err(Failure::usage("no command and no input").hint("homing run 'gzip -k {}' ::: *.txt"));
        }
        return homing_batch::compose(&raw(&args.words), options, inputs, typed).map_err(unreadable);
    };
    let name = file.display().to_string();
    let opened = inputs.open(file).map_err(|source| unreadable(BatchError::Read { name: name.clone(), source }))?;
    homing_batch::tasks_file(opened.from, opened.again, &name, options).map_err(unreadable)
}

fn unreadable(error: BatchError) -> Failure {
    Failure { status: inputs::status_of(&error), ..Failure::usage(error) }
}

fn policy(args: &Args) -> Result<Policy, Failure> {
    let halt: Halt = args.halt.parse().map_err(Failure::usage)?;
    let delay = args.delay.as_deref().map(|t| homing_batch::parse_duration("--delay", t)).transpose();
    let memfree = args.memfree.as_deref().map(|t| homing_batch::parse_size("--memfree", t)).transpose();
    let output_limit = args.output_limit.as_deref().map(|t| homing_batch::parse_size("--output-limit", t)).transpose();
    let timeout = args.timeout.as_deref().map(Timeout::parse).transpose().map_err(Failure::usage)?;
    let (timeout_ms, timeout_of_median) = match timeout {
        Some(Timeout::After(limit)) => (Some(limit.as_millis() as u64), None),
        Some(Timeout::OfMedian(share)) => (None, Some(share)),
        None => (None, None),
    };
    Ok(Policy {
        tries: args.retries.map(|n| n.max(1)),
        delay_us: delay.map_err(Failure::usage)?.map_or(0, |d| d.as_micros() as u64),
        memfree: memfree.map_err(Failure::usage)?.unwrap_or(0),
        load: load(args)?,
        output_limit: output_limit.map_err(Failure::usage)?,
        timeout_ms,
        timeout_of_median,
        locality: !args.no_locality,
        io: io_limit(&args.io)?,
        shared: !args.no_share,
        resources: resources(args)?,
        power: args.cluster.load()?.circuits()?,
        links: Default::default(),
        licensed: Vec::new(),
        learnt: Default::default(),
        movers: Vec::new(),
        // What was sent ahead would still run after the end that --halt makes, and its input take up memory.
        prefetch: !args.parallel.pipe
            && !args.parallel.names_the_slot(&args.words)
            && args.delay.is_none()
            && halt == Halt::Never,
        halt,
    })
}

/// What hosts have of named resources: those of the command line, and the cluster file's of single hosts.
fn resources(args: &Args) -> Result<Resources, Failure> {
    let hosts = args.cluster.load()?.resources();
    Ok(Resources { each: args.resource.iter().cloned().collect(), hosts })
}

fn load(args: &Args) -> Result<Option<String>, Failure> {
    let limit = args.parallel.load.clone();
    limit.as_deref().map_or(Ok(1), |text| homing_batch::jobs("--load", text, 1)).map_err(Failure::usage)?;
    Ok(limit)
}

fn io_limit(text: &str) -> Result<Io, Failure> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Io::Auto),
        ("off", _) => Ok(Io::Off),
        (_, Ok(limit)) if limit > 0 => Ok(Io::Fixed(limit)),
        _ => Err(Failure::usage(format!("--io takes auto, off or a number from 1, not {text:?}"))),
    }
}

/// Slots that this machine gives a run.
fn slots_here(args: &Args) -> Result<usize, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    Ok(slots(args)?(cores).max(1) as usize)
}

fn slots(args: &Args) -> Result<Box<dyn Fn(u32) -> u32>, Failure> {
    let Some(jobs) = args.jobs.clone() else { return Ok(Box::new(|cores| cores)) };
    homing_batch::jobs("--jobs", &jobs, 1).map_err(Failure::usage)?;
    Ok(Box::new(move |cores| homing_batch::jobs("--jobs", &jobs, cores).unwrap_or(cores).min(MOST_SLOTS)))
}

fn results_files(dir: &Path) -> Result<homing_dispatch::ResultFiles, Failure> {
    if let Some(kind @ ("csv" | "tsv" | "json")) = dir.extension().and_then(OsStr::to_str) {
        let text = format!("--results writes a folder, or a file for each task; not a .{kind} of all");
        return Err(Failure::usage(text).hint("--joblog lists the tasks; `homing report RUN --json` sums them up"));
    }
    let results = homing_batch::Results::parse(&dir.into()).map_err(Failure::usage)?;
    // A template names folders that only its tasks make; a plain folder, or where it will be made, is tried now.
    if let Some(folder) = results.folder() {
        let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
        tempfile::tempfile_in(there).map_err(|e| {
            Failure::system(format!("cannot write results to {}: {e}", folder.display())).hint("nothing was run")
        })?;
    }
    Ok(Box::new(move |task| {
        let paths = results.paths(task);
        for path in [&paths.stdout, &paths.stderr, &paths.seq] {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        }
        std::fs::write(&paths.seq, task.id.to_string())?;
        Ok((File::create(&paths.stdout)?, File::create(&paths.stderr)?))
    }))
}
