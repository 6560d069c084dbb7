//! A GlusterFS volume named `data` over the hosts of a lab: one brick each on
//! `/scratch`, mounted at `/data` everywhere.

use crate::error::{LabError, Result};
use crate::exec::{on_each, output};
use crate::plan::{HostPlan, LabPlan};
use crate::spec::GlusterSpec;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the daemons, joins the hosts, makes, starts and mounts the volume.
pub(crate) fn make(plan: &LabPlan, shape: GlusterSpec) -> Result<()> {
    on_each(plan, |h| serve(plan, h))?;
    let hosts = plan.hosts();
    let Some(first) = hosts.first() else { return Ok(()) };
    for peer in &hosts[1..] {
        output(plan, first, "joining a gluster peer", &["gluster", "--mode=script", "peer", "probe", &peer.name()])?;
    }
    wait_for_peers(plan)?;
    let replica = shape.replica.to_string();
    let bricks: Vec<String> = hosts.iter().map(|h| format!("{}:/scratch/brick", h.name())).collect();
    let mut create = vec!["gluster", "--mode=script", "volume", "create", "data"];
    if shape.replica > 1 {
        create.extend(["replica", &replica]);
    }
    create.extend(bricks.iter().map(String::as_str));
    create.push("force");
    output(plan, first, "making the gluster volume", &create)?;
    // `homing volume create` sets the same: without it a hard link beyond the limit of names can fail and still
    // exist.
    let set = ["gluster", "--mode=script", "volume", "set", "data"];
    let options = homing_volume::gluster::LINKS.iter().flat_map(|(key, value)| [*key, *value]);
    let words: Vec<&str> = set.into_iter().chain(options).collect();
    output(plan, first, "setting options of the gluster volume", &words)?;
    output(plan, first, "starting the gluster volume", &["gluster", "--mode=script", "volume", "start", "data"])?;
    on_each(plan, |h| mount(plan, h))
}

fn serve(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    output(plan, host, "starting glusterd", &["systemctl", "start", "glusterd"]).map(drop)
}

fn mount(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    output(plan, host, "making /data", &["mkdir", "-p", "/data"])?;
    let source = format!("{}:/data", host.name());
    output(plan, host, "mounting the gluster volume", &["mount", "-t", "glusterfs", &source, "/data"]).map(drop)
}

/// Joins a host to the volume again after a boot, or after its mount broke with the failure of other hosts. A client
/// that receives nothing from its glusterd in its first moments ends itself and leaves a dead mount.
pub(crate) fn join(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    serve(plan, host)?;
    let until = Instant::now() + PATIENCE;
    let alive = || output(plan, host, "reading the folder /data", &["sh", "-c", "mountpoint -q /data && ls /data"]);
    while alive().is_err() {
        let _ = output(plan, host, "unmounting /data", &["umount", "-l", "/data"]);
        match mount(plan, host) {
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(200)),
            Err(error) => return Err(error),
            Ok(()) if Instant::now() < until => {}
            Ok(()) => return alive().map(drop),
        }
    }
    Ok(())
}

/// Waits until all peers are connected, a second or so after the probes. Only then can a volume be made.
fn wait_for_peers(plan: &LabPlan) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    on_each(plan, |h| {
        loop {
            let said = output(plan, h, "querying the gluster peers", &["gluster", "--mode=script", "peer", "status"])?;
            let joined = said.matches("Peer in Cluster (Connected)").count();
            if joined + 1 == plan.spec.hosts as usize {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(LabError::Program {
                    doing: format!("waiting for the gluster peers of {}", h.name()),
                    command: "gluster peer status".into(),
                    status: format!("{joined} of {} joined after {} s", plan.spec.hosts - 1, PATIENCE.as_secs()),
                    stderr: said,
                });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    })
}
