//! Chooses the jobs for bjobs, bhist and bacct.

use crate::choose::{self, JobSelector};
use crate::jobs::JobReport as Row;
use crate::options::Parsed;

/// The jobs that the options of bjobs and bhist mean.
pub struct Selection<'a> {
    parsed: &'a Parsed,
    /// The jobs that are named by their ids.
    pub wanted: Vec<JobSelector>,
}

impl Selection<'_> {
    /// Makes the selection from the options of a command.
    pub fn new(parsed: &Parsed) -> Result<Selection<'_>, String> {
        let wanted = choose::all_wanted(&parsed.operands)?;
        parsed.text("g").map(|g| choose::group(&g)).transpose()?;
        Ok(Selection { parsed, wanted })
    }

    /// Whether it has a job: with ids, a named job in any state; otherwise a meant job of the chosen kind.
    pub fn has(&self, row: &Row, own: &str) -> bool {
        self.is_meant(row, own) && (!self.wanted.is_empty() || self.is_kind(row))
    }

    /// Whether a job is meant. A job that is named by its id may be any user's; others are the user's own, or those
    /// of `-u`.
    pub fn is_meant(&self, row: &Row, own: &str) -> bool {
        if !self.wanted.is_empty() {
            let is = |w: &JobSelector| {
                w.id == row.id && (w.indices.is_empty() || row.index.is_some_and(|i| w.indices.contains(&i)))
            };
            return self.wanted.iter().any(is);
        }
        let user = self.parsed.text("u").unwrap_or_else(|| own.to_string());
        (user == "all" || user.split_whitespace().any(|u| u == row.user)) && self.fits(row)
    }

    /// Whether jobs of other users may be meant.
    pub fn is_of_others(&self) -> bool {
        self.parsed.has("u") || !self.wanted.is_empty()
    }

    /// Whether a job is of the chosen kind; by default one that has not ended.
    fn is_kind(&self, row: &Row) -> bool {
        let has = |o: &str| self.parsed.has(o);
        let kinds = [
            (has("p"), row.is_waiting()),
            (has("r"), matches!(row.stat, "RUN" | "USUSP" | "SSUSP")),
            (has("s"), matches!(row.stat, "USUSP" | "SSUSP" | "PSUSP")),
            (has("d"), row.is_over()),
        ];
        let asked = kinds.iter().any(|(asked, _)| *asked);
        has("a") || if asked { kinds.iter().any(|(asked, is)| *asked && *is) } else { !row.is_over() }
    }

    fn fits(&self, row: &Row) -> bool {
        let is = |option: &str, fits: &dyn Fn(&str) -> bool| self.parsed.text(option).is_none_or(|v| fits(&v));
        is("J", &|name| choose::name_fits(name, row))
            && is("q", &|queue| queue.split_whitespace().any(|q| q == row.queue))
            && is("m", &|host| row.exec_hosts.iter().any(|h| host.split_whitespace().any(|w| w == h)))
            && is("P", &|project| project == row.project)
            && choose::is_of(row, self.parsed.text("g").as_deref(), self.parsed.text("app").as_deref())
    }

    /// Returns the message of bjobs if there is nothing to show, and its exit status.
    pub fn nothing(&self) -> (String, i32) {
        if let Some(first) = self.wanted.first() {
            return (format!("Job <{}> is not found", first.id), 255);
        }
        if let Some(name) = self.parsed.text("J") {
            return (format!("Job <{name}> is not found"), 255);
        }
        let kind = match ["a", "p", "s", "r", "d"].iter().find(|o| self.parsed.has(o)) {
            Some(&"p") => "pending job",
            Some(&"s") => "suspended job",
            Some(&"d") => "DONE/EXIT job",
            Some(&"r") => "running job",
            Some(&"a") => "job",
            _ => "unfinished job",
        };
        (format!("No {kind} found"), 254)
    }
}
