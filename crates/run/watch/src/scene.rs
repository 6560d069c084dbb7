//! What there is to see at a moment.

use homing_model::live::{Live, Waits};
use homing_model::text::shown;
use homing_model::units::{bytes, percent};
use homing_report::{FailureState, Fetch, HostState, Now, ServerState, TaskState};

/// What a scene is of: its columns of hosts are those that tell something then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum About {
    /// A run.
    #[default]
    Run,
    /// Hosts, and the jobs on them.
    Hosts,
    /// Hosts at an earlier time, of which nothing is known but their load.
    Past,
}

/// A run, or the hosts of a cluster with the jobs on them.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// What it is of.
    pub about: About,
    /// What is shown: the first line.
    pub title: String,
    /// How far it is.
    pub progress: String,
    /// Bytes, so far.
    pub sums: String,
    /// Hosts.
    pub hosts: Vec<HostState>,
    /// Storage servers.
    pub servers: Vec<ServerState>,
    /// Who reads from whom.
    pub fetches: Vec<Fetch>,
    /// Why tasks wait.
    pub waits: Vec<Waits>,
    /// What failed last.
    pub failures: Vec<FailureState>,
    /// What is under way.
    pub tasks: Vec<TaskState>,
    /// What the last line says besides the keys.
    pub hint: String,
    /// Tasks can be asked for their output, and to end.
    pub is_live: bool,
}

impl Scene {
    /// A run, with what its coordinator tells, if it does.
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

/// What others wrote, without what would move a cursor.
pub(crate) fn plain(text: &str) -> String {
    shown(text)
}
