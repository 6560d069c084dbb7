//! `--tune nfs`: mounts the export with one set of options after another,
//! measures each from empty caches, and tells the best.

mod advice;
mod kept;
mod page;
mod told;
mod trial;

use super::{Bench, sh};
use homing_model::Failure;
pub use kept::Sweep;
pub use page::page;
use std::path::PathBuf;
pub use told::{apply, table};
use trial::{Setting, Try};

/// What is to be tried.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// The server's max_block_size values, bytes; its NFS service is restarted for each.
    pub server_block: Vec<u64>,
    /// Values of rsize and wsize, bytes, the default besides.
    pub sizes: Vec<u64>,
    /// Numbers of connections, with the best size.
    pub connections: Vec<u32>,
    /// What was measured is written there; what it holds already is not measured again.
    pub save: Option<PathBuf>,
}

/// Prints source and server of an NFS mount.
const SOURCE: &str = r#"findmnt -n -o SOURCE,FSTYPE --target "$1" | awk '$2 ~ /^nfs/ {print $1}' | grep ."#;

/// Runs the sweep from the first host, or what an interrupted one left of it.
pub fn run(bench: &Bench, trials: &Trials) -> Result<Sweep, Failure> {
    let client = &bench.setup.hosts[..1];
    let source = bench.all(client, |_, _| sh(SOURCE, &[&bench.setup.path]), "looking for an NFS mount")?.remove(0);
    let mut sweep = Sweep::open(bench, trials.save.as_deref(), source.trim())?;
    let mut hands = Hands { bench, trials, block: None, warm: false };
    let swept = hands.sweep(&mut sweep);
    // What was mounted for a trial goes, also when the next trial failed.
    let away = trial::unmount(bench);
    swept?;
    away?;
    Ok(sweep)
}

/// What the sweep has done to the hosts so far.
struct Hands<'a> {
    bench: &'a Bench,
    trials: &'a Trials,
    /// The server's max_block_size, when this sweep set it.
    block: Option<u64>,
    /// Whether something was measured.
    warm: bool,
}

impl Hands<'_> {
    fn sweep(&mut self, sweep: &mut Sweep) -> Result<(), Failure> {
        let trials = self.trials;
        for block in std::iter::once(None).chain(trials.server_block.iter().copied().map(Some)) {
            // 0 is the default: what both sides agree on.
            for size in std::iter::once(0).chain(trials.sizes.iter().copied()) {
                self.once(sweep, Setting { block, size, connections: 1 })?;
            }
            self.again(sweep, block)?;
        }
        let best = sweep.best().map_or(Setting::DEFAULT, |t| t.setting);
        let lost = best.block.is_none() && self.block.is_some();
        for connections in trials.connections.iter().filter(|_| !lost) {
            self.once(sweep, Setting { connections: *connections, ..best })?;
        }
        self.again(sweep, best.block)
    }

    /// Measures a setting, unless that was done, or both sides settle on what was measured already.
    fn once(&mut self, sweep: &mut Sweep, setting: Setting) -> Result<(), Failure> {
        if sweep.knows(setting) {
            return Ok(());
        }
        let settled = self.ready(sweep, setting)?;
        let mut new = Try { settled, ..Try::of(setting) };
        match sweep.tries.iter().any(|t| t.settled == new.settled && t.setting.block == setting.block) {
            true => sweep.same.push(setting),
            false => {
                trial::measure(self.bench, &sweep.source, &mut new)?;
                sweep.tries.push(new);
            }
        }
        sweep.keep()
    }

    /// One measurement of one setting is no evidence, and of many single ones the best had luck:
    /// so the default and what is best with this size of the server are measured a second time,
    /// until the best is one that was. Each counts with its mean. With each size before the next:
    /// the server keeps one that was set, so that its own is then no longer to be had.
    fn again(&mut self, sweep: &mut Sweep, block: Option<u64>) -> Result<(), Failure> {
        if block.is_none() && self.block.is_some() {
            return Ok(());
        }
        if block.is_none() && sweep.best_with(None).is_some_and(|best| best != 0) {
            self.twice(sweep, 0)?;
        }
        while let Some(best) = sweep.best_with(block).filter(|&at| at != 0 && sweep.tries[at].write.len() < 2) {
            self.twice(sweep, best)?;
        }
        Ok(())
    }

    fn twice(&mut self, sweep: &mut Sweep, at: usize) -> Result<(), Failure> {
        let mut again = sweep.tries[at].clone();
        if again.write.len() > 1 {
            return Ok(());
        }
        self.ready(sweep, again.setting)?;
        trial::measure(self.bench, &sweep.source, &mut again)?;
        sweep.tries[at] = again;
        sweep.keep()
    }

    /// Mounts for a measurement; what both sides settled on.
    fn ready(&mut self, sweep: &Sweep, setting: Setting) -> Result<String, Failure> {
        self.set_block(sweep, setting.block)?;
        self.warm_up(sweep, setting)?;
        trial::mount(self.bench, &sweep.source, setting)
    }

    /// What comes first pays for programs that are read for the first time, or for the time of
    /// grace in which a server that was restarted lets nobody write, and is thrown away.
    fn warm_up(&mut self, sweep: &Sweep, setting: Setting) -> Result<(), Failure> {
        if std::mem::replace(&mut self.warm, true) {
            return Ok(());
        }
        trial::mount(self.bench, &sweep.source, setting)?;
        trial::measure(self.bench, &sweep.source, &mut Try::of(setting))
    }

    fn set_block(&mut self, sweep: &Sweep, block: Option<u64>) -> Result<(), Failure> {
        if block.is_none() || block == self.block {
            return Ok(());
        }
        (self.block, self.warm) = (block, false);
        trial::set_block(self.bench, sweep.server(), block.unwrap_or(0))
    }
}
