//! `--tune nfs`: mounts the export with one set of options after another, measures each with empty caches, and
//! reports the best.

mod advice;
mod kept;
mod output;
mod page;
mod trial;

use super::{Bench, sh};
use homing_model::Failure;
pub use kept::Sweep;
pub use output::{apply, table};
pub use page::page;
use std::path::PathBuf;
use trial::{Export, TrialOptions, Try};

/// The settings to try.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// The server's max_block_size values, bytes; its NFS service is restarted for each.
    pub server_block: Vec<u64>,
    /// Values of rsize and wsize, bytes, besides the default.
    pub sizes: Vec<u64>,
    /// Numbers of connections, with the best size.
    pub connections: Vec<u32>,
    /// The file for measurements; a setting that is in it already is not measured again.
    pub save: Option<PathBuf>,
}

/// Prints the source and the options of an NFS mount.
const EXPORT: &str =
    r#"findmnt -n -r -o SOURCE,FSTYPE,OPTIONS --target "$1" | awk '$2 ~ /^nfs/ {print $1, $3}' | grep ."#;

/// Runs the sweep from the first host, or the rest of an interrupted one.
pub fn run(bench: &Bench, trials: &Trials) -> Result<Sweep, Failure> {
    let client = &bench.setup.hosts[..1];
    let line = bench.all(client, |_, _| sh(EXPORT, &[&bench.setup.path]), "looking for an NFS mount")?.remove(0);
    let unread = || Failure::system(format!("the mount table of {} has no version of NFS: {line:?}", client[0]));
    let export = Export::read(&line).ok_or_else(unread)?;
    let mut sweep = Sweep::open(bench, trials.save.as_deref(), export)?;
    let mut hands = Hands { bench, trials, block: None, warm: false };
    let swept = hands.sweep(&mut sweep);
    // The mount of a trial is removed, even if the next trial failed.
    let away = trial::unmount(bench);
    swept?;
    away?;
    Ok(sweep)
}

/// The state of a sweep on the hosts.
struct Hands<'a> {
    bench: &'a Bench,
    trials: &'a Trials,
    /// The server's max_block_size, if this sweep set it.
    block: Option<u64>,
    /// Whether something was measured.
    warm: bool,
}

impl Hands<'_> {
    fn sweep(&mut self, sweep: &mut Sweep) -> Result<(), Failure> {
        let trials = self.trials;
        for block in std::iter::once(None).chain(trials.server_block.iter().copied().map(Some)) {
            // 0 is the default, on which both sides agree.
            for size in std::iter::once(0).chain(trials.sizes.iter().copied()) {
                self.once(sweep, TrialOptions { block, size, connections: 1 })?;
            }
            self.again(sweep, block)?;
        }
        let best = sweep.best().map_or(TrialOptions::DEFAULT, |t| t.setting);
        let lost = best.block.is_none() && self.block.is_some();
        for connections in trials.connections.iter().filter(|_| !lost) {
            self.once(sweep, TrialOptions { connections: *connections, ..best })?;
        }
        self.again(sweep, best.block)
    }

    /// Measures a setting, unless it was measured, or both sides settle on values that were measured already.
    fn once(&mut self, sweep: &mut Sweep, setting: TrialOptions) -> Result<(), Failure> {
        if sweep.knows(setting) {
            return Ok(());
        }
        let settled = self.ready(sweep, setting)?;
        let mut new = Try { settled, ..Try::of(setting) };
        match sweep.tries.iter().any(|t| t.settled == new.settled && t.setting.block == setting.block) {
            true => sweep.same.push(setting),
            false => {
                trial::measure(self.bench, &sweep.export, &mut new)?;
                sweep.tries.push(new);
            }
        }
        sweep.keep()
    }

    /// Measures the default and the best setting with this server size a second time, until the best one has two
    /// measurements. One measurement is no evidence: the best of many single ones may be luck. Each setting counts
    /// with its mean.
    ///
    /// It runs for each server size before the next one: a server keeps a size that was set, and its own is lost.
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
        trial::measure(self.bench, &sweep.export, &mut again)?;
        sweep.tries[at] = again;
        sweep.keep()
    }

    /// Mounts for a measurement, and returns the values that both sides settled on.
    fn ready(&mut self, sweep: &Sweep, setting: TrialOptions) -> Result<String, Failure> {
        self.set_block(sweep, setting.block)?;
        self.warm_up(sweep, setting)?;
        trial::mount(self.bench, &sweep.export, setting)
    }

    /// Runs a first measurement and discards it. It includes the first loading of programs, and the grace period in
    /// which a restarted server refuses writes.
    fn warm_up(&mut self, sweep: &Sweep, setting: TrialOptions) -> Result<(), Failure> {
        if std::mem::replace(&mut self.warm, true) {
            return Ok(());
        }
        trial::mount(self.bench, &sweep.export, setting)?;
        trial::measure(self.bench, &sweep.export, &mut Try::of(setting))
    }

    fn set_block(&mut self, sweep: &Sweep, block: Option<u64>) -> Result<(), Failure> {
        if block.is_none() || block == self.block {
            return Ok(());
        }
        (self.block, self.warm) = (block, false);
        trial::set_block(self.bench, sweep.server(), block.unwrap_or(0))
    }
}
