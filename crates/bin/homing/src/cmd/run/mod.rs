//! `homing run`, `homing plan`, and the second half of `homing resume`.
//!
//! This module turns options into a batch, hosts and a policy. `dispatch` does the rest.

pub mod again;
mod args;
mod asleep;
mod config;
mod licenses;
mod listen;
mod on_exit;
mod options;
mod parallel;
mod perl;
mod plan;
mod seats;
mod slurm;
mod targets;
mod unknown;
mod wide;
mod words;

pub use args::{Args, On, args_of, gpus, grammar, is_separator};
pub use config::{merged, with_defaults};
pub(crate) use options::batch;
pub use plan::plan;
pub use unknown::unknown;
pub use words::refuse;

use crate::cmd::evidence::{read, tell_run};
use crate::cmd::gateway;
use crate::cmd::opening::{hostname, opening};
use crate::progress::{columns_of, has_colors};
use homing_batch::Files;
use homing_dispatch::source::joblog::{self, Unlisted};
use homing_dispatch::source::{Nonces, OfferStream, RunInputs, Sourcing, environment, results_files};
use homing_dispatch::{Around, DispatchError, Io, RunSettings};
use homing_journal::{Journal, Unbegun, lessons};
use homing_model::event::EventKind;
use homing_model::fit::wrapped;
use homing_model::{Failure, RawText, TaskId, document, exit};
use homing_os::folder::NamedFile;
use homing_report::{ProgressLog, Tally};
use listen::Screen;
use options::{container, finder, output, policy, slots, sourcing};
use std::collections::HashMap;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;

/// A run that is resumed.
pub struct Again {
    /// Its journal, opened for appending.
    pub journal: Journal,
    /// Tasks that do not run again, each with the hash of its command if the journal has one.
    pub done: HashMap<TaskId, Option<u64>>,
    /// The evidence of its earlier parts.
    pub tally: Tally,
    /// Ends of tasks that the job log lacks, among the tasks that do not run again.
    pub unlisted: Unlisted,
}

/// Executes `homing run`.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(ended) = at_gateway(&args) {
        return ended;
    }
    args.name.as_deref().map_or(Ok(()), check_label)?;
    if args.dry_run {
        return dry_run(&args);
    }
    start(args, None)
}

/// Runs the same command line on the host that `--gateway` names.
fn at_gateway(args: &Args) -> Option<Result<i32, Failure>> {
    let host = args.gateway.as_ref()?;
    let words = gateway::without_gateway(std::env::args_os().skip(1).collect(), args.words.len());
    Some(gateway::run(host, &words))
}

/// Starts a run, or continues one where an earlier coordinator stopped.
pub fn start(args: Args, again: Option<Again>) -> Result<i32, Failure> {
    // There may be thousands of connections to hosts and of files with the output of tasks.
    homing_os::process::raise_files();
    let now_ns = homing_os::clock::wall_ns();
    let mut policy = policy(&args)?;
    let cwd =
        std::env::current_dir().map_err(|e| Failure::system(format!("cannot read the working directory: {e}")))?;
    let lesson = if policy.io == Io::Auto { lessons::key(&args.words, &cwd) } else { None };
    (policy.learnt, policy.movers) = lessons::known(lesson.as_deref());
    let finder = finder(&args)?;
    let _tender = args.ppn.map(|_| crate::embedded::open().and_then(homing_queue::Tender::begin)).transpose()?;
    let resumed = again.is_some();
    let job = homing_queue::array::own_name(|name| std::env::var(name).ok());
    if let Some(label) = args.name.as_deref().filter(|_| !resumed && !args.quiet && job.is_none()) {
        note_taken(label);
    }
    let Again { journal, done, tally, unlisted } = match again {
        Some(again) => again,
        None => anew(now_ns, args.quiet)?,
    };
    let name = journal.run();
    if let Some(job) = &job {
        // The run does not need the link, which `homing jobs` shows.
        let _ = homing_journal::note_job(journal.dir(), &homing_queue::host_name(), job);
    }
    let unbegun = Unbegun::new(journal.dir(), resumed);
    let mut inputs = RunInputs::new(&cwd, journal.dir(), resumed);
    let typed = inputs.stdin_is_typed();
    let batch = batch(&args, &cwd, &name, &mut inputs, typed)?;
    inputs.notes.iter().for_each(|text| eprintln!("homing: {text}"));
    let listed = listed(&args, &tally)?;
    let total = batch.total();
    let (tag, columns, empty) = (batch.tag().cloned(), batch.columns().to_vec(), batch.empty_note());
    let mut targets = targets::targets(&args, &cwd, &name, total)?;
    let asleep = asleep::rouse(&args, &mut targets.hosts, total)?;
    let (here, away, slurm) = (targets.are_here(), targets.may_be_away(), targets.are_slurms());
    (policy.links, policy.licensed) = (targets.links, targets.licensed);
    let host_count = targets.hosts.len();
    let _guard = slurm.then(|| homing_launch::Guard::over(&homing_slurm::job_name(&name)));
    let opening = match resumed {
        true => EventKind::RunResumed { host: hostname(), pid: std::process::id() },
        false => opening(&name, config::words(), &cwd, total, args.name.as_deref()),
    };
    // Kept to the end of the run: a host that joins late must find the files, too.
    let nonces = away.then(Nonces::default);
    let document = args.json.as_deref().filter(|file| file.as_os_str() != "-").map(evidence_file).transpose()?;
    let joblog = args.joblog.as_deref().map(|p| joblog::open(p, resumed || args.goes_on())).transpose()?;
    let missing = joblog.as_ref().map(|file| joblog::Missing::new(unlisted, file, here)).transpose()?;
    let sourcing = Sourcing {
        handed_on: args.ppn.is_some(),
        makes_workdir: args.parallel.workdir.is_some(),
        done,
        listed,
        missing,
        fenced: away && !args.no_fence,
        nonces: nonces.clone(),
        ..sourcing(&args, &cwd, host_count)?
    };
    let linked = batch.has_links();
    let source = OfferStream::new(batch, sourcing, finder);
    let counts = tally.counts().clone();
    let limit = policy.output_limit;
    // Only one task prints, and no second attempt prints the same again. Its output need not wait for its end, which
    // may never come (`yes | head`).
    let alone = total == Some(1) && here && policy.tries.unwrap_or(1) == 1 && args.parallel.colours().is_none();
    let mut screen = Screen::new(tally, watched(&args, &name), args.explain, joblog, here);
    let seats = seats::seats(&args, &targets.hosts);
    let env = environment(&args, here, journal.dir())?;
    let container = container(&args, &name, &cwd, &env).map(Around::Container);
    let around = container.or(wide::words(&args)?.map(Around::Submitter));
    let settings = RunSettings {
        name: name.clone(),
        opening,
        policy,
        hosts: targets.hosts,
        spares: targets.spares,
        tree: args.tree,
        need_all: args.need_all_hosts,
        in_step: !args.no_fence,
        nice: args.parallel.nice.unwrap_or(0),
        around,
        seats,
        slots: slots(&args)?,
        user_name: homing_queue::user_name,
        launch: homing_launch::Options { asleep, ..homing_launch::Options::default() },
        cwd: cwd.as_path().into(),
        env,
        umask: homing_os::process::umask(),
        meter: args.cluster.load()?.meter(),
        later: linked.then(|| source.later()),
        source: Box::new(source),
        counts,
        output: output(&args, alone, tag, limit, journal.dir()),
        terminal: screen.terminal.clone(),
        results: args.results.as_deref().map(|dir| results_files(dir, &columns)).transpose()?,
        interrupts: environment::count_interrupts()?,
        journal,
    };
    let result = homing_dispatch::run(settings, &mut screen);
    nonces.iter().for_each(Nonces::remove);
    screen.terminal.begin_line();
    lessons::keep(lesson.as_deref(), &screen.learnt, &screen.movers, now_ns);
    let ended = result.map_err(|e| match unbegun.is_certain() {
        true => Failure::system(e).hint("no task has run: free some space, then run the same command again"),
        false => explain(e, &name, slurm),
    });
    // With `--halt`, a successful run may leave tasks that can still run. Mending an incomplete job log needs the
    // input, too.
    let is_whole = matches!(ended, Ok(0)) && args.parallel.pipe && args.halt == "never";
    if is_whole && screen.unlogged.is_none() {
        inputs.forget_stdin();
    }
    let counts = args.on_exit.is_some().then(|| screen.tally.counts().clone());
    let ended = ended.and_then(|status| show(&args, screen, &name, status, (here, host_count > 1), document, &empty));
    if let (Some(line), Some(counts)) = (&args.on_exit, counts) {
        on_exit::run(line, &name, args.name.as_deref(), &counts, &ended);
    }
    ended
}

/// Refuses a second name that would mean another run. `resume` accepts it, since earlier versions did.
fn check_label(label: &str) -> Result<(), Failure> {
    if homing_journal::is_own_name(&homing_journal::root(), label) {
        let why = format!("{label:?} cannot be the second name of a run: it is a run's own name, or has its form");
        return Err(Failure::usage(why).hint("--name night, or another word"));
    }
    Ok(())
}

/// Prints a note if an earlier run has this name, which finds the newer run from now on.
fn note_taken(label: &str) {
    if let Some(run) = homing_journal::labelled(&homing_journal::root(), label)
        && let Some(run) = run.file_name()
    {
        eprintln!("homing: run {} also has the name {label:?}; from now on the name means this run", run.display());
    }
}

/// Returns whether progress is drawn from the beginning, and the log of progress for an output that is no terminal.
fn watched(args: &Args, name: &str) -> (bool, ProgressLog) {
    let bar = args.bar || args.eta;
    // With `--quiet`, progress is shown only if an option requests it.
    let run = if args.quiet && !bar { ProgressLog::default() } else { ProgressLog::new(name, bar) };
    (bar, run)
}

/// Prints the evidence of the run. Returns its status, or an error if the job log lacks lines.
fn show(
    args: &Args,
    screen: Screen,
    name: &str,
    status: i32,
    place: (bool, bool),
    document: Option<NamedFile>,
    empty: &str,
) -> Result<i32, Failure> {
    // A reader that closed the pipe early does not want the evidence.
    if status != exit::UNREAD || args.json.is_some() {
        let empty = Some(empty).filter(|_| status == 0 && screen.tally.counts().is_none());
        evidence(args, &screen, name, place, document, empty)?;
    }
    match screen.unlogged {
        Some(e) => Err(Failure::system(format!("cannot write the job log: {e}"))
            .hint(format!("free some space, then homing resume {name}, which writes the missing lines"))),
        None => Ok(status),
    }
}

/// Returns the note for a batch without any task.
fn empty_note(args: &Args, empty: &str) -> String {
    match args.has_no_source() {
        true => format!("{empty}; `:::` before words makes them the inputs"),
        false => empty.into(),
    }
}

/// Begins a new run.
fn anew(now_ns: i64, quiet: bool) -> Result<Again, Failure> {
    if let Some(note) = homing_journal::root_note().filter(|_| !quiet) {
        eprintln!("homing: {note}");
    }
    let journal = Journal::create_anew(&homing_journal::root(), now_ns, std::process::id()).map_err(unrecorded)?;
    Ok(Again { journal, done: HashMap::new(), tally: Tally::new(), unlisted: Unlisted::default() })
}

/// Returns the tasks that the job log lists, which do not run again. A task that this run itself added to the log and
/// will retry is not among them.
fn listed(args: &Args, tally: &Tally) -> Result<HashMap<TaskId, bool>, Failure> {
    let Some(path) = args.joblog.as_deref().filter(|_| args.resume || args.resume_failed) else {
        return Ok(HashMap::new());
    };
    let mut listed = joblog::done(path, args.resume_failed)?;
    listed.retain(|task, _| !tally.counts().has_failed(*task));
    Ok(listed)
}

/// Returns the environment of the tasks. Prints the names of the variables that differ from an earlier part of the
/// run.
fn environment(args: &Args, here: bool, dir: &Path) -> Result<Vec<(RawText, RawText)>, Failure> {
    let mut env = environment::exported(&args.env, here)?;
    if !here {
        let command: Vec<_> = args.words.iter().map(|word| word.to_string_lossy()).collect();
        for function in environment::functions_left_here(&command.join(" "), &args.env) {
            eprintln!(
                "homing: hosts do not have the function {function}, which is exported here: --env _,{function} sends it"
            );
        }
    }
    env.extend(args.ppn.and_then(|_| wide::agent()));
    let differing = homing_journal::differing(dir, &env);
    let differing = differing
        .map_err(|e| Failure::system(format!("cannot compare the environment with that in {}: {e}", dir.display())))?;
    if !differing.is_empty() {
        let names = differing.join(", ");
        eprintln!(
            "homing: the environment differs from that of the run: {names}; the remaining tasks get the present \
             environment"
        );
    }
    Ok(env)
}

fn unrecorded(error: homing_journal::JournalError) -> Failure {
    Failure::system(error).hint("HOMING_RUNS=FOLDER stores the records of runs elsewhere")
}

/// Checks the file of `--json=FILE` before anything runs.
fn evidence_file(path: &Path) -> Result<NamedFile, Failure> {
    NamedFile::open(path).map_err(|e| Failure::system(format!("cannot write the evidence to {}: {e}", path.display())))
}

fn evidence(
    args: &Args,
    screen: &Screen,
    name: &str,
    (here, spread): (bool, bool),
    document: Option<NamedFile>,
    empty: Option<&str>,
) -> Result<(), Failure> {
    let in_place = args.json.is_some() && document.is_none();
    if !args.quiet && !in_place {
        let color = has_colors(io::stderr());
        let brief = here && !spread;
        let lines = if brief { screen.tally.brief(color) } else { screen.tally.short(color) };
        eprint!("{}", wrapped(&lines, columns_of(io::stderr())));
        if let Some(elsewhere) = screen.tally.elsewhere().filter(|_| !spread) {
            eprintln!("homing: {elsewhere}; --on ssh runs commands on these hosts");
        }
        if !brief {
            tell_run(name);
        }
        if let Some(empty) = empty {
            eprintln!("homing: {}", empty_note(args, empty));
        }
    }
    let Some(path) = &args.json else { return Ok(()) };
    // The journal is read again only if tasks have failed.
    let failures = match screen.tally.counts().failed() {
        0 => serde_json::Value::Array(Vec::new()),
        _ => again::failures_json(&read(name, false, false)?),
    };
    let json = again::whole_json(&screen.tally, failures);
    let Some(file) = document else {
        // Unlike other lines on standard error, a program waits for this one.
        let doing = format!("cannot write the evidence of run {name} to standard error");
        let written = io::stderr().write_all(document::line(json).as_bytes());
        return written.map_err(|e| Failure::unwritten(&doing, &e));
    };
    let failed = |e| Failure::system(format!("writing the evidence of run {name} to {}: {e}", path.display()));
    file.write(document::text(json).as_bytes()).map_err(failed)
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
        _ => failure.hint(format!("free some space, then homing resume {name}")),
    }
}

/// Prints the commands of a run and runs none.
fn dry_run(args: &Args) -> Result<i32, Failure> {
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let mut inputs = Files::new(&cwd, Box::new(BufReader::new(io::stdin())));
    let mut batch = batch(args, &cwd, "dry", &mut inputs, io::stdin().is_terminal())?;
    let (tag, empty, mut some) = (batch.tag().cloned(), batch.empty_note(), false);
    homing_model::graph::in_order(batch.by_ref().map(|task| task.map_err(Failure::usage)), |task| {
        let mut line = Vec::new();
        some = true;
        if let Some(tag) = &tag {
            line = tag.of(task, 1).0;
            line.push(b'\t');
        }
        line.extend(plan::command(task).0);
        line.push(b'\n');
        io::stdout().write_all(&line).map_err(|e| Failure::unwritten("cannot write to standard output", &e))
    })?;
    batch.take_notes().iter().for_each(|text| eprintln!("homing: {text}"));
    if !some && batch.skipped() == 0 && !args.quiet {
        eprintln!("homing: {}", empty_note(args, &empty));
    }
    Ok(0)
}
