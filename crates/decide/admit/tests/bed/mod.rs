//! A test bed for the controller. Tasks read and compute on a simulated device, in steps of a millisecond, with noise
//! from a seeded generator.

pub mod cache;
pub mod devices;

use cache::{Cache, Found};
use homing_admit::{AdmissionSettings, Controller, TaskLoad, Tuning};
use homing_model::StorageSample;

/// Bytes that a task reads before it computes on them: the most that read-ahead brings.
const CHUNK: f64 = 131_072.0 * 8.0;
const STEP_S: f64 = 0.001;
/// The worker's intervals between looks, at first and after a number of looks.
const QUICK_MS: u64 = 5;
const USUAL_MS: u64 = 40;
const QUICK_LOOKS: u64 = 50;

/// An xorshift generator; seeded, so that a failure repeats.
pub struct Dice(pub u64);

impl Dice {
    /// Returns a number from 0 to 1.
    pub fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The rates of a device for a number of readers at once.
pub struct Served {
    /// Bytes that it moves per second.
    pub moved: f64,
    /// Bytes of these, per second, that were in the page cache before and were dropped.
    pub again: f64,
    /// Most bytes per second that tasks get; more than `moved` if a cache helps.
    pub useful: f64,
}

/// Returns the rates for `readers` of `tasks` at a time in seconds.
pub type Device = fn(readers: u32, tasks: u32, at_s: f64) -> Served;

/// A batch.
#[derive(Clone, Copy)]
pub struct Batch {
    pub tasks: u32,
    pub slots: u32,
    pub cores: u32,
    /// Bytes that each task reads.
    pub bytes: f64,
    /// Time that each task computes on a processor of its own.
    pub cpu_s: f64,
    /// Time before that in which it waits for its program, which comes from another disk.
    pub load_s: f64,
    /// Time for its program to begin, on a processor of its own.
    pub start_s: f64,
    /// Number of times that it reads the same file.
    pub passes: u32,
    /// Bytes of a page cache that drops the least recently used chunks; `None` if the device itself models the cache.
    pub room: Option<f64>,
}

/// How many tasks may run at once.
pub enum Limit {
    Fixed(u32),
    Auto(Option<u32>),
    /// Like `Auto`, but it is unknown that tasks use the device until some have run for this time, ms.
    Late(u64),
}

/// The result of a run.
pub struct Outcome {
    pub took_s: f64,
    pub lesson: Option<u32>,
}

struct Task {
    id: u32,
    began_us: u64,
    /// Bytes of its file, bytes that it has requested, and bytes that it has yet to request.
    file: f64,
    asked: f64,
    bytes: f64,
    cpu_s: f64,
    loads: f64,
    reads: f64,
    computes: f64,
}

struct Bed {
    device: Device,
    batch: Batch,
    dice: Dice,
    running: Vec<Task>,
    waiting: u32,
    cache: Option<Cache>,
    again_seen: Option<bool>,
    looked: u64,
    stood: u64,
    stall_us: f64,
    moved: f64,
    again: f64,
    read: f64,
    cached: f64,
    task_us: f64,
    mood: f64,
}

/// The fixed limits with which the controller is compared.
pub const FIXED: [u32; 7] = [1, 2, 4, 8, 16, 32, 50];
/// Fixed seeds, so that a failure repeats.
pub const SEEDS: [u64; 3] = [7, 77, 777];

/// Returns the seconds that a batch takes, the mean over the seeds.
pub fn took(device: Device, batch: Batch, limit: &Limit, tuning: Tuning) -> f64 {
    SEEDS.iter().map(|&seed| tuned(device, batch, limit, seed, tuning).took_s).sum::<f64>() / SEEDS.len() as f64
}

/// Returns the seconds with the best fixed limit, and that limit.
pub fn best(device: Device, batch: Batch) -> (f64, u32) {
    let all = FIXED.iter().map(|&n| (took(device, batch, &Limit::Fixed(n), Tuning::default()), n));
    all.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are limits")
}

/// Runs a batch to its end.
pub fn run(device: Device, batch: Batch, limit: &Limit, seed: u64) -> Outcome {
    tuned(device, batch, limit, seed, Tuning::default())
}

/// Like `run`, with other constants of the controller.
pub fn tuned(device: Device, batch: Batch, limit: &Limit, seed: u64, tuning: Tuning) -> Outcome {
    let mut bed = Bed {
        device,
        batch,
        dice: Dice(seed | 1),
        running: Vec::new(),
        waiting: batch.tasks,
        cache: batch.room.map(|bytes| Cache::new((bytes / CHUNK) as usize)),
        again_seen: None,
        looked: 0,
        stood: 0,
        stall_us: 0.0,
        moved: 0.0,
        again: 0.0,
        read: 0.0,
        cached: 0.0,
        task_us: 0.0,
        mood: 1.0,
    };
    let learnt = if let Limit::Auto(learnt) = limit { *learnt } else { None };
    let mut controller =
        Controller::tuned(AdmissionSettings { most: batch.slots, open_at: batch.slots, learnt }, tuning);
    let (mut looks, mut next_look) = (0, 0);
    for ms in 0.. {
        assert!(ms < 3_600_000, "the batch does not end");
        let may = match limit {
            Limit::Fixed(n) => Some(*n),
            Limit::Late(after) if ms < *after => None,
            _ => controller.limit(),
        };
        bed.start(may.unwrap_or(u32::MAX), ms * 1000);
        if bed.running.is_empty() {
            let took_s = ms as f64 * STEP_S;
            return Outcome { took_s, lesson: controller.lesson() };
        }
        if ms >= next_look {
            looks += 1;
            next_look = ms + if looks < QUICK_LOOKS { QUICK_MS } else { USUAL_MS };
            let (pulse, mut load) = bed.look(ms * 1000);
            if matches!(limit, Limit::Late(after) if ms < *after) {
                load.in_flight = 0;
            }
            controller.observe(&pulse, &load);
        }
        bed.step(ms);
    }
    unreachable!("the loop returns")
}

impl Bed {
    fn start(&mut self, may: u32, now_us: u64) {
        while self.waiting > 0 && (self.running.len() as u32) < may.min(self.batch.slots) {
            self.waiting -= 1;
            let spread = 0.8 + 0.4 * self.dice.roll();
            let (bytes, cpu_s) = (self.batch.bytes * spread, self.batch.cpu_s * spread);
            let file = bytes / f64::from(self.batch.passes);
            let id = self.waiting;
            self.running.push(Task {
                id,
                began_us: now_us,
                file,
                asked: 0.0,
                bytes,
                cpu_s,
                loads: self.batch.load_s,
                reads: 0.0,
                computes: self.batch.start_s,
            });
        }
    }

    fn look(&mut self, now_us: u64) -> (StorageSample, TaskLoad) {
        self.looked += self.running.len() as u64;
        self.stood += self.running.iter().filter(|t| t.loads > 0.0 || t.reads > 0.0).count() as u64;
        if self.running.iter().any(|t| t.asked > 1.75 * t.file) {
            self.again_seen = Some(true);
        }
        let pulse = StorageSample {
            at_us: now_us,
            io_some_us: Some(self.stall_us as u64),
            looked: self.looked,
            blocked_on_io: self.stood,
            moved: Some(self.moved as u64),
            reread: Some(self.again as u64),
            read: self.read as u64,
            cached: self.cached as u64,
            room: self.batch.room.map(|bytes| bytes as u64),
            ..StorageSample::default()
        };
        let load = TaskLoad {
            in_flight: self.running.len() as u32,
            waiting: self.waiting as usize,
            task_us: self.task_us as u64,
            inputs: self.running.iter().map(|t| t.file as u64).sum(),
            again: self.again_seen,
            network: false,
        };
        (pulse, load)
    }

    fn step(&mut self, ms: u64) {
        for task in self.running.iter_mut().filter(|t| t.loads <= 0.0 && t.reads <= 0.0 && t.computes <= 0.0) {
            let chunk = CHUNK.min(task.bytes).max(0.0);
            task.reads = chunk;
            if let Some(cache) = &mut self.cache {
                match cache.ask((task.id, (task.asked % task.file / CHUNK) as u32)) {
                    Found::New => {}
                    Found::Again => self.again += chunk,
                    Found::Here => {
                        self.cached += chunk;
                        self.read += chunk;
                        task.reads = 0.0;
                    }
                }
            }
            task.asked += chunk;
            task.computes = if task.bytes > 0.0 { task.cpu_s * chunk / task.bytes } else { task.cpu_s };
            task.bytes -= chunk;
            task.cpu_s -= task.computes;
        }
        let readers = self.running.iter().filter(|t| t.reads > 0.0).count() as u32;
        let loading = self.running.iter().filter(|t| t.loads > 0.0).count() as u32;
        let computing = self.running.len() as u32 - readers - loading;
        let served = (self.device)(readers, self.running.len() as u32, ms as f64 * STEP_S);
        // Two kinds of noise: from moment to moment, and moods of about a tenth of a second.
        self.mood = 0.97 * self.mood + 0.03 * (0.7 + 0.6 * self.dice.roll());
        let noise = self.mood * (0.8 + 0.4 * self.dice.roll());
        if readers + loading > 0 {
            self.stall_us += STEP_S * 1e6;
        }
        if readers > 0 {
            self.moved += served.moved * noise * STEP_S;
            self.again += served.again * noise * STEP_S;
            self.read += served.useful * noise * STEP_S;
            self.cached += (served.useful - served.moved).max(0.0) * noise * STEP_S;
        }
        let each = served.useful * noise * STEP_S / f64::from(readers.max(1));
        let share = (f64::from(self.batch.cores) / f64::from(computing.max(1))).min(1.0) * STEP_S;
        for task in &mut self.running {
            if task.loads > 0.0 {
                task.loads -= STEP_S;
            } else if task.reads > 0.0 {
                task.reads -= each;
            } else {
                task.computes -= share;
            }
        }
        self.end(ms);
    }

    fn end(&mut self, ms: u64) {
        let now_us = (ms + 1) * 1000;
        let over =
            |t: &Task| t.loads <= 0.0 && t.reads <= 0.0 && t.computes <= 0.0 && t.bytes <= 0.0 && t.cpu_s <= 1e-9;
        for task in self.running.iter().filter(|t| over(t)) {
            self.again_seen = Some(self.again_seen == Some(true) || task.asked > 1.75 * task.file);
            let wall = (now_us - task.began_us) as f64;
            self.task_us += if self.task_us == 0.0 { wall } else { 0.2 * (wall - self.task_us) };
        }
        self.running.retain(|t| !over(t));
    }
}
