//! For any batch: every task runs once, never where it must not, never with more than the existing slots, and the
//! batch never gets stuck.

use homing_model::links::{ClusterLinks, Switch};
use homing_place::{Need, Params, Placer};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Size in kB, share per host in percent, cpus, excluded hosts as bits, amounts of two kinds of room.
type Given = (u64, Vec<u64>, u32, u32, Vec<u64>);

/// Amount of each kind of room on each host.
const ROOM: u64 = 4;

#[derive(Clone, Debug)]
struct Batch {
    slots: Vec<u32>,
    tasks: Vec<Given>,
    /// A host that is lost after this many picks, and comes back later.
    lost: (usize, usize),
    locality: bool,
    /// The switch of each host; 2 means unknown.
    switches: Vec<usize>,
    /// Rate of the links above both.
    uplink: Option<u64>,
}

fn batch() -> impl Strategy<Value = Batch> {
    proptest::collection::vec(1u32..5, 1..6).prop_flat_map(|slots| {
        let n = slots.len();
        let share = proptest::sample::select(vec![0u64, 0, 30, 97, 100]);
        let takes = prop_oneof![Just(vec![]), proptest::collection::vec(0..=ROOM, 2)];
        let task = (0u64..100_000, proptest::collection::vec(share, n), 1u32..4, 0u32..(1 << n), takes);
        let tasks = proptest::collection::vec(task, 0..80);
        let switches = (proptest::collection::vec(0usize..3, n), proptest::option::of(1u64..1_000_000_000));
        let all = (Just(slots), tasks, (0..n, 1usize..40), any::<bool>(), switches);
        all.prop_map(|(slots, tasks, lost, locality, (switches, uplink))| Batch {
            slots,
            tasks,
            lost,
            locality,
            switches,
            uplink,
        })
    })
}

/// Returns the remaining room of a host that runs these tasks.
fn room(running: &[(u64, Need)]) -> Vec<u64> {
    let taken = |kind: usize| running.iter().filter_map(|(_, need)| need.takes.get(kind)).sum::<u64>();
    (0..2).map(|kind| ROOM.checked_sub(taken(kind)).expect("never more than there is")).collect()
}

fn links(uplink: Option<u64>) -> ClusterLinks {
    let switch = |name: &str| Switch { name: name.into(), uplink, ..Switch::default() };
    ClusterLinks::new(vec![switch("a"), switch("b")]).unwrap()
}

fn need(task: &Given) -> Need {
    let total = task.0 * 1000;
    let per_host = task.1.iter().enumerate().map(|(h, share)| (h, total * share / 100)).filter(|(_, b)| *b > 0);
    Need {
        total,
        per_host: per_host.collect(),
        writer: Some(task.0 as usize % 5),
        cpus: task.2,
        guessed: false,
        server: None,
        takes: task.4.clone(),
        kind: 0,
    }
}

proptest! {
    #[test]
    fn every_task_once_and_where_it_may(batch in batch()) {
        let mut placer = Placer::new(Params { locality: batch.locality, links: links(batch.uplink), ..Params::default() });
        for (slots, switch) in batch.slots.iter().zip(&batch.switches) {
            let host = placer.host_up(*slots, None);
            placer.host_on(host, Some(*switch).filter(|at| *at < 2));
        }
        let hosts = batch.slots.len();
        for (i, task) in batch.tasks.iter().enumerate() {
            placer.add(i as u64 + 1, need(task));
            (0..hosts).filter(|h| task.3 & 1 << h != 0).for_each(|h| placer.exclude(i as u64 + 1, h));
        }
        let mut free = batch.slots.clone();
        let mut running: Vec<Vec<(u64, Need)>> = vec![Vec::new(); hosts];
        let mut done: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut picks, mut now, mut down) = (0, 0, None);
        loop {
            let mut moved = false;
            for host in 0..hosts {
                placer.set_room(host, room(&running[host]));
                while let Some(placed) = placer.pick(host, free[host], now) {
                    prop_assert!(down != Some(host), "picked for a lost host");
                    prop_assert!(placed.need.cpus <= free[host], "overcommitted");
                    prop_assert_eq!(placed.local + placed.remote, placed.need.total);
                    prop_assert_eq!(&placed.need, &need(&batch.tasks[placed.task as usize - 1]));
                    prop_assert_eq!(batch.tasks[placed.task as usize - 1].3 & 1 << host, 0, "on an excluded host");
                    free[host] -= placed.need.cpus;
                    running[host].push((placed.task, placed.need));
                    placer.set_room(host, room(&running[host]));
                    (picks, moved) = (picks + 1, true);
                    if picks == batch.lost.1 {
                        let host = batch.lost.0;
                        placer.host_lost(host);
                        free[host] = batch.slots[host];
                        running[host].drain(..).for_each(|(task, need)| placer.add(task, need));
                        down = Some(host);
                    }
                }
            }
            now += 1_000_000;
            // The host with most running tasks finishes its oldest.
            if let Some(host) = (0..hosts).max_by_key(|&h| running[h].len()).filter(|&h| !running[h].is_empty()) {
                let (task, need) = running[host].remove(0);
                free[host] += need.cpus;
                *done.entry(task).or_default() += 1;
                placer.finished(host, task, 500_000);
                moved = true;
            }
            if !moved {
                break;
            }
        }
        prop_assert!(done.values().all(|&times| times == 1));
        let stuck = placer.runnable_nowhere();
        prop_assert_eq!(stuck.len(), placer.waiting(), "tasks wait although they may run");
        prop_assert_eq!(stuck.len() + done.len(), batch.tasks.len());
        for task in stuck {
            let (_, _, cpus, excluded, _) = &batch.tasks[task as usize - 1];
            prop_assert!((0..hosts).all(|h| down == Some(h) || excluded & 1 << h != 0 || *cpus > batch.slots[h]));
        }
    }
}
