//! One script on all hosts, and no longer than the deadline for those that do not answer.

use crate::failure::Failure;
use crate::progress::{Asked, asked, clear, place};
use homing_check::{Answers, Area, Check, Chunk, Host, script};
use homing_exec::{Command, Event, Input, Options, Outcome, Remote, Spool, What};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Bytes of a host that are kept; the script prints far less.
const MOST: usize = 4 << 20;

/// A part that waits has this share of the time: the answer has to come back, too.
const SHARE: f64 = 0.6;

/// How often the line of progress is drawn again where nothing happens.
const REDRAWN: Duration = Duration::from_millis(300);
/// Who waits for longer wants to know for how long still.
const SOON: Duration = Duration::from_secs(2);

/// What came back.
pub struct Gathered {
    /// Of those that answered.
    pub answers: Answers,
    /// Hosts that did not, and why.
    pub silent: Vec<(String, String)>,
}

/// What is known of a host while it is asked.
#[derive(Default)]
struct Heard {
    chunks: Vec<Chunk>,
    bytes: usize,
    outcome: Option<Outcome>,
}

/// Asks all hosts. `before` stands before the script. A thread talks to them, and is left behind when some do not answer.
/// `early` is told, as time goes by, of the areas about which all hosts have said all, and what they said so far.
pub fn ask(
    options: Options,
    hosts: &[String],
    before: &str,
    checks: &[&Check],
    deadline: Duration,
    early: Option<&mut Early>,
) -> Result<Gathered, Failure> {
    let text = format!("{before}{}", script(checks, deadline.as_secs_f64() * SHARE));
    let spool = Spool::of(text.as_bytes())
        .map_err(|e| Failure::system(format!("no temporary file for the script: {e}")).hint("TMPDIR"))?;
    let words = ["sh", "-s", "--"].map(String::from).into_iter().chain(hosts.iter().cloned());
    let command = Command::argv(words).input(Input::Spool(spool));
    let (to, events) = channel();
    let names = hosts.to_vec();
    let asking = homing_threads::begin(move || {
        for event in Remote::new(options).stream(&names, &command) {
            if to.send((clock(), event)).is_err() {
                return;
            }
        }
    });
    let asking = asking.map_err(Failure::system)?;
    let mut screen = Screen { hosts, checks, begun: Instant::now(), early };
    let heard = listen(&events, hosts.len(), deadline, &mut screen);
    if heard.iter().all(|h| h.outcome.is_some()) {
        // Nobody is waited for: connections that are not to be kept are closed.
        let _ = asking.join();
    }
    Ok(sorted(hosts, heard, deadline))
}

/// This machine's clock, in seconds.
fn clock() -> f64 {
    homing_clock::system_ns() as f64 / 1e9
}

/// Until all have ended, or the one whose turn came last has had its time.
fn listen(events: &Receiver<(f64, Event)>, hosts: usize, deadline: Duration, screen: &mut Screen) -> Vec<Heard> {
    let mut heard: Vec<Heard> = (0..hosts).map(|_| Heard::default()).collect();
    let (mut due, mut ended) = (Instant::now() + deadline, 0);
    while ended < hosts {
        let left = due.saturating_duration_since(Instant::now());
        let event = match events.recv_timeout(left.min(REDRAWN)) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                screen.draw(&heard, left);
                continue;
            }
            Err(_) => break,
        };
        let (at, Event { host, what }) = event;
        let of = &mut heard[host];
        match what {
            What::Begun => due = Instant::now() + deadline,
            What::Stdout(bytes) if of.bytes < MOST => {
                of.bytes += bytes.len();
                of.chunks.push((at, bytes));
            }
            What::Stdout(_) | What::Stderr(_) => {}
            What::Done(outcome, _) => {
                of.outcome = Some(outcome);
                ended += 1;
                screen.draw(&heard, due.saturating_duration_since(Instant::now()));
            }
        }
    }
    clear();
    heard
}

/// Told of areas about which all hosts have said all. What they said so far is read when it is asked for.
pub type Early<'a> = dyn FnMut(&[Area], &dyn Fn() -> Answers) + 'a;

/// What is shown while hosts are asked: areas that are known, and the line that tells how far it is.
struct Screen<'a, 'e> {
    hosts: &'a [String],
    checks: &'a [&'a Check],
    begun: Instant,
    early: Option<&'a mut Early<'e>>,
}

impl Screen<'_, '_> {
    fn draw(&mut self, heard: &[Heard], left: Duration) {
        let place = place();
        if place.is_none() && self.early.is_none() {
            return;
        }
        let asking = heard.iter().filter(|h| h.outcome.is_none()).map(|h| Host::read("", &h.chunks));
        let asking: Vec<Host> = asking.collect();
        let answered = heard.len() - asking.len();
        let open = homing_check::open(self.checks, &asking);
        if let Some(early) = &mut self.early {
            let known: Vec<Area> = homing_check::asked(self.checks).filter(|area| !open.contains(area)).collect();
            early(&known, &|| Answers { hosts: read(self.hosts, heard).filter(|host| host.uid().is_some()).collect() });
        }
        let Some(place) = place else { return };
        let open: Vec<&str> = open.into_iter().map(Area::name).collect();
        let left = (self.begun.elapsed() > SOON).then_some(left);
        let line = Asked { answered, hosts: heard.len(), open: &open, left };
        eprint!("\r{}\x1b[K", asked(&line, place));
    }
}

/// What each host has said.
fn read<'a>(hosts: &'a [String], heard: &'a [Heard]) -> impl Iterator<Item = Host> + 'a {
    hosts.iter().zip(heard).map(|(name, heard)| Host::read(name, &heard.chunks))
}

/// A host has answered when it has said who we are there; what is missing then is not known.
fn sorted(hosts: &[String], heard: Vec<Heard>, deadline: Duration) -> Gathered {
    let (mut answers, mut silent) = (Answers::default(), Vec::new());
    for (name, heard) in hosts.iter().zip(heard) {
        let host = Host::read(name, &heard.chunks);
        if host.uid().is_some() {
            answers.hosts.push(host);
            continue;
        }
        let why = match (heard.outcome, host.stray.first()) {
            (Some(Outcome::Unreachable(why) | Outcome::Lost(why)), _) => why,
            (Some(_), Some(said)) => format!("it ran no command, and said: {said}"),
            (Some(outcome), None) => format!("it ran no command: {outcome}"),
            (None, _) => format!("no answer in {} s", deadline.as_secs_f64()),
        };
        silent.push((name.clone(), why));
    }
    Gathered { answers, silent }
}
