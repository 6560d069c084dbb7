//! The threads of one build: those that receive messages of stubs, and the coordinator.

use crate::asked::BuildEvent;
use crate::connection;
use crate::core::Core;
use crate::host::BuildHost;
use crate::near::Near;
use crate::reporter::{BuildReporter, Listener};
use crate::{Build, BuildSnapshot, Evidence};
use homing_exec::Remote;
use homing_launch::{HostLinks, Options};
use homing_model::TaskId;
use homing_os::threads::begin;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Numbers of stubs.
#[derive(Default)]
pub struct Traffic {
    /// Served now.
    pub now: AtomicUsize,
    /// Ever served.
    pub ever: AtomicU64,
}

/// Handle of watching programs to a coordinator.
pub struct Asker(Sender<BuildEvent>);

impl Asker {
    /// Returns the state of the build, with the output of these tasks. `None` if the build is over.
    pub fn look(&self, shown: &[TaskId]) -> Option<BuildSnapshot> {
        let (reply, seen) = channel();
        self.0.send(BuildEvent::Watched { shown: shown.to_vec(), reply }).ok()?;
        seen.recv().ok()
    }

    /// Ends a task.
    pub fn end(&self, task: TaskId) {
        let _ = self.0.send(BuildEvent::End { task });
    }
}

/// A coordinator at work.
pub struct BuildSession {
    news: Sender<BuildEvent>,
    core: JoinHandle<Evidence>,
    /// The served stubs.
    pub traffic: Arc<Traffic>,
}

impl BuildSession {
    /// Listens at `socket`, while the hosts connect. The `listener` receives the events of the build.
    ///
    /// # Errors
    /// The step that failed, for a person.
    pub fn start(socket: &Path, build: Build, listener: Box<dyn Listener>) -> Result<BuildSession, String> {
        let (news, inbox) = channel();
        // Done before the walk through the folder, which takes time if it is large.
        let hosts = connected(&build, &news).map_err(|e| e.to_string())?;
        let near = Arc::new(looked_through(&build)?);
        let traffic = listen(socket, &near, &news)?;
        let core = Core::new(build, hosts, near, BuildReporter::to(listener));
        let core = begin(move || core.serve(&inbox)).map_err(|e| e.to_string())?;
        Ok(BuildSession { news, core, traffic })
    }

    /// Returns a handle for watching programs.
    pub fn asker(&self) -> Asker {
        Asker(self.news.clone())
    }

    /// Ends the workers.
    pub fn end(self) -> Evidence {
        let _ = self.news.send(BuildEvent::Over);
        self.core.join().unwrap_or_default()
    }
}

/// Connects the hosts. Channels use the connections that `homing exec` also keeps, so that a second build does not
/// exchange keys with each host again.
fn connected(build: &Build, news: &Sender<BuildEvent>) -> std::io::Result<HostLinks<BuildHost>> {
    let kept = |target: &str| Remote::new(homing_exec::Options::default()).way_to(target);
    let options = Options { kept, ..Options::default() };
    let (hosts, notes) = (news.clone(), news.clone());
    let tell = move |at, heard| hosts.send(BuildEvent::Host(at, heard)).is_ok();
    let note = move |text| drop(notes.send(BuildEvent::Note(text)));
    HostLinks::open(BuildHost::new, build.plans.clone(), build.tree, options, tell, note)
}

/// Reads the folder and all below it, without a time limit as long as the mounts there answer.
fn looked_through(build: &Build) -> Result<Near, String> {
    let (root, fenced, own) = (&build.root, build.fenced, build.locators.clone());
    let lines = homing_mounts::read().unwrap_or_default();
    let below = lines.iter().map(|line| line.mount.point.to_path()).filter(|point| point.starts_with(root));
    let looked = std::iter::once(root.clone()).chain(below).collect();
    let folder = root.clone();
    let near = homing_mounts::patiently(looked, homing_mounts::FS_TIMEOUT, move || Near::new(&folder, fenced, own));
    near.map_err(|silent| silent.to_string())?.map_err(|e| format!("cannot watch {}: {e}", root.display()))
}

fn listen(socket: &Path, near: &Arc<Near>, news: &Sender<BuildEvent>) -> Result<Arc<Traffic>, String> {
    let listener =
        UnixListener::bind(socket).map_err(|e| format!("cannot make the socket {}: {e}", socket.display()))?;
    let traffic = Arc::new(Traffic::default());
    let (near, news, counts) = (near.clone(), news.clone(), traffic.clone());
    let accept = move || {
        for stream in listener.incoming().flatten().map(Arc::new) {
            let (near, news, counts, theirs) = (near.clone(), news.clone(), counts.clone(), stream.clone());
            let served = begin(move || {
                counts.now.fetch_add(1, Ordering::SeqCst);
                let id = counts.ever.fetch_add(1, Ordering::SeqCst);
                connection::serve(id, &theirs, &near, &news);
                counts.now.fetch_sub(1, Ordering::SeqCst);
            });
            if let Err(error) = served {
                connection::refuse(&stream, &error);
            }
        }
    };
    begin(accept).map_err(|e| e.to_string())?;
    Ok(traffic)
}
