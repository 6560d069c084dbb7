//! `homing top`: what a run does now, from any terminal of its user; or what an
//! earlier one did, played again.

mod screen;

use super::runs::to_stdout;
use crate::failure::Failure;
use crate::progress::{self, Place};
use homing_dispatch::Progress;
use homing_journal::{JournalError, Replay};
use homing_model::Event;
use homing_report::Now;
use screen::{Key, Screen};
use std::time::{Duration, Instant};

/// Between two looks at the journal. The coordinator's own line changes ten times a second.
const LOOK: Duration = Duration::from_millis(250);
/// Lines and columns of a table for a file or a program.
const UNBOUNDED: (usize, usize) = (1000, 1000);

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Print what it does now as a table, and end; so does output that is no terminal
    #[arg(long)]
    once: bool,
    /// Print it as one JSON object
    #[arg(long)]
    json: bool,
    /// Play it again from its start, so many times as fast
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["once", "json"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replay: Option<u32>,
}

/// The journal as it grows, up to a moment.
struct Followed {
    journal: Replay,
    now: Now,
    next: Option<Event>,
}

impl Followed {
    /// Takes what happened until `until_ns`. Damage is passed over: `report` names it.
    fn go_on(&mut self, until_ns: i64) -> Result<(), Failure> {
        self.journal.go_on();
        loop {
            let event = match self.next.take() {
                Some(event) => event,
                None => match self.journal.next() {
                    None => return Ok(()),
                    Some(Ok(event)) => event,
                    Some(Err(JournalError::Damaged { .. })) => continue,
                    Some(Err(e)) => return Err(Failure::system(e)),
                },
            };
            if event.at_ns > until_ns {
                self.next = Some(event);
                return Ok(());
            }
            self.now.add(&event);
        }
    }

    fn is_over(&self) -> bool {
        self.next.is_none() && self.now.tally().exit().is_some()
    }

    fn progress(&self, now_ns: i64) -> Progress {
        let (running, slots, hosts) = self.now.used();
        let counts = self.now.tally().counts();
        let (over, elapsed) = (self.now.over(), self.now.elapsed(now_ns));
        Progress { over, failed: counts.failed(), running, total: counts.total, slots, hosts, elapsed }
    }

    fn lines(&self, (rows, columns): (usize, usize), utf8: bool, now_ns: i64) -> Vec<String> {
        let place = Place { columns: columns.saturating_sub(1), utf8 };
        let line = progress::line(&self.progress(now_ns), None, place);
        self.now.lines(&line, rows, columns, now_ns)
    }
}

/// Shows the run.
pub fn run(args: Args) -> Result<i32, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(super::report::refused)?;
    let journal = homing_journal::replay(&dir).map_err(Failure::system)?;
    let mut run = Followed { journal, now: Now::default(), next: None };
    if args.replay.is_none() {
        run.go_on(i64::MAX)?;
    }
    let now_ns = homing_clock::wall_ns();
    if args.json {
        return to_stdout(&format!("{}\n", run.now.json(now_ns)));
    }
    let plain = args.once || (args.replay.is_none() && run.is_over());
    match if plain { None } else { Screen::open().map_err(Failure::system)? } {
        Some(screen) => follow(run, screen, args.replay),
        None => {
            run.go_on(i64::MAX)?;
            to_stdout(&(run.lines(UNBOUNDED, progress::locale_is_utf8(), now_ns).join("\n") + "\n"))
        }
    }
}

/// Until the run has ended or somebody wants to leave.
fn follow(mut run: Followed, screen: Screen, times: Option<u32>) -> Result<i32, Failure> {
    let mut clock = Clock { times, begun: Instant::now(), stood: Duration::ZERO, stands: None, from_ns: None };
    loop {
        if times.is_some() && clock.from_ns.is_none() {
            run.go_on(i64::MIN)?;
            clock.from_ns = run.next.as_ref().map(|event| event.at_ns);
        }
        let now_ns = clock.now_ns();
        run.go_on(if times.is_some() { now_ns } else { i64::MAX })?;
        let lines = run.lines(screen.size(), screen.utf8, now_ns);
        screen.draw(&lines, clock.hint()).map_err(Failure::system)?;
        match screen.key(LOOK).map_err(Failure::system)? {
            Some(Key::Leave) => break,
            Some(Key::Pause) => clock.pause(),
            None if run.is_over() => break,
            None => {}
        }
    }
    drop(screen);
    super::report::evidence(run.now.tally())
}

/// The time that is shown: now, or a moment of a run that is played again.
struct Clock {
    times: Option<u32>,
    begun: Instant,
    /// For how long it has stood still, and since when it does.
    stood: Duration,
    stands: Option<Instant>,
    from_ns: Option<i64>,
}

impl Clock {
    fn now_ns(&self) -> i64 {
        let (Some(times), Some(from)) = (self.times, self.from_ns) else { return homing_clock::wall_ns() };
        let now = self.stands.unwrap_or_else(Instant::now);
        let passed = (now - self.begun).saturating_sub(self.stood).saturating_mul(times);
        from.saturating_add(i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX))
    }

    /// What is played again stands still, or goes on. A run that goes on does not wait.
    fn pause(&mut self) {
        match self.stands.take() {
            Some(since) => self.stood += since.elapsed(),
            None => self.stands = self.times.map(|_| Instant::now()),
        }
    }

    fn hint(&self) -> &'static str {
        match (self.times, self.stands) {
            (None, _) => "q leaves; the run goes on",
            (Some(_), None) => "q leaves, the space bar holds",
            (Some(_), Some(_)) => "held; the space bar goes on",
        }
    }
}
