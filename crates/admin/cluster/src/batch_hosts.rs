//! The hosts that a batch system gave to the job in which this process runs, from the variables and files that the
//! system set. Slurm's are `homing_scheduler::Allocation`, since workers become steps of the job there.

use super::{Cluster, with_slots};
use homing_launch::HostPlan;
use homing_model::Failure;
use homing_model::nodeset::host_lines;

/// Variables of jobs and tasks of homing. Such a process holds its slots already, and its environment may be that of
/// the job that started the run.
const OWN: [&str; 2] = ["HOMING_JOB", "HOMING_TASK"];

/// How a batch system lists the hosts of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostListForm {
    /// A file with a line for each slot of a host.
    LinePerSlot,
    /// A file with a line for each host; the job has the whole host.
    LinePerHost,
    /// A file of lines `HOST SLOTS QUEUE PROCESSORS` (`sge_pe(5)`).
    Counted,
    /// The value itself: `HOST SLOTS HOST SLOTS ...`.
    Pairs,
}

/// The variable of each batch system. PBS Pro, OpenPBS and Torque share one; OpenLava has that of LSF.
const VARIABLES: [(&str, HostListForm); 5] = [
    ("PBS_NODEFILE", HostListForm::LinePerSlot),
    ("OAR_NODEFILE", HostListForm::LinePerSlot),
    ("COBALT_NODEFILE", HostListForm::LinePerHost),
    ("PE_HOSTFILE", HostListForm::Counted),
    ("LSB_MCPU_HOSTS", HostListForm::Pairs),
];

/// Hosts of a job, in the order of its batch system, each with its slots; `None`: as many as it has processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchHosts(Vec<(String, Option<u32>)>);

impl BatchHosts {
    /// Returns the hosts of the job around this process, unless that is a job or task of homing. A list that cannot be
    /// read is an error, since the run would otherwise use hosts that belong to others.
    pub fn from_env() -> Result<Option<BatchHosts>, Failure> {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
        BatchHosts::of(|name| std::env::var(name).ok(), read)
    }

    fn of(
        var: impl Fn(&str) -> Option<String>,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Option<BatchHosts>, Failure> {
        if OWN.iter().any(|name| var(name).is_some()) {
            return Ok(None);
        }
        let set = |(name, form)| var(name).filter(|value| !value.trim().is_empty()).map(|value| (name, form, value));
        let Some((name, form, value)) = VARIABLES.into_iter().find_map(set) else { return Ok(None) };
        let failure = |why: String| {
            Failure::usage(format!("the hosts of this job: {name}={value}: {why}"))
                .hint(format!("env -u {name} homing ...; or name the hosts: --hosts, -w"))
        };
        let text = match form {
            HostListForm::Pairs => value.clone(),
            _ => read(&value).map_err(failure)?,
        };
        parsed(form, &text).map(|hosts| Some(BatchHosts(hosts))).map_err(failure)
    }

    /// Returns the names of the hosts.
    pub fn names(self) -> Vec<String> {
        self.0.into_iter().map(|(name, _)| name).collect()
    }

    /// Plans the hosts, as [`Cluster::plans`] does. A host takes as many tasks as the job has slots there, or fewer by the
    /// cluster file.
    pub fn plans(self, cluster: &Cluster) -> Result<Vec<HostPlan>, Failure> {
        let plan = |(name, slots): (String, Option<u32>)| {
            let plan = cluster.plan(name);
            HostPlan { slots: plan.slots.into_iter().chain(slots).min(), ..plan }
        };
        with_slots(self.0.into_iter().map(plan).collect())
    }
}

/// Reads a list. The error names its first line or word that is none.
fn parsed(form: HostListForm, text: &str) -> Result<Vec<(String, Option<u32>)>, String> {
    let counted = |name: &str, count: Option<&str>| {
        let slots = count.and_then(|count| count.parse::<u32>().ok());
        slots.map(|slots| (name.to_string(), Some(slots))).ok_or_else(|| format!("{name:?} has no number of slots"))
    };
    let listed: Vec<(String, Option<u32>)> = match form {
        HostListForm::Pairs => {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.chunks(2).map(|pair| counted(pair[0], pair.get(1).copied())).collect::<Result<_, _>>()?
        }
        HostListForm::Counted => {
            let line = |line: &str| {
                let mut words = line.split_whitespace();
                counted(words.next().unwrap_or_default(), words.next())
            };
            host_lines(text).map(line).collect::<Result<_, _>>()?
        }
        HostListForm::LinePerSlot => host_lines(text).map(|name| (name.to_string(), Some(1))).collect(),
        HostListForm::LinePerHost => host_lines(text).map(|name| (name.to_string(), None)).collect(),
    };
    let mut hosts: Vec<(String, Option<u32>)> = Vec::new();
    for (name, slots) in listed {
        if !is_host(&name) {
            return Err(format!("{name:?} is no name of a host"));
        }
        match hosts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.zip(slots).map(|(sum, slots)| sum.saturating_add(slots)),
            None => hosts.push((name, slots)),
        }
    }
    hosts.retain(|(_, slots)| *slots != Some(0));
    if hosts.is_empty() { Err("it names no host".into()) } else { Ok(hosts) }
}

/// Returns whether a name is one that ssh takes for a host: no option, no user, no blank.
fn is_host(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    name.bytes().all(is_plain) && name.as_bytes().first().is_some_and(|byte| *byte != b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hosts with these variables; the only file is `/list`.
    fn of(pairs: &[(&str, &str)], list: &str) -> Result<Option<BatchHosts>, Failure> {
        let var = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        let read = |path: &str| match path {
            "/list" => Ok(list.to_string()),
            _ => Err("No such file or directory".to_string()),
        };
        BatchHosts::of(var, read)
    }

    fn hosts(pairs: &[(&str, &str)], list: &str) -> String {
        match of(pairs, list) {
            Ok(None) => "-".into(),
            Ok(Some(BatchHosts(hosts))) => {
                let one = |(name, slots): (String, Option<u32>)| slots.map_or(name.clone(), |n| format!("{name}*{n}"));
                hosts.into_iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn each_batch_system_lists_hosts_and_slots() {
        for (variable, value, list, expected) in [
            ("PBS_NODEFILE", "/list", "n2\nn2\nn1.cluster\n", "n2*2 n1.cluster*1"),
            ("OAR_NODEFILE", "/list", "graphene-1\ngraphene-2\ngraphene-1\n", "graphene-1*2 graphene-2*1"),
            ("COBALT_NODEFILE", "/list", "nid1\nnid2\n", "nid1 nid2"),
            ("PE_HOSTFILE", "/list", "a 4 all.q@a UNDEFINED\nb 2 all.q@b <NULL>\na 1 long.q@a 0,1\n", "a*5 b*2"),
            ("LSB_MCPU_HOSTS", "n2 1 n3 12 ", "", "n2*1 n3*12"),
            ("PBS_NODEFILE", "", "", "-"),
            ("OTHER", "/list", "n1", "-"),
        ] {
            assert_eq!(hosts(&[(variable, value)], list), expected, "{variable}={value} {list:?}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_used_is_an_error_with_the_variable() {
        for (variable, value, list, why) in [
            ("PBS_NODEFILE", "/gone", "", "No such file or directory"),
            ("PBS_NODEFILE", "/list", "", "it names no host"),
            ("PBS_NODEFILE", "/list", "n1\n-oProxyCommand=x\n", "\"-oProxyCommand=x\" is no name of a host"),
            ("OAR_NODEFILE", "/list", "n1 n2\n", "\"n1 n2\" is no name of a host"),
            ("PE_HOSTFILE", "/list", "n1\n", "\"n1\" has no number of slots"),
            ("PE_HOSTFILE", "/list", "n1 0 q@n1\n", "it names no host"),
            ("LSB_MCPU_HOSTS", "n1 1 n2", "", "\"n2\" has no number of slots"),
            ("LSB_MCPU_HOSTS", "n1 -1", "", "\"n1\" has no number of slots"),
        ] {
            assert_eq!(hosts(&[(variable, value)], list), format!("the hosts of this job: {variable}={value}: {why}"));
        }
    }

    #[test]
    fn a_job_or_task_of_homing_holds_its_slots_already() {
        for own in OWN {
            assert_eq!(hosts(&[("LSB_MCPU_HOSTS", "n1 1"), (own, "7")], ""), "-");
        }
    }
}
