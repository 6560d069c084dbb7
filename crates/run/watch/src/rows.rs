//! Makes the cells of the tables on the screen.

use crate::scene::{About, plain};
use crate::view::{HostOrder, TaskOrder, WatchView};
use crate::{Scene, view};
use homing_model::fit::clipped;
use homing_model::units::{bytes, short_span};
use homing_report::HostState;

/// The most columns of a host's trouble; ssh's message may have more than the rest of the row.
const TROUBLE: usize = 36;

/// A table: its head, its rows, and the noun of a row.
pub(crate) struct Rows {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub noun: &'static str,
    /// Whether the row shows trouble.
    pub bad: Vec<bool>,
}

impl Rows {
    fn new<const N: usize>(noun: &'static str, head: [&str; N], rows: Vec<[String; N]>) -> Rows {
        let bad = vec![false; rows.len()];
        let rows = rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
        Rows { head: head.map(String::from).to_vec(), rows, noun, bad }
    }

    fn without(mut self, names: &[&str]) -> Rows {
        for name in names {
            if let Some(column) = self.head.iter().position(|head| head.trim_end_matches('*') == *name) {
                self.head.remove(column);
                self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            }
        }
        self
    }

    /// Adds a star to the head of the column that the rows are sorted by.
    fn sorted_by(mut self, column: Option<usize>) -> Rows {
        column.into_iter().for_each(|column| self.head[column].push('*'));
        self
    }
}

fn rate(value: Option<f64>, unit: &str) -> String {
    value.map_or("-".into(), |n| format!("{n:.0} {unit}"))
}

/// Returns the trouble of a host. Hosts as they are now have their whole messages below the table.
fn trouble(scene: &Scene, host: &HostState) -> String {
    let whole = host.trouble.clone().unwrap_or_default();
    if scene.about == About::Hosts { clipped(&whole, TROUBLE) } else { whole }
}

pub(crate) fn hosts(view: &WatchView, scene: &Scene) -> Rows {
    let hosts = view.hosts(scene);
    let bad = hosts.iter().map(|host| host.trouble.is_some()).collect();
    let net = |host: &HostState| match (host.net, host.link) {
        (Some(net), Some(link)) => format!("{net:.0} MB/s {link:.0} %"),
        (net, _) => rate(net, "MB/s"),
    };
    let row = |host: &HostState| {
        let [slots, done] = [format!("{}/{}", host.running, host.slots), host.done.to_string()];
        let cores = if host.slots > 0 { host.slots.to_string() } else { "-".into() };
        let [cpu, stalled] = [rate(host.cpu, "%"), rate(host.stalled, "%")];
        let free = host.memory.map_or("-".into(), |mib| bytes((mib * f64::from(1 << 20)) as u64));
        let (disk, trouble) = (rate(host.disk, "MB/s"), trouble(scene, host));
        let failed = host.failed.to_string();
        [host.name.clone(), trouble, slots, cores, done, failed, cpu, stalled, free, disk, net(host)]
    };
    // Trouble is beside the name: at the end of the row a narrow screen would cut it off.
    let head = ["HOST", "", "SLOTS", "CORES", "DONE", "FAILED", "CPU", "I/O WAIT", "FREE MEM", "DISK", "NET, LINK"];
    let sorted_by = match view.host_order {
        HostOrder::Busy => "SLOTS",
        HostOrder::Name => "HOST",
        HostOrder::Cpu => "CPU",
        HostOrder::Stalled => "I/O WAIT",
        HostOrder::Net => "NET, LINK",
    };
    let column = head.iter().position(|name| *name == sorted_by);
    let rows = Rows::new("host", head, hosts.iter().map(row).collect()).sorted_by(column);
    let rows = Rows { bad, ..rows };
    let untold: &[&str] = match scene.about {
        About::Run => &["CORES", "FREE MEM"],
        About::Hosts => &["CORES", "DONE", "FAILED"],
        About::Past => &["SLOTS", "DONE", "FAILED"],
    };
    let rows = rows.without(untold);
    if rows.bad.contains(&true) { rows } else { rows.without(&[""]) }
}

pub(crate) fn servers(scene: &Scene) -> Rows {
    let limit = |limit: Option<u32>| limit.map_or("none".into(), |n| n.to_string());
    let rows = scene.servers.iter().map(|s| [s.name.clone(), limit(s.limit), s.held_by(), s.why.clone()]);
    Rows::new("server", ["SERVER", "LIMIT", "HELD BY", "WHY"], rows.collect())
}

pub(crate) fn waits(scene: &Scene) -> Rows {
    let rows = scene.waits.iter().map(|waits| [waits.tasks.to_string(), waits.why.clone()]);
    Rows::new("reason", ["WAITING", "FOR"], rows.collect())
}

pub(crate) fn fetches(scene: &Scene) -> Rows {
    let rows = scene.fetches.iter().map(|f| [f.to.clone(), f.from.clone(), f.tasks.to_string(), bytes(f.bytes)]);
    Rows::new("pair", ["READS", "FROM", "TASKS", "BYTES"], rows.collect())
}

pub(crate) fn failures(scene: &Scene) -> Rows {
    let rows = scene
        .failures
        .iter()
        .map(|f| [f.task.to_string(), f.host.clone(), f.how.clone(), f.took.clone(), f.command.clone()]);
    let rows = Rows::new("failure", ["FAILED", "HOST", "HOW", "AFTER", "COMMAND, AND ITS LAST WORDS"], rows.collect());
    Rows { bad: vec![true; rows.rows.len()], ..rows }
}

pub(crate) fn tasks(view: &view::WatchView, scene: &Scene) -> Rows {
    let rows = view.tasks(scene).into_iter().map(|task| {
        let slot = if task.slot > 0 { task.slot.to_string() } else { "-".into() };
        let moved = task.moved.map_or("-".into(), bytes);
        [task.name.clone(), task.host.clone(), slot, short_span(task.age), moved, task.command.clone()]
    });
    let column = match view.task_order {
        TaskOrder::Age => 3,
        TaskOrder::Moved => 4,
        TaskOrder::Host => 1,
        TaskOrder::Number => 0,
    };
    Rows::new("task", ["TASK", "HOST", "SLOT", "FOR", "MOVED", "COMMAND"], rows.collect()).sorted_by(Some(column))
}
