//! MooseFS over the hosts of a lab: the master on n1, a chunkserver on each
//! host's `/scratch`, mounted at `/data` everywhere.

use crate::error::{Doing, LabError, Result};
use crate::exec::{on_each, output};
use crate::plan::{HostPlan, LabPlan};
use crate::root::write;
use crate::spec::MooseSpec;
use std::fs;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const METADATA: &str = "/scratch/moosefs/master";

/// Starts master, chunkservers and mounts, and sets the number of copies of all files.
pub(crate) fn make(plan: &LabPlan, shape: MooseSpec) -> Result<()> {
    let hosts = plan.hosts();
    let Some(first) = hosts.first() else { return Ok(()) };
    on_each(plan, configure)?;
    start_master(plan, first)?;
    on_each(plan, |h| {
        // `ProtectSystem` and `PrivateDevices` of the unit work in a host; its dependency on the network is met.
        output(plan, h, "starting the chunkserver", &["systemctl", "start", "moosefs-chunkserver"]).map(drop)
    })?;
    wait_for_chunkservers(plan, first)?;
    on_each(plan, |h| {
        output(plan, h, "making /data", &["mkdir", "-p", "/data"])?;
        let master = first.name();
        let mut words = vec!["mfsmount", "/data", "-H", master.as_str()];
        let prefer = label(h).map(|label| format!("mfspreflabels={label}"));
        if let Some(prefer) = &prefer {
            words.extend(["-o", prefer.as_str()]);
        }
        mount(plan, h, &words)
    })?;
    let goal = shape.goal.to_string();
    output(plan, first, "setting the goal of /data", &["mfssetgoal", "-r", &goal, "/data"])?;
    output(plan, first, "opening /data to all users", &["chmod", "1777", "/data"]).map(drop)
}

/// Mounts on a host. A master on a busy machine takes longer to answer than a client waits, so the mount is repeated.
fn mount(plan: &LabPlan, host: &HostPlan, words: &[&str]) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match output(plan, host, "mounting MooseFS", words) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(500)),
            mounted => return mounted.map(drop),
        }
    }
}

/// Returns a host's own label, by which its mount prefers its own chunkserver. Without a label a local copy is only a
/// tie-break between chunkservers that are equally busy. A fifth of the data with a local copy came over the network
/// then. MooseFS has 26 labels; hosts of a larger lab go without.
fn label(host: &HostPlan) -> Option<char> {
    let nth = u8::try_from(host.index).ok()?.checked_sub(1)?;
    (nth < 26).then(|| char::from(b'A' + nth))
}

/// Writes the daemons' files. The machine's own, if it has any, stay unseen.
fn configure(host: &HostPlan) -> Result<()> {
    let etc = host.root().join("etc/mfs");
    let master = format!("DATA_PATH = {METADATA}\nREPLICATIONS_DELAY_INIT = 5\n");
    let chunks = "DATA_PATH = /scratch/moosefs/state\nMASTER_HOST = n1\nMASTER_RECONNECTION_DELAY = 1\n\
                  HDD_LEAVE_SPACE_DEFAULT = 64MiB\n";
    let label = label(host).map(|label| format!("LABELS = {label}\n")).unwrap_or_default();
    write(&etc.join("mfsmaster.cfg"), &master, 0o644)?;
    write(&etc.join("mfsexports.cfg"), "* / rw,alldirs,admin,maproot=0:0\n* . rw\n", 0o644)?;
    write(&etc.join("mfstopology.cfg"), "", 0o644)?;
    write(&etc.join("mfschunkserver.cfg"), &format!("{chunks}{label}"), 0o644)?;
    write(&etc.join("mfshdd.cfg"), "/scratch/moosefs/chunks\n", 0o644)?;
    for part in ["state", "chunks"] {
        let dir = host.scratch().join("moosefs").join(part);
        fs::create_dir_all(&dir).doing("making", &dir)?;
    }
    Ok(())
}

fn start_master(plan: &LabPlan, first: &HostPlan) -> Result<()> {
    let dir = first.scratch().join("moosefs/master");
    fs::create_dir_all(&dir).doing("making", &dir)?;
    let empty = dir.join("metadata.mfs");
    // The content of metadata.mfs.empty of the package.
    fs::write(&empty, "MFSM NEW").doing("writing", &empty)?;
    on_each(plan, |h| {
        output(plan, h, "changing the owner of the MooseFS folders", &["chown", "-R", "mfs:mfs", "/scratch/moosefs"])
            .map(drop)
    })?;
    output(plan, first, "starting the MooseFS master", &["systemctl", "start", "moosefs-master"]).map(drop)
}

/// Whether a row of `mfscli -SCS` is of a chunkserver that has reported its space. The tenth column after the heading
/// is its total. It registers before that, and a file made in between has fewer copies than its goal.
fn has_space(row: &str) -> bool {
    let mut columns = row.split('|');
    columns.next() == Some("chunk servers:")
        && columns.nth(9).is_some_and(|total| total.parse::<u64>().unwrap_or(0) > 0)
}

/// Waits for the chunkservers: a file gets its copies only on registered ones.
fn wait_for_chunkservers(plan: &LabPlan, first: &HostPlan) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let words = ["mfscli", "-H", "n1", "-p", "-s", "|", "-SCS"];
    loop {
        // Right after its start the master does not answer yet.
        let said = output(plan, first, "querying the chunkservers", &words).unwrap_or_default();
        let joined = said.lines().filter(|line| has_space(line)).count();
        if joined == plan.spec.hosts as usize {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(LabError::Program {
                doing: "waiting for the chunkservers".into(),
                command: words.join(" "),
                status: format!("{joined} of {} registered after {} s", plan.spec.hosts, PATIENCE.as_secs()),
                stderr: said,
            });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
