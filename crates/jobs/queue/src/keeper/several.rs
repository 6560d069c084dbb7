//! A job whose slots lie on several hosts: all of them are taken before it starts on the first.
//!
//! On each host its share is a job of that host's own queue, which holds its slots and starts nothing until it is told
//! to. The shares are taken one after the other in the order of the hosts' names, the same for every job of everybody:
//! two jobs that want the same hosts cannot wait for each other. To take what is free and to give it back when the rest
//! is not was another way; it starves wide jobs.

use super::elsewhere::There;
use super::orders::{Hand, Held, Orders};
use super::{Keeper, LOOK};
use crate::QueueError;
use crate::far::{Far, News, Word};
use crate::job::{End, JobSpec, Share};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// For the other hosts to say that what they held is free, once the job has ended.
const FAREWELL: Duration = Duration::from_secs(5);

impl Keeper<'_> {
    /// Sees it through on its hosts.
    pub(super) fn keep_on_several(&self, shares: &[Share]) -> Result<(), QueueError> {
        self.see_through(&shares[0].host, |there| self.gather(shares, there))
    }

    /// Its end; none where a channel ended first, and nobody had asked for its end.
    fn gather(&self, shares: &[Share], there: &mut There) -> Result<Option<End>, String> {
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
        // What was asked while the last slots came must not find it started.
        orders.carry_out();
        if orders.reason.is_none() {
            there.note(News::Started(there.host.into()))?;
            held.borrow().iter().for_each(|held| held.far.order(Word::Count));
            held.borrow()[first].far.order(Word::Go);
        }
        let end = follow(first, &held, &mut orders, there)?;
        let received = release(first, &held);
        let own = |end: &End| under(&held.borrow()[first].share.host, end);
        Ok(end.map(|end| End { received: own(&end).into_iter().chain(received).collect(), ..end }))
    }

    /// Takes a share, however long that takes; else how the job ended meanwhile.
    fn take<'a>(
        &self,
        share: &'a Share,
        held: &RefCell<Vec<Held<'a>>>,
        orders: &mut Orders,
        there: &mut There,
    ) -> Result<Option<Option<End>>, String> {
        let host = &share.host;
        let far = Far::open(self.channel(host)?, self.sent(self.of_share(share))?);
        let far = far.map_err(|e| format!("cannot ask {host}: {e}"))?;
        held.borrow_mut().push(Held { share, far });
        loop {
            orders.carry_out();
            let news = held.borrow().last().map_or(Err(()), |held| held.far.next(LOOK));
            match news {
                Ok(Some(News::Started(_))) => return Ok(None),
                Ok(Some(News::Waits(by))) => {
                    let by = if by.is_empty() { "has not given its slots yet".into() } else { by };
                    there.note(News::Waits(format!("{host}: {by}")))?;
                }
                Ok(Some(News::Refused(why))) => return Err(why),
                Ok(Some(News::Ended(end))) => return Ok(Some(Some(orders.ended_by(end)))),
                Ok(_) => {}
                Err(()) => return Ok(Some(orders.killed())),
            }
            if let Some(why) = lost(held.borrow().split_last().map_or(&[][..], |(_, earlier)| earlier)) {
                // It has not started: it waits, and asks anew.
                homing_os::say!("homing: job {}: {why}", self.id);
                return Ok(Some(orders.killed()));
            }
        }
    }

    /// The job as the host of a share gets it.
    fn of_share(&self, share: &Share) -> JobSpec {
        JobSpec { slots: share.slots, gated: true, ..self.spec.clone() }
    }
}

/// From the start to the end of the share that was told to start.
fn follow(
    first: usize,
    held: &RefCell<Vec<Held>>,
    orders: &mut Orders,
    there: &mut There,
) -> Result<Option<End>, String> {
    loop {
        orders.carry_out();
        let news = held.borrow()[first].far.next(LOOK);
        match news {
            Ok(None) => {}
            Ok(Some(News::Ended(end))) => return Ok(Some(orders.ended_by(end))),
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

/// What has become of a share that is held for the job.
fn lost(held: &[Held]) -> Option<String> {
    held.iter().find_map(|Held { share, far }| match far.next(Duration::ZERO) {
        Err(()) => Some(format!("the connection to {} has ended, where it has slots", share.host)),
        Ok(Some(News::Ended(end))) => {
            let why = end.reason.unwrap_or_else(|| "ended".into());
            Some(format!("its slots on {}: {why}", share.host))
        }
        _ => None,
    })
}

/// Gives the other shares back, and waits for their hosts to say so, and what they have received.
fn release(first: usize, held: &RefCell<Vec<Held>>) -> BTreeMap<String, u64> {
    let held = held.borrow();
    let others = || held.iter().enumerate().filter(|(at, _)| *at != first).map(|(_, held)| held);
    others().for_each(|held| held.far.order(Word::End));
    let until = Instant::now() + FAREWELL;
    let mut received = BTreeMap::new();
    for Held { share, far } in others() {
        while Instant::now() < until {
            match far.next(LOOK) {
                Ok(Some(News::Ended(end))) => {
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

/// What a host has received, by the name that the job has for it.
fn under(host: &str, end: &End) -> Option<(String, u64)> {
    end.received.values().next().map(|received| (host.into(), *received))
}

/// `h1\nh1\nh2\n`: a line for each slot, which LSF's, OpenMPI's and MPICH's readers all take.
pub(crate) fn hostfile(hosts: &[Share]) -> String {
    hosts.iter().map(|share| format!("{}\n", share.host).repeat(share.slots as usize)).collect()
}

/// The same for OpenMPI, which takes a host that stands there once for as many slots as it has processors.
pub(super) fn slotfile(hosts: &[Share]) -> String {
    hosts.iter().map(|share| format!("{} slots={}\n", share.host, share.slots)).collect()
}

/// What tells MPI libraries their hosts, and to start their daemons there as processes of the job. OpenMPI's daemon
/// looks for the launcher as well, under the name that it has where mpirun runs, and ends with signal 11 when it does
/// not find it: it has to have one name on all hosts. That daemons start others, OpenMPI's tree, is not wanted: mpirun
/// starts them all, from the host that holds the job.
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

/// `h1 2 h2 2 `, as LSF writes it.
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
