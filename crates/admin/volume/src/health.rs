//! Finds faults of a volume and possible improvements, for `status`.

use crate::gluster::{self, UNIT, xml::Brick};
use crate::moosefs::chunks;
use crate::nfs::{self, ExportFault};
use crate::observe::{HostFacts, Observed};
use crate::progress;
use crate::spec::{Spec, VolumeKind};
use crate::step::{DataMovement, on_hosts, script, shown, words};
use homing_model::NodeSet;
use roxmltree::Document;
use serde::Serialize;
use std::collections::BTreeSet;

/// A fault or an advice, with a command that helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeFinding {
    /// The fault in one line.
    pub what: String,
    /// A command that helps: one of homing, or one for each host of `host`.
    pub remedy: String,
    /// Whether files cannot be read, or have fewer copies than they should; else it is advice.
    pub ill: bool,
    /// The hosts with the fault, as a node set; `None` for the volume as a whole, whose remedy any server can run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether the command mends the fault. Otherwise a person decides.
    #[serde(skip)]
    pub mends: bool,
    /// Whether a setting in force differs from the record.
    #[serde(skip)]
    pub differs: bool,
}

impl VolumeFinding {
    fn ill(what: impl Into<String>, remedy: impl Into<String>) -> VolumeFinding {
        VolumeFinding { what: what.into(), remedy: remedy.into(), ill: true, host: None, mends: true, differs: false }
    }

    fn advice(what: impl Into<String>, remedy: impl Into<String>) -> VolumeFinding {
        VolumeFinding { ill: false, ..VolumeFinding::ill(what, remedy) }
    }

    fn difference(what: impl Into<String>, remedy: impl Into<String>) -> VolumeFinding {
        VolumeFinding { differs: true, ..VolumeFinding::advice(what, remedy) }
    }

    fn on(self, host: &str) -> VolumeFinding {
        VolumeFinding { host: Some(host.into()), ..self }
    }

    /// Returns the remedy as a command for this machine. `server` is any host that serves the volume.
    pub fn command(&self, server: &str) -> String {
        match self.remedy.starts_with("homing ") {
            true => self.remedy.clone(),
            false => on_hosts(self.host.as_deref().unwrap_or(server), &self.remedy),
        }
    }
}

/// Returns a further query and the host for it: GlusterFS's daemons know of each other's bricks.
pub fn question(spec: &Spec, seen: &Observed) -> Option<(String, Vec<String>)> {
    let there = gluster::volume(spec, seen)?;
    let (host, _) = gluster::speaker(spec, seen)?;
    there.started.then(|| (host, script(STATUS, &[&spec.name])))
}

/// Returns a query for the options in force, and its host; `None` if the record has none.
pub fn options_question(spec: &Spec, seen: &Observed) -> Option<(String, Vec<String>)> {
    gluster::volume(spec, seen).filter(|_| !spec.options.is_empty())?;
    let (host, _) = gluster::speaker(spec, seen)?;
    Some((host, gluster::options::in_force_question(&spec.name)))
}

/// Returns the differences between recorded settings and those in force. `answer` is that to [`options_question`].
pub fn differences(spec: &Spec, seen: &Observed, answer: Option<&str>) -> Vec<VolumeFinding> {
    match spec.kind {
        VolumeKind::Gluster => answer.map(|text| of_options(spec, text)).unwrap_or_default(),
        VolumeKind::Moosefs => Vec::new(),
        VolumeKind::Nfs => nfs::faults(spec, seen).iter().map(|fault| of_export(spec, fault)).collect(),
    }
}

fn of_options(spec: &Spec, answer: &str) -> Vec<VolumeFinding> {
    let name = &spec.name;
    let Some(in_force) = gluster::options::read_in_force(answer) else {
        let what = format!("its options are unknown: gluster volume get {}", error_in(Some(answer)));
        let look = VolumeFinding::difference(what, format!("gluster volume get {name} all"));
        return vec![VolumeFinding { mends: false, ..look }];
    };
    let of = |(key, wanted): (&String, &String)| {
        let present = in_force.get(key).map_or("not set", String::as_str);
        let command = shown(&words(&["homing", "volume", "set-option", name, &format!("{key}={wanted}")]));
        let what = format!("{key} is {present}, and the record has {wanted}");
        (!gluster::options::is_same(present, wanted)).then(|| VolumeFinding::difference(what, command))
    };
    spec.options.iter().filter_map(of).collect()
}

fn of_export(spec: &Spec, fault: &ExportFault) -> VolumeFinding {
    let (name, server) = (&spec.name, spec.places.first().map_or("", |place| place.host.as_str()));
    let store = spec.places.first().map(|place| spec.store(place)).unwrap_or_default();
    let export = format!("homing volume mount {name}");
    match fault {
        ExportFault::Missing(client) => {
            VolumeFinding::difference(format!("{server} does not export {store} to {client}"), export)
        }
        ExportFault::Differs(client, has) => {
            let wanted = spec.export.words();
            let what =
                format!("{server} exports {store} to {client} with {}, and the record has {wanted}", has.words());
            VolumeFinding::difference(what, export)
        }
        ExportFault::Other(client) => {
            let what = format!("{server} also exports {store} to {client}, which the record does not have");
            let look = VolumeFinding::difference(what, "grep -r . /etc/exports /etc/exports.d").on(server);
            VolumeFinding { mends: false, ..look }
        }
    }
}

/// Prints the state of the bricks; a daemon that is busy with another command is queried again.
const STATUS: &str = r#"
    i=0; while :; do out=$(gluster --mode=script volume status "$1" --xml 2>/dev/null)
    case $out in *"Another transaction"* | *"Locking failed"*) ;; *) break;; esac
    i=$((i+1)); [ $i -lt 6 ] || break; sleep 0.4; done
    printf '%s\n' "$out"
"#;

/// The index of a brick may name entries whose copies are equal by now. GlusterFS compares them, which can take long.
const BEHIND: &str = r#"
    timeout 3 gluster --mode=script volume heal "$1" info summary --xml
"#;

/// Returns the number of entries whose copies are not all up to date, as the bricks' indexes have it.
fn behind_by_index(spec: &Spec, seen: &Observed) -> u64 {
    let Some(there) = gluster::volume(spec, seen).filter(|volume| volume.copies() > 1) else { return 0 };
    let of_set = |set: &[Brick]| {
        let behind = set.iter().filter_map(|brick| seen.store(&brick.host, &brick.path)?.behind);
        behind.max().unwrap_or(0)
    };
    there.sets().map(of_set).sum()
}

/// Returns a query for the entries whose copies differ, and its host; `None` if no brick has any in its index.
pub fn behind_question(spec: &Spec, seen: &Observed) -> Option<(String, Vec<String>)> {
    let (host, _) = gluster::speaker(spec, seen)?;
    (behind_by_index(spec, seen) > 0).then(|| (host, script(BEHIND, &[&spec.name])))
}

/// Returns the finding of entries that wait for a heal. `answer` is the answer to [`behind_question`]; without one, the
/// indexes count. `others`: the findings so far. A brick that is down is the cause.
pub fn behind(spec: &Spec, seen: &Observed, answer: Option<&str>, others: &[VolumeFinding]) -> Option<VolumeFinding> {
    let by_index = behind_by_index(spec, seen);
    let counted = answer.and_then(|text| progress::answer(text, spec, &DataMovement::Heal)?.left_entries);
    let entries = counted.unwrap_or(by_index);
    if by_index == 0 || entries == 0 {
        return None;
    }
    let what = format!("{} to be healed: not all their copies are up to date", wait(entries));
    let cause = others.iter().find(|finding| finding.ill && finding.host.is_some());
    let healed = VolumeFinding::ill(what, format!("homing volume heal {}", spec.name));
    Some(match cause {
        Some(cause) => {
            VolumeFinding { remedy: cause.remedy.clone(), host: cause.host.clone(), mends: cause.mends, ..healed }
        }
        None => healed,
    })
}

fn wait(entries: u64) -> String {
    if entries == 1 { "1 entry waits".into() } else { format!("{entries} entries wait") }
}

/// Returns the finding of a brick without a process, with its cause.
fn brick_down(spec: &Spec, seen: &Observed, brick: &Brick) -> VolumeFinding {
    let (name, host, word) = (&spec.name, brick.host.as_str(), brick.word());
    let Some(facts) = seen.host(host) else {
        let what =
            format!("brick {word} is down, because {host} does not answer; if {host} is gone for good, drain it");
        let drain = format!("homing volume drain-host {name} {host}");
        return VolumeFinding { mends: false, ..VolumeFinding::ill(what, drain).on(host) };
    };
    if !facts.active.contains(UNIT) {
        let what = format!("brick {word} is down, because {UNIT} does not run on {host}");
        return VolumeFinding::ill(what, format!("systemctl start {UNIT}")).on(host);
    }
    VolumeFinding::ill(format!("brick {word} is down"), format!("homing volume heal {name}")).on(host)
}

/// Returns the reason in an answer of GlusterFS without a result.
fn error_in(answer: Option<&str>) -> String {
    let document = answer.and_then(|text| Document::parse(text.trim()).ok());
    let why = document.as_ref().and_then(|d| d.descendants().find(|n| n.has_tag_name("opErrstr"))?.text());
    why.map_or_else(|| "gave no answer".into(), |why| format!("reports: {}", why.trim()))
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
        let why = error_in(answer);
        let what = format!("the state of its bricks is unknown: gluster volume status {why}");
        findings
            .push(VolumeFinding { mends: false, ..VolumeFinding::ill(what, format!("gluster volume status {name}")) });
    }
    if let Some(up) = running {
        findings.extend(there.bricks.iter().filter(|b| !up.contains(&b.word())).map(|b| brick_down(spec, seen, b)));
    }
    if !there.started {
        findings.push(VolumeFinding::ill("the volume is stopped", format!("gluster volume start {name}")));
    }
    // On by default since GlusterFS 4.1. It does not matter with one set of bricks.
    if there.sets().count() > 1 && there.options.get("cluster.lookup-optimize").is_none_or(|v| v != "off") {
        findings.push(VolumeFinding::advice(
            "cluster.lookup-optimize is on: other hosts may not see new files for a second after a host is drained",
            format!("gluster volume set {name} cluster.lookup-optimize off"),
        ));
    }
    let missing: Vec<_> = gluster::LINKS.iter().filter(|(key, _)| !there.options.contains_key(*key)).collect();
    if !missing.is_empty() {
        let set: Vec<String> = missing.iter().map(|(key, value)| format!("{key} {value}")).collect();
        findings.push(VolumeFinding::advice(
            "a file may have 46 hard links on ext4 and 100 elsewhere: one more can fail although it is made, as in \
             builds of git",
            format!("gluster volume set {name} {}", set.join(" ")),
        ));
    }
    if !there.options.contains_key("server.tcp-user-timeout") {
        let set: Vec<String> = gluster::VANISHED.iter().map(|(key, value)| format!("{key} {value}")).collect();
        findings.push(VolumeFinding::advice(
            "bricks keep the locks of a vanished client for 42 s: a process that removes its file before that can \
             hang for half an hour",
            format!("gluster volume set {name} {}", set.join(" ")),
        ));
    }
    findings
}

/// Explains why nothing is known of a volume, from the servers that have answered: GlusterFS is queried through its
/// daemons.
fn unknown(spec: &Spec, seen: &Observed) -> Option<VolumeFinding> {
    let facts = spec.servers().into_iter().filter_map(|host| Some((seen.host(&host)?, host)));
    // The host's own line names the fault of a daemon outside of the pool.
    let facts = facts.filter(|(facts, _)| facts.stray.is_none());
    let (with, without): (Vec<_>, Vec<_>) = facts.partition(|(facts, _)| facts.active.contains(UNIT));
    let names =
        |all: &[(&HostFacts, String)]| all.iter().map(|(_, host)| host.clone()).collect::<NodeSet>().to_string();
    Some(match () {
        () if with.is_empty() && without.is_empty() => return None,
        () if with.is_empty() => {
            let hosts = names(&without);
            let what = format!("{UNIT} runs on none of {hosts}: the copies of files are unknown");
            VolumeFinding::ill(what, format!("systemctl start {UNIT}")).on(&hosts)
        }
        () if with.iter().any(|(facts, _)| facts.gluster.is_some()) => {
            let what = format!("{UNIT} of {} knows no volume {}", names(&with), spec.name);
            VolumeFinding { mends: false, ..VolumeFinding::ill(what, "gluster volume list").on(&with[0].1) }
        }
        () => {
            let what =
                format!("gluster volume info on {} gave no answer: the copies of files are unknown", names(&with));
            let look = VolumeFinding::ill(what, format!("gluster volume info {}", spec.name)).on(&with[0].1);
            VolumeFinding { mends: false, ..look }
        }
    })
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
        findings.push(VolumeFinding::ill(what, remedy.as_str()));
    }
    if chunks.behind() > 0 {
        let bytes = chunks.behind() * chunks.average();
        let what = format!("{} copies of chunks are missing, about {} MB", chunks.behind(), bytes / 1_000_000);
        findings.push(VolumeFinding::ill(what, remedy.as_str()));
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
        assert!(down[0].ill);
        assert_eq!(down[0].command("n1"), "homing exec -w 'n[1-2]' 'systemctl start glusterd'");
        assert!(of(active)[0].what.starts_with("gluster volume info on n1 gave no answer"));
        let silent = [("n1".to_string(), Err("no route".to_string()))];
        assert_eq!(findings(&spec, &Observed { hosts: silent.into() }, None), [], "the host's own line tells it");
    }

    /// An answer of `gluster volume status data --xml` in which these bricks run.
    fn bricks_up(up: &[&str]) -> String {
        let node = |brick: &&str| {
            let (host, path) = brick.split_once(':').unwrap();
            format!("<node><hostname>{host}</hostname><path>{path}</path><status>1</status></node>")
        };
        let nodes: String = up.iter().map(node).collect();
        format!("<cliOutput><volStatus><volumes><volume>{nodes}</volume></volumes></volStatus></cliOutput>")
    }

    fn commands(found: &[VolumeFinding]) -> Vec<String> {
        found.iter().filter(|finding| finding.ill).map(|finding| finding.command("n1")).collect()
    }

    #[test]
    fn a_brick_that_is_down_has_the_command_for_its_cause() {
        let spec = crate::gluster::tests::four();
        let up = bricks_up(&["n1:/brick/data", "n2:/brick/data", "n3:/brick/data"]);
        let mut seen = crate::gluster::tests::running(&spec, "");
        let found = findings(&spec, &seen, Some(&up));
        assert_eq!((found[0].what.as_str(), found[0].host.as_deref()), ("brick n4:/brick/data is down", Some("n4")));
        assert_eq!(commands(&found), ["homing volume heal data"]);
        seen.hosts.insert("n4".into(), Ok(crate::gluster::tests::facts(&spec, "glusterd-knows\n")));
        let start = "homing exec -w n4 'systemctl start glusterd'";
        assert_eq!(commands(&findings(&spec, &seen, Some(&up))), [start]);
        seen.hosts.insert("n4".into(), Err("no route".into()));
        let found = findings(&spec, &seen, Some(&up));
        assert_eq!(commands(&found), ["homing volume drain-host data n4"]);
        assert!(!found[0].mends, "only a person knows whether it comes back");
    }

    #[test]
    fn a_state_without_an_answer_is_not_well() {
        let spec = crate::gluster::tests::four();
        let seen = crate::gluster::tests::running(&spec, "");
        let error = "<cliOutput><opRet>-1</opRet><opErrstr>Volume data does not exist</opErrstr></cliOutput>";
        let found = findings(&spec, &seen, Some(error));
        assert!(found[0].ill && found[0].what.ends_with("reports: Volume data does not exist"), "{found:?}");
        assert!(findings(&spec, &seen, None)[0].ill);
    }

    #[test]
    fn entries_that_wait_for_a_heal_are_not_well() {
        let spec = crate::gluster::tests::four();
        let behind_on = |n3: &str| {
            let mut seen = crate::gluster::tests::running(&spec, "");
            let store = format!("active\tglusterd\nstore\t/brick/data\tno\tfiles\t1000\t900\t{n3}\t/brick/data\n");
            seen.hosts.insert("n3".into(), Ok(crate::gluster::tests::facts(&spec, &store)));
            seen
        };
        let seen = behind_on("2");
        let heal = behind(&spec, &seen, None, &[]).unwrap();
        assert!(heal.ill && heal.what.starts_with("2 entries wait to be healed"), "{heal:?}");
        assert_eq!(
            (heal.command("n1"), behind_question(&spec, &seen).unwrap().0),
            ("homing volume heal data".into(), "n1".into())
        );
        let summary = |entries: u64| {
            format!(
                "<cliOutput><healInfo><bricks><brick><status>Connected</status>\
                     <totalNumberOfEntries>{entries}</totalNumberOfEntries></brick></bricks></healInfo></cliOutput>"
            )
        };
        assert_eq!(behind(&spec, &seen, Some(&summary(0)), &[]), None, "the index was out of date");
        assert!(behind(&spec, &seen, Some(&summary(7)), &[]).unwrap().what.starts_with("7 entries"));
        let down = VolumeFinding::ill("brick n4:/b is down", "systemctl start glusterd").on("n4");
        let heal = behind(&spec, &seen, None, &[down]).unwrap();
        assert_eq!(heal.command("n1"), "homing exec -w n4 'systemctl start glusterd'", "the cause comes first");
        for none in ["0", ""] {
            assert_eq!(behind(&spec, &behind_on(none), None, &[]), None);
            assert_eq!(behind_question(&spec, &behind_on(none)), None);
        }
    }

    #[test]
    fn an_option_in_force_that_differs_from_the_record_is_named_with_its_command() {
        let mut spec = crate::gluster::tests::four();
        let seen = crate::gluster::tests::running(&spec, "");
        assert_eq!(options_question(&spec, &seen), None, "nothing is recorded");
        for (key, value) in [("auth.allow", "n1,n2"), ("performance.cache-size", "1GB")] {
            spec.options.insert(key.into(), value.into());
        }
        assert_eq!(options_question(&spec, &seen).unwrap().0, "n1");
        let opt = |key: &str, value: &str| format!("<Opt><Option>{key}</Option><Value>{value}</Value></Opt>");
        let answer = |cache: &str| {
            let both = opt("auth.allow", "n1,n2") + &opt("performance.cache-size", cache);
            format!("<cliOutput><volGetopts>{both}</volGetopts></cliOutput>")
        };
        assert_eq!(differences(&spec, &seen, Some(&answer("1024MB"))), []);
        let found = differences(&spec, &seen, Some(&answer("32MB (DEFAULT)")));
        assert_eq!(found[0].what, "performance.cache-size is 32MB, and the record has 1GB");
        assert_eq!(found[0].command("n1"), "homing volume set-option data performance.cache-size=1GB");
        assert!(found.len() == 1 && found[0].differs && !found[0].ill);
        let error = "<cliOutput><opRet>-1</opRet><opErrstr>Volume data does not exist</opErrstr></cliOutput>";
        assert!(differences(&spec, &seen, Some(error))[0].what.contains("unknown"));
        assert!(differences(&spec, &seen, Some(""))[0].what.ends_with("gave no answer"));
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
