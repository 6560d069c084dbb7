//! Plans Slurm with munge, from Debian's packages. slurm.conf is made from the output of `slurmd -C` on the hosts and
//! is the same on all. Debian's package of munge makes a key. All hosts get the controller's key, which travels over
//! ssh only.

use super::{AreaResult, lines_of_all};
use crate::families::unknown;
use crate::site::{AllSeen, ClusterSite, Slurm};
use homing_model::text::WordReader;
use homing_steps::{FactQuery, HostRequirement, How, Observed, PathState};

pub(crate) const CONF: &str = "/etc/slurm/slurm.conf";
const CGROUP: &str = "/etc/slurm/cgroup.conf";
const KEY: &str = "/etc/munge/munge.key";
/// Entries of the table of families: packages of every host, and that of the controller.
const EVERYWHERE: &str = "slurm.packages";
const LEADS: &str = "slurm.controller";
const CONTROLLER: &str = "slurmctld";
/// Prints the resources of a host, as a line of slurm.conf.
const OFFERS: &str = "slurmd -C";
/// Prints the type of the control groups' file system.
const GROUPS: &str = "stat -fc %T /sys/fs/cgroup";
const HEAD: &str = "# Written by homing up, which writes over what is changed here by hand.\n";
/// The percentage of a host's memory that jobs may use. slurmd drains a node with less memory than slurm.conf states,
/// and another kernel may reserve some more.
const PERCENT: u64 = 95;

/// States of nodes that take jobs, in sinfo's short form.
const SERVES: [&str; 4] = ["idle", "mix", "alloc", "comp"];

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.extend([CONF, CGROUP, KEY].map(String::from));
    question.packages.extend([EVERYWHERE, LEADS].into_iter().flat_map(|thing| site.callings(thing)));
    question.units.extend(["munge", "slurmd", CONTROLLER].map(String::from));
    question.outputs.extend([OFFERS, GROUPS].map(String::from));
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let (Some(Ok(there)), Some(slurm)) = (seen.get(host), &site.up.slurm) else { return Ok(Vec::new()) };
    let everywhere = site.called(there, EVERYWHERE).ok_or_else(|| vec![unknown(there, EVERYWHERE)])?;
    let leads = site.called_one(there, LEADS)?;
    let is_controller = site.controller() == Some(host);
    if is_foreign(there) {
        return Err(vec![format!("homing did not write {CONF}: this host has a Slurm already")]);
    }
    let packages: Vec<String> = everywhere.into_iter().chain(is_controller.then_some(leads)).collect();
    if packages.iter().any(|package| !there.packages.contains(package)) {
        let one = |name: String| HostRequirement::Package { name, replaces: Vec::new() };
        return Ok(packages.into_iter().map(one).collect());
    }
    let Some(lead) = leader(site, seen) else { return Err(vec![no_leader(site)]) };
    let key = match lead.files.get(KEY) {
        Some(PathState::File(key, _)) => key.content.clone(),
        _ => {
            return Err(vec![format!("{} has no {KEY}: run mungekey --create there", site.controller().unwrap_or(""))]);
        }
    };
    let owner =
        there.users.get("munge").map(|user| (user.uid, user.gid)).ok_or_else(|| vec!["it has no user munge".into()])?;
    let cgroups = has_cgroups(seen);
    let conf = conf(site, slurm, seen, cgroups)?;
    let how = how(there, &conf, &cgroup_conf(cgroups));
    let files = [
        HostRequirement::File { path: KEY.into(), content: key, mode: 0o600, owner },
        HostRequirement::file(CGROUP, cgroup_conf(cgroups)),
        HostRequirement::file(CONF, conf),
    ];
    let units = [Some("munge"), is_controller.then_some(CONTROLLER), Some("slurmd")];
    Ok(files.into_iter().chain(units.into_iter().flatten().flat_map(|unit| runs(unit, how))).collect())
}

/// Returns how slurmd reads its files again: a running one can reload changes of other nodes.
fn how(there: &Observed, conf: &str, cgroup: &str) -> How {
    let rest =
        |text: &str| text.lines().filter(|line| !line.starts_with("NodeName=")).map(String::from).collect::<Vec<_>>();
    let old = there.text(CONF).filter(|old| *old != conf);
    let others_only = old.is_some_and(|old| rest(old) == rest(conf)) && there.text(CGROUP) == Some(cgroup);
    if others_only { How::Reload } else { How::Restart }
}

/// Wants the unit running with its files read. slurmctld accepts a changed number of nodes only when it starts: at a
/// reconfigure, version 22.05 ends with "You have to restart slurmctld". Jobs go on meanwhile.
fn runs(unit: &str, of_slurmd: How) -> [HostRequirement; 2] {
    let paths: &[&str] = if unit == "munge" { &[KEY] } else { &[CONF, CGROUP] };
    let paths = paths.iter().map(|path| path.to_string()).collect();
    let how = if unit == "slurmd" { of_slurmd } else { How::Restart };
    let reads = HostRequirement::Reads { unit: unit.into(), paths, how, test: None };
    [HostRequirement::Unit { name: unit.into(), on: true }, reads]
}

/// Whether the host belongs to another cluster.
fn is_foreign(there: &Observed) -> bool {
    match there.files.get(CONF) {
        None | Some(PathState::Absent) => false,
        _ => !is_left(there),
    }
}

/// Returns a note that files and units are planned only once the packages are installed.
pub(super) fn notes(site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
    let without = |there: &Observed| {
        site.called(there, EVERYWHERE).is_some_and(|all| all.iter().any(|package| !there.packages.contains(package)))
    };
    let bare = site.up.slurm.is_some() && seen.values().flatten().any(without);
    bare.then(|| "slurm: homing plans its files and units when the packages are installed".into()).into_iter().collect()
}

fn leader<'s>(site: &ClusterSite, seen: &'s AllSeen) -> Option<&'s Observed> {
    let there = seen.get(site.controller()?)?.as_ref().ok()?;
    there.packages.contains(&site.called_one(there, LEADS).ok()?).then_some(there)
}

fn no_leader(site: &ClusterSite) -> String {
    format!(
        "{}, which is to run Slurm's controller, does not answer or has no {CONTROLLER}",
        site.controller().unwrap_or("a host")
    )
}

/// Whether all hosts that answer have version 2 of the control groups.
fn has_cgroups(seen: &AllSeen) -> bool {
    seen.values().flatten().all(|there| there.outputs.get(GROUPS).is_some_and(|said| said.trim() == "cgroup2fs"))
}

fn cgroup_conf(cgroups: bool) -> String {
    let rest = if cgroups {
        "CgroupPlugin=cgroup/v2\nConstrainCores=yes\nConstrainRAMSpace=yes\n"
    } else {
        "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
    };
    format!("{HEAD}{rest}")
}

fn conf(site: &ClusterSite, slurm: &Slurm, seen: &AllSeen, cgroups: bool) -> Result<String, Vec<String>> {
    let Some((controller, lead)) = site.controller().zip(leader(site, seen)) else { return Err(vec![no_leader(site)]) };
    let address = site.names(controller, seen).first().map(|(_, address)| format!("({address})")).unwrap_or_default();
    let is_of = |host: &str, line: &str| line.split(' ').next() == Some(&format!("NodeName={host}"));
    let nodes = lines_of_all(site, lead.text(CONF).unwrap_or(""), |host| node(site, host, seen), is_of);
    let memory = |line: &str| Some(number(line, "RealMemory=")? / number(line, "CPUs=")?.max(1));
    let Some(memory) = nodes.lines().filter_map(memory).min() else {
        return Err(vec![format!("{OFFERS} prints nothing on any host")]);
    };
    let (track, task) = if cgroups { ("cgroup", "task/cgroup,task/affinity") } else { ("linuxproc", "task/none") };
    let base = format!(
        "ClusterName={}\nSlurmctldHost={}{address}\nSlurmUser=slurm\nAuthType=auth/munge\n\
         StateSaveLocation=/var/lib/slurm/slurmctld\nSlurmdSpoolDir=/var/lib/slurm/slurmd\n\
         SlurmctldLogFile=/var/log/slurm/slurmctld.log\nSlurmdLogFile=/var/log/slurm/slurmd.log\n\
         ProctrackType=proctrack/{track}\nTaskPlugin={task}\nMpiDefault=none\n\
         JobAcctGatherType=jobacct_gather/linux\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n\
         DefMemPerCPU={memory}\nReturnToService=2\n",
        slurm.cluster,
        own_name(controller, lead),
    );
    let is_told = |line: &&str| !slurm.settings.keys().any(|key| line.split('=').next() == Some(key));
    let base: String = base.split_inclusive('\n').filter(is_told).collect();
    let settings: String = slurm.settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    Ok(format!("{HEAD}{base}{settings}{nodes}PartitionName={} Nodes=ALL Default=YES State=UP\n", slurm.partition))
}

/// Returns a host's line, from the report of its slurmd.
fn node(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(there) = seen.get(host).and_then(|s| s.as_ref().ok()).filter(|there| !is_foreign(there)) else {
        return Vec::new();
    };
    let said = there.outputs.get(OFFERS).map_or("", String::as_str).lines().next().unwrap_or("");
    let offers = said.split(' ').filter(|word| !word.starts_with("NodeName=")).map(|word| {
        let memory = number(word, "RealMemory=").map(|mb| format!("RealMemory={}", mb * PERCENT / 100));
        memory.unwrap_or_else(|| word.to_string())
    });
    let offers: Vec<String> = offers.collect();
    if number(said, "CPUs=").is_none() {
        return Vec::new();
    }
    let address = site.names(host, seen).first().map(|(_, address)| format!(" NodeAddr={address}")).unwrap_or_default();
    let called = own_name(host, there);
    let called = if called == host { String::new() } else { format!(" NodeHostname={called}") };
    vec![format!("NodeName={host}{called}{address} {}", offers.join(" "))]
}

/// Returns the name by which Slurm's daemons know their own host.
fn own_name<'s>(host: &'s str, there: &'s Observed) -> &'s str {
    Some(homing_model::hostname::short(&there.hostname)).filter(|name| !name.is_empty()).unwrap_or(host)
}

fn number(text: &str, key: &str) -> Option<u64> {
    text.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok()
}

/// Returns a script for the controller that drains a host which is to leave. It prints the jobs that prevent that,
/// for [`held`]. A host that Slurm does not know is gone already.
pub fn drain(host: &str) -> String {
    let host = WordReader::Sh.quoted(host);
    format!(
        "out=$(scontrol update NodeName={host} State=DRAIN Reason='homing down' 2>&1) || case $out in \
         *'nvalid node'*) exit 0;; *) echo \"$out\" >&2; exit 1;; esac\nsqueue -h -w {host} -o 'runs %i' || exit 1\n\
         squeue -h -t PD -o '%F %n' | sort -u | while read -r job nodes; do\n\
         [ -z \"$nodes\" ] || ! scontrol show hostnames \"$nodes\" | grep -qxF -e {host} || echo queued $job\ndone\n"
    )
}

/// Jobs that prevent a host from leaving, by Slurm's numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BlockingJobs {
    /// Jobs that run there, or are ending.
    pub run: Vec<String>,
    /// Jobs that wait in the queue and name the host (`--nodelist`). A slurmctld that no longer knows the host ends
    /// them with NODE_FAIL: they would be lost without having run (Slurm 22.05).
    pub queued: Vec<String>,
}

/// Reads the controller's output of [`drain`].
pub fn held(output: &str) -> BlockingJobs {
    let of = |word: &str| -> Vec<String> {
        output.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).map(String::from).collect()
    };
    BlockingJobs { run: of("runs"), queued: of("queued") }
}

/// Whether Slurm's file of homing up is on a host.
pub(crate) fn is_left(there: &Observed) -> bool {
    there.text(CONF).is_some_and(|text| text.starts_with(HEAD))
}

/// Returns a script for the controller at the end. It prints nodes with their states, once those of `hosts` serve or
/// after a minute.
pub fn proof(hosts: &[String]) -> String {
    let names = hosts.join(",");
    format!(
        "for i in $(seq 60); do s=$(sinfo -h -N -n {names} -o '%N %t %E' 2>&1 | sort -u); \
         [ \"$(printf '%s\\n' \"$s\" | grep -cE '^[^ ]+ ({}) ')\" -lt {} ] || break; sleep 1; done; \
         printf '%s\\n' \"$s\"\n",
        SERVES.join("|"),
        hosts.len()
    )
}

/// Returns the hosts that do not serve, each with Slurm's message.
pub fn unfit(hosts: &[String], output: &str) -> Vec<(String, String)> {
    let state = |host: &String| {
        let mut lines = output.lines().filter_map(|line| line.split_once(' '));
        let words = lines.find(|(name, _)| name == host).map_or("is missing in the output of sinfo", |(_, t)| t);
        let serves = SERVES.contains(&words.split(' ').next().unwrap_or(""));
        (!serves)
            .then(|| (host.clone(), format!("slurm: after a minute the node {words}; see journalctl -u slurmd there")))
    };
    hosts.iter().filter_map(state).collect()
}
