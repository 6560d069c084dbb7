//! `bkill`, `bstop`, `bresume`.

use super::{Refusal, options, own_name, rows, said};
use homing_lsf::choose::{self, Wanted};
use homing_lsf::grammar::{BKILL, BREQUEUE};
use homing_lsf::jobs::Job as Row;
use homing_lsf::options::{Parsed, text};
use homing_model::RawText;
use homing_queue::{Engine, Job, State};
use std::time::{Duration, Instant};

/// What is done to a job.
enum Deed {
    Kill(Option<i32>),
    Stop,
    Resume,
    Requeue(Which),
}

/// Which jobs are put back into the queue.
struct Which {
    /// What runs: it is ended first.
    running: bool,
    done: bool,
    failed: bool,
}

impl Which {
    /// As LSF has it: what runs, where no option says another; what was interrupted in any case.
    fn of(parsed: &Parsed) -> Which {
        let any = ["a", "d", "e", "r"].iter().any(|o| parsed.has(o));
        let has = |option: &str| parsed.has("a") || parsed.has(option);
        Which { running: has("r") || !any, done: has("d"), failed: has("e") }
    }

    fn has(&self, state: State) -> bool {
        match state {
            State::Run | State::Ususp | State::Ssusp => self.running,
            State::Done => self.done,
            State::Exit => self.failed,
            State::Lost => true,
            State::Pend | State::Psusp => false,
        }
    }
}

/// Ends jobs, or sends them a signal.
pub fn bkill(words: &[RawText]) -> Result<i32, Refusal> {
    run("bkill", words)
}

/// Makes jobs stand still.
pub fn bstop(words: &[RawText]) -> Result<i32, Refusal> {
    run("bstop", words)
}

/// Lets them go on.
pub fn bresume(words: &[RawText]) -> Result<i32, Refusal> {
    run("bresume", words)
}

/// Puts what was interrupted back into the queue.
pub fn brequeue(words: &[RawText]) -> Result<i32, Refusal> {
    run("brequeue", words)
}

/// `"12 13"` is two ids: scripts pass what bjobs printed.
fn id_words(word: &RawText) -> Vec<String> {
    text(word).split_whitespace().map(String::from).collect()
}

/// The jobs that words name.
pub fn wanted(words: &[RawText]) -> Result<Vec<Wanted>, Refusal> {
    words.iter().flat_map(id_words).map(|id| choose::wanted(&id)).collect::<Result<_, _>>().map_err(said)
}

/// Whether this user may change a job, told of what is `shown` of it.
pub fn permitted(job: &Job, shown: &str) -> Result<(), String> {
    let own = homing_queue::uid();
    if own == job.uid || own == 0 { Ok(()) } else { Err(format!("Job <{shown}>: User permission denied")) }
}

fn run(name: &str, words: &[RawText]) -> Result<i32, Refusal> {
    let grammar = if name == "brequeue" { &BREQUEUE } else { &BKILL };
    let Some(parsed) = options(name, grammar, words)? else { return Ok(0) };
    let deed = match name {
        "bstop" => Deed::Stop,
        "bresume" => Deed::Resume,
        "brequeue" => Deed::Requeue(Which::of(&parsed)),
        _ => match parsed.text("s") {
            Some(signal) => by_signal(&signal)?,
            None => Deed::Kill(None),
        },
    };
    let wanted = wanted(&parsed.operands)?;
    let filtered = ["J", "q", "u", "m", "g", "P", "app"].iter().any(|o| parsed.has(o));
    if wanted.is_empty() && !filtered {
        return Err(said(format!("{name}: Job ID must be specified")));
    }
    parsed.text("g").map(|g| choose::group(&g)).transpose().map_err(said)?;
    let engine = super::engine()?;
    let others = parsed.has("u") || wanted.iter().any(|w| w.id != 0);
    let jobs = if others { engine.jobs()? } else { engine.own_jobs()? };
    let mut status = 0;
    let all = Wanted { id: 0, indices: vec![] };
    let list = if wanted.is_empty() { std::slice::from_ref(&all) } else { &wanted };
    for wanted in list {
        let found = found(&jobs, wanted, &parsed, &deed);
        if found.is_empty() {
            match wanted.id {
                0 => eprintln!("No matching job found"),
                id => eprintln!("Job <{id}>: No matching job found"),
            }
            status = 255;
        }
        for (job, index) in found {
            status = one(engine.as_ref(), job, index, &deed)?.max(status);
        }
    }
    Ok(status)
}

/// Names of LSF's commands: `-s STOP` is bstop.
fn by_signal(signal: &str) -> Result<Deed, Refusal> {
    let name = signal.trim_start_matches("SIG").to_uppercase();
    Ok(match name.as_str() {
        "STOP" | "TSTP" => Deed::Stop,
        "CONT" => Deed::Resume,
        _ => Deed::Kill(Some(number(&name).ok_or_else(|| said(format!("{signal}: Illegal signal value")))?)),
    })
}

fn number(name: &str) -> Option<i32> {
    const NAMES: [(&str, i32); 11] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("KILL", 9),
        ("USR1", 10),
        ("USR2", 12),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
        ("WINCH", 28),
    ];
    let by_name = NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number);
    by_name.or_else(|| name.parse().ok().filter(|n| (1..=64).contains(n)))
}

/// The jobs that an id, or 0 with the filters, means: whole jobs where all of them is meant.
fn found<'a>(jobs: &'a [Job], wanted: &Wanted, parsed: &Parsed, deed: &Deed) -> Vec<(&'a Job, Option<u32>)> {
    let own = own_name();
    if wanted.id != 0 {
        let job = jobs.iter().find(|j| j.id == wanted.id);
        let Some(job) = job else { return Vec::new() };
        if wanted.indices.is_empty() {
            return vec![(job, None)];
        }
        let known = job.parts.iter().filter(|p| wanted.indices.contains(&p.index));
        return known.map(|p| (job, Some(p.index))).collect();
    }
    let user = parsed.text("u").unwrap_or(own);
    let requeued = |state: State| matches!(deed, Deed::Requeue(which) if which.has(state));
    let requeues = matches!(deed, Deed::Requeue(_));
    let fits = |row: &Row| {
        let is = |option: &str, fits: &dyn Fn(&str) -> bool| parsed.text(option).is_none_or(|v| fits(&v));
        (requeues || !row.is_over())
            && (user == "all" || row.user == user)
            && is("J", &|name| choose::name_fits(name, row))
            && is("q", &|queue| row.queue == queue)
            && is("m", &|host| row.exec_hosts.iter().any(|h| h == host))
            && is("P", &|project| row.project == project)
            && choose::is_of(row, parsed.text("g").as_deref(), parsed.text("app").as_deref())
    };
    let mut all = Vec::new();
    for job in jobs {
        let chosen: Vec<u32> = job
            .parts
            .iter()
            .filter(|p| fits(&rows::row(job, p)) && (!requeues || requeued(p.state)))
            .map(|p| p.index)
            .collect();
        match (job.spec.array.is_some(), chosen.len() == job.parts.len()) {
            (_, true) | (false, false) if !chosen.is_empty() => all.push((job, None)),
            _ => all.extend(chosen.into_iter().map(|i| (job, Some(i)))),
        }
    }
    all
}

fn one(engine: &dyn Engine, job: &Job, index: Option<u32>, deed: &Deed) -> Result<i32, Refusal> {
    let shown = index.map_or(job.id.to_string(), |i| format!("{}[{i}]", job.id));
    if let Err(why) = permitted(job, &shown) {
        eprintln!("{why}");
        return Ok(255);
    }
    let requeues = matches!(deed, Deed::Requeue(_));
    if !requeues && crate::cmd::queue::parts(job, index).all(|p| p.state.is_over()) {
        eprintln!("Job <{shown}>: Job has already finished");
        return Ok(255);
    }
    let words = match deed {
        Deed::Kill(signal) => {
            engine.kill(job, index, *signal)?;
            if signal.is_some() { "signaled" } else { "terminated" }
        }
        Deed::Stop => {
            engine.stop(job, index, true)?;
            "stopped"
        }
        Deed::Requeue(which) => {
            if requeue(engine, job, index, which)? == 0 {
                eprintln!(
                    "Job <{shown}>: Job has not started, or has ended: brequeue -d what is done, -e what has failed"
                );
                return Ok(255);
            }
            "requeued"
        }
        Deed::Resume => {
            engine.stop(job, index, false)?;
            "resumed"
        }
    };
    super::print(&format!("Job <{shown}> is being {words}\n"))
}

/// A keeper writes the end of its job before it lets go of the job's lock; without the lock nothing is put back. It has
/// little left to do then, and this is for a machine that hardly gets to it.
const LETS_GO: Duration = Duration::from_secs(10);

/// Puts back what is meant; returns how many elements. What runs is ended first, and that is waited for.
fn requeue(engine: &dyn Engine, job: &Job, index: Option<u32>, which: &Which) -> Result<usize, Refusal> {
    let mut count = 0;
    // Slurm ends and keeps its jobs itself.
    let kept_here = engine.name() == "homing";
    let meant: Vec<(u32, State)> = crate::cmd::queue::parts(job, index).map(|p| (p.index, p.state)).collect();
    for (index, state) in meant.into_iter().filter(|(_, state)| which.has(*state)) {
        let runs = !state.is_over() && kept_here;
        if runs {
            engine.kill(job, Some(index), None)?;
        }
        let over = |job: &Job| job.part(index).is_none_or(|p| p.state.is_over());
        let mut now = engine.job(job.id)?;
        while runs && !over(&now) {
            std::thread::sleep(engine.pace());
            now = engine.job(job.id)?;
        }
        let given_up = Instant::now() + LETS_GO;
        let mut put_back = engine.again(&now, Some(index), true)?;
        while put_back == 0 && kept_here && Instant::now() < given_up && over(&now) {
            std::thread::sleep(engine.pace());
            now = engine.job(job.id)?;
            put_back = engine.again(&now, Some(index), true)?;
        }
        count += put_back;
    }
    Ok(count)
}
