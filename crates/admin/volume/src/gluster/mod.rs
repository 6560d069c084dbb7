//! GlusterFS: plans the changes of its volumes.

mod change;
mod create;
mod dead;
pub(crate) mod layout;
pub mod options;
mod remove;
mod room;
pub mod sizes;
mod stripe;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::gluster_xml as xml;
pub use change::{add_host, drain_host, heal, rebalance, set_copies};
pub use create::{LINKS, VANISHED, create, recommended};
pub use remove::delete;
pub use stripe::set_stripe;

use crate::mount::FstabLine;
use crate::observe::{HostFacts, Observed};
use crate::refuse::{Refusal, of_silent};
use crate::spec::Spec;
use crate::step::VolumePlan;
use xml::{Cluster, GlusterVolume};

pub(crate) const UNIT: &str = "glusterd";

/// Begins a script that calls `has_brick VOLUME BRICK`. A repeated command then finds its work done.
const HAS_BRICK: &str = r#"
    has_brick() { gluster --mode=script volume info "$1" | brick="$2" awk 'sub(/^Brick[0-9]+: /, "") {
    sub(/ \(arbiter\)$/, ""); if ($0 == ENVIRON["brick"]) found = 1 } END { exit !found }'; }
"#;

/// Returns the first server whose daemon answers, and the cluster as that server sees it.
pub(crate) fn speaker<'a>(spec: &'a Spec, seen: &'a Observed) -> Option<(String, &'a Cluster)> {
    spec.servers().into_iter().find_map(|h| Some((h.clone(), seen.host(&h)?.gluster.as_ref()?)))
}

/// Returns the volume as it is now.
pub fn volume<'a>(spec: &'a Spec, seen: &'a Observed) -> Option<&'a GlusterVolume> {
    // A host that has not joined yet knows no volume.
    let views = seen.hosts.values().flatten().filter_map(|f| f.gluster.as_ref());
    views.filter_map(|c| c.volume(&spec.name)).next()
}

/// Builds a command for the daemon that never waits for a confirmation.
pub(crate) fn gluster(words: &[&str]) -> Vec<String> {
    let mut argv = crate::step::words(&["gluster", "--mode=script"]);
    argv.extend(words.iter().map(|w| w.to_string()));
    argv
}

/// Returns the fstab line of a client. It uses the client's own host if that is a server, else the first server; the
/// other servers are the backup.
pub(crate) fn mount_line(spec: &Spec, host: &str) -> FstabLine {
    let servers = spec.servers();
    let first = servers.iter().find(|s| *s == host).or(servers.first()).map_or("", String::as_str);
    let others: Vec<&str> = servers.iter().map(String::as_str).filter(|s| *s != first).take(3).collect();
    let mut options = String::from("defaults,_netdev");
    if !others.is_empty() {
        options += &format!(",backup-volfile-servers={}", others.join(":"));
    }
    FstabLine { source: format!("{first}:/{}", spec.name), fstype: "glusterfs", options }
}

type GlusterPlanResult = Result<VolumePlan, Vec<Refusal>>;

fn no_volume(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals = missing(spec, seen);
    refusals.push(Refusal::never(format!("no host that answers has a GlusterFS volume {}", spec.name)));
    refusals
}

/// Returns the hosts and programs that are missing.
fn missing(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals = of_silent(seen, |_| true);
    let servers = spec.servers();
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        if servers.contains(host) && !facts.programs.contains("glusterd") {
            refusals
                .push(Refusal::never(format!("{host} has no glusterd: install the package glusterfs-server there")));
        }
        if spec.clients.contains(host) && !facts.programs.contains("mount.glusterfs") {
            refusals.push(Refusal::never(format!(
                "{host} cannot mount GlusterFS: install the package glusterfs-client there"
            )));
        }
    }
    refusals
}

pub(crate) fn speaker_of<'a>(spec: &'a Spec, seen: &'a Observed) -> Result<(String, &'a Cluster), Vec<Refusal>> {
    let knows = |(h, f): (&String, &'a Result<HostFacts, String>)| {
        let cluster = f.as_ref().ok()?.gluster.as_ref()?;
        cluster.volume(&spec.name).map(|_| (h.clone(), cluster))
    };
    seen.hosts.iter().find_map(knows).or(speaker(spec, seen)).ok_or_else(|| no_volume(spec, seen))
}
