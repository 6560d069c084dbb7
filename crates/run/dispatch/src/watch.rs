//! What passes between a coordinator and those who watch its run from other processes of its user: files in a folder
//! of the run's own, which is there only when somebody has watched it. No port, no daemon; on another machine that
//! sees the run's folder too.

use homing_model::{Live, TaskId};
use homing_os::folder::write_whole;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The folder, in that of a run.
pub(crate) const FOLDER: &str = "watch";
/// Its time of change tells that somebody watches.
pub(crate) const WATCHER: &str = "watcher";
const LIVE: &str = "live.json";
const SHOWN_FILE: &str = "shown";
/// Between two looks of a coordinator. People see no more.
const LOOK: Duration = Duration::from_secs(1);
/// Whoever has not said for so long that he watches has gone.
const GONE: Duration = Duration::from_secs(5);

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
    fn asked(&self) -> Vec<Asked> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let asked: Vec<Asked> = names.filter_map(|entry| Asked::of(entry.file_name().to_str()?)).collect();
        asked.into_iter().filter(|asked| fs::remove_file(self.0.join(asked.file())).is_ok()).collect()
    }

    fn tell(&self, live: &Live) -> io::Result<()> {
        write_whole(&self.0.join(LIVE), &serde_json::to_vec(live)?, Some(0o600))
    }

    fn show(&self, task: TaskId, text: &[u8]) -> io::Result<()> {
        write_whole(&self.0.join(format!("{SHOWN_FILE}-{task}")), text, Some(0o600))
    }

    /// When somebody said last that he watches, as the file system has it.
    fn said(&self) -> Option<SystemTime> {
        fs::symlink_metadata(self.0.join(WATCHER)).and_then(|file| file.modified()).ok()
    }

    /// Nobody needs what was told of a run that is over.
    fn end(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Those who watch a run, as its coordinator knows them. One that nobody watches looks once a second whether a file is
/// there.
pub struct Watched {
    watch: Watch,
    looked: Option<Instant>,
    /// What the file's time was, and since when it is: by our clock, as the run's folder may be another machine's.
    said: Option<(SystemTime, Instant)>,
    has_told: bool,
}

impl Watched {
    /// The run in this folder.
    pub fn new(run: &Path) -> Watched {
        Watched { watch: Watch::of(run), looked: None, said: None, has_told: false }
    }

    /// Whether somebody watches; `None` where it is too early for another look. Those who do are to be told then.
    pub fn look(&mut self, now: Instant) -> Option<bool> {
        if self.looked.is_some_and(|looked| now - looked < LOOK) {
            return None;
        }
        self.looked = Some(now);
        let is_watched = self.is_watched(self.watch.said(), now);
        self.has_told |= is_watched;
        Some(is_watched)
    }

    fn is_watched(&mut self, said: Option<SystemTime>, now: Instant) -> bool {
        match (self.said, said) {
            (_, None) => self.said = None,
            (Some((known, _)), Some(said)) if known == said => {}
            (_, Some(said)) => self.said = Some((said, now)),
        }
        self.said.is_some_and(|(_, since)| now - since < GONE)
    }

    /// What they ask for, each once.
    pub fn asked(&self) -> Vec<Asked> {
        self.watch.asked()
    }

    /// Shows what a task has printed. A full disk keeps a run from nothing.
    pub fn show(&self, task: TaskId, text: &[u8]) {
        let _ = self.watch.show(task, text);
    }

    /// Tells what goes on, likewise.
    pub fn tell(&self, live: &Live) {
        let _ = self.watch.tell(live);
    }

    /// What was told goes with the run.
    pub fn leave(&self) {
        if self.has_told {
            self.watch.end();
        }
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

    #[test]
    fn who_says_nothing_for_a_while_has_gone() {
        let (mut watched, begun) = (Watched::new(Path::new("/nowhere")), Instant::now());
        let said = |s| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        let at = |s| begun + Duration::from_secs(s);
        assert!(!watched.is_watched(None, begun));
        assert!(watched.is_watched(said(900), at(1)) && watched.is_watched(said(900), at(5)));
        assert!(!watched.is_watched(said(900), at(6)));
        // Whose clock runs the other way is there, too.
        assert!(watched.is_watched(said(7), at(7)));
    }

    #[test]
    fn a_coordinator_looks_once_a_second_and_cleans_up_what_it_told() {
        let run = tempfile::tempdir().unwrap();
        let (watch, mut watched, begun) = (Watch::of(run.path()), Watched::new(run.path()), Instant::now());
        assert_eq!((watched.look(begun), watched.look(begun)), (Some(false), None));
        watch.say().unwrap();
        assert_eq!(watched.look(begun + LOOK), Some(true));
        watched.show(3, b"printed");
        assert_eq!(watch.shown(3).as_deref(), Some(&b"printed"[..]));
        watched.leave();
        assert!(!run.path().join(FOLDER).exists());
    }
}
