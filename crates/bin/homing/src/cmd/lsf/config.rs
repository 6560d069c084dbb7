//! `lsid`, `lsclusters`, `bparams`, `lsinfo`: print the facts that workflow managers read before they submit.

use super::{CLUSTER, Refusal, lsf_refusal, options, print, version};
use crate::cluster::Cluster;
use homing_lsf::grammar::{BPARAMS, LSCLUSTERS, LSID, LSINFO};
use homing_lsf::units;
use homing_model::RawText;
use std::path::PathBuf;

/// Returns the folder of `lsf.conf`: `$LSF_ENVDIR`, or else the one that was installed with the links.
fn conf_folder() -> Option<PathBuf> {
    let told = std::env::var_os("LSF_ENVDIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    told.or_else(|| super::install::folder().map(|dir| super::install::conf(&dir)))
}

/// Returns the unit of amounts without a unit: `LSF_UNIT_FOR_LIMITS` of `lsf.conf`.
pub fn unit() -> Result<&'static str, Refusal> {
    let Some(file) = conf_folder().map(|dir| dir.join("lsf.conf")) else { return Ok(units::USUAL) };
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(units::USUAL) };
    let bad = |unit| format!("LSF_UNIT_FOR_LIMITS={unit} in {} is not a unit: KB, MB, GB or TB", file.display());
    units::of_conf(&text).map_err(|unit| lsf_refusal(bad(unit)))
}

/// Prints the load indices, and the attributes of hosts that requirements can name.
pub fn lsinfo(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsinfo", &LSINFO, words)? else { return Ok(0) };
    let own = Cluster::of_queue()?.indices();
    let own = own.iter().map(|(name, index)| (name.as_str(), "Dec", index.command.as_str()));
    let asked: Vec<String> = parsed.operands.iter().map(homing_lsf::options::text).collect();
    print(&homing_lsf::tables::resources(&asked, own).map_err(lsf_refusal)?)
}

/// Prints the name of the system.
pub fn lsid(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(_) = options("lsid", &LSID, words)? else { return Ok(0) };
    print(&format!("{}\n\nMy cluster name is {CLUSTER}\nMy master name is {}\n", version(), homing_queue::host_name()))
}

/// Prints the one cluster.
pub fn lsclusters(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(_) = options("lsclusters", &LSCLUSTERS, words)? else { return Ok(0) };
    let machines = super::engine()?.machines()?.len();
    let (host, admin) = (homing_queue::host_name(), "root");
    let room = host.len().max(11);
    print(&format!(
        "CLUSTER_NAME   STATUS   {:<room$} ADMIN    HOSTS  SERVERS\n{CLUSTER:<15}{:<9}{host:<room$} {admin:<9}{machines:>4}{machines:>9}\n",
        "MASTER_HOST", "ok"
    ))
}

/// Prints the default queue and other parameters.
pub fn bparams(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(_) = options("bparams", &BPARAMS, words)? else { return Ok(0) };
    let engine = super::engine()?;
    let queue = engine.config()?.default_queue().to_string();
    print(&format!(
        "Default Queues:  {queue}\nJob Dispatch Interval:  0 seconds\nJob Checking Interval:  0 seconds\nMemory/Swap Limit \
         enforced by:  homing, the processes of a job together\nUnit for limits:  {}\n",
        unit()?
    ))
}
