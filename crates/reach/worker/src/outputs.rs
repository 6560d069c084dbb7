//! Keeps the declared outputs of a task that did not succeed from looking finished.
//!
//! A marker file beside each output shows that an attempt is under way. It is removed on success. When the attempt
//! fails, the files that it wrote are renamed. The marker alone survives a machine that stops dead: `--skip-newer`
//! sees it.

use crate::view::MountView;
use homing_model::{FileChange, RawText};
use homing_os::folder::{Existing, make_file};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Further names that are tried for the output of a failed attempt.
const OTHERS: u32 = 20;

/// Returns the marker of an output: `.NAME.homing-unfinished` in the same directory.
pub fn marker_path(output: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or_default());
    name.push(".homing-unfinished");
    output.with_file_name(name)
}

/// Returns names for the output of a failed attempt: `NAME.homing-partial`, then with `.1` and so on at the end.
/// Others may have taken the first.
fn partial_paths(output: &Path) -> impl Iterator<Item = PathBuf> {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".homing-partial");
    let folder = output.parent().unwrap_or(Path::new("")).to_path_buf();
    std::iter::once(name.clone())
        .chain((1..=OTHERS).map(move |n| {
            let mut name = name.clone();
            name.push(format!(".{n}"));
            name
        }))
        .map(move |name| folder.join(name))
}

/// Makes a marker. A link or pipe that another user has planted under its name is removed, and never written through.
fn mark(marker: &Path) {
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    if !is_file(marker) {
        let _ = make_file(marker, Existing::Replace, 0o666);
    }
}

/// The state of a file before an attempt: inode, size, change time.
type OutputStamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Path) -> OutputStamp {
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
    before: OutputStamp,
}

impl Outputs {
    /// Makes the markers. One that cannot be made (no such directory yet) is left out.
    pub fn begin(outputs: &[RawText], cwd: &Path, view: &MountView) -> Outputs {
        let output = |name: &RawText| {
            let shown = cwd.join(name.as_path());
            let path = view.real(&shown);
            let before = stamp(&path);
            mark(&marker_path(&path));
            Output { shown, path, before }
        };
        Outputs { files: outputs.iter().map(output).collect() }
    }

    /// Removes the markers of a successful attempt. Returns the changes that other hosts must look at before they
    /// read.
    pub fn keep(self) -> Vec<FileChange> {
        let mut wrote = Vec::new();
        for Output { shown, path, .. } in self.files {
            wrote.append(&mut homing_fence::written(&path, &shown));
            let _ = fs::remove_file(marker_path(&path));
        }
        wrote
    }

    /// Renames the outputs that a failed attempt changed, and removes the markers. Returns the old and new names.
    pub fn set_aside(self) -> Vec<(RawText, RawText)> {
        let mut moved = Vec::new();
        for Output { path, before, .. } in self.files {
            let changed = stamp(&path).is_some_and(|now| before != Some(now));
            let renamed = |to: &PathBuf| fs::rename(&path, to).is_ok();
            if let Some(to) = partial_paths(&path).filter(|_| changed).find(renamed) {
                moved.push((path.as_path().into(), to.as_path().into()));
            }
            let _ = fs::remove_file(marker_path(&path));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn begin(dir: &Path) -> Outputs {
        Outputs::begin(&["out".into()], dir, &MountView::default())
    }

    #[test]
    fn planted_markers_are_replaced_and_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, marker) = (dir.path().join("kept"), marker_path(&dir.path().join("out")));
        fs::write(&kept, "precious").unwrap();
        symlink(&kept, &marker).unwrap();
        let outputs = begin(dir.path());
        assert!(marker.symlink_metadata().unwrap().is_file());
        outputs.keep();
        assert_eq!(fs::read(&kept).unwrap(), b"precious");
        assert!(marker.symlink_metadata().is_err());
        // A link to a file that does not exist yet, and a pipe without a reader.
        symlink(dir.path().join("new"), &marker).unwrap();
        begin(dir.path()).keep();
        assert!(!dir.path().join("new").exists());
        rustix::fs::mknodat(rustix::fs::CWD, &marker, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
        begin(dir.path()).keep();
        assert!(marker.symlink_metadata().is_err());
        fs::create_dir(&marker).unwrap();
        begin(dir.path()).keep();
    }

    #[test]
    fn what_a_failed_attempt_wrote_is_set_aside_beside_a_planted_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("out.homing-partial")).unwrap();
        let outputs = begin(dir.path());
        fs::write(at("out"), "half").unwrap();
        assert_eq!(outputs.set_aside().len(), 1);
        assert_eq!(fs::read(at("out.homing-partial.1")).unwrap(), b"half");
        assert!(!at("out").exists());
    }
}
