//! Sets hosts up: looks, plans, acts, and looks again until nothing is left to do.

use super::UpSession;
use super::login::guard;
use super::mtu::may_cut;
use super::show::{self, SetupOutcome};
use crate::switched;
use clap::Parser;
use homing_model::{Failure, NodeSet, alike, exit};
use homing_power::PowerFacts;
use homing_setup::{Area, SetupPlan, SiteVolume, plan, proof, question, unfit};
use homing_steps::{Call, ChangePhase, Executor, FactQuery, Lost, Observed, PhaseEvent, carry_out, guarded, observe};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The most rounds before the set-up gives up. A full set-up has a round for packages and volumes, and one for the
/// copy of homes. The host of that copy and the other hosts have one each, and the last finds nothing to do.
const ROUNDS: usize = 6;
/// Seconds in which a host must answer `homing check`. No user waits at the screen for the end of a set-up.
const CHECK_DEADLINE: &str = "30";

/// The arguments of `homing check`, whose command line is shown to the user.
#[derive(Parser)]
struct CheckCommand {
    #[command(flatten)]
    args: crate::cmd::check::Args,
}

impl UpSession {
    pub fn set_up(&mut self) -> Result<i32, Failure> {
        let begun = Instant::now();
        let faults = self.site.faults();
        if !faults.is_empty() {
            return Err(Failure::usage(format!("the cluster file: {}", faults.join("; "))));
        }
        if self.site.hosts.is_empty() {
            return Err(Failure::usage("no hosts are named").hint("hosts = \"n[1-4]\" in the cluster file"));
        }
        let areas = self.areas()?;
        let mut came = SetupOutcome::default();
        let (mut lost, mut round) = (Lost::default(), 0);
        let mut unmade: Vec<(String, String)> = Vec::new();
        loop {
            // An MTU that failed is not tried again.
            let areas: Vec<Area> =
                areas.iter().copied().filter(|area| *area != Area::Mtu || lost.refused.is_empty()).collect();
            let mut seen = self.look(&question(&self.site, &areas), &self.site.hosts, &lost);
            if !self.args.dry_run {
                let left = guarded(&seen);
                if !left.is_empty() {
                    let hosts: NodeSet = left.iter().cloned().collect();
                    let interrupted = format!("{hosts}: an interrupted change of ssh will be confirmed or undone");
                    self.confirm("setting up hosts", &interrupted)?;
                }
                lost.fail(Area::Ssh.name(), self.prove_login(&left, &|host| self.fire(host)));
                if left.iter().any(|host| !lost.has(host)) {
                    // A change that was taken back differs from the state that was seen.
                    seen = self.look(&question(&self.site, &areas), &self.site.hosts, &lost);
                }
                seen.extend(lost.unseen());
            }
            let mut plan = plan(&self.site, &areas, &seen);
            lost.leave_untaken(&mut plan.phases);
            (came.failed, came.notes) = (failures(&seen, &plan), plan.notes.clone());
            let wants_volumes = areas.contains(&Area::Volumes) && unmade.is_empty();
            let due = if wants_volumes { self.volumes_due(&seen) } else { Vec::new() };
            if self.args.dry_run || round == 0 {
                // The folders of a volume may be meant for a disk that is mounted first.
                let disks_first = plan.phases.iter().any(|phase| phase.name == Area::Disks.name());
                let mut refused = if disks_first { Vec::new() } else { self.volumes_refused(&due) };
                refused.extend(self.volumes_otherwise(&due));
                let cut_off = self.cut_off(&plan.phases);
                // If others can go on, the plan names these hosts, and their own steps fail.
                let none_goes_on = !cut_off.is_empty() && cut_off.len() == self.site.hosts.len();
                came.failed.extend(refused.iter().chain(&cut_off).cloned());
                if self.args.dry_run {
                    return self.tell_plan(&plan, &due, &came);
                }
                if !refused.is_empty() {
                    return Err(Failure::usage(refusal(&refused)));
                }
                if none_goes_on {
                    return Err(Failure::system(refusal(&cut_off)));
                }
            }
            came.failed.extend(unmade.iter().chain(&lost.refused).cloned());
            came.failed.extend(lost.untaken());
            if plan.phases.is_empty() && due.is_empty() {
                break;
            }
            if round == ROUNDS {
                let hosts: NodeSet = plan.phases.iter().flat_map(|p| p.steps.keys().cloned()).collect();
                return Err(Failure::system(format!(
                    "after {ROUNDS} rounds {hosts} still differ from the cluster file; each round succeeded, but \
                     these changes did not last: {}",
                    things(&plan)
                ))
                .hint("homing up --dry-run"));
            }
            self.confirm("setting up hosts", &show::question(&plan.phases, &due, &came))?;
            self.record.begin(&self.site.hosts, &self.args.only, self.args.sudo)?;
            let precedes = |phase: &ChangePhase| Area::named(&phase.name).is_some_and(|area| area < Area::Volumes);
            let (before, behind) = plan.phases.into_iter().partition(precedes);
            self.carry_out(before, &mut lost, &mut came);
            // A volume needs the earlier phases on all of its hosts.
            if lost.look_again() {
                continue;
            }
            came.steps += due.len();
            unmade.extend(self.make_volumes(&due));
            self.carry_out(behind, &mut lost, &mut came);
            if !lost.look_again() {
                round += 1;
            }
        }
        self.leave_homes(&areas, &mut lost);
        came.failed.extend(lost.not_begun());
        if self.record.open && areas.contains(&Area::Slurm) {
            came.failed.extend(self.prove_slurm(&came));
        }
        if came.failed.is_empty() && self.record.open {
            self.record.end()?;
        }
        self.conclude(&areas, &came, begun)
    }

    /// Records that homes were not begun on hosts that failed. Their steps are planned only once the volume is mounted.
    fn leave_homes(&self, areas: &[Area], lost: &mut Lost) {
        if !areas.contains(&Area::Homes) {
            return;
        }
        let is_early = |phase: &str| Area::ALL.iter().any(|a| *a < Area::Homes && phase == a.name());
        let failed = lost.failed_in().filter(|(_, phase)| is_early(phase)).map(|(host, _)| host.clone());
        failed.collect::<Vec<_>>().iter().for_each(|host| lost.leave(host, Area::Homes.name()));
    }

    fn areas(&self) -> Result<Vec<Area>, Failure> {
        let named: Vec<Area> = self.args.only.iter().filter_map(|name| Area::named(name)).collect();
        if let Some(idle) = named.iter().find(|area| !area.is_wanted(&self.site)) {
            let failure = Failure::usage(format!("the cluster file has no settings for {}", idle.name()));
            return Err(failure.hint("homing help up.md lists the keys of [up]"));
        }
        let wanted = |area: &Area| if named.is_empty() { area.is_wanted(&self.site) } else { named.contains(area) };
        Ok(Area::ALL.into_iter().filter(wanted).collect())
    }

    /// Looks at hosts, except those that failed before.
    pub fn look(
        &self,
        question: &FactQuery,
        hosts: &[String],
        lost: &Lost,
    ) -> BTreeMap<String, Result<Observed, String>> {
        let asked: Vec<String> = hosts.iter().filter(|host| !lost.has(host)).cloned().collect();
        let mut seen = observe(&self.executor, &asked, &FactQuery { lead: self.lead.clone(), ..question.clone() });
        for there in seen.values_mut() {
            let uid = there.as_ref().map_or(0, |there| there.uid);
            if uid != 0 {
                *there =
                    Err(format!("you log in as user {uid}, but root is needed: --sudo, or HOMING_SSH='ssh -l root'"));
            }
        }
        name_off(&mut seen, &switched::all());
        seen.extend(lost.unseen());
        seen
    }

    /// Carries out a phase on the hosts that still take part. Returns the number of steps on hosts without a failure.
    pub fn carry_out_one(&self, phase: &mut ChangePhase, lost: &mut Lost) -> usize {
        let out: Vec<String> = phase.steps.keys().filter(|host| !lost.admits(host, &phase.name)).cloned().collect();
        out.iter().for_each(|host| lost.leave(host, &phase.name));
        phase.steps.retain(|host, _| !out.contains(host));
        phase.void.retain(|host, _| !lost.has(host));
        phase.lead = self.lead.clone();
        phase.owner = Some(self.record.owner());
        // A phase that can lock homing out uses connections that are kept from here. They can take it back.
        let executor: &dyn Executor = if phase.guard.is_some() { &self.executor.direct } else { &self.executor };
        let before = lost.untaken().count();
        let mut failed: Vec<(String, String)> = Vec::new();
        let news = &mut |news: PhaseEvent| match news {
            PhaseEvent::Host(host, Err(fault)) => failed.push((host.to_string(), fault.to_string())),
            PhaseEvent::Host(_, Ok(())) => {}
            PhaseEvent::Phase(phase) if phase.has_steps() => self.print_message(&phase.start_line()),
            PhaseEvent::Phase(_) => {}
        };
        lost.take(&phase.name, carry_out(executor, std::slice::from_ref(phase), news));
        let done = phase.without(|host| failed.iter().any(|(ill, _)| ill == host));
        if done.has_steps() {
            self.print_message(&done.line());
        }
        let lines = alike::folded(failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        lines.iter().for_each(|line| self.print_message(&format!("  {line}")));
        let is_lost = |host: &String| lost.has(host) && failed.iter().any(|(ill, _)| ill == host);
        let steps: usize = phase.steps.iter().filter(|(host, _)| !is_lost(host)).map(|(_, steps)| steps.len()).sum();
        steps.saturating_sub(lost.untaken().count() - before)
    }

    /// Carries out phases one after another. A phase that can lock homing out is proved before the next.
    fn carry_out(&self, phases: Vec<ChangePhase>, lost: &mut Lost, came: &mut SetupOutcome) {
        for mut phase in phases {
            let of_ssh = phase.name == Area::Ssh.name();
            phase.guard = of_ssh.then(guard);
            if may_cut(&phase) {
                self.mtu(&phase, lost, came);
                continue;
            }
            let fetched = self.bring_packages(&phase, lost);
            came.steps += self.carry_out_one(&mut phase, lost);
            if let Some(fetched) = fetched {
                self.print_message(&format!("{}: {}", phase.name, fetched.line()));
                came.fetched.push((phase.name.clone(), fetched));
            }
            if of_ssh {
                let hosts: Vec<String> = phase.steps.keys().filter(|host| !lost.has(host)).cloned().collect();
                let out = self.prove_login(&hosts, &|host| self.take_back(host, &phase) && self.fire(host));
                lost.fail(&phase.name, out);
                self.executor.anew();
            }
        }
    }

    /// Sets the MTU on all hosts of the phase, or on none.
    fn mtu(&self, phase: &ChangePhase, lost: &mut Lost, came: &mut SetupOutcome) {
        self.print_message(&phase.start_line());
        let out: NodeSet = phase.steps.keys().filter(|host| lost.has(host)).cloned().collect();
        let all =
            if out.is_empty() { self.set_mtu(phase) } else { Err(format!("{out} failed earlier and is left out")) };
        match all {
            Ok(()) => {
                self.print_message(&phase.line());
                came.steps += phase.steps.values().map(Vec::len).sum::<usize>();
            }
            Err(why) => {
                self.print_message(&format!("  {why}"));
                lost.refused.extend(phase.steps.keys().map(|host| (host.clone(), format!("{}: {why}", phase.name))));
            }
        }
    }

    /// Checks that Slurm's controller accepts all hosts without a failure as its nodes.
    fn prove_slurm(&self, came: &SetupOutcome) -> Vec<(String, String)> {
        let is_well = |host: &&String| !came.failed.iter().any(|(failed, _)| failed == *host);
        let hosts: Vec<String> = self.site.hosts.iter().filter(is_well).cloned().collect();
        let Some(controller) = self.site.controller().filter(|host| hosts.iter().any(|h| h == host)) else {
            return Vec::new();
        };
        self.print_message(&format!("slurm: reading the nodes from {controller}"));
        match self.executor.run(&[(controller.into(), Call::Script(proof(&hosts)))]).remove(0) {
            Ok(said) => unfit(&hosts, &said),
            Err(why) => vec![(controller.into(), format!("slurm: cannot read the nodes: {why}"))],
        }
    }

    fn conclude(&self, areas: &[Area], came: &SetupOutcome, begun: Instant) -> Result<i32, Failure> {
        let checked = if self.args.no_check || self.args.json { 0 } else { self.check(areas, came)? };
        let status = match () {
            () if !came.failed.is_empty() => exit::SYSTEM,
            () if checked != 0 => 1,
            () => 0,
        };
        if self.args.json {
            return crate::cmd::runs::to_stdout(&show::json(&self.site.hosts, came, status)).map(|_| status);
        }
        came.notes.iter().for_each(|note| self.print_message(&format!("note: {note}")));
        let failed: BTreeSet<&str> = came.failed.iter().map(|(host, _)| host.as_str()).collect();
        let fine: NodeSet = self.site.hosts.iter().filter(|h| !failed.contains(h.as_str())).cloned().collect();
        if !fine.is_empty() {
            let done = if came.steps == 0 { "nothing to do".into() } else { format!("{} steps", came.steps) };
            println!("{}: up to date ({done}, {:.1} s)", alike::label(&fine), begun.elapsed().as_secs_f64());
        }
        if came.failed.is_empty() {
            return Ok(status);
        }
        let mut each = alike::folded(came.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        // A fault that names several hosts is in the list once for each of them.
        each.dedup();
        Err(Failure::system(format!("set-up incomplete:\n  {}", each.join("\n  "))).hint(match came.steps {
            0 => {
                "nothing was changed; repair these faults, then run the same command again (--yes: without a question)"
            }
            _ => "repair these faults, then run the same command again; homing up --undo undoes the changes",
        }))
    }

    /// Runs the areas of `homing check` that check the areas that were set up.
    fn check(&self, areas: &[Area], came: &SetupOutcome) -> Result<i32, Failure> {
        let mut looked: Vec<&str> = areas.iter().filter_map(|area| area.check()).collect();
        looked.dedup();
        let failed = |host: &&String| came.failed.iter().any(|(h, _)| h == *host);
        let hosts: NodeSet = self.site.hosts.iter().filter(|host| !failed(host)).cloned().collect();
        if came.steps == 0 || looked.is_empty() || hosts.is_empty() {
            return Ok(0);
        }
        let (hosts, looked) = (hosts.to_string(), looked.join(","));
        let tree = self.args.tree.words();
        let mut words = vec!["homing", "check", "-w", &hosts, "--only", &looked, "--deadline", CHECK_DEADLINE];
        words.extend(tree.iter().map(String::as_str));
        self.print_message(&shlex::try_join(words.iter().copied()).unwrap_or_default());
        let parsed = CheckCommand::try_parse_from(&words[1..]).map_err(|e| Failure::system(e.to_string()))?;
        crate::cmd::check::run(parsed.args)
    }

    fn tell_plan(&self, plan: &SetupPlan, due: &[SiteVolume], came: &SetupOutcome) -> Result<i32, Failure> {
        let status = if came.failed.is_empty() { 0 } else { exit::SYSTEM };
        let text = if self.args.json {
            show::plan_json(&self.site.hosts, &plan.phases, came, status)
        } else {
            show::plan_text(&plan.phases, due, came)
        };
        crate::cmd::runs::to_stdout(&text).map(|_| status)
    }
}

/// Returns the message about faults that are known before the first change. They must not stop a set-up in the middle.
fn refusal(refused: &[(String, String)]) -> String {
    let lines = alike::folded(refused.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    format!("nothing was changed, because the plan has faults:\n  {}", lines.join("\n  "))
}

/// Returns the names of the things that a plan changes, each once.
fn things(plan: &SetupPlan) -> String {
    let steps = plan.phases.iter().flat_map(|phase| phase.steps.values().flatten());
    let things: BTreeSet<String> = steps.map(|step| step.change.thing()).collect();
    things.into_iter().collect::<Vec<_>>().join(", ")
}

/// Gives hosts that do not answer because homing has switched them off that reason, with the command that switches
/// them on.
fn name_off(seen: &mut BTreeMap<String, Result<Observed, String>>, known: &PowerFacts) {
    for (host, there) in seen.iter_mut().filter(|(_, there)| there.is_err()) {
        if let Some(reason) = switched::off_reason(known, host) {
            *there = Err(reason);
        }
    }
}

/// Returns the hosts that do not answer, and the obstacles to areas.
fn failures(seen: &BTreeMap<String, Result<Observed, String>>, plan: &SetupPlan) -> Vec<(String, String)> {
    let silent = seen.iter().filter_map(|(host, s)| Some((host.clone(), s.as_ref().err()?.clone())));
    silent.chain(plan.against.iter().cloned()).collect()
}
