//! The content of `cluster.toml`: hosts, groups, slots and queues. Each command reads it once. The user's own file adds
//! to the administrator's. If both set the same key, the user's wins for the set of hosts, their addresses and their
//! set-up. The administrator's wins for all that users share: groups, queues, prices, power, rates of links, load
//! indices, locators, snapshots.
//!
//! Main types: [`Cluster`] answers questions about both files and ClusterShell's groups; [`Cost`] has the prices,
//! [`Switching`] the commands that switch hosts. A mistake in a file is an error with its line.
//!
//! It does not: connect to hosts. The sections `[up]`, `[snapshot]` and `[volume]` are types of the crates that act
//! on them.

pub mod algebra;
mod batch_hosts;
mod cost;
pub mod defaults;
mod file;
pub mod granted;
mod groups;
pub mod home;
pub mod inputs;
mod job;
mod kept;
pub mod licenses;
mod links;
mod lsf_keys;
mod members;
pub mod nodes;
mod plans;
mod power;
pub mod storage;
mod strays;
pub mod switched;
mod switches;
mod volumes;

pub use batch_hosts::BatchHosts;
pub use cost::Cost;
use file::ClusterFile;
pub use file::{config_folder, line_of, own_path, text_of};
use groups::ClusterShell;
use homing_dispatch::source::leases::ServerSection;
use homing_locate::{OwnLocator, OwnLocators};
use homing_model::nodeset::NodeGroups;
use homing_model::{Failure, NodeSet};
use homing_queue::JobSpool;
use homing_queue::index::Index;
use homing_queue::plan::{Config, Queue, SubmitterSettings, Windows};
use homing_queue::require::Requirement;
use homing_setup::ClusterSite;
use homing_snapshot::section::Section;
pub use plans::with_slots;
pub use power::Switching;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// All sources of host names: the cluster files first, then ClusterShell's own configuration, which is read on first
/// use.
#[derive(Debug)]
pub struct Cluster {
    own: ClusterFile,
    machine: ClusterFile,
    told: SubmitterSettings,
    shell: OnceCell<Result<ClusterShell, String>>,
}

impl Cluster {
    /// Reads the administrator's file and the user's. The user's is that of the option, of `$HOMING_CLUSTER`,
    /// `./cluster.toml` if no other user can write it, or `~/.config/homing/cluster.toml`.
    pub fn load(option: Option<&Path>) -> Result<Cluster, Failure> {
        let (own, machine) = (file::own(option, true)?, file::machine()?);
        strays::note(&own, &machine);
        Ok(Cluster::of(own, machine))
    }

    /// Reads the files for the queue, whose jobs are in many folders. A file in the current folder does not count,
    /// and the terms that another machine sent with a job do.
    pub fn of_queue() -> Result<Cluster, Failure> {
        let told = JobSpool::open().map_or_else(|_| SubmitterSettings::default(), |spool| spool.terms());
        Ok(Cluster { told, ..Cluster::of(file::own(None, false)?, file::machine()?) })
    }

    fn of(own: ClusterFile, machine: ClusterFile) -> Cluster {
        Cluster { own, machine, told: SubmitterSettings::default(), shell: OnceCell::new() }
    }

    /// Returns ClusterShell's groups.
    pub fn shell(&self) -> Result<&ClusterShell, String> {
        let unread = |e: &String| format!("the groups of ClusterShell cannot be read: {e}");
        self.shell.get_or_init(ClusterShell::load).as_ref().map_err(unread)
    }

    /// Reads ClusterShell's groups from `file` instead of its usual places. It must be called before groups are used.
    pub fn read_groups_of(&self, file: &Path) -> Result<(), Failure> {
        let groups = ClusterShell::of_file(file);
        let wrong = groups.as_ref().err().cloned();
        let _ = self.shell.set(groups);
        wrong.map_or(Ok(()), |e| Err(Failure::usage(format!("the groups of ClusterShell cannot be read: {e}"))))
    }

    /// Returns the set of a text; groups without a source are those of `source`.
    pub fn set(&self, text: &str, source: Option<&str>) -> Result<NodeSet, Failure> {
        let set = NodeSet::parse_in(text, source, self)
            .map_err(|e| Failure::usage(format!("{text:?} is no node set: {e}")).hint("'n[1-4,7]', @group, a,b"))?;
        if let Some(odd) = set.iter().find(|n| n.starts_with('-')) {
            return Err(Failure::usage(format!("{odd:?} cannot be a host name")));
        }
        Ok(set)
    }

    /// Returns the faults of sections that other commands use: hosts of a queue that are no node set.
    pub fn section_faults(&self) -> Vec<String> {
        let queues = [&self.own, &self.machine].into_iter().flat_map(|settings| &settings.queue);
        let fault = |(name, queue): (&String, &homing_queue::plan::Queue)| {
            Some(format!("[queue.{name}] hosts = {:?}: {}", queue.hosts, self.set(&queue.hosts, None).err()?.message))
        };
        queues.filter_map(fault).collect()
    }

    fn all_hosts(&self) -> Option<&String> {
        self.own.hosts.as_ref().or(self.machine.hosts.as_ref())
    }

    /// Whether a cluster file names hosts.
    pub fn has_hosts(&self) -> bool {
        self.all_hosts().is_some()
    }

    /// Returns the hosts of a node set; without one, those of the cluster files.
    pub fn hosts(&self, named: Option<&str>) -> Result<Vec<String>, Failure> {
        let text = named.or(self.all_hosts().map(String::as_str)).unwrap_or_default();
        Ok(self.set(text, None)?.iter().map(String::from).collect())
    }

    /// Returns the hosts of a queue; none if it names none.
    pub fn hosts_of(&self, queue: Option<&Queue>) -> Result<Vec<String>, Failure> {
        let hosts = queue.map_or("", |queue| queue.hosts.as_str());
        if hosts.trim().is_empty() { Ok(Vec::new()) } else { self.hosts(Some(hosts)) }
    }

    /// Returns the set-up that `homing up` makes, without its volumes: the user's file has priority over the
    /// administrator's.
    pub fn site(&self) -> Result<ClusterSite, Failure> {
        let hosts = self.hosts(None)?;
        let up = self.own.up.clone().or_else(|| self.machine.up.clone()).unwrap_or_default();
        let told = |host: &String| Some((host.clone(), self.addresses_of(host)?.clone()));
        let volumes = Vec::new();
        Ok(ClusterSite { addresses: hosts.iter().filter_map(told).collect(), hosts, up, volumes })
    }

    /// Returns the addresses of a host by network: the user's file has priority over the administrator's.
    pub fn addresses_of(&self, host: &str) -> Option<&BTreeMap<String, IpAddr>> {
        let files = [&self.own, &self.machine].into_iter();
        files.filter_map(|settings| Some(&settings.host.get(host)?.addresses)).find(|addresses| !addresses.is_empty())
    }

    /// Returns the hosts with addresses in a cluster file.
    pub fn hosts_with_addresses(&self) -> BTreeSet<&String> {
        let named = self.own.host.iter().chain(&self.machine.host);
        named.filter(|(_, host)| !host.addresses.is_empty()).map(|(name, _)| name).collect()
    }

    /// Returns the prices: the administrator's have priority over the user's.
    pub fn cost(&self) -> Option<&Cost> {
        self.machine.cost.as_ref().or(self.own.cost.as_ref())
    }

    /// Returns the slots that the cluster files give to a host: the smaller number, if both have one.
    pub fn slots_of(&self, name: &str) -> Option<u32> {
        let said = |settings: &ClusterFile| settings.host.get(name).and_then(|host| host.slots);
        [said(&self.machine), said(&self.own)].into_iter().flatten().min()
    }

    /// Returns the named resources of hosts: of each the smaller amount, if both files have one.
    pub fn resources(&self) -> HashMap<String, BTreeMap<String, u64>> {
        let hosts = self.own.host.keys().chain(self.machine.host.keys());
        let all = hosts.map(|host| (host.clone(), self.resources_of(host)));
        all.filter(|(_, resources)| !resources.is_empty()).collect()
    }

    fn resources_of(&self, host: &str) -> BTreeMap<String, u64> {
        let settings = [&self.own, &self.machine].into_iter().filter_map(|file| file.host.get(host));
        let mut all = BTreeMap::new();
        for (name, amount) in settings.flat_map(|host| host.amounts()) {
            let known = all.entry(name).or_insert(amount);
            *known = amount.min(*known);
        }
        all
    }

    /// Returns the graphics processors that the cluster files give to a host.
    pub fn gpus_of(&self, host: &str) -> Option<u64> {
        let mut resources = self.resources_of(host).into_iter();
        resources.find(|(name, _)| homing_model::resource::is_gpu(name)).map(|(_, gpus)| gpus)
    }

    /// Returns the graphics processors of this host: those that the cluster files give to it, or else its devices.
    pub fn gpus_here(&self) -> u32 {
        let configured = self.gpus_of(&homing_queue::host_name());
        configured.map_or_else(homing_probe::gpus, |gpus| u32::try_from(gpus).unwrap_or(u32::MAX))
    }

    /// Returns the limits that the cluster files give a queue, each with its equivalent in Slurm.
    pub fn limits_of(&self, queue: &str) -> Option<Vec<(&'static str, &'static str)>> {
        let queue = [&self.machine.queue, &self.own.queue].into_iter().find_map(|all| all.get(queue))?;
        let limits = [
            (queue.slots.is_some(), "slots", "GrpTRES=cpu=N of the partition's QOS"),
            (queue.per_user.is_some(), "per_user", "MaxTRESPerUser=cpu=N of the partition's QOS"),
            (queue.leases.is_some(), "leases", "GrpTRES=cpu=N of the partition's QOS, which holds over all hosts"),
            (queue.per_host.is_some(), "per_host", "MaxCPUsPerNode=N of the partition"),
            (queue.run_limit.is_some(), "run_limit", "MaxTime of the partition"),
            (
                !queue.load.is_empty(),
                "load",
                "Slurm has no thresholds; Licenses=NAME:N in slurm.conf and [server.NAME] license = \"NAME\" limit the users of a file server",
            ),
            (!queue.hosts.is_empty(), "hosts", "Nodes of the partition"),
            (queue.closed, "closed", "State=DOWN of the partition"),
            (!queue.users.is_empty(), "users", "AllowAccounts or AllowGroups of the partition"),
            (queue.cpu_limit.is_some(), "cpu_limit", "MaxTime of the partition"),
            (queue.memory_limit.is_some(), "memory_limit", "MaxMemPerNode of the partition"),
            (!queue.res_req.is_empty(), "res_req", "Nodes of the partition"),
            (queue.dispatch_window != Windows::default(), "dispatch_window", "scontrol update State=INACTIVE, by cron"),
            (queue.nice > 0, "nice", "Slurm has none; Prolog=, with renice"),
            (!queue.pre_exec.is_empty(), "pre_exec", "Prolog= or TaskProlog="),
            (!queue.post_exec.is_empty(), "post_exec", "Epilog= or TaskEpilog="),
            (!queue.job_starter.is_empty(), "job_starter", "TaskProlog="),
        ];
        Some(limits.into_iter().filter(|(said, ..)| *said).map(|(_, name, slurms)| (name, slurms)).collect())
    }

    /// Returns the commands that locate bytes: the administrator's command for a type has priority over the user's.
    pub fn locators(&self) -> OwnLocators {
        let named = |(name, own): (&String, &OwnLocator)| OwnLocator { name: name.clone(), ..own.clone() };
        self.machine.locator.iter().chain(&self.own.locator).map(named).collect()
    }

    /// Returns the load indices that the site defines: the administrator's have priority over the user's, and those
    /// over received terms.
    pub fn indices(&self) -> BTreeMap<String, Index> {
        let all = [&self.told.index, &self.own.index, &self.machine.index];
        all.into_iter().flatten().map(|(name, index)| (name.clone(), index.clone())).collect()
    }

    /// Returns the terms that are sent to a host with a job.
    pub fn terms_for(&self, host: &str) -> Result<SubmitterSettings, Failure> {
        Ok(SubmitterSettings { slots: self.slots_of(host), queue: self.queue_config()?.queues, index: self.indices() })
    }

    /// Refuses thresholds on indices that are not measured: they would seem to be in force.
    fn thresholds_are_measured(&self, queues: &BTreeMap<String, Queue>) -> Result<(), Failure> {
        let own = self.indices();
        let known = |index: &String| homing_queue::INDICES.contains(&index.as_str()) || own.contains_key(index);
        let odd = queues.iter().find_map(|(name, queue)| Some((name, queue.load.keys().find(|index| !known(index))?)));
        let Some((queue, index)) = odd else { return Ok(()) };
        let measured = homing_queue::INDICES.join(" ");
        let why = format!("[queue.{queue}] of the cluster file has a threshold on {index}, which no host measures");
        Err(Failure::usage(why).hint(format!("use one of {measured}, or add [index.{index}] command = \"...\"")))
    }

    /// Refuses requirements on unknown resources, which would never be met.
    fn requirements_are_known(&self, queues: &BTreeMap<String, Queue>) -> Result<(), Failure> {
        let own = self.indices();
        for (name, queue) in queues.iter().filter(|(_, queue)| !queue.res_req.is_empty()) {
            let read = Requirement::all(&[&queue.res_req]).unwrap_or_default();
            let span = read.span.as_ref().map(|span| format!("span[{span}], which only a job may request: bsub -R"));
            if let Some(inert) = read.inert.first().or(span.as_ref()) {
                return Err(Failure::usage(format!("[queue.{name}] of the cluster file has a res_req with {inert}")));
            }
            if let Some(odd) = read.unknown(&|index| own.contains_key(index)) {
                let why =
                    format!("[queue.{name}] of the cluster file has a res_req on {odd:?}, which is not a resource");
                return Err(Failure::usage(why)
                    .hint(format!("lsinfo lists the resources; [index.{odd}] command = \"...\" adds one")));
            }
        }
        Ok(())
    }

    /// Returns the storage servers. The limit of each is the smaller one, and the administrator's folder for leases
    /// has priority.
    pub fn servers(&self) -> BTreeMap<String, ServerSection> {
        let mut all = self.machine.server.clone();
        for (name, own) in &self.own.server {
            let known = all.entry(name.clone()).or_default();
            known.io = [known.io, own.io].into_iter().flatten().min();
            known.leases = known.leases.take().or_else(|| own.leases.clone());
            known.license = known.license.take().or_else(|| own.license.clone());
        }
        all
    }

    /// Returns the snapshots to make: the administrator's of a name has priority over the user's.
    pub fn snapshots(&self) -> BTreeMap<String, Section> {
        self.own.snapshot.iter().chain(&self.machine.snapshot).map(|(n, s)| (n.clone(), s.clone())).collect()
    }

    /// Returns the queues and slots for `homing sub` and the LSF front end. If the administrator has queues, there
    /// are no others: a user's own queue would have none of their limits.
    pub fn queue_config(&self) -> Result<Config, Failure> {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let mut queues = self.machine.queue.clone();
        if queues.is_empty() {
            queues = self.told.queue.clone().into_iter().chain(self.own.queue.clone()).collect();
        }
        if queues.is_empty() {
            queues.insert("normal".into(), Queue::default());
        }
        self.thresholds_are_measured(&queues)?;
        self.requirements_are_known(&queues)?;
        let slots = [self.slots_of(&homing_queue::host_name()), self.told.slots].into_iter().flatten().min();
        let named = self.machine.host.keys().chain(self.own.host.keys()).cloned().chain(self.hosts(None)?);
        Ok(Config {
            slots: slots.unwrap_or_else(cores),
            gpus: self.gpus_here(),
            host_slots: named.map(|name| (name.clone(), self.slots_of(&name))).collect(),
            barred: barred(&queues),
            queues,
            index: self.indices(),
            name: homing_queue::host_name(),
            ..Config::default()
        })
    }
}

/// Returns the queues that this user may not use.
fn barred(queues: &BTreeMap<String, Queue>) -> BTreeSet<(u32, String)> {
    let uid = homing_queue::uid();
    let restricted = || queues.iter().filter(|(_, queue)| !queue.users.is_empty());
    if uid == 0 || restricted().next().is_none() {
        return BTreeSet::new();
    }
    let name = homing_queue::user_name(uid);
    let shut = restricted().filter(|(_, queue)| !queue.admits(&name, homing_os::names::own_groups));
    shut.map(|(queue, _)| (uid, queue.clone())).collect()
}

/// Returns the absolute path of the file that `$HOMING_CLUSTER` names.
pub fn named_file() -> Option<PathBuf> {
    file::named().and_then(|path| std::path::absolute(path).ok())
}

impl NodeGroups for Cluster {
    fn group(&self, source: Option<&str>, name: &str) -> Result<Option<String>, String> {
        // The administrator's groups have priority: they define the hosts of the administrator's queues.
        let told = self.machine.groups.get(name).or_else(|| self.own.groups.get(name));
        match told.filter(|_| source.is_none()) {
            Some(nodes) => Ok(Some(nodes.clone())),
            None => self.shell()?.group(source, name),
        }
    }

    fn all(&self, source: Option<&str>) -> Result<Option<String>, String> {
        match self.all_hosts().filter(|_| source.is_none()) {
            Some(hosts) => Ok(Some(hosts.clone())),
            None => self.shell()?.all(source),
        }
    }

    fn list(&self, source: Option<&str>) -> Result<Vec<String>, String> {
        let told = self.machine.groups.keys().chain(self.own.groups.keys()).filter(|_| source.is_none());
        let shell = self.shell()?;
        let theirs = if shell.sources().is_empty() { Vec::new() } else { shell.list(source)? };
        let mut all: Vec<String> = Vec::new();
        for name in told.cloned().chain(theirs) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> ClusterFile {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_users_own_file_adds_to_the_administrators_and_loosens_nothing() {
        let machine = "hosts = \"n[1-2]\"\n[groups]\nnas = \"n1\"\n[host.n1]\nslots = 4\n[host.n2]\nslots = 4\n\
                       [queue.normal]\nper_user = 2\nhosts = \"@nas\"\n";
        let own = "hosts = \"n[1-9]\"\n[groups]\nnas = \"n[1-9]\"\nmine = \"n9\"\n[host.n1]\nslots = 40\n[host.n2]\nslots = 1\n\
                   [host.n9]\nslots = 3\n[queue.normal]\nper_user = 99\n[queue.wide]\n";
        let both = Cluster::of(settings(own), settings(machine));
        assert_eq!(["n1", "n2", "n9"].map(|n| both.slots_of(n)), [Some(4), Some(1), Some(3)]);
        let config = both.queue_config().unwrap();
        assert_eq!(config.queues.keys().collect::<Vec<_>>(), ["normal"]);
        assert_eq!(config.queues["normal"].per_user, Some(2));
        assert_eq!(both.hosts(Some("@nas")).unwrap(), ["n1"]);
        assert_eq!(both.hosts(Some("@mine")).unwrap(), ["n9"]);
        assert_eq!(both.hosts(None).unwrap().len(), 9, "which hosts a user's commands go to is the user's choice");
        let servers =
            |text: &str| Cluster::of(settings(text), settings("[server.nas]\nio = 8\nleases = \"/a\"\n")).servers();
        let said = |server: &ServerSection| (server.io.map(|io| io.get()), server.leases.clone());
        assert_eq!(said(&servers("[server.nas]\nio = 80\nleases = \"/b\"\n")["nas"]), (Some(8), Some("/a".into())));
        assert_eq!(said(&servers("[server.nas]\nio = 2\n[server.x]\n")["nas"]), (Some(2), Some("/a".into())));
        let alone = Cluster::of(settings(own), ClusterFile::default());
        assert_eq!(alone.queue_config().unwrap().queues.len(), 2);
    }

    #[test]
    fn limits_that_slurm_does_not_know_are_found_with_what_takes_their_place() {
        let text = "[queue.lab]\nload = { bio = \"9\" }\nper_user = 3\npriority = 4\n[queue.free]\npriority = 1\n";
        let cluster = Cluster::of(settings(text), ClusterFile::default());
        let names =
            |queue| cluster.limits_of(queue).map(|all| all.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_eq!(names("lab"), Some(vec!["per_user", "load"]));
        assert_eq!((names("free"), names("other")), (Some(vec![]), None));
    }

    #[test]
    fn what_is_told_with_a_job_adds_to_a_hosts_own_files_and_loosens_nothing() {
        let host = homing_queue::host_name();
        let own = format!("[host.\"{host}\"]\nslots = 3\n[host.n2]\nslots = 0\n[queue.storage]\nper_user = 2\n");
        let there = Cluster::of(settings(&own), ClusterFile::default());
        assert_eq!(there.terms_for("n2").unwrap().slots, Some(0));
        assert_eq!(there.terms_for("n3").unwrap().slots, None, "it knows itself how many it has");
        let queue = [("storage".to_string(), Queue::default())];
        let told = |slots| SubmitterSettings { slots, queue: queue.clone().into(), ..SubmitterSettings::default() };
        let config = |machine: &str, told| {
            Cluster { told, ..Cluster::of(ClusterFile::default(), settings(machine)) }.queue_config().unwrap()
        };
        assert_eq!(config("", told(Some(7))).slots, 7);
        assert_eq!(config("", told(None)).queues.keys().collect::<Vec<_>>(), ["storage"]);
        let administrators = format!("[host.\"{host}\"]\nslots = 2\n[queue.normal]\n");
        assert_eq!(config(&administrators, told(Some(7))).slots, 2);
        assert_eq!(config(&administrators, told(None)).queues.keys().collect::<Vec<_>>(), ["normal"]);
    }
}
