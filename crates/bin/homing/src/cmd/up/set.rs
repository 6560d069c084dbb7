//! Sets hosts up: the effects of the rounds of a set-up, and its report.

use super::UpSession;
use super::login::guard;
use super::mtu::may_cut;
use super::show;
use crate::switched;
use clap::Parser;
use homing_model::{Failure, NodeSet, alike, exit};
use homing_power::PowerFacts;
use homing_setup::{
    AllSeen, Area, HostFailures, RoundPlan, SetupEffects, SetupOutcome, SiteVolume, proof, set_up, set_up_plan, unfit,
};
use homing_steps::{Call, ChangePhase, Executor, FactQuery, Lost, PhaseEvent, carry_out, observe};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Seconds in which a host must answer `homing check`. No user waits at the screen for the end of a set-up.
const CHECK_DEADLINE: &str = "30";

/// The arguments of `homing check`, whose command line is shown to the user.
#[derive(Parser)]
struct CheckCommand {
    #[command(flatten)]
    args: crate::cmd::check::Args,
}

impl SetupEffects for UpSession {
    fn look(&mut self, question: &FactQuery, hosts: &[String]) -> AllSeen {
        self.look_as_root(question, hosts)
    }

    fn end_guards(&mut self, hosts: &[String]) -> BTreeMap<String, String> {
        self.prove_login(hosts, &|host| self.fire(host))
    }

    fn request_consent(&mut self, summary: &str) -> Result<(), Failure> {
        self.confirm("setting up hosts", summary)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.record.begin(&self.site.hosts, &self.args.only, self.args.sudo)
    }

    /// Carries out a phase. A phase that can lock homing out is proved before the next.
    fn carry_out(&mut self, mut phase: ChangePhase, lost: &mut Lost) -> usize {
        let of_ssh = phase.name == Area::Ssh.name();
        phase.guard = of_ssh.then(guard);
        if may_cut(&phase) {
            return self.mtu(&phase, lost);
        }
        let fetched = self.bring_packages(&phase, lost);
        let steps = self.carry_out_one(&mut phase, lost);
        if let Some(fetched) = fetched {
            self.print_message(&format!("{}: {}", phase.name, fetched.line()));
            self.fetched.push((phase.name.clone(), fetched));
        }
        if of_ssh {
            let hosts: Vec<String> = phase.steps.keys().filter(|host| !lost.has(host)).cloned().collect();
            let out = self.prove_login(&hosts, &|host| self.take_back(host, &phase) && self.fire(host));
            lost.fail(&phase.name, out);
            self.executor.anew();
        }
        steps
    }

    fn cut_off(&self, phases: &[ChangePhase]) -> HostFailures {
        self.without_packages(phases)
    }

    fn volumes_due(&self, seen: &AllSeen) -> Vec<SiteVolume> {
        self.due_volumes(seen)
    }

    fn volumes_refused(&self, due: &[SiteVolume], disks_first: bool) -> HostFailures {
        let mut refused = if disks_first { Vec::new() } else { self.dangerous_volumes(due) };
        refused.extend(self.other_volumes(due));
        refused
    }

    fn make_volumes(&mut self, due: &[SiteVolume]) -> HostFailures {
        self.make_due_volumes(due)
    }
}

impl UpSession {
    pub fn set_up(&mut self) -> Result<i32, Failure> {
        let begun = Instant::now();
        let (site, areas) = (self.site.clone(), self.areas()?);
        if self.args.dry_run {
            let plan = set_up_plan(&site, &areas, self)?;
            return self.print_plan(&plan);
        }
        let mut came = set_up(&site, &areas, self)?;
        if self.record.open && areas.contains(&Area::Slurm) {
            came.failed.extend(self.prove_slurm(&came));
        }
        if came.failed.is_empty() && self.record.open {
            self.record.end()?;
        }
        self.conclude(&areas, &came, begun)
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

    /// Queries hosts. A host where the user is not root counts as one that does not answer.
    pub fn look_as_root(&self, question: &FactQuery, hosts: &[String]) -> AllSeen {
        let mut seen = observe(&self.executor, hosts, &FactQuery { lead: self.lead.clone(), ..question.clone() });
        for there in seen.values_mut() {
            let uid = there.as_ref().map_or(0, |there| there.uid);
            if uid != 0 {
                *there =
                    Err(format!("you log in as user {uid}, but root is needed: --sudo, or HOMING_SSH='ssh -l root'"));
            }
        }
        name_off(&mut seen, &switched::all());
        seen
    }

    /// Carries out a phase on the hosts that still take part. Returns the number of steps on hosts without a failure.
    pub fn carry_out_one(&self, phase: &mut ChangePhase, lost: &mut Lost) -> usize {
        lost.admit(phase);
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

    /// Sets the MTU on all hosts of the phase, or on none. Returns the number of steps that are done.
    fn mtu(&self, phase: &ChangePhase, lost: &mut Lost) -> usize {
        self.print_message(&phase.start_line());
        let out: NodeSet = phase.steps.keys().filter(|host| lost.has(host)).cloned().collect();
        let all =
            if out.is_empty() { self.set_mtu(phase) } else { Err(format!("{out} failed earlier and is left out")) };
        match all {
            Ok(()) => {
                self.print_message(&phase.line());
                phase.steps.values().map(Vec::len).sum()
            }
            Err(why) => {
                self.print_message(&format!("  {why}"));
                lost.refused.extend(phase.steps.keys().map(|host| (host.clone(), format!("{}: {why}", phase.name))));
                0
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
            return crate::cmd::runs::to_stdout(&show::json(&self.site.hosts, came, &self.fetched, status))
                .map(|_| status);
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
        let cluster = self.args.cluster.words();
        let cluster = cluster.iter().map(|word| word.to_string_lossy().into_owned());
        let further: Vec<String> = cluster.chain(self.args.tree.words()).collect();
        let mut words = vec!["homing", "check", "-w", &hosts, "--only", &looked, "--deadline", CHECK_DEADLINE];
        words.extend(further.iter().map(String::as_str));
        self.print_message(&shlex::try_join(words.iter().copied()).unwrap_or_default());
        let parsed = CheckCommand::try_parse_from(&words[1..]).map_err(|e| Failure::system(e.to_string()))?;
        crate::cmd::check::run(parsed.args)
    }

    fn print_plan(&self, plan: &RoundPlan) -> Result<i32, Failure> {
        let status = if plan.failed.is_empty() { 0 } else { exit::SYSTEM };
        let text = if self.args.json { show::plan_json(&self.site.hosts, plan, status) } else { show::plan_text(plan) };
        crate::cmd::runs::to_stdout(&text).map(|_| status)
    }
}

/// Gives hosts that do not answer because homing has switched them off that reason, with the command that switches
/// them on.
fn name_off(seen: &mut AllSeen, known: &PowerFacts) {
    for (host, there) in seen.iter_mut().filter(|(_, there)| there.is_err()) {
        if let Some(reason) = switched::off_reason(known, host) {
            *there = Err(reason);
        }
    }
}
