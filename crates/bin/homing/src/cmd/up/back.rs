//! Undoes the changes that the journals of the hosts record, and lists later changes by others.

use super::{UpSession, show};
use homing_model::units::count;
use homing_model::{Failure, NodeSet, alike, exit};
use homing_setup::{RoundPlan, SetupOutcome, mounts_end, parts};
use homing_steps::{ChangePhase, ChangeStep, Drift, FactQuery, Lost, Observed, Undone, drift, of_owner, summary, undo};
use std::collections::{BTreeMap, BTreeSet};

/// The answers of the hosts.
struct Looked {
    seen: BTreeMap<String, Observed>,
    silent: Vec<(String, String)>,
}

/// Returns a line for each volume: it is deleted, or it stays.
fn volume_lines(volumes: &[String], staying: &[(String, String)]) -> Vec<String> {
    let line = |name: &String| match staying.iter().find(|(stays, _)| stays == name) {
        Some((_, why)) => format!("volume {name} stays, and so does everything that was set up before it: {why}"),
        None => format!("volume {name} will be deleted"),
    };
    volumes.iter().map(line).collect()
}

/// Returns the note about changes that another set-up has made.
fn others_stay(owner: &str, changes: usize) -> String {
    let changes = count(changes as u64, "change");
    format!("{changes} of the set-up of {owner} stay; homing up --undo with that cluster file undoes them")
}

fn phase(steps: BTreeMap<String, Vec<ChangeStep>>, void: BTreeMap<String, Vec<String>>) -> ChangePhase {
    ChangePhase { name: "undo".into(), steps, void, ..ChangePhase::default() }
}

impl UpSession {
    /// Returns all hosts that have or had a part.
    fn all_hosts(&self) -> Vec<String> {
        let former = self.record.hosts.iter().filter(|host| !self.site.hosts.contains(host));
        self.site.hosts.iter().chain(former).cloned().collect()
    }

    /// Reads the journals of hosts that are not lost, and looks at everything that the journals name.
    fn look_back(&self, hosts: &[String], lost: &Lost) -> Looked {
        let hosts: Vec<String> = hosts.iter().filter(|host| !lost.has(host)).cloned().collect();
        let journals = self.look_as_root(&FactQuery { journal: true, ..FactQuery::default() }, &hosts);
        let changes = journals.values().flatten().flat_map(|there| there.journal.iter().map(|(_, change)| change));
        let question = FactQuery::of_changes(changes);
        let answered: Vec<String> =
            hosts.iter().filter(|host| matches!(journals.get(*host), Some(Ok(_)))).cloned().collect();
        let silent = journals.iter().filter_map(|(host, s)| Some((host.clone(), s.as_ref().err()?.clone())));
        let mut looked = Looked { silent: silent.collect(), seen: BTreeMap::new() };
        for (host, there) in self.look_as_root(&question, &answered) {
            match there {
                Ok(there) => drop(looked.seen.insert(host, there)),
                Err(why) => looked.silent.push((host, why)),
            }
        }
        looked
    }

    /// Returns whether the host answers.
    pub fn answers(&self, host: &str) -> bool {
        self.look_as_root(&FactQuery::default(), &[host.to_string()]).values().all(Result::is_ok)
    }

    /// Returns the steps that would undo the changes on one host, as text.
    pub fn back_text(&self, host: &str) -> String {
        let looked = self.look_back(&[host.to_string()], &Lost::default());
        let undone = looked.seen.iter().map(|(host, there)| (host.clone(), undo(there))).collect();
        let phases = vec![phase(parts(&undone, |steps| steps), BTreeMap::new())];
        show::plan_text(&RoundPlan { phases, failed: looked.silent, ..RoundPlan::default() })
    }

    /// Undoes the changes on one host. `mounts`: only its mounts.
    pub fn take_host_back(&self, host: &str, mounts: bool) -> Result<(), Failure> {
        let (mut lost, mut stay) = (Lost::default(), BTreeSet::new());
        let failed = loop {
            let looked = self.look_back(&[host.to_string()], &lost);
            let mut failed = looked.silent;
            for (host, there) in &looked.seen {
                let mut undone = undo(there);
                if mounts {
                    undone.steps.truncate(mounts_end(&undone.steps));
                    undone.void.clear();
                } else {
                    stay.extend(undone.stay.iter().cloned());
                    failed.extend(undone.changed.iter().map(|why| (host.clone(), why.clone())));
                }
                let (steps, void) = ([(host.clone(), undone.steps)].into(), [(host.clone(), undone.void)].into());
                self.carry_out_one(&mut phase(steps, void), &mut lost);
            }
            if !lost.look_again() {
                failed.extend(lost.failed);
                break failed;
            }
        };
        stay.iter().for_each(|thing| self.print_message(&format!("note: {host}: {thing} stays")));
        let each: Vec<String> = failed.into_iter().map(|(_, why)| why).collect();
        if each.is_empty() {
            return Ok(());
        }
        Err(Failure::system(format!("could not restore {host}: {}", each.join("; ")))
            .hint("run the same command again"))
    }

    pub fn undo(mut self) -> Result<i32, Failure> {
        let (mut lost, mut came) = (Lost::default(), SetupOutcome::default());
        let mut stay: BTreeSet<(String, String)> = BTreeSet::new();
        loop {
            let looked = self.look_back(&self.all_hosts(), &lost);
            let mut undone: BTreeMap<String, Undone> = BTreeMap::new();
            for (host, there) in &looked.seen {
                let (own, others) = of_owner(there, |owner| self.record.may_undo(owner));
                stay.extend(others.iter().map(|(owner, n)| (host.clone(), others_stay(owner, *n))));
                undone.insert(host.clone(), undo(&own));
            }
            came.failed = looked.silent;
            for (host, of) in &undone {
                came.failed.extend(of.changed.iter().map(|why| (host.clone(), why.clone())));
                stay.extend(of.stay.iter().map(|thing| (host.clone(), format!("{thing} stays"))));
            }
            came.notes = alike::folded(stay.iter().map(|(host, text)| (host.as_str(), text.as_str())));
            let staying =
                if self.args.dry_run || self.args.consent.shows() { self.volumes_staying() } else { Vec::new() };
            let steps = parts(&undone, |steps| if staying.is_empty() { steps } else { &steps[..mounts_end(steps)] });
            if self.args.dry_run {
                return self.print_undo(steps, &staying, came);
            }
            let goes = self.record.volumes.iter().any(|name| !staying.iter().any(|(stays, _)| stays == name));
            if goes || !steps.is_empty() {
                self.confirm("undoing the set-up of hosts", &self.undo_question(steps, &staying))?;
            }
            came.steps += self.undo_once(&undone, &mut lost, &mut came.failed);
            if !lost.look_again() {
                break;
            }
        }
        came.failed.extend(lost.untaken());
        came.failed.extend(lost.failed);
        came.notes.extend(self.volumes_of_others());
        self.conclude_undo(&came)
    }

    fn volume_lines(&self, staying: &[(String, String)]) -> Vec<String> {
        volume_lines(&self.record.volumes, staying)
    }

    fn undo_question(&self, steps: BTreeMap<String, Vec<ChangeStep>>, staying: &[(String, String)]) -> String {
        let volumes: String = self.volume_lines(staying).into_iter().map(|line| line + "\n").collect();
        format!("{}\n{volumes}homing up --undo --dry-run shows each step.", summary(&[phase(steps, BTreeMap::new())]))
    }

    /// Undoes changes once, in order. Mounts of a volume go before the volume; names and users go only when it is
    /// gone.
    fn undo_once(
        &mut self,
        undone: &BTreeMap<String, Undone>,
        lost: &mut Lost,
        failed: &mut Vec<(String, String)>,
    ) -> usize {
        let void: BTreeMap<String, Vec<String>> =
            undone.iter().filter(|(_, u)| !u.void.is_empty()).map(|(h, u)| (h.clone(), u.void.clone())).collect();
        if self.record.volumes.is_empty() {
            return self.carry_out_one(&mut phase(parts(undone, |steps| steps), void), lost);
        }
        let ahead = parts(undone, |steps| &steps[..mounts_end(steps)]);
        let done = self.carry_out_one(&mut phase(ahead, BTreeMap::new()), lost);
        if undone.keys().any(|host| lost.has(host)) {
            return done;
        }
        let unmade = self.unmake_volumes();
        if !unmade.is_empty() {
            failed.extend(unmade);
            return done;
        }
        done + self.carry_out_one(&mut phase(parts(undone, |steps| &steps[mounts_end(steps)..]), void), lost)
    }

    fn print_undo(
        &self,
        steps: BTreeMap<String, Vec<ChangeStep>>,
        staying: &[(String, String)],
        came: SetupOutcome,
    ) -> Result<i32, Failure> {
        let SetupOutcome { failed, mut notes, .. } = came;
        notes.extend(self.volume_lines(staying));
        let status = if staying.is_empty() && failed.is_empty() { 0 } else { exit::SYSTEM };
        let plan = RoundPlan { phases: vec![phase(steps, BTreeMap::new())], failed, notes, ..RoundPlan::default() };
        let text =
            if self.args.json { show::plan_json(&self.all_hosts(), &plan, status) } else { show::plan_text(&plan) };
        crate::cmd::runs::to_stdout(&text).map(|_| status)
    }

    fn conclude_undo(&self, came: &SetupOutcome) -> Result<i32, Failure> {
        if came.failed.is_empty() {
            self.record.remove()?;
        }
        let status = if came.failed.is_empty() { 0 } else { exit::SYSTEM };
        if self.args.json {
            return crate::cmd::runs::to_stdout(&show::json(&self.all_hosts(), came, &[], status)).map(|_| status);
        }
        came.notes.iter().for_each(|note| self.print_message(&format!("note: {note}")));
        if came.failed.is_empty() {
            let hosts: NodeSet = self.all_hosts().into_iter().collect();
            println!("{}: restored ({} steps)", alike::label(&hosts), came.steps);
            return Ok(0);
        }
        let each = alike::folded(came.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        Err(Failure::system(format!("undo incomplete:\n  {}", each.join("\n  "))))
    }

    pub fn diff(self) -> Result<i32, Failure> {
        let looked = self.look_back(&self.all_hosts(), &Lost::default());
        let found: Vec<(String, Drift)> = looked
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
            return crate::cmd::runs::to_stdout(&show::drift_json(&self.all_hosts(), &found, looked.silent, status))
                .map(|_| status);
        }
        let silent = alike::folded(looked.silent.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        silent.iter().for_each(|line| eprintln!("homing: {line}"));
        crate::cmd::runs::to_stdout(&show::drift_text(&found)).map(|_| status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_promises_no_volume_that_stays() {
        let volumes = ["data", "homes"].map(String::from);
        let staying = [("data".to_string(), "there are files on n1".to_string())];
        let lines = volume_lines(&volumes, &staying);
        assert!(
            lines[0].starts_with("volume data stays, ") && lines[0].ends_with("there are files on n1"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "volume homes will be deleted");
    }

    #[test]
    fn the_set_up_of_another_cluster_file_is_named() {
        let note = others_stay("adm:/b.toml", 3);
        assert!(note.starts_with("3 changes of the set-up of adm:/b.toml stay") && note.contains("--undo"), "{note}");
    }
}
