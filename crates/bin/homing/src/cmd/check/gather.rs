//! Runs one script on all hosts, and shows the progress on a terminal meanwhile.

use crate::progress::{self, clear, place};
use homing_check::report::{CheckAnswers, QueryEnd};
use homing_check::{Answers, Area, HostAnswers, HostCheck, script};
use homing_exec::{Command, CommandInput, CommandOutcome, InputSpool, Options};
use homing_model::Failure;
use homing_relay::{QueryState, patiently};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The share of the time that a waiting part of the script has. The answer must come back, too.
const SHARE: f64 = 0.6;

/// After this time the screen shows the time that is left.
const SOON: Duration = Duration::from_secs(2);

/// Queries all hosts. `before` precedes the script. `early` is called as time goes by with the areas that all hosts
/// have completed, and with the answers so far.
pub fn query_hosts(
    options: Options,
    hosts: &[String],
    before: &str,
    checks: &[&HostCheck],
    deadline: Duration,
    early: Option<&mut Early>,
) -> Result<CheckAnswers, Failure> {
    let text = format!("{before}{}", script(checks, deadline.as_secs_f64() * SHARE));
    let spool = InputSpool::of(text.as_bytes())
        .map_err(|e| Failure::system(format!("making a temporary file for the check script: {e}")).hint("TMPDIR"))?;
    let words = ["sh", "-s", "--"].map(String::from).into_iter().chain(hosts.iter().cloned());
    let command = Command::argv(words).input(CommandInput::Spool(spool));
    let sent_s = homing_os::clock::system_s();
    let mut screen = Screen { hosts, checks, begun: Instant::now(), early };
    let draw = &mut |heard: &[QueryState], left| screen.draw(heard, left);
    let heard = patiently(options, hosts, &command, deadline, &(Arc::new(aside) as _), draw)?;
    clear();
    let mut gathered = CheckAnswers::default();
    for (name, heard) in hosts.iter().zip(&heard) {
        let ended = match &heard.outcome {
            Some(CommandOutcome::Unreachable(why) | CommandOutcome::Lost(why)) => QueryEnd::Cut(why.clone()),
            Some(outcome) => QueryEnd::Ran(outcome.to_string()),
            None => QueryEnd::Late(deadline.as_secs_f64()),
        };
        gathered.add(HostAnswers::read(name, heard.chunks()).asked_at(sent_s), ended);
    }
    Ok(gathered)
}

/// The least time of a second query. A mount has six seconds of it, three times as long as at first. Slurm ends a
/// health check after 60 s, and both queries must end before that.
const ONCE_MORE: Duration = Duration::from_secs(15);

/// Queries hosts a second time, only for answers that may have been late. The cause may have passed, and a slow mount
/// must not be reported as one that hangs.
pub fn once_more(
    options: Options,
    answers: &mut Answers,
    checks: &[&HostCheck],
    deadline: Duration,
) -> Result<(), Failure> {
    let doubts = homing_check::doubts(answers).about(checks);
    let (hosts, parts) = (doubts.hosts(), doubts.parts());
    if hosts.is_empty() {
        return Ok(());
    }
    let deadline = if parts.is_empty() { deadline } else { deadline.max(ONCE_MORE) };
    let options = Options { tree: 0, command_timeout: Some(deadline), ..options };
    let again = query_hosts(options, &hosts, "", &parts, deadline, None)?.answers.hosts;
    homing_check::asked_again(answers, &again);
    Ok(())
}

/// Prints a line for the user, in place of the line of progress.
fn aside(text: &str) {
    clear();
    eprintln!("homing: {text}");
}

/// A function that gets the areas that all hosts have completed, and a function that reads the answers so far.
pub type Early<'a> = dyn FnMut(&[Area], &dyn Fn() -> Answers) + 'a;

/// The display during a query: completed areas, and the line of progress.
struct Screen<'a, 'e> {
    hosts: &'a [String],
    checks: &'a [&'a HostCheck],
    begun: Instant,
    early: Option<&'a mut Early<'e>>,
}

impl Screen<'_, '_> {
    fn draw(&mut self, heard: &[QueryState], left: Duration) {
        let place = place();
        if place.is_none() && self.early.is_none() {
            return;
        }
        let asking = heard.iter().filter(|h| h.outcome.is_none()).map(|h| HostAnswers::read("", h.chunks()));
        let asking: Vec<HostAnswers> = asking.collect();
        let answered = heard.len() - asking.len();
        let open = homing_check::open(self.checks, &asking);
        if let Some(early) = &mut self.early {
            let known: Vec<Area> =
                homing_check::queried_areas(self.checks).filter(|area| !open.contains(area)).collect();
            let read = || self.hosts.iter().zip(heard).map(|(name, heard)| HostAnswers::read(name, heard.chunks()));
            early(&known, &|| Answers { hosts: read().filter(|host| host.uid().is_some()).collect() });
        }
        let Some(place) = place else { return };
        let open: Vec<&str> = open.into_iter().map(Area::name).collect();
        let left = (self.begun.elapsed() > SOON).then_some(left);
        let line = progress::RequestProgress { answered, hosts: heard.len(), open: &open, left };
        eprint!("\r{}\x1b[K", progress::request_line(&line, place));
    }
}
