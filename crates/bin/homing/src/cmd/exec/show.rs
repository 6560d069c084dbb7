//! Output of `homing exec` for people: lines as they arrive, or gathered at the end, and a count of hosts meanwhile.

use super::own::When;
use super::{Args, Errand};
use crate::progress;
use homing_dispatch::Terminal;
use homing_exec::gathered::{LabelColor, Layout, OutputGroups, Style};
use homing_exec::lines::PendingLines;
use homing_exec::{Capture, CommandOutcome, Giver, HostEventKind, HostProgress, NoEvent, Remote, verdict};
use homing_model::units::{self, short_span};
use homing_model::{Failure, NodeSet};
use homing_os::folder::{Existing, OpenFolder, Reserve};
use signal_hook::consts::SIGINT;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The screen shows no count before this time.
const QUIET: Duration = Duration::from_secs(2);
/// The interval at which interruptions are noticed and the screen is drawn.
const TICK: Duration = Duration::from_millis(200);
/// Time between two counts in a log.
const LOGGED: Duration = Duration::from_secs(10);
/// The exit status that a shell has for a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The output of one command on all hosts.
pub struct Show<'a> {
    args: &'a Args,
    hosts: &'a [String],
    style: Style,
    errors: Style,
    out: BufWriter<io::Stdout>,
    lines: [PendingLines; 2],
    running: HashMap<usize, Capture>,
    gathered: OutputGroups,
    files: [HashMap<usize, File>; 2],
    outcomes: Vec<Option<CommandOutcome>>,
    progress: ExecProgress,
    reserve: Reserve,
    /// Whether the disk that keeps output has no room for more.
    full: bool,
}

impl<'a> Show<'a> {
    pub fn new(args: &'a Args, hosts: &'a [String]) -> Result<Show<'a>, Failure> {
        let own = &args.own;
        let when = own.color.unwrap_or(When::Auto);
        let style = |color| Style { labels: !own.no_label, color };
        let folder = |dir: &Option<_>| dir.as_deref().map_or(Ok(HashMap::new()), |d| files(d, hosts));
        Ok(Show {
            args,
            hosts,
            style: style(when.inks(io::stdout()).then_some(LabelColor::Blue)),
            errors: style(when.inks(io::stderr()).then_some(LabelColor::Red)),
            out: BufWriter::new(io::stdout()),
            lines: Default::default(),
            running: HashMap::new(),
            gathered: OutputGroups::default(),
            files: [folder(&own.outdir)?, folder(&own.errdir)?],
            outcomes: vec![None; hosts.len()],
            progress: ExecProgress::new(hosts.len(), own.progress && !own.quiet),
            reserve: Reserve::default(),
            full: false,
        })
    }

    /// Runs the command to its end; returns the exit status.
    pub fn run(mut self, remote: &Remote, errand: &Errand) -> Result<i32, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let told = |e: io::Error| Failure::unwritten("writing the output of hosts failed", &e);
        signal_hook::flag::register(SIGINT, interrupted.clone()).map_err(told)?;
        let mut stream = errand.begin(remote, self.hosts);
        let input = errand.command.spool();
        let mut lost = None;
        while !interrupted.load(Ordering::Relaxed) && !self.full && lost.is_none() {
            lost = input.as_ref().and_then(|input| input.failure());
            match stream.next_within(TICK) {
                Ok(Some(event)) => self.take(event).map_err(told)?,
                Ok(None) => break,
                Err(NoEvent) => {
                    self.out.flush().map_err(told)?;
                    self.progress.draw();
                }
            }
        }
        drop(stream);
        self.progress.end();
        self.print_gathered().map_err(told)?;
        self.out.flush().map_err(told)?;
        if let Some(why) = lost {
            return Err(input_lost(&why));
        }
        if self.full {
            return Err(self.no_room());
        }
        Ok(self.conclude(interrupted.load(Ordering::Relaxed)))
    }

    fn take(&mut self, HostProgress { host, what, giver }: HostProgress) -> io::Result<()> {
        // A leader that has loaded has run nothing yet.
        if giver == Giver::Load {
            return Ok(());
        }
        match what {
            HostEventKind::Begun | HostEventKind::Alive => Ok(()),
            HostEventKind::Stdout(bytes) => self.stdout(host, &bytes),
            HostEventKind::Stderr(bytes) => {
                self.progress.clear();
                self.keep_beside(1, host, &bytes)?;
                self.lines[1].push(host, &self.hosts[host], &bytes, self.errors, &mut io::stderr())
            }
            HostEventKind::Done(outcome, _) => self.done(host, outcome),
        }
    }

    fn stdout(&mut self, host: usize, bytes: &[u8]) -> io::Result<()> {
        self.keep_beside(0, host, bytes)?;
        let own = &self.args.own;
        if own.gathers() {
            // Beside -bL lines of equal content are printed together, thus not as they come.
            if own.verbose && !(own.line_mode && (own.gather || own.gather_all)) {
                self.progress.clear();
                self.lines[0].push(host, &self.hosts[host], bytes, self.style, &mut self.out)?;
            }
            let kept = self.running.entry(host).or_default();
            kept.push(bytes)?;
            self.full |= kept.file().is_some_and(|file| self.reserve.is_used_up(file, bytes.len()));
            return Ok(());
        }
        self.progress.clear();
        self.lines[0].push(host, &self.hosts[host], bytes, self.style, &mut self.out)?;
        if self.style.color.is_some() { self.out.flush() } else { Ok(()) }
    }

    /// Writes into the host's file in `--outdir` or `--errdir`, if there is one.
    fn keep_beside(&mut self, which: usize, host: usize, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = self.files[which].get_mut(&host) else { return Ok(()) };
        file.write_all(bytes)?;
        self.full |= self.reserve.is_used_up(file, bytes.len());
        Ok(())
    }

    /// Returns a failure that names the running host with the most output.
    fn no_room(&self) -> Failure {
        let most = self.running.iter().max_by_key(|(_, kept)| kept.size());
        let who = most.map(|(host, kept)| format!("{} has printed {}: ", self.hosts[*host], units::bytes(kept.size())));
        let why = "no space left to store more output (15 % of its disk, at most 4 GB, stay free); all running \
            commands were ended";
        Failure::system(who.unwrap_or_default() + why)
            .hint("-u SECONDS limits the time of a command; TMPDIR=FOLDER stores gathered output on another disk")
    }

    fn done(&mut self, host: usize, outcome: CommandOutcome) -> io::Result<()> {
        let name = &self.hosts[host];
        self.lines[0].finish(host, name, self.style, &mut self.out)?;
        self.lines[1].finish(host, name, self.errors, &mut io::stderr())?;
        self.files.iter_mut().for_each(|files| drop(files.remove(&host)));
        let output = self.running.remove(&host).unwrap_or_default();
        if self.args.own.gathers() && !matches!(outcome, CommandOutcome::Unreachable(_)) {
            self.gathered.add(host, &outcome, output);
        }
        self.outcomes[host] = Some(outcome);
        self.progress.done += 1;
        Ok(())
    }

    fn print_gathered(&mut self) -> io::Result<()> {
        let own = &self.args.own;
        let cluster = self.args.targets.cluster().load().ok().filter(|_| own.regroup);
        let fold = |set: &NodeSet| {
            let groups = cluster.and_then(|c| c.regrouped(set, own.groupsource.as_deref(), own.groupbase).ok());
            groups.unwrap_or_else(|| set.to_string())
        };
        let counts = own.counts && !own.quiet;
        let layout = Layout { names: self.hosts, style: self.style, counts, groups: Some(&fold) };
        let out = &mut self.out;
        match (own.diff, own.line_mode, own.gather || own.gather_all) {
            (true, ..) => self.gathered.print_diff(layout, out),
            (_, true, true) => self.gathered.print_by_line(layout, out),
            (_, true, false) => self.gathered.print_sorted(layout, out),
            _ => self.gathered.print(layout, out),
        }
    }

    fn print_lines(&self, lines: Vec<String>) {
        if !self.args.own.quiet {
            lines.iter().for_each(|line| eprintln!("homing: {line}"));
        }
    }

    fn conclude(&self, interrupted: bool) -> i32 {
        let ended = self.hosts.iter().zip(&self.outcomes);
        // Printed at the end: a hundred hosts that failed alike share one line.
        self.print_lines(verdict::lines(ended.clone().filter_map(|(h, o)| Some((h.as_str(), o.as_ref()?)))));
        if interrupted {
            let open = ended.filter(|(_, o)| o.is_none()).map(|(h, _)| h.clone()).collect();
            eprintln!(
                "homing: interrupted; {} had not finished, and commands may still run there",
                verdict::label(open)
            );
            return INTERRUPTED;
        }
        let codes = self.outcomes.iter().flatten().map(|o| verdict::code(o, self.args.own.maxrc));
        codes.max().unwrap_or(0)
    }
}

/// Reports that hosts read only a part of their standard input.
pub fn input_lost(why: &str) -> Failure {
    Failure::system(format!("hosts received only a part of standard input: {why}"))
        .hint("TMPDIR=FOLDER stores it on another disk; -n passes none on")
}

fn files(dir: &Path, hosts: &[String]) -> Result<HashMap<usize, File>, Failure> {
    let failed = |e: io::Error| Failure::system(format!("cannot write to {}: {e}", dir.display()));
    let folder = OpenFolder::make(dir, 0o777).map_err(failed)?;
    // A node set refuses names with a slash. The check remains: no file in another folder may be written.
    let safe = hosts.iter().enumerate().filter(|(_, h)| !h.contains('/') && *h != "." && *h != "..");
    safe.map(|(i, h)| Ok((i, folder.file(h.as_ref(), Existing::Replace, 0o666).map_err(failed)?))).collect()
}

/// The count of finished hosts, such as `12/64`: a line on a terminal, or lines where `--progress` wants them.
struct ExecProgress {
    begun: Instant,
    all: usize,
    done: usize,
    /// Whether the option was given.
    wanted: bool,
    /// The last count in a log, and its time.
    logged: Option<(usize, Instant)>,
    terminal: Terminal,
}

impl ExecProgress {
    fn new(all: usize, wanted: bool) -> ExecProgress {
        ExecProgress { begun: Instant::now(), all, done: 0, wanted, logged: None, terminal: Terminal::default() }
    }

    fn line(&self) -> String {
        format!("homing: {}/{} hosts, {}", self.done, self.all, short_span(self.begun.elapsed()))
    }

    fn draw(&mut self) {
        match progress::place() {
            Some(place) if self.wanted || self.begun.elapsed() > QUIET => {
                self.terminal.draw(&self.line().chars().take(place.columns).collect::<String>());
            }
            None if self.wanted => self.log(),
            _ => {}
        }
    }

    /// Prints a line if the count has changed, at most every ten seconds.
    fn log(&mut self) {
        let due = self.logged.is_none_or(|(done, when)| done != self.done && when.elapsed() > LOGGED);
        if due {
            self.logged = Some((self.done, Instant::now()));
            eprintln!("{}", self.line());
        }
    }

    /// Ends the line on the terminal, or prints the last count in a log.
    fn end(&mut self) {
        self.clear();
        let shown = self.logged.is_some_and(|(done, _)| done == self.done);
        if self.wanted && !shown {
            eprintln!("{}", self.line());
        }
    }

    fn clear(&mut self) {
        self.terminal.clear();
    }
}
