//! Makes a run ready: each decision that depends on the options is taken here, before the first task.

use super::ending::{JsonTarget, RunEnding};
use super::listen::Screen;
use super::options::{container, finder, output, policy, slots, sourcing};
use super::targets::{Targets, targets};
use super::{Again, Args, asleep, batch, config, empty_note, seats, wide};
use crate::cmd::opening::{hostname, opening};
use homing_batch::Batch;
use homing_dispatch::source::joblog::{self, Unlisted};
use homing_dispatch::source::{Nonces, OfferStream, RunInputs, Sourcing, environment, results_files};
use homing_dispatch::{Around, Io, Policy, RunSettings};
use homing_journal::{Journal, Unbegun, lessons};
use homing_model::event::EventKind;
use homing_model::{Failure, RawText, TaskId};
use homing_os::folder::NamedFile;
use homing_report::{ProgressLog, Tally};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// A run that is ready to start. It knows no options.
pub(super) struct ReadyRun {
    settings: RunSettings,
    screen: Screen,
    ending: RunEnding,
    /// The name under which the lessons of the run are kept.
    lesson: Option<String>,
    begun_ns: i64,
    inputs: RunInputs,
    /// Whether the copy of standard input is of no use after a run that ended well.
    forgets_stdin: bool,
    nonces: Option<Nonces>,
    unbegun: Unbegun,
    // Ended last, in this order.
    _guard: Option<homing_launch::Guard>,
    _tender: Option<homing_queue::Tender>,
}

impl ReadyRun {
    /// Takes all decisions of a run, or of a further part of one, from its options.
    ///
    /// # Errors
    /// An option has no meaning here, no host can be used, or a file cannot be opened. No task has started.
    pub fn of(args: &Args, again: Option<Again>) -> Result<ReadyRun, Failure> {
        let begun_ns = homing_os::clock::wall_ns();
        let mut policy = policy(args)?;
        let cwd =
            std::env::current_dir().map_err(|e| Failure::system(format!("cannot read the working directory: {e}")))?;
        let lesson = if policy.io == Io::Auto { lessons::key(&args.words, &cwd) } else { None };
        (policy.learnt, policy.movers) = lessons::known(lesson.as_deref());
        let finder = finder(args)?;
        let tender = args.ppn.map(|_| crate::embedded::open().and_then(homing_queue::Tender::begin)).transpose()?;
        let resumed = again.is_some();
        let Again { journal, done, tally, unlisted } = begin(args, again, begun_ns)?;
        let name = journal.run();
        let unbegun = Unbegun::new(journal.dir(), resumed);
        let mut inputs = RunInputs::new(&cwd, journal.dir(), resumed);
        let typed = inputs.stdin_is_typed();
        let batch = batch(args, &cwd, &name, &mut inputs, typed)?;
        inputs.notes.iter().for_each(|text| eprintln!("homing: {text}"));
        let listed = listed(args, &tally)?;
        let total = batch.total();
        let empty = empty_note(args, &batch.empty_note());
        let mut targets = targets(args, &cwd, &name, total)?;
        let asleep = asleep::rouse(args, &mut targets.hosts, total)?;
        let ending = ending(args, &name, &targets, empty)?;
        let guard = ending.system.map(|system| homing_launch::Guard::over(system, &name));
        let opening = match resumed {
            true => EventKind::RunResumed { host: hostname(), pid: std::process::id() },
            false => opening(&name, config::words(), &cwd, total, args.name.as_deref()),
        };
        // Kept to the end of the run: a host that joins late must find the files, too.
        let away = targets.may_be_away();
        let nonces = away.then(Nonces::default);
        let (joblog, missing) = job_log(args, resumed, unlisted, ending.is_here)?;
        let sourcing = Sourcing {
            handed_on: args.ppn.is_some(),
            makes_workdir: args.parallel.workdir.is_some(),
            done,
            listed,
            missing,
            fenced: away && !args.no_fence,
            nonces: nonces.clone(),
            ..sourcing(args, &cwd, targets.hosts.len())?
        };
        let output = output(
            args,
            prints_alone(args, &batch, &policy, ending.is_here),
            batch.tag().cloned(),
            policy.output_limit,
            journal.dir(),
        );
        let (linked, columns) = (batch.has_links(), batch.columns().to_vec());
        let source = OfferStream::new(batch, sourcing, finder);
        let counts = tally.counts().clone();
        let screen = Screen::new(tally, watched(args, &name), args.explain, joblog, ending.is_here);
        let seats = seats::seats(args, &targets.hosts);
        let env = environment(args, ending.is_here, journal.dir())?;
        let container = container(args, &name, &cwd, &env).map(Around::Container);
        let around = container.or(wide::words(args)?.map(Around::Submitter));
        let settings = RunSettings {
            name,
            opening,
            policy: Policy { links: targets.links, licensed: targets.licensed, ..policy },
            hosts: targets.hosts,
            spares: targets.spares,
            tree: args.tree,
            need_all: args.need_all_hosts,
            in_step: !args.no_fence,
            nice: args.parallel.nice.unwrap_or(0),
            around,
            seats,
            slots: slots(args)?,
            user_name: homing_queue::user_name,
            launch: homing_launch::Options { asleep, ..homing_launch::Options::default() },
            cwd: cwd.as_path().into(),
            env,
            umask: homing_os::process::umask(),
            meter: args.cluster.load()?.meter(),
            later: linked.then(|| source.later()),
            source: Box::new(source),
            counts,
            output,
            terminal: screen.terminal.clone(),
            results: args.results.as_deref().map(|dir| results_files(dir, &columns)).transpose()?,
            interrupts: environment::count_interrupts()?,
            journal,
        };
        // With `--halt`, a successful run may leave tasks that can still run.
        let forgets_stdin = args.parallel.pipe && args.halt == "never";
        Ok(ReadyRun {
            settings,
            screen,
            ending,
            lesson,
            begun_ns,
            inputs,
            forgets_stdin,
            nonces,
            unbegun,
            _guard: guard,
            _tender: tender,
        })
    }

    /// Runs all tasks, and shows the evidence.
    pub fn run(self) -> Result<i32, Failure> {
        let ReadyRun { settings, mut screen, ending, lesson, begun_ns, inputs, forgets_stdin, nonces, unbegun, .. } =
            self;
        let result = homing_dispatch::run(settings, &mut screen);
        nonces.iter().for_each(Nonces::remove);
        screen.terminal.begin_line();
        lessons::keep(lesson.as_deref(), &screen.learnt, &screen.movers, begun_ns);
        let ended = result.map_err(|e| match unbegun.is_certain() {
            true => Failure::system(e).hint("no task has run: free some space, then run the same command again"),
            false => ending.failure(e),
        });
        // Mending an incomplete job log needs the input, too.
        if matches!(ended, Ok(0)) && forgets_stdin && screen.unlogged.is_none() {
            inputs.forget_stdin();
        }
        ending.conclude(ended, screen)
    }
}

/// Returns the records of an earlier part, or begins a new run. Records the job that the run belongs to.
fn begin(args: &Args, again: Option<Again>, begun_ns: i64) -> Result<Again, Failure> {
    let job = homing_queue::array::own_name(|name| std::env::var(name).ok());
    if let Some(label) = args.name.as_deref().filter(|_| again.is_none() && !args.quiet && job.is_none()) {
        note_taken(label);
    }
    let begun = match again {
        Some(again) => again,
        None => anew(begun_ns, args.quiet)?,
    };
    if let Some(job) = &job {
        // The run does not need the link, which `homing jobs` shows.
        let _ = homing_journal::note_job(begun.journal.dir(), &homing_queue::host_name(), job);
    }
    Ok(begun)
}

/// Prints a note if an earlier run has this name, which finds the newer run from now on.
fn note_taken(label: &str) {
    if let Some(run) = homing_journal::labelled(&homing_journal::root(), label)
        && let Some(run) = run.file_name()
    {
        eprintln!("homing: run {} also has the name {label:?}; from now on the name means this run", run.display());
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

fn unrecorded(error: homing_journal::JournalError) -> Failure {
    Failure::system(error).hint("HOMING_RUNS=FOLDER stores the records of runs elsewhere")
}

/// Returns the things to do at the end. The file of `--json=FILE` is opened before anything runs.
fn ending(args: &Args, name: &str, targets: &Targets, empty: String) -> Result<RunEnding, Failure> {
    let json = match args.json.as_deref() {
        None => None,
        Some(file) if file.as_os_str() == "-" => Some(JsonTarget::StandardError),
        Some(path) => {
            let unwritable = |e| Failure::system(format!("cannot write the evidence to {}: {e}", path.display()));
            Some(JsonTarget::File(NamedFile::open(path).map_err(unwritable)?, path.into()))
        }
    };
    Ok(RunEnding {
        name: name.into(),
        label: args.name.clone(),
        quiet: args.quiet,
        json,
        empty,
        on_exit: args.on_exit.clone(),
        is_here: targets.are_here(),
        is_spread: targets.hosts.len() > 1,
        system: targets.system(),
    })
}

/// Opens the job log. Returns it with the lines that earlier parts of the run still owe it.
fn job_log(
    args: &Args,
    resumed: bool,
    unlisted: Unlisted,
    is_here: bool,
) -> Result<(Option<File>, Option<joblog::Missing>), Failure> {
    let joblog = args.joblog.as_deref().map(|p| joblog::open(p, resumed || args.goes_on())).transpose()?;
    let missing = joblog.as_ref().map(|file| joblog::Missing::new(unlisted, file, is_here)).transpose()?;
    Ok((joblog, missing))
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

/// Whether only one task prints, and no second attempt prints the same again. Its output need not wait for its end,
/// which may never come (`yes | head`).
fn prints_alone(args: &Args, batch: &Batch, policy: &Policy, is_here: bool) -> bool {
    batch.total() == Some(1) && is_here && policy.tries.unwrap_or(1) == 1 && args.parallel.colours().is_none()
}

/// Returns whether progress is drawn from the beginning, and the log of progress for an output that is no terminal.
fn watched(args: &Args, name: &str) -> (bool, ProgressLog) {
    let bar = args.bar || args.eta;
    // With `--quiet`, progress is shown only if an option requests it.
    let run = if args.quiet && !bar { ProgressLog::default() } else { ProgressLog::new(name, bar) };
    (bar, run)
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
