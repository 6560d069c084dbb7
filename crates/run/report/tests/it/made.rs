//! Makes the events of a plausible run, the same ones each time.

#[path = "../../../../../tests/ended.rs"]
mod ended;

use ended::End;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Event, HostFacts, HostSample, IoCounters, IoWait, Outcome};
use std::collections::BTreeMap;

/// The size of the run to make.
pub struct Shape {
    pub tasks: u64,
    pub hosts: usize,
    pub slots: u32,
    pub volume: bool,
}

const START: i64 = 1_795_231_992_000_000_000;
const MB: u64 = 1_000_000;

/// A small generator, so that no crate and no seed is needed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn at(us: u64, what: EventKind) -> Event {
    Event { at_ns: START + us as i64 * 1000, what }
}

/// The events of a run, in the order of their time.
pub fn run(shape: &Shape) -> Vec<Event> {
    let mut dice = Dice(7);
    let name = |h: usize| if shape.hosts == 1 { "localhost".to_string() } else { format!("n{}", h + 1) };
    let argv = ["homing", "run", "--hosts", "n[1-4]", "md5sum {}", ":::", "/vol/reads/*.fq"];
    let mut events = vec![at(
        0,
        EventKind::RunStarted {
            v: 1,
            run: "20261121-033312-4k7".into(),
            argv: argv.map(Into::into).to_vec(),
            cwd: "/vol/reads".into(),
            host: "login".into(),
            pid: 4711,
            tasks: Some(shape.tasks),
            label: None,
        },
    )];
    let mut free: Vec<(u64, usize, u32)> = Vec::new();
    for h in 0..shape.hosts {
        let up = 120_000 + 30_000 * h as u64;
        let facts = HostFacts { hostname: name(h), cores: shape.slots, ..HostFacts::default() };
        events.push(at(up, EventKind::HostUp { host: name(h), slots: shape.slots, facts }));
        free.extend((1..=shape.slots).map(|slot| (up, h, slot)));
    }
    let mut end = 0;
    for task in 1..=shape.tasks {
        let next = (0..free.len()).min_by_key(|i| free[*i]).unwrap();
        let (start, h, slot) = free[next];
        let remote = shape.volume && dice.roll(9) == 0;
        let wall = 400_000 + dice.roll(900_000) + if remote { 1_800_000 } else { 0 } + h as u64 * 90_000;
        let size = 40 * MB + dice.roll(20 * MB);
        let planned = PlannedBytes {
            local: if remote { 0 } else { size },
            remote: if remote { size } else { 0 },
            remote_if_in_turn: size / 2,
            from: vec![],
        };
        events.push(at(
            start,
            EventKind::TaskStarted {
                task,
                attempt: 1,
                host: name(h),
                slot,
                command: format!("md5sum '/vol/reads/sample <{task}> & \"co\".fq'").into(),
                planned: shape.volume.then_some(planned),
                why: None,
                after: None,
            },
        ));
        let failed = dice.roll(23) == 0;
        events.push(at(
            start + wall,
            EventKind::from(End {
                task,
                host: name(h),
                outcome: if failed { Outcome::Exit(1) } else { Outcome::Exit(0) },
                start_ns: START + start as i64 * 1000,
                wall_us: wall,
                io: IoCounters {
                    rchar: Some(size),
                    read_bytes: size * 9 / 10,
                    user_us: 90_000,
                    ..IoCounters::default()
                },
                io_wait: Some(IoWait::DelayAccounting(wall * if remote { 6 } else { 2 } / 10)),
                printed: [60, 0],
                said: failed.then(|| "md5sum: <no> such file".into()),
                ..End::default()
            }),
        ));
        end = end.max(start + wall);
        free[next].0 = start + wall + 4_000;
    }
    if shape.hosts > 1 {
        events.extend(samples(shape, end, &mut dice, name));
    }
    events.sort_by_key(|e| e.at_ns);
    let ended = |good: bool| {
        let of = |e: &&Event| matches!(&e.what, EventKind::TaskEnded { outcome, .. } if outcome.is_success() == good);
        events.iter().filter(of).count() as u64
    };
    let counts = BTreeMap::from([("done".to_string(), ended(true)), ("failed".to_string(), ended(false))]);
    let exit = ended(false).min(101) as i32;
    events.push(at(end + 50_000, EventKind::RunEnded { exit, counts }));
    events
}

fn samples(shape: &Shape, end: u64, dice: &mut Dice, name: impl Fn(usize) -> String) -> Vec<Event> {
    let mut events = Vec::new();
    let every = (end / 600).max(500_000);
    for h in 0..shape.hosts {
        let (mut rx, mut disk, mut stall) = (1 << 40, 1 << 30, 0);
        for t in (200_000..end + every).step_by(every as usize) {
            let scale = every / 500_000;
            rx += dice.roll(6 * MB) * scale;
            disk += dice.roll(120_000) * scale;
            stall += dice.roll(every * (h as u64 % 4 + 1) / 5);
            let sample = HostSample {
                at_ns: START + t as i64 * 1000,
                io_some_us: Some(stall),
                disk_blocks: Some(disk),
                net: BTreeMap::from([("eth0".to_string(), (rx, rx / 2))]),
                ..HostSample::default()
            };
            events.push(at(t, EventKind::Sample { host: name(h), sample }));
        }
    }
    events
}
