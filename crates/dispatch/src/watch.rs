//! What passes between a coordinator and those who watch its run from other processes of its user: files in a folder
//! of the run's own, which is there only when somebody has watched it. No port, no daemon; on another machine that
//! sees the run's folder too.

use homing_folder::write_whole;
use homing_model::{Live, TaskId};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The end of a task's output that is shown, bytes of each stream: some screens full.
pub const SHOWN: usize = 16 << 10;

/// The folder, in that of a run.
pub(crate) const FOLDER: &str = "watch";
/// Its time of change tells that somebody watches.
pub(crate) const WATCHER: &str = "watcher";
const LIVE: &str = "live.json";
const SHOWN_FILE: &str = "shown";

/// What somebody who watches asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This task is to end.
    End(TaskId),
    /// What this task prints is to be shown.
    Show(TaskId),
}

impl Asked {
    /// The name of the file that asks for it.
    fn file(self) -> String {
        match self {
            Asked::End(task) => format!("end-{task}"),
            Asked::Show(task) => format!("show-{task}"),
        }
    }

    fn of(file: &str) -> Option<Asked> {
        let (what, task) = file.split_once('-')?;
        let task = task.parse().ok()?;
        Some(match what {
            "end" => Asked::End(task),
            "show" => Asked::Show(task),
            _ => return None,
        })
    }
}

/// A run that somebody watches: the folder for it.
#[derive(Clone, Debug)]
pub struct Watch(PathBuf);

impl Watch {
    /// The run in this folder.
    pub fn of(run: &Path) -> Watch {
        Watch(run.join(FOLDER))
    }

    /// Says that somebody watches. To be said again every second or two; an error where the folder is another user's
    /// or its disk is full: then nothing more than the journal is to be had. Root writes nothing into the folder of a
    /// user either, who may have made it lead elsewhere.
    pub fn say(&self) -> io::Result<()> {
        let run = self.0.parent().unwrap_or(&self.0);
        if fs::metadata(run)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the run is another user's"));
        }
        match fs::create_dir(&self.0) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => write_whole(&self.0.join(WATCHER), b"", Some(0o600)),
        }
    }

    /// Asks for something; the coordinator takes it up within a second or two.
    pub fn ask(&self, what: Asked) -> io::Result<()> {
        write_whole(&self.0.join(what.file()), b"", Some(0o600))
    }

    /// What was told last.
    pub fn live(&self) -> Option<Live> {
        serde_json::from_slice(&fs::read(self.0.join(LIVE)).ok()?).ok()
    }

    /// What a task had printed that was asked for.
    pub fn shown(&self, task: TaskId) -> Option<Vec<u8>> {
        fs::read(self.0.join(format!("{SHOWN_FILE}-{task}"))).ok()
    }

    /// What is asked for. Whoever takes it up removes it first: who asks again then is heard again.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let asked: Vec<Asked> = names.filter_map(|entry| Asked::of(entry.file_name().to_str()?)).collect();
        asked.into_iter().filter(|asked| fs::remove_file(self.0.join(asked.file())).is_ok()).collect()
    }

    pub(crate) fn tell(&self, live: &Live) -> io::Result<()> {
        write_whole(&self.0.join(LIVE), &serde_json::to_vec(live)?, Some(0o600))
    }

    pub(crate) fn show(&self, task: TaskId, text: &[u8]) -> io::Result<()> {
        write_whole(&self.0.join(format!("{SHOWN_FILE}-{task}")), text, Some(0o600))
    }

    /// When somebody said last that he watches, as the file system has it.
    pub(crate) fn said(&self) -> Option<std::time::SystemTime> {
        fs::symlink_metadata(self.0.join(WATCHER)).and_then(|file| file.modified()).ok()
    }

    /// Nobody needs what was told of a run that is over.
    pub fn end(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_taken_up_once_and_nothing_else_is() {
        let run = tempfile::tempdir().unwrap();
        let watch = Watch::of(run.path());
        assert!(watch.said().is_none() && watch.live().is_none() && watch.ask(Asked::End(7)).is_err());
        watch.say().unwrap();
        assert!(watch.said().is_some());
        watch.ask(Asked::End(7)).unwrap();
        fs::write(run.path().join(FOLDER).join("end-soon"), "").unwrap();
        assert_eq!((watch.asked(), watch.asked()), (vec![Asked::End(7)], vec![]));
        let live = Live { at_ns: 3, ..Live::default() };
        watch.tell(&live).unwrap();
        assert_eq!(watch.live(), Some(live));
        watch.end();
        assert!(!run.path().join(FOLDER).exists());
    }
}
