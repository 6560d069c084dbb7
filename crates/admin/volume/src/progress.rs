//! Reads the progress of a long movement of bytes.

use crate::moosefs::chunks::{self, Chunks};
use crate::spec::{Spec, VolumeKind};
use crate::step::{DataMovement, script};
use roxmltree::Document;

/// The state of a movement at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovementProgress {
    /// Whether it is over.
    pub finished: bool,
    /// The number of files that could not be moved, or the reason for its end.
    pub failed: Option<String>,
    /// Bytes that were moved.
    pub moved: u64,
    /// Files that were moved.
    pub files: u64,
    /// Bytes that are left; `None` if the file system does not report it (GlusterFS; its bricks do).
    pub left_bytes: Option<u64>,
    /// Entries, files and folders, that are left.
    pub left_entries: Option<u64>,
    /// The file system's own estimate, seconds.
    pub seconds_left: Option<u64>,
}

/// Returns the command that prints the progress, for a host of [`askers`].
pub fn question(spec: &Spec, watch: &DataMovement) -> Vec<String> {
    match spec.kind {
        VolumeKind::Moosefs => script(chunks::QUESTION, &[spec.master()]),
        VolumeKind::Gluster | VolumeKind::Nfs => gluster_question(&spec.name, watch),
    }
}

/// Returns the hosts that can report the progress, the likeliest first.
pub fn askers(spec: &Spec) -> Vec<String> {
    let mut hosts = spec.hosts();
    if spec.kind == VolumeKind::Moosefs {
        hosts.sort_by_key(|h| h != spec.master());
    }
    hosts
}

/// Reads the answer; `None` if it cannot be read.
pub fn answer(text: &str, spec: &Spec, watch: &DataMovement) -> Option<MovementProgress> {
    match spec.kind {
        VolumeKind::Moosefs => chunks::read(text).map(|c| of_chunks(&c, watch)),
        VolumeKind::Gluster | VolumeKind::Nfs => gluster_answer(text, watch),
    }
}

fn of_chunks(chunks: &Chunks, watch: &DataMovement) -> MovementProgress {
    let behind = chunks.behind();
    let mut progress = MovementProgress { left_bytes: Some(behind * chunks.average()), ..MovementProgress::default() };
    if let DataMovement::Drain(ips) = watch {
        progress.finished = chunks.can_go(ips);
        return progress;
    }
    let hosts: std::collections::BTreeSet<&str> =
        chunks.disks.iter().filter(|d| !d.leaves).map(|d| d.ip.as_str()).collect();
    let goal = chunks.largest_goal();
    if chunks.missing > 0 {
        progress.failed = Some(format!("{} chunks have no copy on any host that is up", chunks.missing));
    } else if behind > 0 && goal > hosts.len() as u64 {
        progress.failed = Some(format!("files with a goal of {goal} need {goal} hosts; {} are up", hosts.len()));
    }
    progress.finished = behind == 0 || progress.failed.is_some();
    progress
}

/// Returns the command that prints the progress, on a host of the GlusterFS volume.
fn gluster_question(name: &str, watch: &DataMovement) -> Vec<String> {
    match watch {
        DataMovement::Rebalance => script(r#"gluster --mode=script volume rebalance "$1" status --xml"#, &[name]),
        DataMovement::Drain(bricks) => {
            let mut args = vec![name];
            args.extend(bricks.iter().map(String::as_str));
            script(r#"v=$1; shift; gluster --mode=script volume remove-brick "$v" "$@" status --xml"#, &args)
        }
        DataMovement::Heal => script(r#"gluster --mode=script volume heal "$1" info summary --xml"#, &[name]),
    }
}

fn gluster_answer(text: &str, watch: &DataMovement) -> Option<MovementProgress> {
    let document = Document::parse(text.trim()).ok()?;
    if *watch == DataMovement::Heal { heal(&document) } else { movement(&document) }
}

fn number(node: roxmltree::Node, name: &str) -> u64 {
    let child = node.children().find(|c| c.has_tag_name(name)).and_then(|c| c.text());
    child.and_then(|t| t.trim().parse().ok()).unwrap_or(0)
}

fn movement(document: &Document) -> Option<MovementProgress> {
    let all = document.descendants().find(|n| n.has_tag_name("aggregate"))?;
    let status = all.children().find(|c| c.has_tag_name("statusStr"))?.text()?.trim().to_string();
    let left = document.descendants().filter(|n| n.has_tag_name("time-left")).filter_map(|n| n.text()?.parse().ok());
    let failures = number(all, "failures");
    let failed = match status.as_str() {
        "failed" | "stopped" => Some(format!("gluster reports: {status}")),
        _ if failures > 0 => Some(format!("{failures} files could not be moved")),
        _ => None,
    };
    Some(MovementProgress {
        finished: !matches!(status.as_str(), "in progress" | "not started"),
        failed,
        moved: number(all, "size"),
        files: number(all, "files"),
        seconds_left: left.max(),
        ..MovementProgress::default()
    })
}

/// Reads the progress of healing. A brick that is down has text in place of its counts; it is not healed.
fn heal(document: &Document) -> Option<MovementProgress> {
    let bricks: Vec<_> = document.descendants().filter(|n| n.has_tag_name("brick")).collect();
    let status = |b: &roxmltree::Node| {
        b.children().find(|c| c.has_tag_name("status")).and_then(|c| c.text()).unwrap_or("").trim().to_string()
    };
    let down = bricks.iter().filter(|b| status(b) != "Connected").count();
    let pending: u64 = bricks.iter().map(|b| number(*b, "totalNumberOfEntries")).sum();
    let torn: u64 = bricks.iter().map(|b| number(*b, "numberOfEntriesInSplitBrain")).sum();
    let mut why = Vec::new();
    if down > 0 {
        why.push(format!("{down} bricks are down"));
    }
    if torn > 0 {
        why.push(format!(
            "{torn} files are in split brain: choose their copies with gluster volume heal VOLUME split-brain"
        ));
    }
    Some(MovementProgress {
        // Changes that a brick missed while it was down stay behind until it is back.
        finished: (pending == 0 || pending == torn || down > 0) && !bricks.is_empty(),
        failed: (!why.is_empty()).then(|| why.join("; ")),
        left_entries: Some(pending),
        ..MovementProgress::default()
    })
}
