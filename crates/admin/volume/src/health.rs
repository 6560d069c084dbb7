//! Finds faults of a volume and possible improvements, for `status`.

use crate::gluster::{self, gluster};
use crate::moosefs::chunks;
use crate::observe::{HostFacts, Observed};
use crate::spec::{Spec, VolumeKind};
use homing_model::NodeSet;
use roxmltree::Document;
use serde::Serialize;
use std::collections::BTreeSet;

/// A fault or an advice, with a command that helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeFinding {
    /// The fault in one line.
    pub what: String,
    /// A command that helps.
    pub remedy: String,
    /// Whether files cannot be read, or have fewer copies than they should; else it is advice.
    pub ill: bool,
}

/// Returns a further query and the host for it: GlusterFS's daemons know of each other's bricks.
pub fn question(spec: &Spec, seen: &Observed) -> Option<(String, Vec<String>)> {
    let there = gluster::volume(spec, seen)?;
    let (host, _) = gluster::speaker(spec, seen)?;
    there.started.then(|| (host, gluster(&["volume", "status", &spec.name, "--xml"])))
}

/// Returns all findings; `answer` is the answer to [`question`].
pub fn findings(spec: &Spec, seen: &Observed, answer: Option<&str>) -> Vec<VolumeFinding> {
    match spec.kind {
        VolumeKind::Gluster => of_gluster(spec, seen, answer),
        VolumeKind::Moosefs => of_moosefs(spec, seen),
        VolumeKind::Nfs => Vec::new(),
    }
}

fn of_gluster(spec: &Spec, seen: &Observed, answer: Option<&str>) -> Vec<VolumeFinding> {
    let Some(there) = gluster::volume(spec, seen) else { return unknown(spec, seen).into_iter().collect() };
    let name = &spec.name;
    let mut findings = Vec::new();
    let running = answer.and_then(bricks_that_run);
    if there.started && running.is_none() {
        findings.push(VolumeFinding {
            what: "the state of its bricks is unknown: gluster volume status gave no answer".into(),
            remedy: format!("gluster volume status {name}"),
            ill: false,
        });
    }
    if let Some(up) = running {
        let down = there.bricks.iter().map(|b| b.word()).filter(|b| !up.contains(b));
        findings.extend(down.map(|b| VolumeFinding {
            what: format!("brick {b} is down"),
            remedy: format!("homing volume heal {name}"),
            ill: true,
        }));
    }
    if !there.started {
        findings.push(VolumeFinding {
            what: "the volume is stopped".into(),
            remedy: format!("gluster volume start {name}"),
            ill: true,
        });
    }
    // On by default since GlusterFS 4.1. It does not matter with one set of bricks.
    if there.sets().count() > 1 && there.options.get("cluster.lookup-optimize").is_none_or(|v| v != "off") {
        findings.push(VolumeFinding {
            what:
                "cluster.lookup-optimize is on: other hosts may not see new files for a second after a host is drained"
                    .into(),
            remedy: format!("gluster volume set {name} cluster.lookup-optimize off"),
            ill: false,
        });
    }
    let missing: Vec<_> = gluster::LINKS.iter().filter(|(key, _)| !there.options.contains_key(*key)).collect();
    if !missing.is_empty() {
        let set: Vec<String> = missing.iter().map(|(key, value)| format!("{key} {value}")).collect();
        findings.push(VolumeFinding {
            what:
                "a file may have 46 hard links on ext4 and 100 elsewhere: one more can fail although it is made, as in \
                   builds of git"
                    .into(),
            remedy: format!("gluster volume set {name} {}", set.join(" ")),
            ill: false,
        });
    }
    if !there.options.contains_key("server.tcp-user-timeout") {
        let set: Vec<String> = gluster::VANISHED.iter().map(|(key, value)| format!("{key} {value}")).collect();
        findings.push(VolumeFinding {
            what:
                "bricks keep the locks of a vanished client for 42 s: a process that removes its file before that can \
                   hang for half an hour"
                    .into(),
            remedy: format!("gluster volume set {name} {}", set.join(" ")),
            ill: false,
        });
    }
    findings
}

/// Explains why nothing is known of a volume, from the servers that have answered: GlusterFS is queried through its
/// daemons.
fn unknown(spec: &Spec, seen: &Observed) -> Option<VolumeFinding> {
    let facts = spec.servers().into_iter().filter_map(|host| Some((seen.host(&host)?, host)));
    let (with, without): (Vec<_>, Vec<_>) = facts.partition(|(facts, _)| facts.active.contains("glusterd"));
    let names =
        |all: &[(&HostFacts, String)]| all.iter().map(|(_, host)| host.clone()).collect::<NodeSet>().to_string();
    let (what, remedy) = match () {
        () if with.is_empty() && without.is_empty() => return None,
        () if with.is_empty() => (
            format!("glusterd runs on none of {}: the copies of files are unknown", names(&without)),
            "systemctl start glusterd".into(),
        ),
        () if with.iter().any(|(facts, _)| facts.gluster.is_some()) => {
            (format!("glusterd of {} knows no volume {}", names(&with), spec.name), "gluster volume list".into())
        }
        () => {
            let why = "gave no answer: the copies of files are unknown";
            (format!("gluster volume info on {} {why}", names(&with)), format!("gluster volume info {}", spec.name))
        }
    };
    Some(VolumeFinding { what, remedy, ill: true })
}

/// Returns `HOST:PATH` of each brick with a process, from `gluster volume status NAME --xml`.
fn bricks_that_run(text: &str) -> Option<BTreeSet<String>> {
    let document = Document::parse(text.trim()).ok()?;
    let nodes = document.descendants().filter(|n| n.has_tag_name("node"));
    let read = |node: roxmltree::Node| {
        let text = |name: &str| {
            node.children().find(|c| c.has_tag_name(name)).and_then(|c| c.text()).unwrap_or("").trim().to_string()
        };
        (text("status") == "1").then(|| format!("{}:{}", text("hostname"), text("path")))
    };
    // An error message contains no list of volumes: then nothing is known.
    document.descendants().any(|n| n.has_tag_name("volumes")).then(|| nodes.filter_map(read).collect())
}

fn of_moosefs(spec: &Spec, seen: &Observed) -> Vec<VolumeFinding> {
    let text = seen.host(spec.master()).and_then(|f| f.texts.get("chunks"));
    let Some(chunks) = text.and_then(|t| chunks::read(t)) else { return Vec::new() };
    let remedy = format!("homing volume heal {}", spec.name);
    let mut findings = Vec::new();
    if chunks.missing > 0 {
        let what = format!("{} chunks have no copy on any host that is up", chunks.missing);
        findings.push(VolumeFinding { what, remedy: remedy.clone(), ill: true });
    }
    if chunks.behind() > 0 {
        let bytes = chunks.behind() * chunks.average();
        let what = format!("{} copies of chunks are missing, about {} MB", chunks.behind(), bytes / 1_000_000);
        findings.push(VolumeFinding { what, remedy, ill: true });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_whose_daemons_do_not_run_is_not_known_and_not_well() {
        let spec = crate::spec::tests::spec(&["n1", "n2"], 2);
        let active = HostFacts { active: ["glusterd".to_string()].into(), ..HostFacts::default() };
        let of = |first: HostFacts| {
            let hosts = [("n1".to_string(), Ok(first)), ("n2".to_string(), Ok(HostFacts::default()))];
            findings(&spec, &Observed { hosts: hosts.into() }, None)
        };
        let down = of(HostFacts::default());
        assert_eq!(down[0].what, "glusterd runs on none of n[1-2]: the copies of files are unknown");
        assert!(down[0].ill && down[0].remedy == "systemctl start glusterd");
        assert!(of(active)[0].what.starts_with("gluster volume info on n1 gave no answer"));
        let silent = [("n1".to_string(), Err("no route".to_string()))];
        assert_eq!(findings(&spec, &Observed { hosts: silent.into() }, None), [], "the host's own line tells it");
    }

    #[test]
    fn a_brick_without_a_process_does_not_run() {
        let node = |host: &str, path: &str, status: u8| {
            format!("<node><hostname>{host}</hostname><path>{path}</path><status>{status}</status></node>")
        };
        let text = format!(
            "<?xml version=\"1.0\"?><cliOutput><volStatus><volumes><volume>{}{}{}</volume></volumes></volStatus></cliOutput>\n",
            node("n1", "/brick/data", 1),
            node("n2", "/brick/data", 0),
            node("Self-heal Daemon", "localhost", 1),
        );
        let up = bricks_that_run(&text).unwrap();
        assert!(up.contains("n1:/brick/data") && !up.contains("n2:/brick/data"), "{up:?}");
        let busy = "<cliOutput><opRet>-1</opRet><opErrstr>Another transaction is in progress</opErrstr></cliOutput>";
        assert_eq!(bricks_that_run(busy), None);
    }
}
