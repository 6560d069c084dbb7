//! `homing kill`, `homing peek`, `homing wait`.

use homing_model::Failure;
use homing_queue::{ElementState, Engine, Followed, Job, array, until_over};

/// Arguments of `homing kill`.
#[derive(clap::Args)]
pub struct KillArgs {
    /// Send this signal, a number or a name such as USR1, instead of ending the job
    #[arg(short, long, value_name = "SIGNAL", value_parser = signal)]
    signal: Option<i32>,
    /// Act on all your jobs that have not ended
    #[arg(long, conflicts_with_all = ["ids", "user"])]
    all: bool,
    /// Act on all jobs of this user, a name or a number; only root can end jobs of others
    #[arg(long, value_name = "USER", conflicts_with = "ids")]
    user: Option<String>,
    /// Jobs: 12, 12[3] of an array, or the name that -J gave to some of yours
    #[arg(required_unless_present_any = ["all", "user"], value_name = "ID|NAME")]
    ids: Vec<String>,
    #[command(flatten)]
    engine: super::EngineArgs,
}

/// Parses a signal by number or name.
fn signal(text: &str) -> Result<i32, String> {
    let number = homing_model::signal::number(text);
    number.ok_or_else(|| "1 to 64, or one of HUP INT QUIT KILL USR1 USR2 TERM CONT STOP".into())
}

/// Ends jobs.
pub fn kill(args: KillArgs) -> Result<i32, Failure> {
    let engine = args.engine.open()?;
    for (job, index) in meant(engine.as_ref(), &args)? {
        if has_ended(&job, index) {
            eprintln!("homing: job {} has ended already", array::name(job.id, index));
            continue;
        }
        engine.kill(&job, index, args.signal)?;
    }
    Ok(0)
}

fn has_ended(job: &Job, index: Option<u32>) -> bool {
    job.meant(index).all(|p| p.state.is_over() && p.state != ElementState::Lost)
}

/// Returns the jobs that the arguments mean. With `--all`, `--user` or a name the newest come first: ending one job
/// must not start another that is ended next.
fn meant(engine: &dyn Engine, args: &KillArgs) -> Result<Vec<(Job, Option<u32>)>, Failure> {
    let running = |jobs: Vec<Job>| jobs.into_iter().rev().filter(|j| !has_ended(j, None)).map(|j| (j, None));
    if let Some(user) = &args.user {
        let uid = homing_queue::uid();
        let theirs = |uid: u32| uid.to_string() == *user || homing_queue::user_name(uid) == *user;
        if uid != 0 && !theirs(uid) {
            return Err(Failure::usage(format!("only {user} and root can end the jobs of {user}")));
        }
        let jobs = if theirs(uid) { engine.own_jobs() } else { engine.jobs() }?;
        return Ok(running(jobs).filter(|(job, _)| theirs(job.uid)).collect());
    }
    if args.all {
        return Ok(running(engine.own_jobs()?).collect());
    }
    let mut found = Vec::new();
    for text in &args.ids {
        if array::job_id(text).is_some() {
            found.push(super::find_own(engine, text)?);
            continue;
        }
        let own = engine.own_jobs()?;
        let before = found.len();
        found.extend(running(own).filter(|(job, _)| job.spec.name == *text));
        if found.len() == before {
            let why = format!("{text}: none of your unfinished jobs has this name");
            return Err(Failure::usage(why).hint("homing jobs lists them; or name an ID: 12, or 12[3] of an array"));
        }
    }
    Ok(found)
}

/// Arguments of `homing peek`.
#[derive(clap::Args)]
pub struct PeekArgs {
    /// Keep printing until the job ends
    #[arg(short, long)]
    follow: bool,
    /// The job: 12, 12[3] of an array, or the name that -J gave it
    #[arg(value_name = "ID|NAME")]
    id: String,
    #[command(flatten)]
    engine: super::EngineArgs,
}

/// Prints the output of a job.
pub fn peek(args: PeekArgs) -> Result<i32, Failure> {
    let engine = args.engine.open()?;
    engine.tend()?;
    let (job, index) = super::find_own(engine.as_ref(), &args.id)?;
    let part = job.meant(index).next().ok_or_else(|| Failure::usage("it has no such element"))?;
    let elements = job.meant(index).count();
    if elements > 1 {
        eprintln!(
            "homing: the first of {elements} elements; homing peek '{}' shows another",
            array::name(job.id, Some(part.index + 1))
        );
    }
    let mut streams = Followed::all(&job, part);
    let mut copy = || streams.iter_mut().try_for_each(Followed::copy);
    match args.follow {
        true => drop(until_over(engine.as_ref(), job.id, Some(part.index), |_| copy())?),
        false => copy()?,
    }
    Ok(0)
}

/// Arguments of `homing wait`.
#[derive(clap::Args)]
pub struct WaitArgs {
    /// Jobs: 12, 12[3] of an array, or the name that -J gave (default: all your jobs)
    #[arg(value_name = "ID|NAME")]
    ids: Vec<String>,
    #[command(flatten)]
    engine: super::EngineArgs,
}

/// Waits for jobs. The exit status is that of the first job that failed.
pub fn wait(args: WaitArgs) -> Result<i32, Failure> {
    let engine = args.engine.open()?;
    let mut ids = args.ids;
    if ids.is_empty() {
        let jobs = engine.own_jobs()?;
        ids = jobs.iter().filter(|j| !j.is_over(None)).map(|j| j.id.to_string()).collect();
    }
    wait_for(engine.as_ref(), &ids, false)
}

/// Waits for jobs, and reports those that were interrupted.
pub fn wait_for(engine: &dyn Engine, ids: &[String], quiet: bool) -> Result<i32, Failure> {
    let mut code = 0;
    let mut rounds = 0u32;
    // All names are checked first: the last of them may be wrong, and the first may run for days.
    let named: Vec<_> = ids.iter().map(|text| super::find(engine, text)).collect::<Result<_, _>>()?;
    for (job, index) in named {
        let job = until_over(engine, job.id, index, |job| {
            // If the runner was killed meanwhile, the job would never start.
            if !job.is_over(index) && rounds.is_multiple_of(50) && job.uid == homing_queue::uid() {
                engine.tend()?;
            }
            rounds += 1;
            Ok::<(), Failure>(())
        })?;
        for part in job.meant(index) {
            let exit = part.end.as_ref().map_or(homing_model::exit::SYSTEM, |e| e.exit);
            let reason = part.end.as_ref().and_then(|e| e.reason.clone());
            if part.state == ElementState::Lost {
                eprintln!("homing: job {} was interrupted; try: homing sub --again {0}", job.name_of(part));
            } else if exit != 0 && !(quiet && reason.is_none()) {
                let why = reason.map_or(String::new(), |r| format!(": {r}"));
                eprintln!("homing: job {} ended with {exit}{why}", job.name_of(part));
            }
            code = if code == 0 { exit } else { code };
        }
    }
    Ok(code)
}
