//! How far a long movement of bytes has come.

use crate::spec::{Kind, Spec};
use crate::step::{Watch, script};
use roxmltree::Document;

/// One look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// It is over.
    pub finished: bool,
    /// Files that could not be moved, or a reason for its end.
    pub failed: Option<String>,
    /// Bytes that were moved.
    pub moved: u64,
    /// Files that were moved.
    pub files: u64,
    /// Bytes, or files when bytes are not known, that are left; `None`: not known.
    pub left: Option<Left>,
    /// The file system's own estimate, seconds.
    pub seconds_left: Option<u64>,
}

/// What is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Bytes.
    Bytes(u64),
    /// Entries: files and folders, of unknown size.
    Entries(u64),
}

/// The command that tells, for a server of the volume.
pub fn question(spec: &Spec, watch: &Watch) -> Vec<String> {
    match spec.kind {
        Kind::Moosefs => crate::moosefs::question(spec, watch),
        Kind::Gluster | Kind::Nfs => gluster_question(&spec.name, watch),
    }
}

/// Reads its answer. `None` when it cannot be read.
pub fn answer(text: &str, spec: &Spec, watch: &Watch) -> Option<Progress> {
    match spec.kind {
        Kind::Moosefs => moosefs_answer(text, watch),
        Kind::Gluster | Kind::Nfs => gluster_answer(text, watch),
    }
}

/// Lines of `mfscli -SIC` and of `-SHD` for the host that is being drained.
fn moosefs_answer(text: &str, watch: &Watch) -> Option<Progress> {
    let class = |name: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.contains(&format!("chunkclass {name}:")))?;
        line.rsplit('\t').next()?.trim().parse().ok()
    };
    let behind = class("undergoal")? + class("endangered")?;
    let missing = class("missing")?;
    let mut progress = Progress { left: Some(Left::Entries(behind)), ..Progress::default() };
    progress.finished = behind == 0;
    if missing > 0 {
        progress.failed = Some(format!("{missing} chunks have no copy on any host that is up"));
    }
    if matches!(watch, Watch::Drain(_)) {
        let disks: Vec<&str> = text.lines().filter(|l| l.starts_with("disks:")).collect();
        progress.finished = !disks.is_empty() && disks.iter().all(|d| d.contains("for removal (ready)"));
        // The last two columns are used and total bytes.
        let used = disks.iter().filter_map(|d| d.split('\t').rev().nth(1)?.trim().parse::<u64>().ok());
        let chunks = disks.iter().filter_map(|d| d.split('\t').nth(2)?.trim().parse::<u64>().ok()).sum::<u64>();
        (progress.moved, progress.files) = (used.sum(), chunks);
        progress.left = Some(Left::Entries(if progress.finished { 0 } else { behind.max(1) }));
    }
    Some(progress)
}

/// The command that tells, on a host of the GlusterFS volume.
fn gluster_question(name: &str, watch: &Watch) -> Vec<String> {
    match watch {
        Watch::Rebalance => script(r#"gluster --mode=script volume rebalance "$1" status --xml"#, &[name]),
        Watch::Drain(bricks) => {
            let mut args = vec![name];
            args.extend(bricks.iter().map(String::as_str));
            script(r#"v=$1; shift; gluster --mode=script volume remove-brick "$v" "$@" status --xml"#, &args)
        }
        Watch::Heal => script(r#"gluster --mode=script volume heal "$1" info summary --xml"#, &[name]),
    }
}

fn gluster_answer(text: &str, watch: &Watch) -> Option<Progress> {
    let document = Document::parse(text.trim()).ok()?;
    if *watch == Watch::Heal { heal(&document) } else { movement(&document) }
}

fn number(node: roxmltree::Node, name: &str) -> u64 {
    let child = node.children().find(|c| c.has_tag_name(name)).and_then(|c| c.text());
    child.and_then(|t| t.trim().parse().ok()).unwrap_or(0)
}

fn movement(document: &Document) -> Option<Progress> {
    let all = document.descendants().find(|n| n.has_tag_name("aggregate"))?;
    let status = all.children().find(|c| c.has_tag_name("statusStr"))?.text()?.trim().to_string();
    let left = document.descendants().filter(|n| n.has_tag_name("time-left")).filter_map(|n| n.text()?.parse().ok());
    let failures = number(all, "failures");
    let failed = match status.as_str() {
        "failed" | "stopped" => Some(format!("it {status}")),
        _ if failures > 0 => Some(format!("{failures} files could not be moved")),
        _ => None,
    };
    Some(Progress {
        finished: !matches!(status.as_str(), "in progress" | "not started"),
        failed,
        moved: number(all, "size"),
        files: number(all, "files"),
        left: None,
        seconds_left: left.max(),
    })
}

/// A brick that is down has text where its counts should be; it is not healed.
fn heal(document: &Document) -> Option<Progress> {
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
        why.push(format!("{torn} files are in split brain: gluster volume heal VOLUME split-brain ... chooses"));
    }
    Some(Progress {
        finished: (pending == 0 || pending == torn) && !bricks.is_empty(),
        failed: (!why.is_empty()).then(|| why.join("; ")),
        left: Some(Left::Entries(pending)),
        ..Progress::default()
    })
}
