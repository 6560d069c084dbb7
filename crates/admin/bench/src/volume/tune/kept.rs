//! Saves the measurements of a sweep after each setting: an interrupted sweep continues where it was.

use super::trial::{Export, TrialOptions, Try};
use crate::volume::Bench;
use homing_model::Failure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A sweep, complete or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The export.
    #[serde(flatten)]
    pub export: Export,
    /// The client.
    pub host: String,
    /// Bytes written and read for each measurement.
    pub size: u64,
    /// Each measured setting, the default first.
    pub tries: Vec<Try>,
    /// Settings with which both sides settle on values that were measured with another setting.
    pub same: Vec<TrialOptions>,
    /// The file in which it is saved.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Sweep {
    /// Loads the saved part of this sweep from the file of `--save`, or starts an empty one.
    pub fn open(bench: &Bench, file: Option<&Path>, export: Export) -> Result<Sweep, Failure> {
        let new = Sweep {
            export,
            host: bench.setup.hosts[0].clone(),
            size: bench.setup.size,
            file: file.map(Path::to_path_buf),
            ..Sweep::default()
        };
        let Some(file) = file.filter(|f| f.exists()) else { return Ok(new) };
        let old = Sweep { file: new.file.clone(), ..load(file)? };
        if (&old.export, &old.host, old.size) != (&new.export, &new.host, new.size) {
            let Export { source, base } = &old.export;
            let what = format!("{source} ({base}) of {} with {} bytes", old.host, old.size);
            return Err(Failure::usage(format!("{} has the results of another sweep: {what}", file.display()))
                .hint("name another file with --save, or remove this one"));
        }
        if !old.tries.is_empty() {
            let before = old.tries.len();
            (bench.reporter.note)(&format!(
                "{}: {before} settings are measured already; homing measures the rest",
                file.display()
            ));
        }
        Ok(old)
    }

    /// Returns the export's server.
    pub fn server(&self) -> &str {
        self.export.source.split(':').next().unwrap_or("")
    }

    /// Whether a setting needs no further measurement to be compared.
    pub fn knows(&self, setting: TrialOptions) -> bool {
        self.same.contains(&setting) || self.tries.iter().any(|t| t.setting == setting)
    }

    /// Returns the best measured setting.
    pub fn best(&self) -> Option<&Try> {
        self.tries.iter().max_by(|a, b| a.score().total_cmp(&b.score()))
    }

    /// Returns the index of the best setting with this size of the server.
    pub fn best_with(&self, block: Option<u64>) -> Option<usize> {
        let with = self.tries.iter().enumerate().filter(|(_, t)| t.setting.block == block);
        with.max_by(|(_, a), (_, b)| a.score().total_cmp(&b.score())).map(|(at, _)| at)
    }

    /// Returns the score of the best setting as a multiple of the default's.
    pub fn gain(&self) -> Option<f64> {
        Some(self.best()?.score() / self.tries.first()?.score())
    }

    /// Writes the whole file or nothing: its old content may be worth a night of measuring.
    pub fn keep(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |e: std::io::Error| Failure::system(format!("writing {}: {e}", file.display()));
        let text = serde_json::to_vec_pretty(self).map_err(Failure::system)?;
        homing_os::folder::write_whole(file, &text, None).map_err(failed)
    }
}

fn load(file: &Path) -> Result<Sweep, Failure> {
    let wrong = |e: String| Failure::usage(format!("{} is not a file of a sweep: {e}", file.display()));
    let text = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sweep.json");
        let tried = |size, write: &[f64]| Try {
            write: write.into(),
            read: write.into(),
            ..Try::of(TrialOptions { size, ..TrialOptions::DEFAULT })
        };
        let export = Export { source: "n1:/".into(), base: "vers=3".into() };
        let mut sweep = Sweep { export, file: Some(file.clone()), ..Sweep::default() };
        sweep.tries = vec![tried(0, &[10.0, 14.0]), tried(65536, &[15.0])];
        sweep.same.push(TrialOptions { size: 131072, ..TrialOptions::DEFAULT });
        sweep.keep().unwrap();
        let again = load(&file).unwrap();
        assert_eq!((again.best_with(None), again.best_with(Some(65536))), (Some(1), None));
        assert_eq!((again.server(), &again.tries, again.gain()), ("n1", &sweep.tries, Some(1.25)));
        let known = |size, connections| again.knows(TrialOptions { block: None, size, connections });
        assert_eq!(
            [known(0, 1), known(65536, 1), known(131072, 1), known(4096, 1), known(0, 4)],
            [true, true, true, false, false]
        );
        std::fs::write(&file, "{").unwrap();
        assert!(load(&file).is_err());
    }
}
