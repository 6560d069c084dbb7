//! NFS between the guests of a lab: n1 serves `/scratch/export`, the others
//! mount it at `/data`.

use crate::error::Result;
use crate::exec::{on_each, output};
use crate::plan::{HostPlan, LabPlan};
use crate::spec::NfsSpec;

/// Exports the root of version 4's name space. The guest's own root is an overlay, through which clients cannot look.
const SERVE: &str = "\
set -e
modprobe nfsd
mkdir -p /scratch/export /var/lib/nfs
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /var/lib/nfs/sm /var/lib/nfs/sm.bak
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/state
mount -t nfsd nfsd /proc/fs/nfsd
chmod 1777 /scratch/export
echo '/scratch/export *(rw,async,no_root_squash,no_subtree_check,crossmnt,fsid=0)' > /etc/exports
rpcbind
exportfs -ra
rpc.nfsd -G 10 8
rpc.mountd
";

/// Makes a guest's link also carry RDMA. `rdma_rxe` requests its checksum by name, at a time when no process loads
/// modules for it any more.
const SOFT_ROCE: &str =
    "modprobe crc32_generic; modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0; modprobe rpcrdma";

/// The port of NFS over RDMA (RFC 8267, section 5).
const RDMA_PORT: u16 = 20049;

/// Starts the server and mounts its export on the others.
pub(crate) fn make(plan: &LabPlan, shape: NfsSpec) -> Result<()> {
    let hosts = plan.hosts();
    let Some(server) = hosts.first() else { return Ok(()) };
    output(plan, server, "starting the NFS server", &["sh", "-c", SERVE])?;
    if shape.rdma {
        on_each(plan, |host| output(plan, host, "making RDMA of the link", &["sh", "-ec", SOFT_ROCE]).map(drop))?;
        let listen = format!("echo 'rdma {RDMA_PORT}' > /proc/fs/nfsd/portlist");
        output(plan, server, "serving by RDMA", &["sh", "-ec", &listen])?;
    }
    let is_server = |host: &HostPlan| host.name() == server.name();
    let mount = mount(&server.name(), shape);
    on_each(plan, |host| match is_server(host) {
        true => Ok(()),
        false => output(plan, host, "mounting the export", &["sh", "-c", &mount]).map(drop),
    })
}

fn mount(server: &str, shape: NfsSpec) -> String {
    // Version 3 wants rpc.statd for locks; no file here is locked.
    let (words, path) = match shape.version {
        3 => ("vers=3,nolock", "/scratch/export"),
        _ => ("vers=4.2", "/"),
    };
    let transport = if shape.rdma { format!(",proto=rdma,port={RDMA_PORT}") } else { String::new() };
    format!("modprobe nfs; mkdir -p /data && mount -t nfs -o {words}{transport} {server}:{path} /data")
}
