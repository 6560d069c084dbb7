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
        let all = has("a") || (has("A") && !asked);
        all || if asked { kinds.iter().any(|(asked, is)| *asked && *is) } else { !row.is_over() }
    }

    fn fits(&self, row: &Row) -> bool {
        let is = |option: &str, fits: &dyn Fn(&str) -> bool| self.parsed.text(option).is_none_or(|v| fits(&v));
        is("J", &|name| choose::name_fits(name, row))
            && is("q", &|queue| queue.split_whitespace().any(|q| q == row.queue))
            && is("m", &|host| row.exec_hosts.iter().any(|h| host.split_whitespace().any(|w| w == h)))
            && is("P", &|project| project == row.project)
            && choose::is_of(row, self.parsed.text("g").as_deref(), self.parsed.text("app").as_deref())
    }

    /// Returns the message of bjobs about a named job that is not there.
    pub fn missing(&self, id: u64) -> String {
        let what = if self.parsed.has("A") { "Job array" } else { "Job" };
        format!("{what} <{id}> is not found")
    }

    /// Returns the message of bjobs if no job is named and there is nothing to show.
    pub fn nothing(&self) -> String {
        nothing(self.parsed, !self.parsed.has("a"))
    }
}

/// Returns LSF's message if the filters of a command mean no job. `unfinished`: the command is by default for jobs
/// that have not ended.
pub fn nothing(parsed: &Parsed, unfinished: bool) -> String {
    let place = match (parsed.text("q"), parsed.text("m")) {
        (Some(queue), Some(host)) => format!(" in queue <{queue}> and on host/group <{host}>"),
        (Some(queue), None) => format!(" in queue <{queue}>"),
        (None, Some(host)) => format!(" on host/group <{host}>"),
        (None, None) => String::new(),
    };
    let arrays = parsed.has("A");
    if let Some(name) = parsed.text("J") {
        return format!("Job{} <{name}> is not found{place}", if arrays { " array" } else { "" });
    }
    if arrays {
        return format!("Job array is not found{place}");
    }
    let kinds = [("d", "DONE/EXIT job"), ("p", "pending job"), ("s", "suspended job"), ("r", "running job")];
    let asked = kinds.iter().find(|(option, _)| unfinished && parsed.has(option)).map(|(_, kind)| *kind);
    let kind = asked.unwrap_or(if unfinished { "unfinished job" } else { "job" });
    format!("No {kind} found{place}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{BJOBS, BKILL};
    use crate::options::{Grammar, parse};

    fn of(grammar: &Grammar, line: &str) -> Parsed {
        parse(grammar, &line.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_message_names_the_kind_and_the_place() {
        for (line, says) in [
            ("-w", "No unfinished job found"),
            ("-a", "No job found"),
            ("-p", "No pending job found"),
            ("-s -u all", "No suspended job found"),
            ("-d -q storage", "No DONE/EXIT job found in queue <storage>"),
            ("-r -q storage -m n1", "No running job found in queue <storage> and on host/group <n1>"),
            ("-J one -m n1", "Job <one> is not found on host/group <n1>"),
            ("-A", "Job array is not found"),
            ("-A -J one", "Job array <one> is not found"),
        ] {
            let parsed = of(&BJOBS, line);
            assert_eq!(Selection::new(&parsed).unwrap().nothing(), says, "{line}");
        }
        let parsed = of(&BJOBS, "-A 7");
        assert_eq!(Selection::new(&parsed).unwrap().missing(7), "Job array <7> is not found");
        assert_eq!(nothing(&of(&BKILL, "-u nobody 0"), true), "No unfinished job found");
        assert_eq!(nothing(&of(&BKILL, "-J one"), true), "Job <one> is not found");
    }

    #[test]
    fn arrays_are_listed_whether_they_have_ended_or_not() {
        let ended = Row { user: "me".into(), stat: "DONE", ..Row::default() };
        let has = |line: &str| Selection::new(&of(&BJOBS, line)).unwrap().has(&ended, "me");
        assert_eq!([has("-w"), has("-A"), has("-A -r"), has("-A -d")], [false, true, false, true]);
    }
}
