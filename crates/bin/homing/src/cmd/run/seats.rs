//! Slots of this machine's queue, for the tasks of a run that run on this machine.

use super::args::Args;
use crate::cluster::Cluster;
use homing_launch::{HostPlan, Via};

/// Variables that a job or a task has in its environment. Such a process already holds slots for all that it starts.
const WITHIN: [&str; 5] = ["HOMING_JOB", "HOMING_TASK", "LSB_JOBID", "SLURM_JOB_ID", "PBS_JOBID"];

/// Opens the slots for the tasks of a run on this machine. Returns `None` if the tasks take no slots. That is so with
/// `--no-share`, with `--ppn` (the tasks are jobs themselves), inside a job or a task, and if no task runs here.
pub fn seats(args: &Args, hosts: &[HostPlan]) -> Option<Box<dyn homing_dispatch::Seats>> {
    let within = WITHIN.iter().any(|name| std::env::var_os(name).is_some());
    let here = hosts.iter().find(|host| host.via == Via::Local)?;
    if args.no_share || args.ppn.is_some() || within {
        return None;
    }
    // The commands of the queue report a queue configuration that cannot be read.
    let count = Cluster::of_queue().ok()?.queue_config().ok()?.slots;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let most = here.slots.or_else(|| super::options::slots(args).ok().map(|slots| slots(cores)))?.max(1);
    if count == 0 {
        return None;
    }
    match homing_queue::Seats::open(count) {
        Ok(seats) => Some(Box::new(Scaled { seats: seats?, most })),
        Err(why) => {
            eprintln!("homing: the tasks do not count in this machine's queue: {why}");
            None
        }
    }
}

/// Slots shared by more tasks at once than the machine has slots. With `--jobs 16` on eight slots, two tasks share
/// one.
struct Scaled {
    seats: homing_queue::Seats,
    most: u32,
}

impl homing_dispatch::Seats for Scaled {
    fn settle(&mut self, used: u32, wanted: u32) -> u32 {
        let count = self.seats.count();
        let slots = |tasks: u32| slots(tasks, self.most, count);
        let (used, wanted) = (slots(used), slots(wanted));
        tasks(self.seats.settle(used, wanted), self.most, count)
    }
}

fn slots(tasks: u32, most: u32, count: u32) -> u32 {
    if most <= count { tasks } else { (u64::from(tasks) * u64::from(count)).div_ceil(most.into()) as u32 }
}

fn tasks(slots: u32, most: u32, count: u32) -> u32 {
    if most <= count { slots } else { (u64::from(slots) * u64::from(most) / u64::from(count)) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tasks_than_slots_share_them() {
        for (most, count) in [(4, 8), (8, 8), (16, 8), (1024, 3)] {
            for n in 0..=most {
                assert!(tasks(slots(n, most, count), most, count) >= n, "{n} tasks of {most} on {count}");
            }
            assert_eq!(slots(most, most, count), most.min(count));
        }
        assert_eq!((slots(5, 16, 8), tasks(7, 16, 8)), (3, 14));
    }
}
