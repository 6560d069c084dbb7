//! What workflow managers ask before they submit: `lsid`, `lsclusters`,
//! `badmin showconf`, `bparams`.

use super::{CLUSTER, Refusal, print, said, version};
use homing_model::RawText;

/// Which system this is.
pub fn lsid(_: &[RawText]) -> Result<i32, Refusal> {
    print(&format!("{}\n\nMy cluster name is {CLUSTER}\nMy master name is {}\n", version(), homing_queue::host_name()))
}

/// The one cluster.
pub fn lsclusters(_: &[RawText]) -> Result<i32, Refusal> {
    let machines = super::engine()?.machines()?.len();
    let (host, admin) = (homing_queue::host_name(), "root");
    let room = host.len().max(11);
    print(&format!(
        "CLUSTER_NAME   STATUS   {:<room$} ADMIN    HOSTS  SERVERS\n{CLUSTER:<15}{:<9}{host:<room$} {admin:<9}{machines:>4}{machines:>9}\n",
        "MASTER_HOST", "ok"
    ))
}

/// The default queue and the like.
pub fn bparams(_: &[RawText]) -> Result<i32, Refusal> {
    let engine = super::engine()?;
    let queue = engine.config()?.default_queue().to_string();
    print(&format!("Default Queues:  {queue}\nJob Dispatch Interval:  0 seconds\nJob Checking Interval:  0 seconds\n"))
}

/// `badmin showconf mbd`: units, and where Snakemake looks for lsb.params.
pub fn badmin(words: &[RawText]) -> Result<i32, Refusal> {
    if words.first().is_none_or(|w| w.0 != b"showconf") {
        return Err(said("badmin: only showconf is there; queues and hosts are in cluster.toml"));
    }
    let folder =
        super::install::folder().ok_or_else(|| said("badmin: call it where `homing lsf install` has put it"))?;
    let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
    let folder = folder.display();
    print(&format!(
        "MBD configuration at {now}\n        LSB_SHAREDIR = {folder}/lsf/work\n        LSF_CONFDIR = {folder}/lsf/conf\n        \
         LSF_ENVDIR = {folder}/lsf/conf\n        LSF_UNIT_FOR_LIMITS = MB\n        LSB_JOBINDEX = 1\n"
    ))
}
