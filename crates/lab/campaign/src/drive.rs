//! Plays one seed: a run with its faults, then `homing resume` until all tasks are done.

use crate::model::{self, RunFinding, RunObservations, RunPart, SummaryColumn};
use crate::nemesis::{self, Nemesis};
use crate::observe;
use crate::place::{CampaignEnvironment, RunFolders, SmallDiskContent};
use crate::processes;
use crate::random::Random;
use crate::scenario::{Deed, KILL, Scenario, Stroke, TaskSource};
use crate::surface::Surface;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A run counts as stuck after so many parts without a fault.
const CALM: usize = 5;
/// The longest time of a part. A host is given up after 30 s, and links are cut for 40 s.
const LONGEST: Duration = Duration::from_secs(300);
/// How long a stroke waits for the records of its moment.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time that processes may outlive the program that was started. A worker that receives nothing ends itself after
/// 25 s.
const LINGER: Duration = Duration::from_secs(60);

/// The option that `resume` requires where the journal is damaged.
const SKIP: &str = "--skip-damaged";

/// The result of a seed.
#[derive(Debug)]
pub struct Tried {
    /// The plan.
    pub scenario: Scenario,
    /// The observations of the run.
    pub seen: RunObservations,
    /// The violations that the model found.
    pub findings: Vec<RunFinding>,
    /// The files on the bricks of the volume, where effects are wrong.
    pub bricks: String,
    /// The scene beside the run.
    pub scene: Option<Surface>,
}

/// Runs a seed to its end, in a thread of its own: it may get a mount namespace.
pub fn run_seed(place: &CampaignEnvironment, seed: u64) -> io::Result<Tried> {
    let scenario = Scenario::new(seed, place.terrain());
    let place = place.clone();
    let driven = thread::spawn(move || {
        let site = RunFolders::new(&place, &scenario)?;
        let mut driver =
            Driver { site: &site, place: &place, scenario: &scenario, parts: Vec::new(), damaged: Vec::new() };
        driver.drive()?;
        let mut seen = observe::all(&site, &scenario, driver.parts, &driver.damaged)?;
        let (mut findings, mut bricks) = (model::check(&scenario, &seen), String::new());
        if place.lab.is_some() && findings.iter().any(|(column, _)| *column == SummaryColumn::Effects) {
            (seen.effects, bricks) = observe::healed(&site)?;
            findings = model::check(&scenario, &seen);
        }
        let scene = Surface::of(seed, place.terrain());
        if let Some(scene) = scene {
            findings.extend(scene.play(&place, seed)?.into_iter().map(|text| (scene.column(), text)));
        }
        Ok(Tried { scenario: scenario.clone(), seen, findings, bricks, scene })
    });
    driven.join().unwrap_or_else(|_| Err(io::Error::other("the campaign itself crashed")))
}

struct Driver<'a> {
    site: &'a RunFolders,
    place: &'a CampaignEnvironment,
    scenario: &'a Scenario,
    parts: Vec<RunPart>,
    damaged: Vec<Vec<u8>>,
}

impl Driver<'_> {
    fn drive(&mut self) -> io::Result<()> {
        let mut strokes = self.scenario.parts.iter();
        let mut calm = 0;
        loop {
            let befalls = strokes.next();
            calm += usize::from(befalls.is_none());
            let status = self.part(befalls.map_or(&[], Vec::as_slice))?;
            if calm > 0 && ((self.settled() && status <= 101) || calm == CALM) {
                break;
            }
            self.spoil()?;
        }
        // Resumes once more: there is nothing to do, and the exit status is the same.
        self.part(&[]).map(drop)
    }

    fn settled(&self) -> bool {
        model::settled(self.scenario, &observe::journal(self.site, &self.damaged))
    }

    fn spoil(&mut self) -> io::Result<()> {
        let (Some(damage), Some(run), 1) = (self.scenario.damage, observe::run_name(self.site), self.parts.len())
        else {
            return Ok(());
        };
        self.damaged = nemesis::damage(self.site, &run, damage)?;
        Ok(())
    }

    /// Returns the arguments of the next part. The first `resume` names the damage; later parts skip it by [`SKIP`].
    fn words(&self) -> Vec<String> {
        let skip = self.parts.iter().any(|part| part.stderr.contains(SKIP));
        match observe::run_name(self.site) {
            None => self.site.words(),
            Some(run) if skip => vec!["resume".into(), SKIP.into(), run],
            Some(run) => vec!["resume".into(), run],
        }
    }

    fn part(&mut self, strokes: &[Stroke]) -> io::Result<i32> {
        let (number, words) = (self.parts.len(), self.words());
        let file = |name: &str| self.site.kept(SmallDiskContent::Output).with_file_name(format!("{name}.{number}"));
        let mut command = self.site.homing(&words)?;
        command
            .stdout(File::create(file("stdout"))?)
            .stderr(File::create(self.site.base.join(format!("stderr.{number}")))?);
        // For every third seed the input is missing at the first resume.
        let absent = number == 1 && words[0] == "resume" && self.scenario.seed.is_multiple_of(3);
        let fed = self.scenario.input == TaskSource::Stdin && !absent;
        command.stdin(if fed { Stdio::piped() } else { Stdio::null() }).process_group(0);
        let mut child = command.spawn()?;
        if let Some(to) = child.stdin.take() {
            let (items, slow) = (self.site.items(), words[0] == "run");
            thread::spawn(move || feed(to, items.as_bytes(), slow));
        }
        let deeds = self.befall(&mut child, strokes)?;
        let status = wait(&mut child, self.place.lab.is_some())?;
        fs::write(self.site.base.join("clock"), "0")?;
        self.parts.push(RunPart {
            status,
            all_ended: model::all_ended(self.scenario, &observe::journal(self.site, &self.damaged)),
            deeds,
            stdout: fs::read(file("stdout"))?,
            stderr: String::from_utf8_lossy(&fs::read(self.site.base.join(format!("stderr.{number}")))?).into_owned(),
            left: self.left(),
        });
        Ok(status)
    }

    fn befall(&self, child: &mut Child, strokes: &[Stroke]) -> io::Result<Vec<Deed>> {
        let random = Random::new(self.scenario.seed ^ self.parts.len() as u64);
        let mut nemesis = Nemesis { site: self.site, lab: self.place.lab.as_deref(), random };
        let mut done = Vec::new();
        for Stroke { records, after_ms, deed } in strokes {
            let (patience, enough) = (Instant::now() + PATIENCE, observe::records(self.site) + records);
            while Instant::now() < patience && observe::records(self.site) < enough && child.try_wait()?.is_none() {
                thread::sleep(Duration::from_millis(5));
            }
            thread::sleep(Duration::from_millis(*after_ms));
            if child.try_wait()?.is_none() && nemesis.act(deed)? {
                done.push(deed.clone());
            }
        }
        Ok(done)
    }

    /// Ends the processes of the run that are there long after its end, and returns them.
    fn left(&self) -> Vec<String> {
        let deadline = Instant::now() + LINGER;
        loop {
            let left = processes::of_run(&self.site.mark, self.place.lab.as_deref());
            if left.is_empty() {
                return Vec::new();
            }
            if Instant::now() > deadline {
                left.iter().for_each(|p| {
                    nemesis::send(p.pid, KILL);
                });
                return left.iter().map(processes::RunProcess::shown).collect();
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Writes the items in pieces that break inside them. If they are read again, writes them at once.
fn feed(mut to: ChildStdin, items: &[u8], slow: bool) {
    for piece in items.chunks(if slow { 17 } else { items.len() }) {
        if to.write_all(piece).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(if slow { 60 } else { 0 }));
    }
}

fn wait(child: &mut Child, entered: bool) -> io::Result<i32> {
    let deadline = Instant::now() + LONGEST;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1));
        }
        if Instant::now() > deadline {
            child.kill()?;
        }
        // When its program stops, nsenter stops itself too. It does not continue with the program.
        if entered {
            nemesis::send(child.id() as i32, nemesis::CONT);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
