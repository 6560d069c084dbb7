//! Reads one element from the records and the lock in its job's folder.

use super::{JobElement, one_line};
use crate::files::read_json;
use crate::job::{JobEnd, Start, Stop};
use crate::state::{Facts, state};
use homing_os::folder::lock::FileLock;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Reads one job's elements from its folder.
pub(crate) struct Reader<'a> {
    pub dir: &'a Path,
    /// The names in the folder, if it was listed once for all elements.
    pub names: Option<HashSet<String>>,
    pub boot: &'a str,
}

impl<'a> Reader<'a> {
    /// Makes a reader for a few elements: each file is looked up.
    pub fn by_look(dir: &'a Path, boot: &'a str) -> Reader<'a> {
        Reader { dir, names: None, boot }
    }

    /// Returns the names in a job's folder.
    pub fn list(dir: &Path) -> Option<HashSet<String>> {
        Some(fs::read_dir(dir).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok()).collect())
    }

    /// Whether the folder holds a file of this name.
    pub fn holds(&self, name: &str) -> bool {
        match &self.names {
            Some(names) => names.contains(name),
            None => fs::symlink_metadata(self.dir.join(name)).is_ok(),
        }
    }

    fn has(&self, name: &str, index: u32) -> bool {
        self.holds(&format!("{name}.{index}.json"))
    }
    fn record<T: serde::de::DeserializeOwned>(&self, name: &str, index: u32) -> Option<T> {
        read_json::<T>(&self.dir.join(format!("{name}.{index}.json"))).map(|(record, _)| record)
    }

    /// Reads an element. A change meanwhile can only make it look older, because the end is read last, after the
    /// lock.
    pub fn part(&self, index: u32) -> JobElement {
        let mut part = JobElement::new(index);
        part.end = self.has("end", index).then(|| self.record::<JobEnd>("end", index)).flatten();
        part.start = self.has("start", index).then(|| self.record::<Start>("start", index)).flatten();
        let mut facts = Facts {
            started: part.start.is_some(),
            this_boot: part.start.as_ref().is_some_and(|s| s.process.boot_id == self.boot),
            exit: part.end.as_ref().map(|e| e.exit),
            ..Facts::default()
        };
        if facts.exit.is_none() {
            facts.kept = self.holds(&format!("lock.{index}")) && self.is_kept(&part);
            facts.stopped = self.holds("stop.json") || self.has("stop", index);
            part.stopped_by =
                self.has("load", index).then(|| self.record::<Stop>("load", index)).flatten().map(|stop| stop.by);
            facts.loaded = part.stopped_by.is_some();
            part.kept = facts.kept;
            part.start_refusal =
                self.has("ask", index).then(|| self.record::<Stop>("ask", index)).flatten().map(|ask| ask.by);
            facts.start_requested = part.start_refusal.is_some();
            if facts.started && !facts.kept {
                // It may have ended between the first look and the lock.
                part.end = self.record::<JobEnd>("end", index);
                facts.exit = part.end.as_ref().map(|e| e.exit);
            }
        }
        part.state = state(&facts);
        if let Some(start) = &mut part.start {
            start.host = one_line(&start.host);
        }
        if let Some(reason) = part.end.as_mut().and_then(|e| e.reason.as_mut()) {
            *reason = one_line(reason);
        }
        part.stopped_by = part.stopped_by.as_deref().map(one_line);
        part.start_refusal = part.start_refusal.as_deref().map(one_line);
        part
    }

    /// Whether a keeper has it. Only its owner can test the lock; other users look for the process.
    fn is_kept(&self, part: &JobElement) -> bool {
        FileLock::is_held(&self.dir.join(format!("lock.{}", part.index)))
            .unwrap_or_else(|| part.start.as_ref().is_some_and(|s| s.process.is_alive(self.boot)))
    }
}
