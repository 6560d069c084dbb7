//! Slurm over the hosts of a lab: munge and slurmd on all, slurmctld on n1.
//! No database: `scontrol show job` remembers ended jobs long enough for a lab.

use crate::error::{Doing, LabError, Result};
use crate::exec::{on_each, output};
use crate::plan::{HostPlan, LabPlan};
use crate::program::run;
use crate::root::{list, write};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
/// munge takes keys of 32 to 1024 bytes.
const KEY_BYTES: usize = 128;

/// The resources that a host of the lab offers to Slurm.
struct Size {
    cpus: usize,
    memory_mb: u64,
}

/// Writes key and configuration into a host's root, before it boots.
pub(crate) fn configure(plan: &LabPlan, host: &HostPlan, key: &str) -> Result<()> {
    let root = host.root();
    write_key(&root.join("etc/munge/munge.key"), key)?;
    write(&root.join("etc/slurm/slurm.conf"), &conf_text(plan, &size(plan)), 0o644)?;
    write(&root.join("etc/slurm/cgroup.conf"), CGROUP, 0o644)?;
    for (folder, owner) in [("var/spool/slurmctld", "slurm:slurm"), ("var/spool/slurmd", "root:root")] {
        let path = root.join(folder);
        fs::create_dir_all(&path).doing("making", &path)?;
        run("making Slurm's folders", "chown", &[owner.as_ref(), path.as_os_str()])?;
    }
    Ok(())
}

/// Leaves Slurm as its packages do: without a configuration, and with a key of the host's own.
pub(crate) fn forget(etc: &Path) -> Result<()> {
    let is_conf = |path: &Path| path.extension().is_some_and(|end| end == "conf");
    for conf in list(&etc.join("slurm")).iter().filter(|path| is_conf(path)) {
        fs::remove_file(conf).doing("removing", conf)?;
    }
    let key = etc.join("munge/munge.key");
    if key.exists() { write_key(&key, &new_key()?) } else { Ok(()) }
}

/// Writes a key that munge alone may read.
pub(crate) fn write_key(path: &Path, key: &str) -> Result<()> {
    write(path, key, 0o400)?;
    run("copying the munge key", "chown", &["munge:munge".as_ref(), path.as_os_str()]).map(drop)
}

/// Returns a key for the munge of all hosts. munge takes any bytes; the key is text because the lab writes hosts'
/// files as text.
pub(crate) fn new_key() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; KEY_BYTES / 2];
    fs::File::open(source).and_then(|mut f| f.read_exact(&mut bytes)).doing("reading", source)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Returns the size of a host. Hosts share the machine's memory equally. The kernel divides the processors, or
/// `--cpus` limits them.
fn size(plan: &LabPlan) -> Size {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = plan.spec.cpus.map_or(all, |share| (share.ceil() as usize).clamp(1, all));
    let total_kb = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    let memory_mb = total_kb.unwrap_or(1 << 20) / 1024 / u64::from(plan.spec.hosts);
    Size { cpus, memory_mb: memory_mb.max(64) }
}

/// Returns the text of `slurm.conf`. Two partitions have the same hosts: `lab`, and `urgent`, whose jobs cancel those
/// of `lab`. `linuxproc` finds processes by their parents, so `scancel` also reaches processes in groups that a job
/// made. Each node has its name as a feature, so jobs can prefer it.
fn conf_text(plan: &LabPlan, size: &Size) -> String {
    let first = plan.hosts().first().map_or_else(|| "n1".into(), HostPlan::name);
    let (cpus, memory) = (size.cpus, size.memory_mb);
    let line = |name: &str| format!("NodeName={name} CPUs={cpus} RealMemory={memory} Feature={name} State=UNKNOWN\n");
    let nodes: String = plan.hosts().iter().map(|host| line(&host.name())).collect();
    format!(
        "ClusterName={name}\nSlurmctldHost={first}\nSlurmUser=slurm\nAuthType=auth/munge\n\
         StateSaveLocation=/var/spool/slurmctld\nSlurmdSpoolDir=/var/spool/slurmd\n\
         SlurmctldLogFile=/var/log/slurm/slurmctld.log\nSlurmdLogFile=/var/log/slurm/slurmd.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1\nJobAcctGatherParams=OverMemoryKill\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU={per_cpu}\n\
         SchedulerParameters=sched_min_interval=0\nPreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n\
         ReturnToService=2\nSlurmdTimeout=15\nSlurmctldTimeout=30\nKillWait=3\n\
         {nodes}\
         PartitionName=lab Nodes=ALL Default=YES PriorityTier=1 State=UP\n\
         PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP\n",
        name = plan.spec.name.to_ascii_lowercase(),
        per_cpu = memory / cpus as u64,
    )
}

/// The machine may mount version 1 of the control groups; nothing here uses them.
const CGROUP: &str = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n";

/// Starts the daemons. Returns when Slurm reports every host as idle.
pub(crate) fn start(plan: &LabPlan) -> Result<()> {
    let hosts = plan.hosts();
    let Some(first) = hosts.first() else { return Ok(()) };
    on_each(plan, |host| {
        let mut words = vec!["systemctl", "start", "munge", "slurmd"];
        if host.name() == first.name() {
            words.push("slurmctld");
        }
        output(plan, host, "starting munge and Slurm", &words).map(drop)
    })?;
    wait_until_idle(plan, first)
}

fn wait_until_idle(plan: &LabPlan, first: &HostPlan) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let asked =
            output(plan, first, "querying the nodes of Slurm", &["sinfo", "-h", "-N", "-p", "lab", "-o", "%N %T"]);
        let said = match &asked {
            Ok(text) if text.lines().filter(|l| l.ends_with(" idle")).count() == plan.spec.hosts as usize => {
                return Ok(());
            }
            Ok(text) => text.clone(),
            Err(e) => e.to_string(),
        };
        if Instant::now() > until {
            return Err(LabError::Program {
                doing: "waiting for Slurm's nodes".into(),
                command: "sinfo".into(),
                status: format!("not all idle after {} s; see /var/log/slurm on the hosts", PATIENCE.as_secs()),
                stderr: said,
            });
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::LabSpec;

    #[test]
    fn slurm_is_as_its_packages_leave_it() {
        let etc = tempfile::tempdir().unwrap();
        for (file, text) in [("slurm/slurm.conf", "x"), ("slurm/kept", "x"), ("munge/munge.key", "the machine's")] {
            write(&etc.path().join(file), text, 0o600).unwrap();
        }
        // The machine may lack munge where this test runs.
        if crate::program::command("id").arg("munge").output().is_ok_and(|id| id.status.success()) {
            forget(etc.path()).unwrap();
            assert_eq!(list(&etc.path().join("slurm")), [etc.path().join("slurm/kept")]);
            assert_ne!(fs::read_to_string(etc.path().join("munge/munge.key")).unwrap(), "the machine's");
        }
    }

    #[test]
    fn every_host_is_a_node_of_both_partitions() {
        let plan = LabPlan { spec: LabSpec { name: "T".into(), hosts: 4, ..LabSpec::default() }, number: 1 };
        let text = conf_text(&plan, &Size { cpus: 2, memory_mb: 6000 });
        assert!(text.contains("\nNodeName=n4 CPUs=2 RealMemory=6000 Feature=n4 "), "{text}");
        assert!(text.contains("SlurmctldHost=n1\n") && text.contains("DefMemPerCPU=3000\n"), "{text}");
        assert_eq!(text.matches("PartitionName=").count(), 2);
    }
}
