//! Limits a copy: a lease of the file server for each host that reads, and a pace that leaves the disk to others.

use crate::ask::{CopyWatch, Gate, SnapshotReply};
use crate::disk::DiskMonitor;
use crate::pace::Pace;
use crate::run::Reins;
use crate::sender::Sender;
use homing_lease::{LeaseDemand, LeaseFolder, Leases};
use std::io;
use std::time::{Duration, Instant};

/// The time between two looks at the leases of others.
const LOOK: Duration = Duration::from_millis(500);
/// The time between two looks at the disk: below half of the shortest phase of [`Pace`].
const TICK: Duration = Duration::from_millis(100);

/// No lack of a lease is reported before this time.
const SOON: Duration = Duration::from_secs(2);

/// Watches leases and disk until the channel ends, and reports each change of the number of hosts that may read. If
/// no lease can be had, the copy continues without one.
pub fn hold(watch: CopyWatch, reins: &Reins, send: &mut dyn FnMut(SnapshotReply) -> io::Result<()>) -> io::Result<()> {
    let mut disk = DiskMonitor::below(watch.folder.as_path(), watch.reads_only);
    let mut sender = watch.mark.map(Sender::new);
    let mut leases = Taken::new(watch.gate, send)?;
    let mut pace = Pace::new(Instant::now());
    let (mut told, begun) = (None, Instant::now());
    while disk.is_some() || leases.leases.is_some() || told != Some(u32::MAX) {
        let now = Instant::now();
        let own = sender.as_mut().and_then(Sender::read_bytes);
        disk.iter_mut().for_each(|disk| disk.look(own, now));
        leases.look(reins.wanted(), now, send)?;
        let of_others = |since| disk.as_ref()?.of_others(since);
        let paced = pace.may_run(leases.others, of_others, |since| disk.as_ref()?.busy(since), now);
        let may_run = if paced { leases.has } else { 0 };
        // A copy that comes to a server that others have just left may wait a moment for its lease.
        let soon = told.is_none() && may_run == 0 && begun.elapsed() < SOON;
        if told != Some(may_run) && !soon {
            told = Some(may_run);
            sender.iter_mut().for_each(|sender| sender.may_run(may_run > 0));
            send(SnapshotReply::Lease(may_run))?;
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// The leases of the copy, and whether others have some.
struct Taken {
    leases: Option<Leases>,
    /// [`u32::MAX`]: no limit.
    has: u32,
    others: bool,
    looked: Option<(Instant, u32)>,
}

impl Taken {
    fn new(gate: Option<Gate>, say: &mut dyn FnMut(SnapshotReply) -> io::Result<()>) -> io::Result<Taken> {
        let Some(Gate { folder, server, limit }) = gate else { return Ok(Taken::none()) };
        match Leases::open(LeaseFolder { folder, server, limit, unfit: None }) {
            Ok((leases, told)) => {
                told.map_or(Ok(()), |text| say(SnapshotReply::Note(text)))?;
                Ok(Taken { leases: Some(leases), has: 0, ..Taken::none() })
            }
            Err(why) => without(&why, say).map(|()| Taken::none()),
        }
    }

    fn none() -> Taken {
        Taken { leases: None, has: u32::MAX, others: false, looked: None }
    }

    fn look(
        &mut self,
        wanted: u32,
        now: Instant,
        say: &mut dyn FnMut(SnapshotReply) -> io::Result<()>,
    ) -> io::Result<()> {
        let due = self.looked.is_none_or(|(at, then)| then != wanted || now.duration_since(at) >= LOOK);
        let Some(leases) = self.leases.as_mut().filter(|_| due) else { return Ok(()) };
        self.looked = Some((now, wanted));
        let why = match leases.turn(LeaseDemand { wanted, used: self.has.min(wanted), limit: None }, true, now) {
            Ok(outlook) if outlook.gave_up => "other users have held all leases for an hour".to_string(),
            Ok(outlook) => {
                self.has = outlook.may_use;
                self.others = outlook.total > outlook.own;
                return Ok(());
            }
            Err(e) => format!("homing can no longer read its leases: {e}"),
        };
        *self = Taken::none();
        without(&why, say)
    }
}

fn without(why: &str, say: &mut dyn FnMut(SnapshotReply) -> io::Result<()>) -> io::Result<()> {
    say(SnapshotReply::Note(format!("the file server does not count this copy: {why}")))
}
