//! The table of a campaign.

use crate::drive::Tried;
use crate::model::{SummaryColumn, kills};
use crate::scenario::Deed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Columns with their heads.
const COLUMNS: [(SummaryColumn, &str); 15] = [
    (SummaryColumn::Effects, "effects wrong"),
    (SummaryColumn::Twice, "twice"),
    (SummaryColumn::Output, "output lost"),
    (SummaryColumn::Status, "status wrong"),
    (SummaryColumn::JobLog, "job log wrong"),
    (SummaryColumn::Processes, "processes left"),
    (SummaryColumn::Locks, "locks left"),
    (SummaryColumn::Unreadable, "unreadable"),
    (SummaryColumn::Stuck, "stuck"),
    (SummaryColumn::Planted, "planted followed"),
    (SummaryColumn::Images, "images lost"),
    (SummaryColumn::Jobs, "jobs lost"),
    (SummaryColumn::Bash, "bash as sh"),
    (SummaryColumn::Inodes, "no inodes"),
    (SummaryColumn::Replaced, "replaced"),
];

/// Counts over many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    runs: u64,
    parts: u64,
    deeds: u64,
    kills: u64,
    wrong: BTreeMap<SummaryColumn, u64>,
    faults: BTreeMap<String, u64>,
}

impl Summary {
    /// Adds a seed.
    pub fn add(&mut self, tried: &Tried) {
        self.runs += 1;
        self.parts += tried.seen.parts.len() as u64;
        self.deeds += tried.seen.parts.iter().map(|part| part.deeds.len() as u64).sum::<u64>();
        let kinds = tried.seen.parts.iter().flat_map(|part| &part.deeds).map(Deed::kind);
        let planned =
            [(tried.scenario.damage.is_some(), "journal damaged"), (tried.scenario.neighbours, "files of other users")];
        let planned = planned.iter().filter(|(there, _)| *there).map(|(_, kind)| kind.to_string());
        let scene = tried.scene.map(|scene| scene.fault().to_string());
        kinds.chain(planned).chain(scene).for_each(|kind| *self.faults.entry(kind).or_default() += 1);
        self.kills += kills(&tried.seen);
        let columns: BTreeSet<SummaryColumn> = tried.findings.iter().map(|(column, _)| *column).collect();
        columns.into_iter().for_each(|column| *self.wrong.entry(column).or_default() += 1);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut heads = vec!["runs".to_string(), "parts".into(), "faults".into(), "kills".into()];
        let mut cells: Vec<u64> = vec![self.runs, self.parts, self.deeds, self.kills];
        for (column, head) in COLUMNS {
            heads.push(head.into());
            cells.push(self.wrong.get(&column).copied().unwrap_or(0));
        }
        writeln!(f, "| {} |", heads.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(heads.len()))?;
        writeln!(f, "| {} |", cells.iter().map(u64::to_string).collect::<Vec<_>>().join(" | "))?;
        writeln!(f, "\n| fault | times |\n|---|---|")?;
        self.faults.iter().try_for_each(|(kind, times)| writeln!(f, "| {kind} | {times} |"))
    }
}

/// Returns the text on a wrong seed: its findings, and the command that repeats it.
pub fn failure_report(tried: &Tried, lab: Option<&str>) -> String {
    let mut text = format!("seed {}: {:?}\n", tried.scenario.seed, tried.scenario);
    for (at, part) in tried.seen.parts.iter().enumerate() {
        text += &format!("  part {at}: {} after {:?}: {}\n", part.status, part.deeds, part.stderr.trim());
    }
    for (column, finding) in tried.findings.iter().take(12) {
        text += &format!("  {column:?}: {finding}\n");
    }
    text += &tried.bricks;
    let lab = lab.map_or(String::new(), |lab| format!(" LAB={lab}"));
    text + &format!("  again: make campaign RUNS=1 SEED={}{lab}\n", tried.scenario.seed)
}
