//! Back: what homing has changed, from the journals of the hosts; and what others have changed since.

use super::{Session, set::phase_line, show};
use crate::failure::{Failure, exit};
use homing_model::{NodeSet, alike};
use homing_steps::{Change, News, Observed, Phase, Question, Step, Undone, carry_out, drift, undo};
use std::collections::BTreeMap;

const FSTAB: &str = "/etc/fstab";

/// What hosts said.
struct Looked {
    seen: BTreeMap<String, Observed>,
    silent: Vec<(String, String)>,
}

/// Steps up to the last that takes a mount away, and its line.
fn mounts_end(steps: &[Step]) -> usize {
    let is_mount = |step: &Step| match &step.change {
        Change::Mount { .. } => true,
        Change::File { path, .. } => path == FSTAB,
        _ => false,
    };
    steps.iter().rposition(is_mount).map_or(0, |last| last + 1)
}

impl Session {
    /// All hosts that have or had a part.
    fn all_hosts(&self) -> Vec<String> {
        let former = self.record.hosts.iter().filter(|host| !self.site.hosts.contains(host));
        self.site.hosts.iter().chain(former).cloned().collect()
    }

    /// Reads the journals, and looks at all that stands in them.
    fn look_back(&self, hosts: &[String]) -> Looked {
        let journals = self.look(&Question { journal: true, ..Question::default() }, hosts, &BTreeMap::new());
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

    /// The host answers.
    pub fn answers(&self, host: &str) -> bool {
        self.look(&Question::default(), &[host.to_string()], &BTreeMap::new()).values().all(Result::is_ok)
    }

    /// Undoes what was done to one host; `mounts`: no more than what it has mounted.
    pub fn take_host_back(&self, host: &str, mounts: bool) -> Result<(), Failure> {
        let looked = self.look_back(&[host.to_string()]);
        let mut failed = looked.silent;
        for (host, there) in &looked.seen {
            let mut undone = undo(there);
            if mounts {
                undone.steps.truncate(mounts_end(&undone.steps));
                undone.void.clear();
            } else {
                failed.extend(undone.changed.iter().map(|why| (host.clone(), why.clone())));
            }
            let phase = Phase {
                name: "undo".into(),
                steps: [(host.clone(), undone.steps)].into(),
                void: [(host.clone(), undone.void)].into(),
                ..Phase::default()
            };
            failed.extend(self.carry_back(phase));
        }
        let each: Vec<String> = failed.into_iter().map(|(_, why)| why).collect();
        if each.is_empty() {
            return Ok(());
        }
        Err(Failure::system(format!("{host} is not as before: {}", each.join("; "))).hint("the same command goes on"))
    }

    pub fn undo(mut self) -> Result<i32, Failure> {
        let looked = self.look_back(&self.all_hosts());
        let undone: BTreeMap<String, Undone> =
            looked.seen.iter().map(|(host, there)| (host.clone(), undo(there))).collect();
        // What is mounted from a volume goes before it, and names and users only when it is gone.
        let of = |part: &dyn Fn(&Undone) -> Vec<Step>| -> BTreeMap<String, Vec<Step>> {
            let all = undone.iter().map(|(host, undone)| (host.clone(), part(undone)));
            all.filter(|(_, steps)| !steps.is_empty()).collect()
        };
        let ahead = |undone: &Undone| undone.steps[..mounts_end(&undone.steps)].to_vec();
        let unmount = Phase { name: "undo".into(), steps: of(&ahead), ..Phase::default() };
        let phase = Phase {
            name: "undo".into(),
            steps: of(&|undone| undone.steps[mounts_end(&undone.steps)..].to_vec()),
            void: undone.iter().filter(|(_, u)| !u.void.is_empty()).map(|(h, u)| (h.clone(), u.void.clone())).collect(),
            ..Phase::default()
        };
        let mut came = show::Came { failed: looked.silent, ..Default::default() };
        for (host, of) in &undone {
            came.failed.extend(of.changed.iter().map(|why| (host.clone(), why.clone())));
        }
        if self.args.dry_run {
            came.notes.extend(self.record.volumes.iter().map(|name| format!("volume {name} is taken away")));
            let phase = Phase { steps: of(&|undone| undone.steps.clone()), ..phase };
            let text = if self.args.json {
                show::plan_json(&self.all_hosts(), std::slice::from_ref(&phase), &came, 0)
            } else {
                show::plan_text(std::slice::from_ref(&phase), &came)
            };
            return crate::cmd::runs::to_stdout(&text);
        }
        came.steps = undone.values().map(|undone| undone.steps.len()).sum();
        let mut failed: Vec<(String, String)> = Vec::new();
        if !self.record.volumes.is_empty() {
            failed.extend(self.carry_back(unmount));
            if failed.is_empty() {
                failed.extend(self.unmake_volumes());
            }
            if failed.is_empty() {
                failed.extend(self.carry_back(phase));
            }
        } else {
            failed.extend(self.carry_back(Phase { steps: of(&|undone| undone.steps.clone()), ..phase }));
        }
        came.failed.extend(failed);
        let stay =
            undone.iter().flat_map(|(host, of)| of.stay.iter().map(move |thing| (host.as_str(), thing.as_str())));
        let stay: Vec<(&str, String)> = stay.map(|(host, thing)| (host, format!("{thing} stays"))).collect();
        came.notes = alike::folded(stay.iter().map(|(host, text)| (*host, text.as_str())));
        self.conclude_undo(&came)
    }

    fn carry_back(&self, phase: Phase) -> BTreeMap<String, String> {
        carry_out(&self.executor, &[phase], &mut |news| {
            if let News::Phase(phase) = news {
                self.say(&phase_line(phase));
            }
        })
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
        let looked = self.look_back(&self.all_hosts());
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
