//! Carries out the deeds of a scenario against a run.

use crate::place::{RunFolders, SmallDiskContent, link};
use crate::processes::{self, RunProcess};
use crate::random::Random;
use crate::scenario::{Damage, Deed, KILL, Whom};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const INT: i32 = 2;
const STOP: i32 = 19;
/// SIGCONT.
pub const CONT: i32 = 18;

/// The actor that carries out the deeds of one run.
pub struct Nemesis<'a> {
    /// The run.
    pub site: &'a RunFolders,
    /// The lab of it.
    pub lab: Option<&'a str>,
    /// Chooses among several processes of a kind.
    pub random: Random,
}

impl Nemesis<'_> {
    /// Carries out a deed. Returns false if no process was there for it.
    pub fn act(&mut self, deed: &Deed) -> io::Result<bool> {
        match deed {
            Deed::Signal(whom, signal) => Ok(self.signal(*whom, *signal)),
            Deed::Interrupts => {
                let first = self.signal(Whom::Coordinator, INT);
                sleep(Duration::from_millis(100));
                self.signal(Whom::Coordinator, INT);
                Ok(first)
            }
            Deed::Pause(whom, ms, ends) => Ok(self.pause(*whom, *ms, *ends)),
            Deed::Clock(text) => fs::write(self.site.base.join("clock"), text).map(|()| true),
            Deed::FullDisk(ms) => self.fill(*ms).map(|()| true),
            Deed::Cut(host, ms) => self.cut(*host, *ms).map(|()| true),
            Deed::PowerLoss(host, ms) => self.power_loss(*host, *ms),
            Deed::Brick(host, ms) => self.brick(*host, *ms),
        }
    }

    fn find(&mut self, whom: Whom) -> Vec<RunProcess> {
        let found = processes::of_run(&self.site.mark, self.lab);
        let mut found: Vec<RunProcess> = found.into_iter().filter(|p| p.is(whom)).collect();
        // Between fork and exec a child has the arguments of its parent.
        let coordinators: Vec<i32> = found.iter().map(|p| p.pid).collect();
        found.retain(|p| whom != Whom::Coordinator || !coordinators.contains(&p.parent));
        if !matches!(whom, Whom::All | Whom::Group) && found.len() > 1 {
            found = vec![self.random.of(&found)];
        }
        found
    }

    fn signal(&mut self, whom: Whom, signal: i32) -> bool {
        if whom == Whom::Group {
            let leader = self.find(Whom::Coordinator);
            return leader.first().is_some_and(|p| kill_process_group(pid(p.pid), number(signal)).is_ok());
        }
        let mut some = false;
        loop {
            let found = self.find(whom).iter().filter(|p| send(p.pid, signal)).count();
            some |= found > 0;
            // The first search missed processes that started meanwhile. When all are killed, no process is left to
            // end those.
            if found == 0 || (whom, signal) != (Whom::All, KILL) {
                return some;
            }
        }
    }

    fn pause(&mut self, whom: Whom, ms: u64, ends: bool) -> bool {
        let stopped: Vec<RunProcess> = self.find(whom).into_iter().filter(|p| send(p.pid, STOP)).collect();
        sleep(Duration::from_millis(ms));
        for process in &stopped {
            send(process.pid, if ends { KILL } else { CONT });
        }
        if ends && whom == Whom::All {
            self.signal(whom, KILL);
        }
        !stopped.is_empty()
    }

    /// Fills the small disk with a file.
    fn fill(&self, ms: u64) -> io::Result<()> {
        let ballast = self.site.base.join("disk/ballast");
        let mut file = File::create(&ballast)?;
        for size in [64 << 10, 512, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        sleep(Duration::from_millis(ms));
        fs::remove_file(ballast)
    }

    fn cut(&self, host: u64, ms: u64) -> io::Result<()> {
        let Some(lab) = self.lab else { return Ok(()) };
        let link = link(lab, host)?;
        let set = |to: &str| Command::new("ip").args(["link", "set", &link, to]).status();
        set("down")?;
        sleep(Duration::from_millis(ms));
        set("up").map(drop)
    }

    /// Kills the first process of the host, and with it all others. Then boots the host again.
    fn power_loss(&self, host: u64, ms: u64) -> io::Result<bool> {
        let Some(lab) = self.lab else { return Ok(false) };
        let name = format!("n{host}");
        let plan = homing_lab::load(lab).map_err(io::Error::other)?;
        let first = plan.host(&name).and_then(|host| homing_lab::leader_of(&host));
        let killed = first.is_some_and(|process| send(process, KILL));
        sleep(Duration::from_millis(ms));
        homing_lab::reboot(lab, &name).map_err(io::Error::other)?;
        Ok(killed)
    }

    fn brick(&self, host: u64, ms: u64) -> io::Result<bool> {
        let Some(lab) = self.lab else { return Ok(false) };
        let killed = processes::bricks(lab, host).iter().filter(|brick| send(**brick, KILL)).count() > 0;
        sleep(Duration::from_millis(ms));
        let mut start = homing_lab::exec(lab, &format!("n{host}")).map_err(io::Error::other)?;
        start.args(["gluster", "--mode=script", "volume", "start", "data", "force"]).stdout(Stdio::null());
        start.status().map(|_| killed)
    }
}

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).expect("a process has a number above 0")
}

fn number(signal: i32) -> Signal {
    Signal::from_named_raw(signal).expect("one of those of a scenario")
}

/// Sends a signal. Returns false if there is no such process.
pub fn send(process: i32, signal: i32) -> bool {
    kill_process(pid(process), number(signal)).is_ok()
}

/// Damages the journal of the run. Returns the lines that the damage changed, which count as no records any more.
pub fn damage(site: &RunFolders, run: &str, damage: Damage) -> io::Result<Vec<Vec<u8>>> {
    let path = site.kept(SmallDiskContent::Runs).join(run).join("journal.jsonl");
    let before = fs::read(&path)?;
    let mut after = before.clone();
    match damage {
        Damage::Torn(bytes) => after.truncate(after.len().saturating_sub(bytes as usize)),
        Damage::Bit(place, bit) => {
            // The first record is the run itself. Without it there is nothing to resume.
            let first = before.iter().position(|b| *b == b'\n').map_or(before.len(), |at| at + 1);
            let at = first + (before.len() - first) * place as usize / 1000;
            if let Some(byte) = after.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
    }
    fs::write(&path, &after)?;
    let lines = |bytes: &[u8]| bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let old = lines(&before);
    Ok(lines(&after).into_iter().filter(|line| !line.is_empty() && !old.contains(line)).collect())
}
