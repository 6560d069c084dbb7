//! Declared outputs of a task that did not succeed must not look finished.
//!
//! A marker file beside each output says that an attempt is under way. It is
//! removed on success. When the attempt fails, what it wrote is renamed. The
//! marker alone survives a machine that stops dead: `--skip-newer` sees it.

use crate::view::View;
use homing_model::{Change, RawText};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The marker of an output: `.NAME.homing-unfinished` in the same directory.
pub fn marker_path(output: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or_default());
    name.push(".homing-unfinished");
    output.with_file_name(name)
}

fn partial_path(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".homing-partial");
    output.with_file_name(name)
}

/// What a file was before an attempt: inode, size, change time.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    fs::symlink_metadata(path).ok().map(|m| (m.ino(), m.size(), m.ctime(), m.ctime_nsec()))
}

/// The declared outputs of one attempt.
pub(crate) struct Outputs {
    files: Vec<Output>,
}

struct Output {
    /// Its name on the other hosts.
    shown: PathBuf,
    path: PathBuf,
    before: Stamp,
}

impl Outputs {
    /// Sets the markers. A marker that cannot be made (no such directory yet) is left out.
    pub fn begin(outputs: &[RawText], cwd: &Path, view: &View) -> Outputs {
        let output = |name: &RawText| {
            let shown = cwd.join(name.as_path());
            let path = view.real(&shown);
            let before = stamp(&path);
            let _ = fs::write(marker_path(&path), b"");
            Output { shown, path, before }
        };
        Outputs { files: outputs.iter().map(output).collect() }
    }

    /// The attempt succeeded: what other hosts have to look at before they read it.
    pub fn keep(self) -> Vec<Change> {
        let mut wrote = Vec::new();
        for Output { shown, path, .. } in self.files {
            wrote.append(&mut homing_fence::written(&path, &shown));
            let _ = fs::remove_file(marker_path(&path));
        }
        wrote
    }

    /// The attempt did not succeed: what it changed gets another name.
    pub fn set_aside(self) -> Vec<(RawText, RawText)> {
        let mut moved = Vec::new();
        for Output { path, before, .. } in self.files {
            let changed = stamp(&path).is_some_and(|now| before != Some(now));
            let to = partial_path(&path);
            if changed && fs::rename(&path, &to).is_ok() {
                moved.push((path.as_path().into(), to.as_path().into()));
            }
            let _ = fs::remove_file(marker_path(&path));
        }
        moved
    }
}
