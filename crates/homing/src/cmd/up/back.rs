//! Back: what homing has changed, from the journals of the hosts; and what others have changed since.

use super::{Session, set::phase_line, show};
use crate::failure::{Failure, exit};
use homing_model::{NodeSet, alike};
use homing_steps::{News, Observed, Phase, Question, Undone, carry_out, drift, undo};
use std::collections::BTreeMap;

/// What hosts said.
struct Looked {
    seen: BTreeMap<String, Observed>,
    silent: Vec<(String, String)>,
}

impl Session {
    /// All hosts that have or had a part.
    fn all_hosts(&self) -> Vec<String> {
        let former = self.record.hosts.iter().filter(|host| !self.site.hosts.contains(host));
        self.site.hosts.iter().chain(former).cloned().collect()
    }

    /// Reads the journals, and looks at all that stands in them.
    fn look_back(&self) -> Looked {
        let hosts = self.all_hosts();
        let journals = self.look(&Question { journal: true, ..Question::default() }, &hosts, &BTreeMap::new());
        let changes = journals.values().flatten().flat_map(|there| there.journal.iter().map(|(_, change)| change));
        let question = Question::of_changes(changes);
        let answered: Vec<String> =
            hosts.iter().filter(|host| matches!(journals.get(*host), Some(Ok(_)))).cloned().collect();
        let silent = journals.iter().filter_map(|(host, s)| Some((host.clone(), s.as_ref().err()?.clone())));
        let mut looked = Looked { silent: silent.collect(), seen: BTreeMap::new() };
        for (host, there) in self.look(&question, &answered, &BTreeMap::new()) {
            match there {
                Ok(there) => drop(looked.seen.insert(host, there)),
                Err(why) => looked.silent.push((host, why)),
            }
        }
        looked
    }

    pub fn undo(self) -> Result<i32, Failure> {
        let looked = self.look_back();
        let undone: BTreeMap<String, Undone> =
            looked.seen.iter().map(|(host, there)| (host.clone(), undo(there))).collect();
        let phase = Phase {
            name: "undo".into(),
            steps: undone
                .iter()
                .filter(|(_, u)| !u.steps.is_empty())
                .map(|(h, u)| (h.clone(), u.steps.clone()))
                .collect(),
            void: undone.iter().filter(|(_, u)| !u.void.is_empty()).map(|(h, u)| (h.clone(), u.void.clone())).collect(),
            ..Phase::default()
        };
        let mut came = show::Came { failed: looked.silent, ..Default::default() };
        for (host, of) in &undone {
            came.failed.extend(of.changed.iter().map(|why| (host.clone(), why.clone())));
        }
        if self.args.dry_run {
            let text = if self.args.json {
                show::plan_json(&self.all_hosts(), std::slice::from_ref(&phase), &came, 0)
            } else {
                show::plan_text(std::slice::from_ref(&phase), &came)
            };
            return crate::cmd::runs::to_stdout(&text);
        }
        came.steps = phase.steps.values().map(Vec::len).sum();
        let failed = carry_out(&self.executor, &[phase], &mut |news| {
            if let News::Phase(phase) = news {
                self.say(&phase_line(phase));
            }
        });
        came.failed.extend(failed);
        let stay = undone.iter().flat_map(|(host, of)| of.packages.iter().map(move |p| (host.as_str(), p.as_str())));
        let stay: Vec<(&str, String)> = stay.map(|(host, p)| (host, format!("package {p} stays"))).collect();
        came.notes = alike::folded(stay.iter().map(|(host, text)| (*host, text.as_str())));
        self.conclude_undo(&came)
    }

    fn conclude_undo(&self, came: &show::Came) -> Result<i32, Failure> {
        if came.failed.is_empty() {
            self.record.remove()?;
        }
        let status = if came.failed.is_empty() { 0 } else { exit::SYSTEM };
        if self.args.json {
            return crate::cmd::runs::to_stdout(&show::json(&self.all_hosts(), came, status)).map(|_| status);
        }
        came.notes.iter().for_each(|note| self.say(&format!("note: {note}")));
        if came.failed.is_empty() {
            let hosts: NodeSet = self.all_hosts().into_iter().collect();
            println!("{}: as before ({} steps)", alike::label(&hosts), came.steps);
            return Ok(0);
        }
        let each = alike::folded(came.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        Err(Failure::system(format!("not everything is as before:\n  {}", each.join("\n  "))))
    }

    pub fn diff(self) -> Result<i32, Failure> {
        let looked = self.look_back();
        let found: Vec<(String, String)> = looked
            .seen
            .iter()
            .flat_map(|(host, there)| drift(there).into_iter().map(move |what| (host.clone(), what)))
            .collect();
        let status = match () {
            () if !looked.silent.is_empty() => exit::SYSTEM,
            () if !found.is_empty() => 1,
            () => 0,
        };
        if self.args.json {
            let came = show::Came { failed: looked.silent, ..Default::default() };
            return crate::cmd::runs::to_stdout(&show::drift_json(&self.all_hosts(), &found, &came, status))
                .map(|_| status);
        }
        let lines = |rows: &[(String, String)]| alike::folded(rows.iter().map(|(h, t)| (h.as_str(), t.as_str())));
        lines(&looked.silent).iter().for_each(|line| eprintln!("homing: {line}"));
        let lines = lines(&found);
        let text = if lines.is_empty() { "nothing was changed since\n".into() } else { lines.join("\n") + "\n" };
        crate::cmd::runs::to_stdout(&text).map(|_| status)
    }
}
