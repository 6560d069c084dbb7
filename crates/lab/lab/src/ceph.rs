//! CephFS over the hosts of a lab, mounted at `/data` everywhere by ceph-fuse. n1 has monitor, manager and MDS. Each
//! host has an OSD on its `/scratch`. With `kernel` in the specification, the last host is a guest without an OSD,
//! which mounts it by its kernel.

use crate::error::{Doing, LabError, Result};
use crate::exec::{on_each, output};
use crate::plan::{HostPlan, LabPlan};
use crate::program::finish;
use crate::root::write;
use crate::spec::CephSpec;
use std::fmt::Write;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);
/// All keys of the lab's cluster, on all hosts: each daemon finds its own there.
const KEYS: &str = "/etc/ceph/ceph.client.admin.keyring";
/// The key for mounts. Users may read it: without it only root can query where files are.
const USER_KEY: &str = "/etc/ceph/ceph.client.user.keyring";

/// Starts the daemons, makes the file system, and mounts it.
pub(crate) fn make(plan: &LabPlan, shape: CephSpec) -> Result<()> {
    let hosts = plan.hosts();
    let Some(first) = hosts.first() else { return Ok(()) };
    let cluster = uuid()?;
    let (keys, user) = new_keys(plan)?;
    on_each(plan, |host| {
        let etc = host.root();
        write(&etc.join("etc/ceph/ceph.conf"), &conf_text(plan, shape, &cluster), 0o644)?;
        write(&etc.join(&KEYS[1..]), &keys, 0o640)?;
        write(&etc.join(&USER_KEY[1..]), &user, 0o644)?;
        output(plan, host, "copying the keys of Ceph", &["chown", "root:ceph", KEYS]).map(drop)
    })?;
    script(plan, first, "starting Ceph's monitor", &start_monitor(first, &cluster))?;
    let osds = hosts.iter().filter(|host| !host.mounts_by_its_kernel());
    let ids: Vec<String> = osds.map(|_| uuid()).collect::<Result<_>>()?;
    script(plan, first, "making the pools of Ceph", &make_pools(&ids))?;
    on_each(plan, |host| {
        let number = osd_of(host);
        let Some(id) = ids.get(number) else { return Ok(()) };
        script(plan, host, "starting Ceph's OSD", &start_osd(number, id))?;
        match host.name() == first.name() {
            true => script(plan, host, "starting Ceph's manager and MDS", START_OTHERS),
            false => Ok(()),
        }
    })?;
    wait_until_healthy(plan, first)?;
    on_each(plan, |host| {
        let how = if host.mounts_by_its_kernel() { mount_by_kernel(first) } else { MOUNT_BY_FUSE.into() };
        script(plan, host, "mounting CephFS", &how)
    })?;
    output(plan, first, "opening /data to all users", &["chmod", "1777", "/data"]).map(drop)
}

const MOUNT_BY_FUSE: &str = "mkdir -p /data && ceph-fuse --id user /data >&2";

/// Passes the key to the kernel directly: otherwise the guest would need `mount.ceph`.
fn mount_by_kernel(first: &HostPlan) -> String {
    format!(
        "modprobe ceph\nmkdir -p /data\nkey=$(sed -n 's/.*key = //p' {USER_KEY})\n\
         mount -i -t ceph {}:6789:/ /data -o name=user,secret=$key\n",
        first.address()
    )
}

fn script(plan: &LabPlan, host: &HostPlan, doing: &str, text: &str) -> Result<()> {
    output(plan, host, doing, &["sh", "-ec", text]).map(drop)
}

fn uuid() -> Result<String> {
    let file = "/proc/sys/kernel/random/uuid";
    Ok(std::fs::read_to_string(file).doing("reading", file)?.trim().to_string())
}

/// Returns the settings of a small cluster that is healthy within seconds.
fn conf_text(plan: &LabPlan, shape: CephSpec, cluster: &str) -> String {
    let first = plan.hosts().first().map_or_else(String::new, |host| host.address().to_string());
    // The rest of the disk is for other files on it, and for tests.
    let block = plan.spec.disk_bytes / 4 * 3;
    format!(
        "[global]\nfsid = {cluster}\nmon_host = [v2:{first}:3300,v1:{first}:6789]\nms_bind_ipv6 = false\n\
         auth_cluster_required = cephx\nauth_service_required = cephx\nauth_client_required = cephx\n\
         osd_pool_default_size = {size}\nosd_pool_default_min_size = 1\nosd_pool_default_pg_autoscale_mode = off\n\
         mon_allow_pool_size_one = true\nmon_warn_on_pool_no_redundancy = false\n\
         [mon]\nkeyring = {KEYS}\nauth_allow_insecure_global_id_reclaim = false\nmon_data_avail_warn = 1\nmon_data_avail_crit = 1\n\
         [mgr]\nkeyring = {KEYS}\n[mds]\nkeyring = {KEYS}\n\
         [osd]\nkeyring = {KEYS}\nosd_objectstore = bluestore\nbluestore_block_size = {block}\n\
         bluestore_block_create = true\nosd_memory_target = 939524096\nosd_max_object_name_len = 256\n",
        size = shape.size,
    )
}

/// Returns the keyring of all, and the keyring for mounts.
fn new_keys(plan: &LabPlan) -> Result<(String, String)> {
    let all = plan.dir().join("ceph.keyring");
    let user = plan.dir().join("ceph.client.user.keyring");
    let full = [("mon", "allow *"), ("osd", "allow *"), ("mds", "allow *"), ("mgr", "allow *")];
    let mut new = vec![
        ("mon.".to_string(), vec![full[0]]),
        ("client.admin".into(), full.to_vec()),
        ("mgr.n1".into(), vec![("mon", "allow profile mgr"), full[1], full[2]]),
        ("mds.n1".into(), vec![("mon", "allow profile mds"), ("osd", "allow rwx"), full[2]]),
    ];
    let osd = vec![("mon", "allow profile osd"), ("mgr", "allow profile osd"), full[1]];
    new.extend(plan.hosts().iter().map(|host| (format!("osd.{}", osd_of(host)), osd.clone())));
    // The capabilities that `ceph fs authorize fs client.user / rwps` gives: users may also make layouts and
    // snapshots.
    let of_user =
        vec![("mon", "allow r fsname=fs"), ("mds", "allow rwps fsname=fs"), ("osd", "allow rw tag cephfs data=fs")];
    for (file, keys) in [(&user, vec![("client.user".to_string(), of_user)]), (&all, new)] {
        for (nth, (entity, caps)) in keys.iter().enumerate() {
            let mut command = crate::program::command("ceph-authtool");
            command.arg(file).args((nth == 0).then_some("--create-keyring")).args(["--gen-key", "-n", entity]);
            command.args(caps.iter().flat_map(|(part, what)| ["--cap", part, what]));
            finish("making the keys of Ceph", &mut command)?;
        }
    }
    let user = std::fs::read_to_string(&user).doing("reading", &user)?;
    Ok((std::fs::read_to_string(&all).doing("reading", &all)? + &user, user))
}

fn start_monitor(first: &HostPlan, cluster: &str) -> String {
    let (name, address) = (first.name(), first.address());
    format!(
        "monmaptool --create --fsid {cluster} --addv {name} '[v2:{address}:3300,v1:{address}:6789]' /tmp/monmap >&2\n\
         ceph-mon --mkfs -i {name} --monmap /tmp/monmap --keyring {KEYS}\n\
         chown -R ceph:ceph /var/lib/ceph/mon\nsystemctl start ceph-mon@{name}\n"
    )
}

/// Returns one script for all steps: each process of `ceph` takes 0.2 s and more to start.
fn make_pools(ids: &[String]) -> String {
    let mut text = String::from("timeout 60 ceph --connect-timeout 60 >&2 <<'END'\n");
    for (number, id) in ids.iter().enumerate() {
        let _ = writeln!(text, "osd new {id} {number}");
    }
    text + "osd pool create meta 8 8\nosd pool create data 32 32\nfs new fs meta data\nEND\n"
}

/// Returns the number of a host's OSD. Ceph counts OSDs from 0, and the lab hosts from 1.
fn osd_of(host: &HostPlan) -> usize {
    host.index as usize - 1
}

fn start_osd(id: usize, uuid: &str) -> String {
    format!(
        "mkdir -p /scratch/osd\nln -sfn /scratch/osd /var/lib/ceph/osd/ceph-{id}\n\
         ceph-osd --mkfs -i {id} --osd-uuid {uuid} >&2\nchown -R ceph:ceph /scratch/osd\nsystemctl start ceph-osd@{id}\n"
    )
}

const START_OTHERS: &str = "install -d -o ceph -g ceph /var/lib/ceph/mgr/ceph-n1 /var/lib/ceph/mds/ceph-n1
systemctl start ceph-mgr@n1 ceph-mds@n1";

const HEALTH: &str = "printf 'health\nmds stat\n' | ceph --connect-timeout 20";

/// Waits until all OSDs are in and the MDS is active. Files that are written before that have fewer copies.
fn wait_until_healthy(plan: &LabPlan, first: &HostPlan) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let asked = output(plan, first, "querying the health of Ceph", &["sh", "-c", HEALTH]);
        let said = match asked {
            Ok(text) if text.contains("HEALTH_OK") && text.contains("up:active") => return Ok(()),
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        if Instant::now() > until {
            return Err(LabError::Program {
                doing: "waiting for Ceph".into(),
                command: HEALTH.into(),
                status: format!("not healthy after {} s; see /var/log/ceph on the hosts", PATIENCE.as_secs()),
                stderr: said,
            });
        }
        std::thread::sleep(PAUSE);
    }
}
