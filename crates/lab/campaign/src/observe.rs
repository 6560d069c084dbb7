//! Reads the files that a run left behind.

use crate::journal::Journal;
use crate::model::{Beats, RunObservations, RunPart};
use crate::place::{RunFolders, SmallDiskContent};
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Copies the effects off the volume. While the brick with the last good copy of a file is down, reads of that file
/// fail ("Transport endpoint is not connected"). glusterd refuses to start a brick while another host sends it a
/// request.
const COPY: &str = "for second in $(seq 60); do \
    cp -r EFFECTS BASE/ 2>/dev/null && exit; \
    gluster --mode=script volume start data force >/dev/null 2>&1; sleep 1; done; \
    cp -r EFFECTS BASE/";

/// Waits until no brick has changes to send to another, and removes the earlier copy. A client that has lost the
/// other bricks reads the data of its own brick, however old that is.
const HEALED: &str = "for second in $(seq 120); do \
    gluster --mode=script volume start data force >/dev/null 2>&1; gluster volume heal data >/dev/null 2>&1; \
    [ \"$(gluster volume heal data info | grep -c '^Number of entries: 0$')\" = 3 ] && break; sleep 1; done; \
    rm -rf BASE/effects";

/// Prints the effects on each brick itself, and the changes that it still has to send to the others.
const BRICKS: &str = "for host in n1 n2 n3; do echo \"on the brick of $host:\"; \
    ssh $host 'cd /scratch/brick/MARK/effects && grep -c ^ *; getfattr -d -m trusted.afr -e hex . * | grep -v =0x0*$'; done; \
    gluster volume heal data info; gluster volume status data";

/// Returns the name of the run, once its journal has a record. Before that no task has started, and the run begins
/// anew.
pub fn run_name(site: &RunFolders) -> Option<String> {
    let own = |path: &Path| {
        let journal = path.join("journal.jsonl");
        journal.is_file() && fs::read(journal).is_ok_and(|bytes| bytes.contains(&b'\n'))
    };
    let entries = fs::read_dir(site.kept(SmallDiskContent::Runs)).ok()?.flatten();
    entries.filter(|e| own(&e.path())).find_map(|e| e.file_name().into_string().ok())
}

/// Reads the current journal of the run.
pub fn journal(site: &RunFolders, damaged: &[Vec<u8>]) -> Journal {
    Journal::read(&written(site), damaged)
}

/// Counts the records of the journal.
pub fn records(site: &RunFolders) -> u64 {
    written(site).iter().filter(|b| **b == b'\n').count() as u64
}

fn written(site: &RunFolders) -> Vec<u8> {
    let journal = run_name(site).map(|run| site.kept(SmallDiskContent::Runs).join(run).join("journal.jsonl"));
    journal.and_then(|path| fs::read(path).ok()).unwrap_or_default()
}

/// Reads all observations, when the run has come to its end.
pub fn all(
    site: &RunFolders,
    scenario: &Scenario,
    parts: Vec<RunPart>,
    damaged: &[Vec<u8>],
) -> io::Result<RunObservations> {
    let effects = effects(site)?;
    let log = site.kept(SmallDiskContent::Log);
    let (unreadable, locked) = check_run(site)?;
    Ok(RunObservations {
        journal: journal(site, damaged),
        unreadable,
        effects,
        beats: beats(site),
        joblog: String::from_utf8_lossy(&fs::read(log.with_extension("tsv")).unwrap_or_default()).into_owned(),
        results: if scenario.results { results(&log.with_extension("results")) } else { BTreeMap::new() },
        locked,
        parts,
    })
}

/// Reads the final effects on the volume, and the files on its bricks.
pub fn healed(site: &RunFolders) -> io::Result<(BTreeMap<String, Vec<String>>, String)> {
    site.on_volume(HEALED)?;
    Ok((effects(site)?, site.said_on_volume(BRICKS)?))
}

/// Runs `report` and `runs`. Returns why the journal is unreadable, and the state of a run that is not listed as
/// ended.
fn check_run(site: &RunFolders) -> io::Result<(Option<String>, Option<String>)> {
    let Some(run) = run_name(site) else { return Ok((Some("there is no run".into()), None)) };
    let report = site.homing(&["report".into(), run.clone()])?.output()?;
    let unreadable = (!report.status.success()).then(|| String::from_utf8_lossy(&report.stderr).into_owned());
    let runs = site.homing(&["runs".into(), "--json".into()])?.output()?;
    let list: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap_or_default();
    let own = list.as_array().into_iter().flatten().find(|r| r["name"] == run.as_str());
    let state = own.map_or("not listed".into(), |r| r["state"].to_string());
    Ok((unreadable, (state != "\"ended\"").then(|| format!("`homing runs` shows {state}"))))
}

fn effects(site: &RunFolders) -> io::Result<BTreeMap<String, Vec<String>>> {
    site.on_volume(COPY)?;
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(site.base.join("effects"))? {
        let entry = entry?;
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        found.insert(entry.file_name().to_string_lossy().into_owned(), text.lines().map(String::from).collect());
    }
    Ok(found)
}

fn beats(site: &RunFolders) -> BTreeMap<String, Beats> {
    let mut found: BTreeMap<String, Beats> = BTreeMap::new();
    for (host, folder) in site.beats().iter().enumerate() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let item = entry.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            for (who, at) in text.lines().filter_map(beat) {
                let beats = found.entry(item.clone()).or_default();
                let span = beats.entry(format!("{who} on host {}", host + 1)).or_insert((at, at));
                *span = (span.0.min(at), span.1.max(at));
            }
        }
    }
    found
}

/// Parses `PROCESS-START NOW`: seconds since the machine's start with two decimals.
fn beat(line: &str) -> Option<(&str, u64)> {
    let (who, at) = line.split_once(' ')?;
    Some((who, at.replace('.', "").parse().ok()?))
}

/// Reads `1/ITEM/stdout`, or for a task file `NUMBER/stdout`.
fn results(folder: &Path) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path.clone());
            }
        }
        let number = fs::read_to_string(folder.join("seq")).ok().and_then(|n| n.trim().parse().ok());
        if let (Some(number), Ok(stdout)) = (number, fs::read(folder.join("stdout"))) {
            found.insert(number, stdout);
        }
    }
    found
}
