//! The limit on power, against a meter of the tasks that were sent and have not ended.

use super::*;
use crate::power::{Circuit, Draw};

/// SplitMix64 (Steele, Lea, Flood 2014): the same sets each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (b ^ (b >> 31)) % most
    }
}

fn circuit(limit_w: f64, hosts: &[(String, u32)], random: &mut Random) -> Circuit {
    let mut draw = || {
        let idle_w = 50.0 + random.below(50) as f64;
        Draw { idle_w, full_w: idle_w + 50.0 + random.below(150) as f64 }
    };
    let hosts: HashMap<String, Draw> = hosts.iter().map(|(name, _)| (name.clone(), draw())).collect();
    let idle: f64 = hosts.values().map(|draw| draw.idle_w).sum();
    Circuit { name: "rack".into(), limit_w: idle + limit_w, hosts }
}

/// Plays one set: hosts, and tasks of some slots that arrive, run, fail and end in any order. Checks the meter after
/// each step. Returns the number of ended tasks, and the highest reading above idle, watts.
fn run(seed: u64) -> (usize, f64) {
    let mut random = Random(seed);
    let hosts: Vec<(String, u32)> =
        (1..=1 + random.below(4)).map(|n| (format!("n{n}"), 1 + random.below(4) as u32)).collect();
    let circuit = circuit(60.0 + random.below(400) as f64, &hosts, &mut random);
    let named: Vec<(&str, u32)> = hosts.iter().map(|(name, slots)| (name.as_str(), *slots)).collect();
    let prefetch = random.below(2) == 0;
    let mut core = core(Policy { power: vec![circuit.clone()], prefetch, tries: Some(2), ..policy() }, &named);
    let tasks = 1 + random.below(16);
    let (mut offered, mut running, mut ended_tasks, mut most) = (0, Vec::<(u64, HostIx, u32)>::new(), 0, 0.0f64);
    for step in 0..2000 {
        if offered < tasks && random.below(3) > 0 {
            offered += 1;
            let holders: Vec<&str> = named.iter().filter(|_| random.below(3) == 0).map(|(name, _)| *name).collect();
            let cpus = 1 + random.below(2) as u32;
            core.offer(Offer { task: Task { cpus, ..task(offered) }, ..offer(offered, &holders) });
        }
        if offered == tasks {
            core.source_ended();
        }
        core.assign(at(step * S / 10).mono);
        for action in core.take_actions() {
            match action {
                Action::Send(host, ToWorker::Run { ticket, task, .. }) => running.push((ticket, host, task.cpus)),
                Action::Ended { record } if record.last => ended_tasks += 1,
                _ => {}
            }
        }
        let meter: f64 = running
            .iter()
            .map(|(_, host, cpus)| {
                let draw = circuit.hosts[named[*host].0];
                f64::from(*cpus) * (draw.full_w - draw.idle_w) / f64::from(named[*host].1)
            })
            .sum();
        let idle: f64 = circuit.hosts.values().map(|draw| draw.idle_w).sum();
        assert!(idle + meter <= circuit.limit_w, "seed {seed}, step {step}: {} of {}", idle + meter, circuit.limit_w);
        most = most.max(meter);
        if !running.is_empty() && random.below(3) == 0 {
            let (ticket, host, _) = running.swap_remove(random.below(running.len() as u64) as usize);
            core.ended(host, ended(ticket, Outcome::Exit(random.below(3) as i32)), at(step * S / 10));
        }
        if core.is_over() {
            break;
        }
    }
    assert!(core.is_over() || core.is_stranded(), "seed {seed}: something waits for ever");
    (ended_tasks, most)
}

#[test]
fn the_limit_is_never_exceeded_in_a_thousand_random_sets_and_all_tasks_end() {
    let all: Vec<(usize, f64)> = (0..1000).map(run).collect();
    assert!(all.iter().map(|(ended, _)| ended).sum::<usize>() > 4000, "tasks did run");
    assert!(all.iter().any(|(_, most)| *most > 300.0), "the limit left room for many");
}

#[test]
fn who_finds_no_room_is_told() {
    let hosts = HashMap::from([("n1".to_string(), Draw { idle_w: 100.0, full_w: 200.0 })]);
    let circuit = Circuit { name: "rack".into(), limit_w: 120.0, hosts };
    let mut core = Core::new(Policy { power: vec![circuit], ..policy() }, Counts::default());
    core.host_up("n1", 2, HostFacts::default());
    let notes = core.take_actions().into_iter().filter_map(|action| match action {
        Action::HostNote(0, text) => Some(text),
        _ => None,
    });
    let notes: Vec<String> = notes.collect();
    assert!(notes.len() == 1 && notes[0].contains("n1") && notes[0].contains("rack"), "{notes:?}");
    core.offer(offer(1, &[]));
    core.assign(at(0).mono);
    assert!(core.take_actions().iter().all(|action| !matches!(action, Action::Send(_, ToWorker::Run { .. }))));
    assert!(core.is_stranded());
}
