//! What a copy reads by: one lease of the file server, and a pace that leaves the disk to others.

use crate::ask::{Answer, Gate, Watch};
use crate::disk::Disk;
use crate::pace::Pace;
use crate::sender::Sender;
use homing_folder::lease::{Leases, Place, Wish};
use std::io;
use std::time::{Duration, Instant};

/// Between two looks at what others have.
const LOOK: Duration = Duration::from_millis(500);
/// Between two looks at the disk, a quarter of the shortest phase of [`Pace`].
const TICK: Duration = Duration::from_millis(100);

/// Before this time nothing is said of having no lease.
const SOON: Duration = Duration::from_secs(2);

/// Takes part until the channel ends. Each change of whether it may read is told; where no lease can be had the copy
/// goes on without one.
pub fn hold(watch: Watch, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    let mut disk = Disk::below(watch.folder.as_path(), watch.reads_only);
    let mut sender = watch.mark.map(Sender::new);
    let mut leases = Taken::new(watch.gate, say)?;
    let mut pace = Pace::new(Instant::now());
    let (mut told, begun) = (None, Instant::now());
    while disk.is_some() || leases.leases.is_some() || told != Some(true) {
        let now = Instant::now();
        disk.iter_mut().for_each(|disk| disk.look(now));
        leases.look(now, say)?;
        let may_run = pace.may_run(leases.others, |since| disk.as_ref()?.busy(since), now) && leases.has;
        // Who comes to a server that others have left may need a moment.
        let soon = told.is_none() && !may_run && begun.elapsed() < SOON;
        if told != Some(may_run) && !soon {
            told = Some(may_run);
            sender.iter_mut().for_each(|sender| sender.may_run(may_run));
            say(Answer::Lease(may_run))?;
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// The lease, and whether others have some.
struct Taken {
    leases: Option<Leases>,
    has: bool,
    others: bool,
    looked: Option<Instant>,
}

impl Taken {
    fn new(gate: Option<Gate>, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<Taken> {
        let none = Taken { leases: None, has: true, others: false, looked: None };
        let Some(Gate { folder, server, limit }) = gate else { return Ok(none) };
        match Leases::open(Place { folder, server, limit, unfit: None }) {
            Ok((leases, told)) => {
                told.map_or(Ok(()), |text| say(Answer::Note(text)))?;
                Ok(Taken { leases: Some(leases), has: false, ..none })
            }
            Err(why) => without(&why, say).map(|()| none),
        }
    }

    fn look(&mut self, now: Instant, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
        let due = self.looked.is_none_or(|at| now.duration_since(at) >= LOOK);
        let Some(leases) = self.leases.as_mut().filter(|_| due) else { return Ok(()) };
        self.looked = Some(now);
        let own = u32::from(self.has);
        let why = match leases.turn(Wish { wanted: 1, used: own, limit: None }, true, now) {
            Ok(outlook) if outlook.gave_up => "others have had all leases for an hour".to_string(),
            Ok(outlook) => {
                self.has = outlook.may_use > 0;
                self.others = outlook.total > own;
                return Ok(());
            }
            Err(e) => format!("its leases cannot be seen any more: {e}"),
        };
        *self = Taken { leases: None, has: true, others: false, looked: None };
        without(&why, say)
    }
}

fn without(why: &str, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    say(Answer::Note(format!("the copy is not counted at its file server: {why}")))
}
