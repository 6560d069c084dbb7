//! Exchanges files between a coordinator and watchers of its run in other processes of the same user. The files are
//! in a folder below the run's, which exists only if someone has watched the run. It needs no port and no daemon. It
//! also works from another machine that sees the run's folder.

use homing_model::{Live, TaskId};
use homing_os::folder::write_whole;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The folder, in the folder of a run.
pub(crate) const FOLDER: &str = "watch";
/// The file whose modification time shows that someone watches.
pub(crate) const WATCHER: &str = "watcher";
const LIVE: &str = "live.json";
const SHOWN_FILE: &str = "shown";
/// The time between two looks of a coordinator. Users notice no shorter one.
const LOOK: Duration = Duration::from_secs(1);
/// The time after which a silent watcher counts as gone.
const GONE: Duration = Duration::from_secs(5);

/// A request of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatcherRequest {
    /// End this task.
    End(TaskId),
    /// Show the output of this task.
    Show(TaskId),
}

impl WatcherRequest {
    /// Returns the name of the file of the request.
    fn file(self) -> String {
        match self {
            WatcherRequest::End(task) => format!("end-{task}"),
            WatcherRequest::Show(task) => format!("show-{task}"),
        }
    }

    fn of(file: &str) -> Option<WatcherRequest> {
        let (what, task) = file.split_once('-')?;
        let task = task.parse().ok()?;
        Some(match what {
            "end" => WatcherRequest::End(task),
            "show" => WatcherRequest::Show(task),
            _ => return None,
        })
    }
}

/// The folder of a run's watchers.
#[derive(Clone, Debug)]
pub struct WatcherFolder(PathBuf);

impl WatcherFolder {
    /// Returns the folder of the run in `run`.
    pub fn of(run: &Path) -> WatcherFolder {
        WatcherFolder(run.join(FOLDER))
    }

    /// Signals that someone watches. Called again every second or two. An error means that the folder belongs to
    /// another user or its disk is full. Then only the journal can be read. Root does not write into the folder of
    /// another user either, because that user may have made it a link to another place.
    pub fn signal_presence(&self) -> io::Result<()> {
        let run = self.0.parent().unwrap_or(&self.0);
        if fs::metadata(run)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the run is another user's"));
        }
        match fs::create_dir(&self.0) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => write_whole(&self.0.join(WATCHER), b"", Some(0o600)),
        }
    }

    /// Makes a request. The coordinator carries it out within a second or two.
    pub fn send_request(&self, what: WatcherRequest) -> io::Result<()> {
        write_whole(&self.0.join(what.file()), b"", Some(0o600))
    }

    /// Returns the last state that the coordinator wrote.
    pub fn live(&self) -> Option<Live> {
        serde_json::from_slice(&fs::read(self.0.join(LIVE)).ok()?).ok()
    }

    /// Returns the output of a task that was requested.
    pub fn shown(&self, task: TaskId) -> Option<Vec<u8>> {
        fs::read(self.0.join(format!("{SHOWN_FILE}-{task}"))).ok()
    }

    /// Returns the requests. Each file is removed before its request is carried out, so a later request is seen
    /// again.
    fn take_requests(&self) -> Vec<WatcherRequest> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let asked: Vec<WatcherRequest> =
            names.filter_map(|entry| WatcherRequest::of(entry.file_name().to_str()?)).collect();
        asked.into_iter().filter(|asked| fs::remove_file(self.0.join(asked.file())).is_ok()).collect()
    }

    fn write_state(&self, live: &Live) -> io::Result<()> {
        write_whole(&self.0.join(LIVE), &serde_json::to_vec(live)?, Some(0o600))
    }

    fn show(&self, task: TaskId, text: &[u8]) -> io::Result<()> {
        write_whole(&self.0.join(format!("{SHOWN_FILE}-{task}")), text, Some(0o600))
    }

    /// Returns the last time at which a watcher signalled, by the clock of the file system.
    fn last_signal(&self) -> Option<SystemTime> {
        fs::symlink_metadata(self.0.join(WATCHER)).and_then(|file| file.modified()).ok()
    }

    /// Removes the folder when the run is over.
    fn end(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The coordinator's view of the watchers. Without a watcher it checks once a second whether a file exists.
pub struct Watched {
    watch: WatcherFolder,
    looked: Option<Instant>,
    /// The file's time, and the instant at which it was first seen. The instant is on the coordinator's clock,
    /// because the run's folder may be on another machine.
    said: Option<(SystemTime, Instant)>,
    has_told: bool,
}

impl Watched {
    /// Makes the view of the run in this folder.
    pub fn new(run: &Path) -> Watched {
        Watched { watch: WatcherFolder::of(run), looked: None, said: None, has_told: false }
    }

    /// Returns whether someone watches, or `None` if it is too early for another look. Watchers expect a new state
    /// then.
    pub fn look(&mut self, now: Instant) -> Option<bool> {
        if self.looked.is_some_and(|looked| now - looked < LOOK) {
            return None;
        }
        self.looked = Some(now);
        let is_watched = self.is_watched(self.watch.last_signal(), now);
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

    /// Returns the requests of watchers, each once.
    pub fn take_requests(&self) -> Vec<WatcherRequest> {
        self.watch.take_requests()
    }

    /// Writes the output of a task for watchers. Errors such as a full disk do not affect the run.
    pub fn show(&self, task: TaskId, text: &[u8]) {
        let _ = self.watch.show(task, text);
    }

    /// Writes the state of the run for watchers. Errors do not affect the run.
    pub fn write_state(&self, live: &Live) {
        let _ = self.watch.write_state(live);
    }

    /// Removes the folder at the end of the run.
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
        let watch = WatcherFolder::of(run.path());
        assert!(
            watch.last_signal().is_none()
                && watch.live().is_none()
                && watch.send_request(WatcherRequest::End(7)).is_err()
        );
        watch.signal_presence().unwrap();
        assert!(watch.last_signal().is_some());
        watch.send_request(WatcherRequest::End(7)).unwrap();
        fs::write(run.path().join(FOLDER).join("end-soon"), "").unwrap();
        assert_eq!((watch.take_requests(), watch.take_requests()), (vec![WatcherRequest::End(7)], vec![]));
        let live = Live { at_ns: 3, ..Live::default() };
        watch.write_state(&live).unwrap();
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
        // A watcher with a clock that runs the other way is seen, too.
        assert!(watched.is_watched(said(7), at(7)));
    }

    #[test]
    fn a_coordinator_looks_once_a_second_and_cleans_up_what_it_told() {
        let run = tempfile::tempdir().unwrap();
        let (watch, mut watched, begun) = (WatcherFolder::of(run.path()), Watched::new(run.path()), Instant::now());
        assert_eq!((watched.look(begun), watched.look(begun)), (Some(false), None));
        watch.signal_presence().unwrap();
        assert_eq!(watched.look(begun + LOOK), Some(true));
        watched.show(3, b"printed");
        assert_eq!(watch.shown(3).as_deref(), Some(&b"printed"[..]));
        watched.leave();
        assert!(!run.path().join(FOLDER).exists());
    }
}
