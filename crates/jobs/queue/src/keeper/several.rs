//! Keeps a job whose slots lie on several hosts: takes all of them before the job starts on the first.
//!
//! On each host its share is a job of that host's own queue. It holds its slots and starts nothing until the order to
//! start. The shares are taken one after the other in the order of the hosts' names, which is the same for every job
//! of every user. Thus two jobs that want the same hosts cannot wait for each other. The alternative was to take free
//! slots and to return them when the rest is not free; it starves wide jobs.

use super::elsewhere::There;
use super::orders::{Hand, Orders, RemoteShare};
use super::{Keeper, LOOK};
use crate::QueueError;
use crate::far::{Far, RemoteJobMessage, Word};
use crate::job::{JobEnd, JobSpec, Share};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time for the other hosts to report that their slots are free, once the job has ended.
const FAREWELL: Duration = Duration::from_secs(5);

impl Keeper<'_> {
    /// Keeps the job until its end on its hosts.
    pub(super) fn keep_on_several(&self, shares: &[Share]) -> Result<(), QueueError> {
        self.see_through(&shares[0].host, |there| self.gather(shares, there))
    }

    /// Returns its end; none if a channel ended first and no user had requested the end.
    fn gather(&self, shares: &[Share], there: &mut There) -> Result<Option<JobEnd>, String> {
        let held = RefCell::new(Vec::new());
        let mut orders = Orders::new(Hand::Several(&held), self.dir, self.index, &self.spec);
        let mut shares: Vec<&Share> = shares.iter().collect();
        shares.sort_by(|a, b| a.host.cmp(&b.host));
        for share in shares {
            if let Some(end) = self.take(share, &held, &mut orders, there)? {
                return Ok(end);
            }
        }
        let first = held.borrow().iter().position(|held| held.share.host == there.host).unwrap_or(0);
        // Requests that came while the last slots were taken must not find it started.
        orders.carry_out();
        if orders.reason.is_none() {
            there.note(RemoteJobMessage::Started(there.host.into()))?;
            held.borrow().iter().for_each(|held| held.far.order(Word::Count));
            held.borrow()[first].far.order(Word::Go);
        }
        let end = follow(first, &held, &mut orders, there)?;
        let received = release(first, &held);
        let own = |end: &JobEnd| under(&held.borrow()[first].share.host, end);
        Ok(end.map(|end| JobEnd { received: own(&end).into_iter().chain(received).collect(), ..end }))
    }

    /// Takes a share, however long that takes. Returns the job's end if it ended meanwhile.
    fn take<'a>(
        &self,
        share: &'a Share,
        held: &RefCell<Vec<RemoteShare<'a>>>,
        orders: &mut Orders,
        there: &mut There,
    ) -> Result<Option<Option<JobEnd>>, String> {
        let host = &share.host;
        let far = Far::open(self.channel(host)?, self.sent(self.of_share(share))?);
        let far = far.map_err(|e| format!("cannot send the request to {host}: {e}"))?;
        held.borrow_mut().push(RemoteShare { share, far });
        loop {
            orders.carry_out();
            let news = held.borrow().last().map_or(Err(()), |held| held.far.next(LOOK));
            match news {
                Ok(Some(RemoteJobMessage::Started(_))) => return Ok(None),
                Ok(Some(RemoteJobMessage::Waits(by))) => {
                    let by = if by.is_empty() { "has not granted its slots yet".into() } else { by };
                    there.note(RemoteJobMessage::Waits(format!("{host}: {by}")))?;
                }
                Ok(Some(RemoteJobMessage::Refused(why))) => return Err(why),
                Ok(Some(RemoteJobMessage::Ended(end))) => return Ok(Some(Some(orders.ended_by(end)))),
                Ok(_) => {}
                Err(()) => return Ok(Some(orders.killed())),
            }
            if let Some(why) = lost(held.borrow().split_last().map_or(&[][..], |(_, earlier)| earlier)) {
                // The job has not started: it waits and requests its shares again.
                homing_os::say!("homing: job {}: {why}", self.id);
                return Ok(Some(orders.killed()));
            }
        }
    }

    /// Returns the job as it is sent to the host of a share.
    fn of_share(&self, share: &Share) -> JobSpec {
        JobSpec { slots: share.slots, gated: true, ..self.spec.clone() }
    }
}

/// Follows the share that was started, from its start to its end.
fn follow(
    first: usize,
    held: &RefCell<Vec<RemoteShare>>,
    orders: &mut Orders,
    there: &mut There,
) -> Result<Option<JobEnd>, String> {
    loop {
        orders.carry_out();
        let news = held.borrow()[first].far.next(LOOK);
        match news {
            Ok(None) => {}
            Ok(Some(RemoteJobMessage::Ended(end))) => return Ok(Some(orders.ended_by(end))),
            Ok(Some(news)) => there.note(news)?,
            Err(()) => return Ok(orders.killed()),
        }
        let gone = {
            let held = held.borrow();
            lost(&held[..first]).or_else(|| lost(&held[first + 1..]))
        };
        if let Some(why) = gone {
            orders.end_for(&why);
        }
    }
}

/// Returns the loss of a share that is held for the job.
fn lost(held: &[RemoteShare]) -> Option<String> {
    held.iter().find_map(|RemoteShare { share, far }| match far.next(Duration::ZERO) {
        Err(()) => Some(format!("the connection to {}, which holds slots of the job, has ended", share.host)),
        Ok(Some(RemoteJobMessage::Ended(end))) => {
            let why = end.reason.unwrap_or_else(|| "ended".into());
            Some(format!("its slots on {}: {why}", share.host))
        }
        _ => None,
    })
}

/// Releases the other shares, and waits for their hosts to confirm. Returns the bytes that each has received.
fn release(first: usize, held: &RefCell<Vec<RemoteShare>>) -> BTreeMap<String, u64> {
    let held = held.borrow();
    let others = || held.iter().enumerate().filter(|(at, _)| *at != first).map(|(_, held)| held);
    others().for_each(|held| held.far.order(Word::End));
    let until = Instant::now() + FAREWELL;
    let mut received = BTreeMap::new();
    for RemoteShare { share, far } in others() {
        while Instant::now() < until {
            match far.next(LOOK) {
                Ok(Some(RemoteJobMessage::Ended(end))) => {
                    received.extend(under(&share.host, &end));
                    break;
                }
                Err(()) => break,
                Ok(_) => {}
            }
        }
    }
    received
}

/// Returns the bytes that a host has received, with the job's name for the host.
fn under(host: &str, end: &JobEnd) -> Option<(String, u64)> {
    end.received.values().next().map(|received| (host.into(), *received))
}

/// Returns `h1\nh1\nh2\n`: a line for each slot, which LSF's, OpenMPI's and MPICH's readers all accept.
pub(crate) fn hostfile(hosts: &[Share]) -> String {
    hosts.iter().map(|share| format!("{}\n", share.host).repeat(share.slots as usize)).collect()
}

/// Returns the same for OpenMPI. OpenMPI gives a host that is listed once as many slots as it has processors.
pub(super) fn slotfile(hosts: &[Share]) -> String {
    hosts.iter().map(|share| format!("{} slots={}\n", share.host, share.slots)).collect()
}

/// Returns variables that give MPI libraries their hosts, and make them start their daemons there as processes of the
/// job. OpenMPI's daemon looks for the launcher too, under its path on the host of mpirun. It ends with signal 11
/// without it, so the launcher must have the same path on all hosts. OpenMPI's tree, in which daemons start others,
/// is turned off: mpirun starts all of them, from the host that holds the job.
pub(super) fn mpi(hostfile: &str, slotfile: &str, launcher: &str) -> Vec<(String, String)> {
    let all = [
        ("OMPI_MCA_orte_default_hostfile", slotfile),
        ("OMPI_MCA_plm_rsh_agent", launcher),
        ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
        ("PRTE_MCA_prte_default_hostfile", slotfile),
        ("PRTE_MCA_plm_ssh_agent", launcher),
        ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
        ("HYDRA_HOST_FILE", hostfile),
        ("HYDRA_LAUNCHER", "ssh"),
        ("HYDRA_LAUNCHER_EXEC", launcher),
    ];
    all.map(|(name, value)| (name.to_string(), value.to_string())).into()
}

/// Returns `h1 2 h2 2 `, as LSF writes it.
pub(super) fn mcpu(hosts: &[Share]) -> String {
    hosts.iter().map(|share| format!("{} {} ", share.host, share.slots)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_in_the_order_of_the_ranks() {
        let share = |host: &str, slots| Share { host: host.into(), slots };
        let hosts = [share("n2", 2), share("n1", 1)];
        assert_eq!(hostfile(&hosts), "n2\nn2\nn1\n");
        assert_eq!(slotfile(&hosts), "n2 slots=2\nn1 slots=1\n");
        assert_eq!(mcpu(&hosts), "n2 2 n1 1 ");
    }
}
