//! Makes a run and its faults from a seed. Pure.

use crate::random::Random;

/// The place of a run, which limits the possible faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terrain {
    /// Tasks run over ssh on the hosts of a lab, whose links can be cut.
    pub lab: bool,
    /// The run can mount and fill disks of its own, and give files to other users.
    pub root: bool,
    /// The library that shifts clocks was built.
    pub clock: bool,
}

/// The order and form of printed output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Grouped, as tasks end.
    Plain,
    /// `-k`.
    Keep,
    /// `--lb`.
    Lines,
}

/// The source of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSource {
    /// `:::`.
    Args,
    /// Standard input, piece by piece, broken inside of lines.
    Stdin,
    /// `--tasks FILE`.
    Tasks,
}

/// The target of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The program that was started.
    Coordinator,
    /// A process that serves a host.
    Worker,
    /// The process that watches over a worker.
    Guard,
    /// One task.
    Task,
    /// The coordinator's process group, as a terminal does it.
    Group,
    /// Every process of the run, at one moment.
    All,
    /// An ssh client of the coordinator's.
    Ssh,
}

/// One fault of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A signal, by number.
    Signal(Whom, i32),
    /// Two interrupts, 100 ms apart.
    Interrupts,
    /// SIGSTOP, then after so many milliseconds SIGCONT; SIGKILL instead of SIGCONT if true.
    Pause(Whom, u64, bool),
    /// The clock's shift, which the shim reads from now on.
    Clock(&'static str),
    /// The disk is full for so many milliseconds.
    FullDisk(u64),
    /// The link of host number N is cut for so many milliseconds.
    Cut(u64, u64),
    /// Host number N loses its power for so many milliseconds.
    PowerLoss(u64, u64),
    /// The file server's process for the disk of host number N is killed, and started after so many milliseconds.
    Brick(u64, u64),
}

impl Deed {
    /// Returns its kind, for a table.
    pub fn kind(&self) -> String {
        let of = |whom: &Whom| format!("{whom:?}").to_lowercase();
        match self {
            Deed::Signal(whom, KILL) => format!("{} killed outright", of(whom)),
            Deed::Signal(whom, _) => format!("{} ended by a signal", of(whom)),
            Deed::Interrupts => "two interrupts".into(),
            Deed::Pause(whom, _, true) => format!("{} stopped, then killed", of(whom)),
            Deed::Pause(whom, _, false) => format!("{} stopped for a while", of(whom)),
            Deed::Clock(_) => "clock set".into(),
            Deed::FullDisk(_) => "disk full".into(),
            Deed::Cut(_, ms) if *ms > 30_000 => "link cut for long".into(),
            Deed::Cut(..) => "link cut".into(),
            Deed::PowerLoss(..) => "host without power".into(),
            Deed::Brick(..) => "brick killed".into(),
        }
    }
}

/// A deed and its moment. A moment in time alone does not work: the same run takes many times as long on a busy
/// machine. Most strokes would come too late on an idle one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// The number of records that the journal must get first. It counts from the begin of the part, or the end of the
    /// last stroke.
    pub records: u64,
    /// The delay after these records, ms.
    pub after_ms: u64,
    /// The deed itself.
    pub deed: Deed,
}

/// A damage to a journal that no process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// So many bytes are cut off at its end.
    Torn(u64),
    /// One bit of a record is flipped: the place in thousandths of the file, the bit.
    Bit(u64, u8),
}

/// A run and its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The seed that it was made from.
    pub seed: u64,
    /// Tasks, numbered from 1.
    pub tasks: u64,
    /// Slots of each host.
    pub jobs: u64,
    /// The order and form of printed output.
    pub form: Form,
    /// `--results`.
    pub results: bool,
    /// `--retries 3`.
    pub retries: bool,
    /// The source of the tasks.
    pub input: TaskSource,
    /// Whether other users' files are in its folders.
    pub neighbours: bool,
    /// Which of these are on a small disk: the journal, standard output, the job log and the results.
    pub small_disk: [bool; 3],
    /// The faults of the first parts of the run. The parts after them are left alone.
    pub parts: Vec<Vec<Stroke>>,
    /// The damage to the journal after the first part.
    pub damage: Option<Damage>,
}

/// SIGHUP, SIGINT, SIGQUIT, SIGTERM, and half the time SIGKILL.
const SIGNALS: [i32; 8] = [1, 2, 3, 15, KILL, KILL, KILL, KILL];
/// SIGKILL.
pub const KILL: i32 = 9;

impl Scenario {
    /// Makes the scenario of a seed.
    pub fn new(seed: u64, terrain: Terrain) -> Scenario {
        let mut random = Random::new(seed);
        let r = &mut random;
        let full = terrain.root && !terrain.lab && r.percent(15);
        let tasks = r.within(12, 31);
        let strokes: Vec<u64> = (0..r.within(2, 6)).map(|_| r.within(1, 3)).collect();
        // A task has two records, so some records are left for the last stroke.
        let share = 2 * tasks / strokes.iter().sum::<u64>();
        let parts = strokes.iter().map(|n| (0..*n).map(|_| stroke(r, terrain, full, share)).collect()).collect();
        Scenario {
            seed,
            tasks,
            jobs: r.within(2, 6),
            form: r.of(&[Form::Plain, Form::Plain, Form::Keep, Form::Keep, Form::Lines]),
            results: r.percent(25),
            retries: r.percent(40),
            input: r.of(&[TaskSource::Args, TaskSource::Args, TaskSource::Stdin, TaskSource::Tasks]),
            neighbours: terrain.root && r.percent(15),
            small_disk: if full { small_disk(r) } else { [false; 3] },
            parts,
            damage: damage(r),
        }
    }

    /// Whether a fault may end a task's own process.
    pub fn harms_tasks(&self) -> bool {
        let harm = |deed: &Deed| match deed {
            Deed::Signal(whom, _) | Deed::Pause(whom, ..) => *whom != Whom::Coordinator,
            Deed::FullDisk(_) | Deed::Cut(..) | Deed::PowerLoss(..) | Deed::Brick(..) => true,
            Deed::Interrupts | Deed::Clock(_) => false,
        };
        self.parts.iter().flatten().any(|stroke| harm(&stroke.deed))
    }

    /// Returns the name of item number N.
    pub fn item(number: u64) -> String {
        format!("t{number:04}")
    }

    /// Returns the number of lines that a task prints when it succeeds.
    pub fn lines(number: u64) -> u64 {
        if number % 11 == 5 { 3000 } else { 3 }
    }

    /// Whether a task fails however often it is tried.
    pub fn fails(number: u64) -> bool {
        number % 9 == 4
    }

    /// Whether a task fails the first time.
    pub fn fails_once(number: u64) -> bool {
        number % 7 == 2
    }
}

/// Draws a stroke. The journal has its first records only after tasks have begun, so some strokes come before any
/// record.
fn stroke(r: &mut Random, terrain: Terrain, full: bool, share: u64) -> Stroke {
    let deed = match r.within(0, 100) {
        0..50 => Deed::Signal(whom(r, terrain), r.of(&SIGNALS)),
        50..55 => Deed::Interrupts,
        55..65 => Deed::Pause(whom(r, terrain), pause_ms(r, terrain), r.percent(50)),
        65..73 if terrain.clock => Deed::Clock(r.of(&["-3600", "3600", "-15", "288", "-288", "288/50", "0"])),
        65..78 if terrain.lab => Deed::Cut(r.within(1, 4), cut_ms(r)),
        78..83 if terrain.lab => Deed::PowerLoss(r.within(1, 4), r.within(100, 3000)),
        83..88 if terrain.lab => Deed::Brick(r.within(1, 4), r.within(500, 3000)),
        _ if full => Deed::FullDisk(r.within(100, 800)),
        _ => Deed::Signal(Whom::Coordinator, KILL),
    };
    Stroke { records: r.within(0, share + 1), after_ms: r.within(0, if terrain.lab { 400 } else { 100 }), deed }
}

fn whom(r: &mut Random, terrain: Terrain) -> Whom {
    use Whom::*;
    let local = [Coordinator, Coordinator, Coordinator, Worker, Worker, Guard, Task, Group, All];
    let far = [Coordinator, Coordinator, Worker, Worker, Guard, Task, Ssh, All];
    if terrain.lab { r.of(&far) } else { r.of(&local) }
}

/// Draws a pause. In a lab some pauses exceed the silence that a worker (25 s) or a coordinator (30 s) accepts.
fn pause_ms(r: &mut Random, terrain: Terrain) -> u64 {
    if terrain.lab && r.percent(5) { 36_000 } else { r.within(50, 1200) }
}

fn cut_ms(r: &mut Random) -> u64 {
    if r.percent(8) { r.within(33_000, 40_000) } else { r.within(1000, 4000) }
}

/// Returns which files are on the small disk: at least the record of the run, since that disk is filled.
fn small_disk(r: &mut Random) -> [bool; 3] {
    let drawn = [r.percent(60), r.percent(60), r.percent(60)];
    [drawn[0] || !drawn.contains(&true), drawn[1], drawn[2]]
}

fn damage(r: &mut Random) -> Option<Damage> {
    match r.within(0, 100) {
        0..8 => Some(Damage::Torn(r.within(1, 600))),
        8..16 => Some(Damage::Bit(r.within(0, 1000), r.within(0, 8) as u8)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_the_same_plan_each_time_and_the_strokes_fit_into_the_run() {
        let terrain = Terrain { lab: true, root: true, clock: false };
        for seed in 0..500 {
            let scenario = Scenario::new(seed, terrain);
            assert_eq!(scenario, Scenario::new(seed, terrain));
            let records: u64 = scenario.parts.iter().flatten().map(|stroke| stroke.records).sum();
            assert!(records <= 2 * scenario.tasks, "{scenario:?}");
        }
    }

    #[test]
    fn no_disk_is_filled_but_the_small_one() {
        let terrain = Terrain { lab: false, root: true, clock: false };
        let fills = |stroke: &Stroke| matches!(stroke.deed, Deed::FullDisk(_));
        let scenarios: Vec<_> = (0..2000).map(|seed| Scenario::new(seed, terrain)).collect();
        let filling = scenarios.iter().filter(|s| s.parts.iter().flatten().any(fills));
        let wrong: Vec<_> = filling.filter(|s| !s.small_disk.contains(&true)).map(|s| s.seed).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
