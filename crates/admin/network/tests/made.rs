//! Invented networks: each planted fault is found exactly, and nothing else.

use homing_network::{
    BackgroundTraffic, FaultKind, FlowRate, NetworkFinding, NetworkHost, NetworkMeasurements, Pair, Round, RoundOrder,
    findings, mixed, next, sides,
};

/// A network and the faults planted in it.
#[derive(Default)]
struct Net {
    hosts: Vec<NetworkHost>,
    /// The share of the rate at which each host sends and receives.
    sends: Vec<f64>,
    receives: Vec<f64>,
    /// The share of bytes sent to a host that has to be sent again.
    again: Vec<f64>,
    /// Whether both directions have to share.
    half: Vec<bool>,
    /// Whether frames above 1500 do not pass its switch port.
    narrow: Vec<bool>,
    /// The switch of each host, and the capacity of the links above in each direction, Mbit/s.
    leaf: Vec<usize>,
    above: f64,
    state: u64,
}

const GIGABIT: u32 = 1000;

impl Net {
    fn clean(hosts: usize, seed: u64) -> Net {
        let host = |i| NetworkHost {
            name: format!("n{}", i + 1),
            interface: Some("eth0".into()),
            speed: Some(GIGABIT),
            mtu: Some(9000),
            half_duplex: false,
        };
        Net {
            hosts: (0..hosts).map(host).collect(),
            sends: vec![1.0; hosts],
            receives: vec![1.0; hosts],
            again: vec![0.0; hosts],
            half: vec![false; hosts],
            narrow: vec![false; hosts],
            leaf: vec![0; hosts],
            above: f64::INFINITY,
            state: seed * 7919 + 1,
        }
    }

    fn drawn(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.drawn() * n as f64) as usize
    }

    /// Returns noise around 1 with this standard deviation: a sum of twelve draws.
    fn noise(&mut self, deviation: f64) -> f64 {
        1.0 + deviation * ((0..12).map(|_| self.drawn()).sum::<f64>() - 6.0)
    }

    /// Returns the rate of a flow beside this many others that leave, or enter, the same switches.
    fn rate(&mut self, from: usize, to: usize, crossing: usize, both: bool) -> FlowRate {
        let speed = self.hosts[from].speed.unwrap().min(self.hosts[to].speed.unwrap());
        let mut rate = f64::from(speed) * 0.94 * self.sends[from].min(self.receives[to]);
        if both && (self.half[from] || self.half[to]) {
            rate *= 0.45;
        }
        if self.leaf[from] != self.leaf[to] {
            rate = rate.min(self.above / crossing.max(1) as f64);
        }
        FlowRate { mbit_per_s: rate * self.noise(0.05), again: self.again[to] * self.noise(0.2).max(0.1) }
    }

    fn carry_out(&mut self, order: &RoundOrder) -> Round {
        let cross = |net: &Net, a: usize, b: usize| net.leaf[a] != net.leaf[b];
        let upwards = |net: &Net, leaf: usize| {
            order.pairs.iter().filter(|&&(a, b)| cross(net, a, b) && net.leaf[a] == leaf).count()
        };
        let pair = |net: &mut Net, a: usize, b: usize| {
            if net.narrow[a] || net.narrow[b] {
                return Pair { a, b, stalled: true, ..Pair::default() };
            }
            let crossing = order.pairs.iter().filter(|&&(x, y)| cross(net, x, y)).count();
            let (there, back) = (upwards(net, net.leaf[a]), upwards(net, net.leaf[a]));
            let whole = !order.brief;
            Pair {
                a,
                b,
                there: whole.then(|| net.rate(a, b, there, false)),
                back: whole.then(|| net.rate(b, a, back, false)),
                both: Some((net.rate(a, b, crossing, true), net.rate(b, a, crossing, true))),
                ..Pair::default()
            }
        };
        Round { load: order.load, pairs: order.pairs.iter().map(|&(a, b)| pair(self, a, b)).collect() }
    }

    /// Measures until nothing is left to find out.
    fn measured(&mut self, seed: u64, all: bool) -> NetworkMeasurements {
        let mut measured = NetworkMeasurements { hosts: self.hosts.clone(), rounds: Vec::new() };
        let order = mixed(self.hosts.len(), seed);
        while let Some(round) = next(&measured, &order, all) {
            assert!(measured.rounds.len() < 60, "there is no end of it: {round:?}");
            assert!(round.load != BackgroundTraffic::Alone || round.pairs.len() == 1);
            measured.rounds.push(self.carry_out(&round));
        }
        measured
    }

    /// Returns the findings, and the number of rounds.
    fn judged(&mut self, seed: u64) -> (Vec<NetworkFinding>, usize) {
        let measured = self.measured(seed, false);
        (findings(&measured), measured.rounds.len())
    }

    /// Returns the findings in this order: the kind and the hosts.
    fn found(&mut self, seed: u64) -> Vec<(FaultKind, Vec<String>)> {
        self.judged(seed).0.into_iter().map(|found| (found.kind, found.hosts)).collect()
    }
}

const HOSTS: usize = 16;
const SEEDS: u64 = 100;

fn named(host: usize) -> Vec<String> {
    vec![format!("n{}", host + 1)]
}

/// Plants a fault in a random host, for each seed. Faults of these kinds must be found in this host, and no others.
fn each(kind: FaultKind, plant: impl Fn(&mut Net, usize)) {
    for seed in 0..SEEDS {
        let mut net = Net::clean(HOSTS, seed);
        let host = net.below(HOSTS);
        plant(&mut net, host);
        assert_eq!(net.found(seed), [(kind, named(host))], "seed {seed}");
    }
}

#[test]
fn of_a_clean_network_nothing_is_said() {
    for seed in 0..SEEDS {
        for hosts in [2, 3, 4, 5, 8, HOSTS] {
            assert_eq!(Net::clean(hosts, seed).found(seed), [], "{hosts} hosts, seed {seed}");
        }
    }
}

#[test]
fn a_slow_sender_is_named_with_its_direction() {
    each(FaultKind::Send, |net, host| net.sends[host] = 0.4);
    each(FaultKind::Send, |net, host| net.sends[host] = 0.6);
}

#[test]
fn the_sentence_says_how_slow_and_what_is_well() {
    let mut net = Net::clean(HOSTS, 1);
    net.sends[6] = 0.4;
    let found = net.judged(1).0.remove(0);
    assert!(found.sentence.starts_with("n7 sends at "), "{}", found.sentence);
    assert!(found.sentence.contains(" % of the negotiated speed ("), "{}", found.sentence);
    assert!(found.sentence.ends_with(" of 1000 Mbit/s); receiving is normal"), "{}", found.sentence);
    assert!(found.look.contains("cable, port or NIC"), "{}", found.look);
}

#[test]
fn a_lossy_receiver_is_named_whether_it_is_slow_or_not() {
    each(FaultKind::Receive, |net, host| {
        net.receives[host] = 0.3;
        net.again[host] = 0.03;
    });
    each(FaultKind::Loss, |net, host| net.again[host] = 0.03);
}

#[test]
fn another_mtu_is_named() {
    each(FaultKind::Mtu, |net, host| net.hosts[host].mtu = Some(1500));
}

#[test]
fn a_port_that_drops_large_frames_is_named() {
    each(FaultKind::LargePackets, |net, host| net.narrow[host] = true);
}

#[test]
fn a_port_of_100_mbit_is_named_and_not_called_slow() {
    each(FaultKind::Negotiated, |net, host| net.hosts[host].speed = Some(100));
}

#[test]
fn a_link_that_takes_one_direction_at_a_time_is_named() {
    each(FaultKind::HalfDuplex, |net, host| net.half[host] = true);
}

#[test]
fn a_host_that_does_both_slowly_is_named_once() {
    each(FaultKind::SendReceive, |net, host| (net.sends[host], net.receives[host]) = (0.5, 0.5));
}

#[test]
fn hosts_that_share_a_link_are_named_side_by_side() {
    for seed in 0..2 * SEEDS {
        let mut net = Net::clean(HOSTS, seed);
        let behind = 4 + net.below(9);
        for at in mixed(HOSTS, seed + 1000).into_iter().take(behind) {
            net.leaf[at] = 1;
        }
        net.above = 940.0;
        let first = net.leaf[0];
        let side = |wanted: bool| {
            let on = (0..HOSTS).filter(|h| (net.leaf[*h] == first) == wanted).map(|h| format!("n{}", h + 1));
            on.collect::<homing_model::NodeSet>().to_string()
        };
        let (one, other) = (side(true), side(false));
        let (found, rounds) = net.judged(seed);
        let told: Vec<_> = found.iter().map(|f| (f.kind, f.hosts.clone())).collect();
        assert_eq!(told, [(FaultKind::Shared, vec![one, other])], "seed {seed}, {rounds} rounds");
        assert!(rounds <= HOSTS + 8, "seed {seed}: {rounds} rounds");
    }
}

#[test]
fn a_slow_host_behind_a_shared_link_does_not_hide_it() {
    let mut both = 0;
    for seed in 0..SEEDS {
        let mut net = Net::clean(HOSTS, seed);
        net.leaf[HOSTS / 2..].fill(1);
        net.above = 940.0;
        let host = net.below(HOSTS);
        net.sends[host] = 0.4;
        let found = net.found(seed);
        assert!(found.contains(&(FaultKind::Send, named(host))), "seed {seed}: {found:?}");
        both += usize::from(found.iter().any(|(kind, _)| *kind == FaultKind::Shared));
    }
    assert_eq!(both as u64, SEEDS);
}

#[test]
fn four_hosts_are_enough() {
    for seed in 0..SEEDS {
        let mut net = Net::clean(4, seed);
        net.sends[2] = 0.4;
        assert_eq!(net.found(seed), [(FaultKind::Send, named(2))], "seed {seed}");
        let mut net = Net::clean(4, seed);
        net.leaf[2..].fill(1);
        net.above = 940.0;
        let sides = vec!["n[1-2]".to_string(), "n[3-4]".to_string()];
        assert_eq!(net.found(seed), [(FaultKind::Shared, sides)], "seed {seed}");
    }
}

#[test]
fn sides_are_inferred_where_a_link_is_full_and_only_there() {
    for seed in 0..SEEDS {
        let mut net = Net::clean(8, seed);
        assert_eq!(sides(&net.measured(seed, true)), [(0..8).collect::<Vec<_>>()], "seed {seed}");
        net.leaf[..3].fill(1);
        net.above = 940.0;
        assert_eq!(sides(&net.measured(seed, true)), [vec![0, 1, 2], vec![3, 4, 5, 6, 7]], "seed {seed}");
    }
}

#[test]
fn a_direction_that_gets_all_of_a_full_link_joins_no_sides() {
    for seed in 0..SEEDS {
        let mut net = Net { above: 940.0, ..Net::clean(8, seed) };
        net.leaf[..3].fill(1);
        let (order, mut measured) =
            (mixed(8, seed), NetworkMeasurements { hosts: net.hosts.clone(), rounds: Vec::new() });
        while let Some(order) = next(&measured, &order, true).filter(|_| measured.rounds.len() < 40) {
            let mut round = net.carry_out(&order);
            if measured.rounds.len() == 1 {
                let first = round.pairs.iter_mut().find(|pair| net.leaf[pair.a] != net.leaf[pair.b]).unwrap();
                first.both = first.both.map(|(there, back)| {
                    (FlowRate { mbit_per_s: 1000.0, ..there }, FlowRate { mbit_per_s: 700.0, ..back })
                });
            }
            measured.rounds.push(round);
        }
        assert_eq!(sides(&measured), [vec![0, 1, 2], vec![3, 4, 5, 6, 7]], "seed {seed}");
    }
}

/// For flows of less than a second, TCP shares a full link unevenly.
#[test]
fn sides_are_told_where_three_of_ten_flows_get_all_that_they_want_of_a_full_link() {
    for seed in 0..SEEDS {
        let mut net = Net { above: 2000.0, ..Net::clean(16, seed) };
        net.leaf[..8].fill(1);
        let (order, mut measured) =
            (mixed(16, seed), NetworkMeasurements { hosts: net.hosts.clone(), rounds: Vec::new() });
        while let Some(order) = next(&measured, &order, true).filter(|_| measured.rounds.len() < 60) {
            let mut round = net.carry_out(&order);
            // Packets that cross the link are sometimes lost there, and that is no fault of the hosts.
            let lossy = |flow: FlowRate| FlowRate { again: 0.06, ..flow };
            for pair in &mut round.pairs {
                if net.leaf[pair.a] == net.leaf[pair.b] && pair.has(0) {
                    // Host 0 was measured with no host of its own switch.
                    (pair.there, pair.back) = (None, None);
                } else if net.leaf[pair.a] != net.leaf[pair.b] {
                    let gets = net.below(10) < 3;
                    let whole = |flow: FlowRate| if gets { FlowRate { mbit_per_s: 930.0, ..flow } } else { flow };
                    (pair.there, pair.back) = (pair.there.map(lossy), pair.back.map(lossy));
                    pair.both = pair.both.map(|(there, back)| (whole(lossy(there)), whole(lossy(back))));
                }
            }
            measured.rounds.push(round);
        }
        let halves = [(0..8).collect::<Vec<_>>(), (8..16).collect()];
        assert_eq!(sides(&measured), halves, "seed {seed}, {} rounds", measured.rounds.len());
        let kinds: Vec<FaultKind> = findings(&measured).into_iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FaultKind::Shared], "seed {seed}");
    }
}

/// On a full link TCP gives one flow nearly all and the next nearly nothing, as 16 hosts of a lab showed.
#[test]
fn sides_are_told_soon_where_a_full_link_is_shared_by_chance() {
    let mut rounds = Vec::new();
    for seed in 0..2 * SEEDS {
        let mut net = Net { above: 2000.0, ..Net::clean(16, seed) };
        net.leaf[..8].fill(1);
        let (order, mut measured) =
            (mixed(16, seed), NetworkMeasurements { hosts: net.hosts.clone(), rounds: Vec::new() });
        let mut is_full = false;
        while let Some(order) = next(&measured, &order, false) {
            let mut round = net.carry_out(&order);
            let crossing = round.pairs.iter().filter(|pair| net.leaf[pair.a] != net.leaf[pair.b]).count();
            is_full |= crossing > 2;
            for pair in round.pairs.iter_mut().filter(|_| crossing > 2) {
                if net.leaf[pair.a] != net.leaf[pair.b] {
                    let mut by_chance = |flow: FlowRate| FlowRate { mbit_per_s: 940.0 * net.drawn(), ..flow };
                    pair.both = pair.both.map(|(there, back)| (by_chance(there), by_chance(back)));
                }
            }
            measured.rounds.push(round);
        }
        // If no round fills it, the link cannot be found.
        if !is_full {
            continue;
        }
        let found: Vec<Vec<String>> = findings(&measured).into_iter().map(|finding| finding.hosts).collect();
        assert_eq!(found, [["n[1-8]", "n[9-16]"]], "seed {seed}, {} rounds", measured.rounds.len());
        rounds.push(measured.rounds.len());
    }
    rounds.sort();
    assert!(rounds[rounds.len() / 2] <= 7 && rounds[rounds.len() - 1] <= 13, "{rounds:?}");
}

#[test]
fn few_hosts_meet_again_where_it_is_not_clear_who_shares_a_link() {
    let mut net = Net { leaf: vec![0, 0, 1, 1], above: 1100.0, ..Net::clean(4, 5) };
    let (order, mut measured) = (mixed(4, 5), NetworkMeasurements { hosts: net.hosts.clone(), rounds: Vec::new() });
    while let Some(order) = next(&measured, &order, true).filter(|_| measured.rounds.len() < 20) {
        let mut round = net.carry_out(&order);
        // Other traffic is on the network while n3 meets n4 for the first time.
        if measured.rounds.len() < 3 {
            let own = round.pairs.iter_mut().filter(|pair| pair.is(2, 3)).filter_map(|pair| pair.both.as_mut());
            own.for_each(|(there, back)| (there.mbit_per_s, back.mbit_per_s) = (600.0, 600.0));
        }
        measured.rounds.push(round);
    }
    assert_eq!(sides(&measured), [[0, 1], [2, 3]], "{measured:?}");
    assert!(measured.rounds.len() < 20, "there is an end of it");
}

/// A firewall is between two of three switches: although both are slow with the third, they are not on one side.
#[test]
fn hosts_that_cannot_reach_each_other_are_put_on_no_side_together() {
    for seed in 0..SEEDS {
        let mut net = Net { leaf: vec![0, 0, 1, 1, 2, 2], above: 940.0, ..Net::clean(6, seed) };
        let (order, mut measured) =
            (mixed(6, seed), NetworkMeasurements { hosts: net.hosts.clone(), rounds: Vec::new() });
        while let Some(order) = next(&measured, &order, true).filter(|_| measured.rounds.len() < 40) {
            let mut round = net.carry_out(&order);
            for pair in round.pairs.iter_mut().filter(|pair| net.leaf[pair.a] + net.leaf[pair.b] == 1) {
                *pair = Pair { a: pair.a, b: pair.b, failed: Some("refused".into()), ..Pair::default() };
            }
            measured.rounds.push(round);
        }
        assert_eq!(sides(&measured), [[0, 1], [2, 3], [4, 5]], "seed {seed}");
    }
}

#[test]
fn of_two_hosts_nobody_is_blamed() {
    let mut net = Net::clean(2, 1);
    net.sends[0] = 0.4;
    assert_eq!(net.found(1), [(FaultKind::Unclear, vec!["n1".into(), "n2".into()])]);
}

#[test]
fn a_host_that_cannot_be_reached_is_named_once() {
    let mut measured = NetworkMeasurements { hosts: Net::clean(4, 1).hosts, rounds: Vec::new() };
    let order = mixed(4, 1);
    let mut net = Net::clean(4, 1);
    while let Some(round) = next(&measured, &order, false) {
        let mut round = net.carry_out(&round);
        for pair in round.pairs.iter_mut().filter(|pair| pair.has(3)) {
            *pair = Pair { a: pair.a, b: pair.b, failed: Some("refused".into()), ..Pair::default() };
        }
        measured.rounds.push(round);
    }
    let found = findings(&measured);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, &found[0].hosts), (FaultKind::Unmeasured, &named(3)));
}
