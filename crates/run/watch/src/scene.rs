//! The data that `homing top` shows of one moment.

use homing_model::live::{Live, WaitGroup};
use homing_model::text::shown;
use homing_model::units::{bytes, percent};
use homing_report::{FailureState, Fetch, HostState, Now, ServerState, TaskState};

/// The subject of a scene. It decides which columns of the hosts carry information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum About {
    /// A run.
    #[default]
    Run,
    /// Hosts, and the jobs on them.
    Hosts,
    /// Hosts at an earlier time. Only their load is known.
    Past,
}

/// A run, or the hosts of a cluster with the jobs on them.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The subject.
    pub about: About,
    /// The first line: the name of the subject.
    pub title: String,
    /// The progress of the run.
    pub progress: String,
    /// The sums of the bytes of inputs.
    pub sums: String,
    /// Hosts.
    pub hosts: Vec<HostState>,
    /// Storage servers.
    pub servers: Vec<ServerState>,
    /// The hosts that read from each server.
    pub fetches: Vec<Fetch>,
    /// The reasons why tasks wait.
    pub waits: Vec<WaitGroup>,
    /// The last failures.
    pub failures: Vec<FailureState>,
    /// The tasks that run.
    pub tasks: Vec<TaskState>,
    /// The text of the last line besides the keys.
    pub hint: String,
    /// Whether a task's output can be requested, and its end.
    pub is_live: bool,
}

impl Scene {
    /// Makes the scene of a run. `live` is the state that its coordinator sends, if there is one.
    pub fn of_run(now: &Now, live: Option<&Live>, progress: String, now_ns: i64) -> Scene {
        let mut scene = Scene {
            title: now.title(),
            progress,
            sums: now.planned().map_or(String::new(), |(home, network)| planned(home, network)),
            hosts: now.host_states(now_ns),
            servers: now.server_states(),
            fetches: now.fetches(),
            failures: now.failure_states(),
            tasks: now.task_states(now_ns),
            ..Scene::default()
        };
        let Some(live) = live else { return scene };
        scene.waits.clone_from(&live.waits);
        for task in &mut scene.tasks {
            let told = live.moved.iter().find(|(id, _)| *id == task.id);
            task.moved = told.map(|(_, mover)| mover.read.max(mover.disk) + mover.written);
        }
        scene
    }
}

fn planned(home: u64, network: u64) -> String {
    format!("inputs  {} at home ({}), {} over the network", bytes(home), percent(home, home + network), bytes(network))
}

/// Removes characters that would move the cursor from text of other programs.
pub(crate) fn plain(text: &str) -> String {
    shown(text)
}
