//! `homing top`: shows a run as it is now, from any terminal of its user, or replays an earlier one. It also shows
//! the hosts of a cluster with their jobs, now or in the last week.

mod cluster;
mod hosts;
mod jobs;
mod past;
mod screen;

use super::queue::EngineArgs;
use super::runs::to_stdout;
use super::targets::HostArgs;
use crate::cluster::ClusterArgs;
use crate::progress::{self, ProgressTerminal};
use homing_batch::parse_duration;
use homing_dispatch::watch::{WatcherFolder, WatcherRequest};
use homing_journal::FOLLOWED_EVERY;
use homing_model::{Failure, Live, TaskId, document};
use homing_report::Followed;
use homing_watch::{Clock, Scene, Shown, ViewRequest, WatchView};
use screen::Screen;
use std::time::{Duration, Instant};

/// The run that began last.
const LAST: &str = "last";
/// The interval between two looks at the journal.
const LOOK: Duration = FOLLOWED_EVERY;
/// The same interval for a replay, in which more may happen.
const REPLAY_LOOK: Duration = Duration::from_millis(100);
/// The age up to which a coordinator's report counts as current.
const FRESH: Duration = Duration::from_secs(4);
/// The interval at which the coordinator is notified that a user watches.
const SAY: Duration = Duration::from_secs(2);
/// Lines of a table, and its columns in a file or for a program.
const UNBOUNDED: (usize, usize) = (1000, 1000);

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, the one that --name gave it, or `last`
    #[arg(value_name = "RUN", default_value = LAST, conflicts_with_all = ["hosts", "exclude", "group", "all", "exclude_group", "hostfile"])]
    run: String,
    /// Print the present state as a table and exit; this is the default if the output is not a terminal
    #[arg(long)]
    once: bool,
    /// Print the present state as one JSON object
    #[arg(long)]
    json: bool,
    /// Replay the hosts from this time ago (12h, 1d) until now; needs an earlier `homing hosts --schedule`
    #[arg(long, value_name = "AGE", conflicts_with = "run", value_parser = |text: &str| parse_duration("--since", text))]
    since: Option<Duration>,
    /// Replay the run from its start, or the hosts of --since, TIMES as fast
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["once", "json"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replay: Option<u32>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "Hosts and jobs of the queue instead of a run")]
    targets: HostArgs,
}

/// Returns the columns of a table on standard output.
fn table_columns() -> usize {
    progress::columns().unwrap_or(UNBOUNDED.1)
}

fn line(run: &Followed, columns: usize, utf8: bool, now_ns: i64) -> String {
    progress::line(&run.progress(now_ns), None, ProgressTerminal { columns: columns.saturating_sub(1), utf8 })
}

/// Shows a run or hosts.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(since) = args.since {
        return past::run(&args, since);
    }
    if args.targets.is_given() {
        if args.replay.is_some() {
            return Err(Failure::usage("a replay of hosts needs a start time").hint("--since 1d"));
        }
        return cluster::run(args);
    }
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(|e| {
        let refused = super::evidence::refused(e);
        if args.run == LAST { refused.hint("homing top --all: the hosts, and the jobs of the queue") } else { refused }
    })?;
    let journal = homing_journal::replay(&dir).map_err(Failure::system)?;
    let mut run = Followed::new(journal);
    if args.replay.is_none() {
        let interrupted = homing_journal::is_interrupted(&dir);
        run.go_on(i64::MAX).map_err(Failure::system)?;
        if interrupted && !run.is_over() {
            run.now.interrupt();
        }
    }
    let now_ns = homing_os::clock::wall_ns();
    if args.json {
        return to_stdout(&document::line(run.now.json(now_ns)));
    }
    let plain = args.once || (args.replay.is_none() && run.is_over());
    match if plain { None } else { Screen::open().map_err(Failure::system)? } {
        Some(screen) => follow(run, screen, args.replay, Coordinator::new(WatcherFolder::of(&dir))),
        None => {
            run.go_on(i64::MAX).map_err(Failure::system)?;
            let (rows, columns) = (UNBOUNDED.0, table_columns());
            let line = line(&run, columns, progress::locale_is_utf8(), now_ns);
            to_stdout(&(run.now.lines(&line, rows, columns, now_ns).join("\n") + "\n"))
        }
    }
}

/// The run's coordinator. Files in the run's folder notify it that a user watches.
struct Coordinator {
    watch: WatcherFolder,
    said: Option<Instant>,
    /// The coordinator's last report, and when it was new.
    told: Option<(Live, Instant)>,
}

impl Coordinator {
    fn new(watch: WatcherFolder) -> Coordinator {
        Coordinator { watch, said: None, told: None }
    }

    /// Returns the coordinator's current report. A run of another user gives its journal at most, and no report.
    fn live(&mut self) -> Option<&Live> {
        if self.said.is_none_or(|said| said.elapsed() >= SAY) && self.watch.signal_presence().is_ok() {
            self.said = Some(Instant::now());
        }
        let live = self.watch.live();
        if let Some(live) = live.filter(|live| self.told.as_ref().is_none_or(|(known, _)| known != live)) {
            self.told = Some((live, Instant::now()));
        }
        self.told.as_ref().filter(|(_, at)| at.elapsed() < FRESH).map(|(live, _)| live)
    }

    fn send_request(&self, what: WatcherRequest, view: &mut WatchView) {
        let done = match what {
            WatcherRequest::End(task) => format!("task {task} is being ended"),
            WatcherRequest::Show(_) => String::new(),
        };
        view.message =
            self.watch.send_request(what).map_or_else(|e| format!("cannot send the request: {e}"), |()| done);
    }

    fn shown(&self, task: TaskId) -> Option<String> {
        Some(String::from_utf8_lossy(&self.watch.shown(task)?).into_owned())
    }
}

/// Follows a run until it has ended or the user leaves.
fn follow(mut run: Followed, mut screen: Screen, times: Option<u32>, mut with: Coordinator) -> Result<i32, Failure> {
    let (mut clock, mut view) = (Clock::new(times), WatchView::new(progress::has_colors(std::io::stdout())));
    loop {
        if clock.wants_begin() {
            run.go_on(i64::MIN).map_err(Failure::system)?;
            run.next_ns().iter().for_each(|first| clock.begin(*first, Instant::now()));
        }
        let now_ns = clock.shown_ns(Instant::now()).unwrap_or_else(homing_os::clock::wall_ns);
        run.go_on(if clock.replays() { now_ns } else { i64::MAX }).map_err(Failure::system)?;
        let live = if clock.replays() || run.is_over() { None } else { with.live() };
        let line = line(&run, screen.columns(), screen.utf8, now_ns);
        let mut scene = Scene::of_run(&run.now, live, line, now_ns);
        (scene.is_live, scene.hint) = (live.is_some(), clock.hint());
        if let Shown::Output { task, .. } = view.shown
            && let Some(text) = with.shown(task)
        {
            view.output(task, text);
        }
        screen.draw(&scene, &mut view).map_err(Failure::system)?;
        let look = if clock.replays() { REPLAY_LOOK } else { LOOK };
        match screen.wish(look, &scene, &mut view).map_err(Failure::system)? {
            Some(ViewRequest::Leave) => break,
            Some(ViewRequest::Pause) => clock.pause(Instant::now()),
            Some(ViewRequest::Faster) => clock.change(true, Instant::now()),
            Some(ViewRequest::Slower) => clock.change(false, Instant::now()),
            Some(ViewRequest::End(task)) => with.send_request(WatcherRequest::End(task), &mut view),
            Some(ViewRequest::Output(task)) => {
                with.send_request(WatcherRequest::Show(task), &mut view);
                view.output(task, with.shown(task).unwrap_or_default());
            }
            None if run.is_over() && view.shown == Shown::All => break,
            None => {}
        }
    }
    drop(screen);
    super::evidence::evidence(run.now.tally())
}
