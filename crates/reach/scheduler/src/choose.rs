//! Chooses the nodes to request, and the number of slots of each.

use crate::BatchNode;
use homing_model::resource::PARTS;

/// The wishes of the run for its nodes.
#[derive(Clone, Debug, Default)]
pub struct NodeWishes {
    /// Hosts that hold the data, as the file system names them.
    pub holders: Vec<String>,
    /// The only nodes to use, if the user named some.
    pub only: Option<Vec<String>>,
    /// Number of nodes, if the user set it.
    pub nodes: Option<usize>,
    /// Tasks at once on each node, if the user set it.
    pub jobs: Option<u32>,
    /// Processors of a task.
    pub cpus_per_task: u32,
    /// Memory of a task, MiB.
    pub memory_mb: Option<u64>,
    /// Graphics processors of a task, in parts of one ([`PARTS`]); 0 for none.
    pub gpu_parts: u64,
    /// Number of tasks, if it is known.
    pub tasks: Option<u64>,
    /// Whether the job is to run in a reservation.
    pub in_reservation: bool,
}

/// A node to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The batch system's name for it.
    pub node: String,
    /// Tasks at once there.
    pub slots: u32,
}

/// Most nodes that a run requests if no node holds its data, unless `--nodes` sets another number. It requests as
/// many as its tasks can fill, up to this: it does not take a hundred nodes by default.
const UNASKED: usize = 16;

/// Nodes to request now, and those to request if these fail or are not granted for long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeChoice {
    /// Nodes to request at once.
    pub seats: Vec<Seat>,
    /// Further nodes in this order; none if the user set the nodes or their number.
    pub spares: Vec<Seat>,
}

/// Chooses nodes: those that hold data first, then the emptiest. Nodes that are down or drained are left out. While
/// holders are available, other nodes are left out, too, unless the user wants more nodes.
pub fn choose(nodes: &[BatchNode], wish: &NodeWishes) -> NodeChoice {
    let named = |n: &BatchNode| wish.only.as_ref().is_none_or(|only| only.iter().any(|name| n.is_called(name)));
    let holds = |n: &BatchNode| wish.holders.iter().any(|host| n.is_called(host));
    let mut able: Vec<&BatchNode> =
        nodes.iter().filter(|n| named(n) && n.is_usable(wish.in_reservation) && slots(n, wish) > 0).collect();
    able.sort_by_key(|n| (!holds(n), std::cmp::Reverse(n.idle_cpus)));
    let holders = able.iter().filter(|n| holds(n)).count();
    let enough = match (wish.nodes, &wish.only) {
        (Some(nodes), _) => nodes,
        (None, Some(_)) => usize::MAX,
        (None, None) if holders > 0 => holders,
        (None, None) => enough_for(&able, wish),
    };
    let mut seats: Vec<Seat> = able.into_iter().map(|n| Seat { node: n.name.clone(), slots: slots(n, wish) }).collect();
    let mut spares = seats.split_off(enough.min(seats.len()));
    if wish.nodes.is_some() || wish.only.is_some() {
        spares.clear();
    }
    NodeChoice { seats, spares }
}

fn enough_for(able: &[&BatchNode], wish: &NodeWishes) -> usize {
    let Some(tasks) = wish.tasks else { return UNASKED };
    let mut seats = 0;
    let full = able.iter().position(|n| {
        seats += u64::from(slots(n, wish));
        seats >= tasks
    });
    full.map_or(UNASKED, |at| (at + 1).min(UNASKED))
}

/// Returns the tasks at once on a node. Its number is the user's, or the room in its idle processors and its memory,
/// so that it is granted at once. For a full node it is the room after it has become empty.
fn slots(node: &BatchNode, wish: &NodeWishes) -> u32 {
    let cpus = if node.idle_cpus > 0 { node.idle_cpus } else { node.cpus };
    let each = wish.cpus_per_task.max(1);
    let by_cpus = cpus / each;
    // A node with too few idle processors for one task has to become emptier first.
    let by_cpus = if by_cpus == 0 { node.cpus / each } else { by_cpus };
    let by_memory = wish.memory_mb.map_or(u64::MAX, |mb| node.memory_mb / mb.max(1)).min(u64::from(u32::MAX)) as u32;
    let by_gpus = (u64::from(node.gpus) * PARTS).checked_div(wish.gpu_parts).unwrap_or(u64::MAX);
    let by_gpus = by_gpus.min(u64::from(u32::MAX)) as u32;
    let room = wish.jobs.map_or(by_cpus, |jobs| jobs.min(node.cpus / each)).min(by_memory).min(by_gpus);
    wish.tasks.map_or(room, |tasks| room.min(tasks.clamp(1, u64::from(u32::MAX)) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, state: &str, idle: u32) -> BatchNode {
        let (aliases, reason) = (vec![], String::new());
        BatchNode {
            name: name.into(),
            aliases,
            state: state.into(),
            idle_cpus: idle,
            cpus: 8,
            memory_mb: 8000,
            gpus: 2,
            reason,
        }
    }

    fn nodes() -> Vec<BatchNode> {
        vec![node("a", "idle", 8), node("b", "mixed", 3), node("c", "drained", 0), node("d", "allocated", 0)]
    }

    fn seats(wish: &NodeWishes) -> Vec<(String, u32)> {
        choose(&nodes(), wish).seats.into_iter().map(|s| (s.node, s.slots)).collect()
    }

    fn wish(holders: &[&str]) -> NodeWishes {
        NodeWishes {
            holders: holders.iter().map(|h| h.to_string()).collect(),
            cpus_per_task: 1,
            ..NodeWishes::default()
        }
    }

    #[test]
    fn holders_first_and_only_while_there_are_any() {
        assert_eq!(seats(&wish(&["b", "d"])), [("b".into(), 3), ("d".into(), 8)]);
        let more = NodeWishes { nodes: Some(3), ..wish(&["d"]) };
        assert_eq!(seats(&more), [("d".into(), 8), ("a".into(), 8), ("b".into(), 3)]);
        assert_eq!(seats(&wish(&["c"])).len(), 3, "the holder is drained: all others may read it from afar");
    }

    #[test]
    fn spares_where_the_user_left_the_choice_to_us() {
        let spares = |w: &NodeWishes| choose(&nodes(), w).spares.into_iter().map(|s| s.node).collect::<Vec<_>>();
        assert_eq!(spares(&wish(&["d"])), ["a", "b"]);
        assert!(spares(&NodeWishes { nodes: Some(1), ..wish(&["d"]) }).is_empty());
    }

    #[test]
    fn no_more_than_the_tasks_can_fill() {
        assert_eq!(seats(&NodeWishes { tasks: Some(2), ..wish(&[]) }), [("a".into(), 2)]);
        assert_eq!(seats(&NodeWishes { tasks: Some(9), ..wish(&[]) }), [("a".into(), 8), ("b".into(), 3)]);
        assert_eq!(seats(&NodeWishes { tasks: Some(0), ..wish(&[]) }), [("a".into(), 1)]);
    }

    #[test]
    fn cpus_memory_and_jobs_make_slots() {
        let a = |w: NodeWishes| seats(&NodeWishes { only: Some(vec!["a".into()]), ..w })[0].1;
        assert_eq!(a(NodeWishes { cpus_per_task: 3, ..NodeWishes::default() }), 2);
        assert_eq!(a(NodeWishes { memory_mb: Some(3000), ..wish(&[]) }), 2);
        assert_eq!(a(NodeWishes { jobs: Some(5), ..wish(&[]) }), 5);
        assert!(seats(&NodeWishes { memory_mb: Some(9000), ..wish(&[]) }).is_empty());
        assert!(seats(&NodeWishes { cpus_per_task: 9, ..wish(&[]) }).is_empty());
        assert_eq!(a(NodeWishes { gpu_parts: 100, ..wish(&[]) }), 2, "one graphics processor each, of two");
        assert_eq!(a(NodeWishes { gpu_parts: 50, ..wish(&[]) }), 4);
        assert!(seats(&NodeWishes { gpu_parts: 300, ..wish(&[]) }).is_empty());
    }
}
