//! Another user who plants links, pipes and odd names, all the time, in every folder that all may write.

use super::ground::Ground;
use super::planted;
use crate::nemesis;
use crate::random::Random;
use crate::scenario::KILL;
use rustix::process::{Gid, Uid};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;
use std::{io, iter};

/// The user id of the neighbour, in no password file. Without root the neighbour is the same user.
const NEIGHBOUR: u32 = 61_003;
/// Tasks of the run.
const TASKS: u64 = 12;
/// The highest number of names that the neighbour plants in one folder. A folder that grows without end slows each
/// program that lists it.
const MOST: usize = 300;

/// Folders with the sticky bit, where all may make names.
const OPEN: [&str; 8] = ["out", "results", "log", "leases", "queue", "src", "back", "tmp"];

/// The endings that a neighbour adds to an existing name.
const TAILS: [&str; 8] = [
    "+0+a[$(cd;touch pwned)]",
    "+9",
    ".homing-partial",
    ".homing-partial.1",
    ".tmp",
    ".lock",
    "\nline",
    "$(cd;touch pwned)",
];

struct NeighbourFolder {
    path: PathBuf,
    names: Vec<String>,
    planted: usize,
}

impl NeighbourFolder {
    /// Plants one thing: at a name that homing will make, or beside an existing name.
    fn plant(&mut self, victims: &Path, random: &mut Random) {
        if self.planted >= MOST {
            return;
        }
        let there = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let there: Vec<String> = there.filter_map(|e| e.file_name().into_string().ok()).collect();
        let name = if there.is_empty() || random.percent(50) {
            random.of(&self.names)
        } else {
            random.of(&there) + random.of(&TAILS)
        };
        let at = self.path.join(name);
        let planted = match random.within(0, 5) {
            0 => symlink(victims.join("file"), at),
            1 => symlink(victims.join("made"), at),
            2 => symlink(victims.join("folder"), at),
            3 => planted::pipe(&at),
            _ => File::create_new(at).map(drop),
        };
        self.planted += usize::from(planted.is_ok());
    }
}

/// Returns names that homing makes in a folder, and that a neighbour can know.
fn names(folder: &str) -> Vec<String> {
    let odd = ["a[$(cd;touch pwned)]", "+1", "x\ny", "-rf"].map(String::from);
    let numbers = (1..=TASKS).map(|n| n.to_string());
    let own: Vec<String> = match folder {
        "out" => {
            numbers.flat_map(|n| [format!(".{n}.txt.homing-unfinished"), format!("{n}.txt.homing-partial")]).collect()
        }
        // One task of the run finds its output taken.
        "results" => ["1", "7.err", "seq"].map(String::from).into(),
        "log" => ["job.tsv.new", ".job.tsv"].map(String::from).into(),
        "queue" => numbers.chain(["lock", "numbers", "runner"].map(String::from)).collect(),
        "src" => ["planted", "pipe", "link"].map(String::from).into(),
        "back" => numbers.collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(odd).collect()
}

/// Plants until the scene ends, in a thread of another user.
fn neighbour(ground: &Path, seed: u64, ends: &AtomicBool) {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NEIGHBOUR), Gid::from_raw(NEIGHBOUR));
        let left = rustix::thread::set_thread_groups(&[])
            .and_then(|()| rustix::thread::set_thread_res_gid(group, group, group))
            .and_then(|()| rustix::thread::set_thread_res_uid(user, user, user));
        if left.is_err() {
            return;
        }
    }
    let mut random = Random::new(seed);
    let mut folders = OPEN.map(|name| NeighbourFolder { path: ground.join(name), names: names(name), planted: 0 });
    while !ends.load(Ordering::Relaxed) {
        let at = random.within(0, folders.len() as u64) as usize;
        folders[at].plant(&ground.join("victims"), &mut random);
        sleep(Duration::from_millis(1));
    }
}

/// Runs tasks, jobs, an image and a restore beside the neighbour.
pub fn play(ground: &Ground, random: &mut Random) -> io::Result<()> {
    planted::make_victims(&ground.at("victims"))?;
    for name in OPEN {
        fs::create_dir_all(ground.at(name))?;
        fs::set_permissions(ground.at(name), Permissions::from_mode(0o1777))?;
    }
    // The first job makes the folders of a queue. Half the time the neighbour is there before.
    if random.percent(50) {
        ground.fine(&["sub", "-q", "-K", "true"])?;
    }
    let (base, ends, seed) = (ground.at(""), AtomicBool::new(false), random.within(0, 1 << 40));
    let played = thread::scope(|scope| {
        scope.spawn(|| neighbour(&base, seed, &ends));
        sleep(Duration::from_millis(random.within(0, 100)));
        let played = run(ground, random).and_then(|()| jobs(ground, random)).and_then(|()| images(ground));
        ends.store(true, Ordering::Relaxed);
        played
    });
    planted::harm(&ground.at("victims")).into_iter().for_each(|harm| ground.violated(harm));
    for folder in OPEN.into_iter().chain(iter::once("home")) {
        ground.must(!ground.at(folder).join("pwned").exists(), || format!("a name was run by a shell in {folder}"));
    }
    played
}

/// Whether a path is a regular file of this user with this content. A pipe of another is not opened.
fn is_own(path: &Path, content: &str) -> bool {
    let own = |meta: fs::Metadata| meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(own) && fs::read_to_string(path).is_ok_and(|text| text == content)
}

/// Kills the coordinator of a run and resumes the run. Its task makes its output by a hard link, which follows no
/// symbolic link. So homing is at fault if a link is followed.
fn run(ground: &Ground, random: &mut Random) -> io::Result<()> {
    let text = |name: &str| ground.at(name).display().to_string();
    let task = format!(
        "t=$(mktemp {}/own.XXXXXX) && echo {{}} >$t && sleep 0.05 && \
         {{ [ -f {out}/{{}}.txt ] && [ -O {out}/{{}}.txt ] && [ ! -L {out}/{{}}.txt ] || ln -T $t {out}/{{}}.txt; }}; \
         s=$?; rm -f $t; exit $s",
        text("home"),
        out = text("out")
    );
    let (output, results, log) = (text("out") + "/{}.txt", text("results"), text("log") + "/job.tsv");
    let numbers: Vec<String> = (1..=TASKS).map(|n| n.to_string()).collect();
    let mut words = vec!["run", "-j2", "--output", &output, "--results", &results, "--joblog", &log, &task, ":::"];
    words.extend(numbers.iter().map(String::as_str));
    let mut child = ground.begin(&words)?;
    sleep(Duration::from_millis(random.within(0, 600)));
    nemesis::send(child.id() as i32, KILL);
    ground.end(&mut child, &words)?;
    let mut printed = ground.printed(&child);
    // A run without a record of itself is begun anew.
    let journal = |run: fs::DirEntry| fs::read(run.path().join("journal.jsonl")).unwrap_or_default();
    let begun = fs::read_dir(ground.at("runs"))?.flatten().any(|run| journal(run).contains(&b'\n'));
    let again: &[&str] = if begun { &["resume", "last"] } else { &words };
    for _ in 0..2 {
        let answer = ground.homing(again)?;
        printed += &answer.text;
        if answer.status == 0 {
            for number in &numbers {
                let own = is_own(&ground.at(&format!("out/{number}.txt")), &format!("{number}\n"));
                ground.must(own, || format!("the run succeeded without the output of task {number}: {printed}"));
            }
            return Ok(());
        }
    }
    // A refusal must name the obstacle.
    let named = OPEN.iter().any(|folder| printed.contains(&text(folder)));
    ground.must(named, || format!("a failed run names no folder: {printed}"));
    Ok(())
}

/// Runs jobs whose runner is killed. Each ends, or its submission is refused with the name of the obstacle.
fn jobs(ground: &Ground, random: &mut Random) -> io::Result<()> {
    let before = ground.jobs()?.len();
    let mut accepted = 0;
    for number in 0..3 {
        let answer = ground.homing(&["sub", "-q", &format!("echo {number} >>ran")])?;
        accepted += usize::from(answer.status == 0);
        let named = answer.text.contains(&ground.at("queue").display().to_string());
        ground.must(answer.status == 0 || named, || format!("a refused job names no folder: {}", answer.text));
        if random.percent(30) {
            ground.kill_runner();
        }
    }
    let jobs = ground.ended_jobs(before + accepted)?;
    let done = jobs.iter().filter(|(_, state)| state == "DONE").count();
    ground.must(done == before + accepted, || format!("{accepted} jobs were accepted: {jobs:?}"));
    let ran = fs::read_to_string(ground.at("home/ran")).unwrap_or_default();
    ground.must(ran.lines().count() == accepted, || format!("{accepted} jobs were accepted, and {ran:?} ran"));
    Ok(())
}

/// Makes an image of a folder in which the neighbour plants, and restores it to another such folder.
fn images(ground: &Ground) -> io::Result<()> {
    for number in 1..=TASKS {
        let at = ground.at(&format!("src/own.{number}"));
        fs::write(at, format!("{number}\n"))?;
    }
    let image = ground.image()?;
    ground.must(image.status == 0, || format!("the image: {}: {}", image.status, image.text));
    let back = ground.at("back").display().to_string();
    let restored = ground.homing(&["snapshot", "restore", "src", "--into", &back])?;
    for number in 1..=TASKS {
        let name = format!("own.{number}");
        let own = is_own(&ground.at("back").join(&name), &format!("{number}\n"));
        ground.must(own || restored.text.contains(&name), || {
            format!("{name} was not restored: {}: {}", restored.status, restored.text)
        });
    }
    Ok(())
}
