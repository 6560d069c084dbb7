//! `bmgroup`: lists groups of hosts, which are the groups of node sets (`@group`).

use super::{Refusal, lsf_refusal, options, print};
use crate::cluster::Cluster;
use homing_lsf::grammar::BMGROUP;
use homing_lsf::options::text;
use homing_model::RawText;

/// Lists groups with their hosts.
pub fn bmgroup(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bmgroup", &BMGROUP, words)? else { return Ok(0) };
    let cluster = Cluster::of_queue()?;
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let known = names(&cluster).map_err(lsf_refusal)?;
    if let Some(odd) = asked.iter().find(|name| !known.contains(name)) {
        return Err(lsf_refusal(format!("{odd}: No such user/host group")));
    }
    if known.is_empty() {
        return Err(lsf_refusal("No host group is known; groups are ClusterShell's: /etc/clustershell/groups.d"));
    }
    let mut out = format!("{:<12}  HOSTS\n", "GROUP_NAME");
    for name in known.iter().filter(|name| asked.is_empty() || asked.contains(name)) {
        let hosts: Vec<String> = cluster.set(&format!("@{name}"), None)?.iter().map(String::from).collect();
        out += &format!("{name:<12}  {}\n", hosts.join(" "));
    }
    print(&out)
}

fn names(cluster: &Cluster) -> Result<Vec<String>, String> {
    let Some((own, source)) = cluster.shell()?.source(None)? else { return Ok(Vec::new()) };
    Ok(source.list(own)?.unwrap_or_default())
}
