//! Parses raw arguments into the types that the other crates take. Each argument is parsed here once.

use super::perl::Evaluator;
use super::{Args, On};
use homing_batch::{Batch, BatchError, Halt, InputOptions, Tag, Timeout};
use homing_dispatch::source::{Sourcing, environment, joblog};
use homing_dispatch::{Container, Io, OutputOptions, Policy, Resources};
use homing_launch::wire::OutputStream;
use homing_locate::{Finder, Locator};
use homing_model::resource::{GPU, PARTS, in_parts, is_gpu, shown_amount};
use homing_model::{Failure, RawText};
use homing_os::names::{VariableOrigin, origin};
use homing_scheduler::System;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The number of slots for `--jobs 0`, which means as many as possible. Each slot is a thread of the worker.
const MOST_SLOTS: u32 = 1024;

/// Returns the batch of tasks that the user gave. `typed`: standard input is a terminal.
pub(crate) fn batch(
    args: &Args,
    cwd: &Path,
    run: &str,
    inputs: &mut dyn homing_batch::InputOpener,
    typed: bool,
) -> Result<Batch, Failure> {
    environment::check_shell()?;
    let [header, names_files] = args.parallel.header()?;
    let raw = |words: &[std::ffi::OsString]| words.iter().map(|w| RawText::from(w.as_os_str())).collect::<Vec<_>>();
    let takes = takes(args);
    let options = InputOptions {
        cwd: cwd.to_path_buf(),
        // The seed is the name of the run, so that a resumed run has the same order.
        shuf: args.shuf.then(|| run.bytes().fold(5381, |h: u64, b| h.wrapping_mul(33) ^ u64::from(b))),
        null: args.null,
        delimiter: args.delimiter.clone().map(RawText::from),
        quote: args.quote,
        trim: args.trim.map(Into::into),
        functions: environment::functions(),
        colsep: args.colsep.clone().map(RawText::from),
        packing: args.parallel.packing(args.max_args, slots_here(args)?),
        blocks: args.parallel.blocks(args.max_args, slots_here(args)?)?,
        header,
        names_files,
        link: args.parallel.link,
        arg_sep: args.parallel.arg_sep.clone().map_or_else(|| ":::".into(), RawText::from),
        arg_file_sep: args.parallel.arg_file_sep.clone().map_or_else(|| "::::".into(), RawText::from),
        replacements: args.parallel.replacements(),
        tag: args.parallel.tag(args.tag),
        workdir: args.parallel.workdir.clone().map(RawText::from),
        end: args.parallel.end(),
        perl: Evaluator::shared(),
        skip_first_line: args.parallel.skip_first_line,
        slot_variable: args.parallel.process_slot_var.clone().map(RawText::from),
        no_run_if_empty: args.no_run_if_empty,
        arg_files: args.arg_file.clone(),
        outputs: raw(&args.output),
        inputs_extra: raw(&args.near),
        shell: environment::shell(),
        // Counting devices is for tasks that may take some.
        resources: if args.tasks.is_some() || !takes.is_empty() { most(args)? } else { BTreeMap::new() },
    };
    for (name, parts) in takes {
        homing_batch::offered(&name, parts, &options.resources)
            .map_err(|why| Failure::usage(format!("--gpus-per-task {}: {why}", shown_amount(parts))))?;
    }
    if args.retry_failed {
        let failed = args.joblog.as_deref().map(joblog::failed).transpose()?;
        return Ok(Batch::listed(failed.unwrap_or_default(), args.tag));
    }
    let Some(file) = &args.tasks else {
        if args.words.is_empty() && typed && args.arg_file.is_empty() {
            return Err(Failure::usage("no command and no input specified").hint("homing run 'gzip -k {}' ::: *.txt"));
        }
        return homing_batch::compose(&raw(&args.words), options, inputs, typed).map_err(unreadable);
    };
    let name = file.display().to_string();
    let opened = inputs.open(file).map_err(|source| unreadable(BatchError::Read { name: name.clone(), source }))?;
    homing_batch::tasks_file(opened.from, opened.again, &name, options).map_err(unreadable)
}

fn unreadable(error: BatchError) -> Failure {
    Failure { status: homing_dispatch::source::status_of(&error), ..Failure::usage(error) }
}

pub(super) fn policy(args: &Args) -> Result<Policy, Failure> {
    let halt: Halt = args.halt.parse().map_err(Failure::usage)?;
    let delay = args.delay.as_deref().map(|t| homing_batch::parse_duration("--delay", t)).transpose();
    let memfree = args.memfree.as_deref().map(|t| homing_batch::parse_size("--memfree", t)).transpose();
    let output_limit = args.output_limit.as_deref().map(|t| homing_batch::parse_size("--output-limit", t)).transpose();
    let timeout = args.timeout.as_deref().map(Timeout::parse).transpose().map_err(Failure::usage)?;
    let (timeout_ms, timeout_of_median) = match timeout {
        // 0 is no limit, as in GNU parallel.
        Some(Timeout::After(limit)) if limit.is_zero() => (None, None),
        Some(Timeout::After(limit)) => (Some(limit.as_millis() as u64), None),
        Some(Timeout::OfMedian(share)) => (None, Some(share)),
        None => (None, None),
    };
    Ok(Policy {
        // 0 repeats a task until it succeeds, as in GNU parallel.
        tries: args.retries.map(|n| if n == 0 { u32::MAX } else { n }),
        delay_us: delay.map_err(Failure::usage)?.map_or(0, |d| d.as_micros() as u64),
        memfree: memfree.map_err(Failure::usage)?.unwrap_or(0),
        load: load(args)?,
        output_limit: output_limit.map_err(Failure::usage)?,
        timeout_ms,
        timeout_of_median,
        locality: !args.no_locality,
        io: io_limit(&args.io)?,
        shared: !args.no_share,
        needs: needs(args),
        resources: resources(args)?,
        power: args.cluster.load()?.circuits()?,
        links: Default::default(),
        licensed: Vec::new(),
        learnt: Default::default(),
        movers: Vec::new(),
        // A task sent ahead would still run after `--halt` ends the run, and its input would take up memory.
        prefetch: !args.parallel.pipe
            && !args.parallel.names_the_slot(&args.words)
            && args.delay.is_none()
            && halt == Halt::Never,
        halt,
    })
}

/// Returns the named resources of hosts: those of the command line for each host, and those of single hosts in the
/// cluster file.
fn resources(args: &Args) -> Result<Resources, Failure> {
    let hosts = args.cluster.load()?.resources().into_iter().map(|(host, amounts)| (host, in_parts(&amounts)));
    Ok(Resources { each: in_parts(&args.resource.iter().cloned().collect()), hosts: hosts.collect() })
}

/// Returns the largest amount of each resource on a host of the run, as far as it is known before a host has answered.
fn most(args: &Args) -> Result<BTreeMap<String, u64>, Failure> {
    let mut most = resources(args)?.most();
    if args.resource.iter().any(|(name, _)| is_gpu(name)) {
        return Ok(most);
    }
    let cluster = args.cluster.load()?;
    let elsewhere = args.node_set().is_some() || cluster.has_hosts() || args.parallel.names_logins();
    let may_be_elsewhere = match args.on {
        On::Local => false,
        On::Auto => elsewhere || System::ALL.iter().any(|system| system.words().is_configured()),
        On::Ssh | On::Slurm | On::Lsf => true,
    };
    let found = if may_be_elsewhere { u64::MAX } else { u64::from(homing_probe::gpus()) * PARTS };
    if found > 0 && (may_be_elsewhere || !most.contains_key(GPU)) {
        most.insert(GPU.into(), found);
    }
    Ok(most)
}

/// Returns the file of a container's image, absolute.
fn image(container: &Container, cwd: &Path) -> Option<RawText> {
    container.file().map(|file| RawText::from(cwd.join(file.as_path()).as_path()))
}

/// Returns the programs of which a host needs one to run containers.
fn needs(args: &Args) -> Vec<String> {
    let programs = args.container.as_ref().map(|container| container.runtime.programs());
    programs.into_iter().flatten().map(|name| name.to_string()).collect()
}

/// Returns the container in which the tasks of a run are, with the variables that `env` sends along.
pub(super) fn container(args: &Args, run: &str, cwd: &Path, env: &[(RawText, RawText)]) -> Option<Container> {
    let container = args.container.clone()?;
    let travels = |name: &RawText| origin(name.as_os()) == VariableOrigin::Submitter && !name.0.starts_with(b"LD_");
    let variables = env.iter().map(|(name, _)| name).filter(|name| travels(name)).cloned().collect();
    let image = image(&container, cwd).unwrap_or_else(|| container.image.clone());
    Some(Container { image, variables, run: run.into(), cwd: cwd.into(), ..container })
}

/// Returns the named resources that each task takes, in parts of a unit.
fn takes(args: &Args) -> Vec<(String, u64)> {
    args.gpus_per_task.map(|parts| (GPU.to_string(), parts)).into_iter().collect()
}

fn load(args: &Args) -> Result<Option<String>, Failure> {
    let limit = args.parallel.load.clone();
    limit.as_deref().map_or(Ok(1), |text| homing_batch::jobs("--load", text, 1)).map_err(Failure::usage)?;
    Ok(limit)
}

pub(super) fn io_limit(text: &str) -> Result<Io, Failure> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Io::Auto),
        ("off", _) => Ok(Io::Off),
        (_, Ok(limit)) if limit > 0 => Ok(Io::Fixed(limit)),
        _ => Err(Failure::usage(format!("--io takes auto, off or a number from 1, not {text:?}"))),
    }
}

/// Returns the slots that this machine gives a run.
fn slots_here(args: &Args) -> Result<usize, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    Ok(slots(args)?(cores).max(1) as usize)
}

pub(super) fn slots(args: &Args) -> Result<Box<dyn Fn(u32) -> u32>, Failure> {
    let Some(jobs) = args.jobs.clone() else { return Ok(Box::new(|cores| cores)) };
    homing_batch::jobs("--jobs", &jobs, 1).map_err(Failure::usage)?;
    Ok(Box::new(move |cores| homing_batch::jobs("--jobs", &jobs, cores).unwrap_or(cores).min(MOST_SLOTS)))
}

/// Returns the finder of inputs, which also runs the site's own commands to locate them.
pub(super) fn finder(args: &Args) -> Result<Finder, Failure> {
    let locator = Locator::new().map_err(Failure::system)?;
    Ok(Finder::over(locator.with_own(args.cluster.load()?.locators())))
}

/// Returns how tasks become offers, in a run without an earlier part and without checks of its hosts.
pub(super) fn sourcing(args: &Args, cwd: &Path, hosts: usize) -> Result<Sourcing, Failure> {
    Ok(Sourcing {
        cwd: cwd.into(),
        detect: !args.no_detect,
        takes: takes(args),
        image: args.container.as_ref().and_then(|container| image(container, cwd)),
        in_containers: args.container.is_some(),
        handed_on: false,
        skip_newer: args.skip_newer,
        makes_workdir: false,
        done: HashMap::new(),
        listed: HashMap::new(),
        missing: None,
        hosts,
        fenced: false,
        nonces: None,
        servers: args.cluster.load()?.servers(),
        own: args.cluster.load()?.locators(),
        fs_timeout: args.fs_timeout,
    })
}

/// Returns how the output of tasks is printed. `alone`: the output of one task cannot be mixed with that of another.
pub(super) fn output(args: &Args, alone: bool, tag: Option<Tag>, limit: Option<u64>, spill: &Path) -> OutputOptions {
    let commands = match args.parallel.verbose {
        true => Some(OutputStream::Out),
        false => args.parallel.trace.then_some(OutputStream::Err),
    };
    OutputOptions {
        keep_order: args.keep_order && !alone,
        line_buffer: args.line_buffer || args.parallel.ungroup || alone,
        tag,
        colours: args.parallel.colours(),
        commands,
        limit,
        spill: spill.to_path_buf(),
    }
}
