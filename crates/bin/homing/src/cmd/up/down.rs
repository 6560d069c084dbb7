//! `homing down`: drains a host and takes it out of the cluster.

use super::volumes::lacking_places;
use super::{UpSession, record_of, token};
use crate::cluster::ClusterArgs;
use crate::cmd::volume::args::One;
use crate::cmd::volume::change::change;
use crate::cmd::volume::planner;
use crate::consent::Consent;
use homing_model::{Failure, NodeSet};
use homing_setup::{ClusterSite, drain, held, remains, remains_question};
use homing_steps::{Call, Executor};
use homing_volume::{Danger, VolumeRecord, folder};
use std::time::{Duration, Instant};

/// The journal of homing up on a host.
const JOURNAL: &str = "/var/lib/homing/up";
/// The time between two queries for jobs that still run on the host.
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `homing down`.
///
/// Slurm starts no more jobs on the host, and homing waits for its jobs. Volumes move
/// their files to other hosts. Then homing removes the lines that name the host from
/// the files of the other hosts, and undoes the changes of `homing up` on the host. If
/// the host does not answer, the other hosts are changed all the same. homing shows
/// all steps and prompts for a confirmation. The same command continues after a crash.
///
/// Exit status: 0: removed; 254: some steps failed; 255: the request is wrong.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Host to remove
    host: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Wait this long for Slurm's jobs on the host (default: until they have ended)
    #[arg(long, value_name = "TIME", value_parser = |text: &str| homing_batch::parse_seconds("--wait", text, 0..=u64::MAX))]
    wait: Option<u64>,
    /// Allow fewer copies than the volumes have now
    #[arg(long)]
    allow_losing_copies: bool,
    /// Show the steps, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Do not print the steps
    #[arg(short, long)]
    quiet: bool,
    /// Time limit of one area on one host
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = crate::cmd::times::step_limit)]
    timeout: u64,
}

impl Args {
    fn losing(&self) -> Vec<Danger> {
        self.allow_losing_copies.then_some(Danger::LastCopy).into_iter().collect()
    }

    fn as_up(&self) -> super::Args {
        super::Args {
            file: self.cluster.file().map(Into::into),
            cluster: self.cluster.clone(),
            no_check: true,
            dry_run: self.dry_run,
            consent: self.consent,
            sudo: self.sudo,
            quiet: self.quiet,
            timeout: self.timeout,
            ..super::Args::default()
        }
    }
}

fn takes_in(host: &str) -> String {
    format!("scontrol update NodeName={host} State=RESUME makes Slurm use the host again")
}

/// Returns the failure for jobs that would be lost. Only their users can decide where else they may run.
fn queued(host: &str, jobs: &[String]) -> Failure {
    let failure =
        Failure::system(format!("jobs {} are queued for {host} by name, and Slurm would end them", jobs.join(" ")));
    let elsewhere =
        format!("scontrol update JobId={} ReqNodeList= lets the job run elsewhere, scancel ends it", jobs[0]);
    failure.hint(format!("{elsewhere}; then run the same command again; {}", takes_in(host)))
}

/// Takes a host out of the cluster.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    let mut site = cluster.site_with_volumes()?;
    args.cluster.fit_to_lab(&mut site)?;
    let up = args.as_up();
    let record = record_of(up.file.as_deref(), &site)?;
    let host = &args.host;
    if !site.hosts.contains(host) && !record.hosts.contains(host) {
        return Err(Failure::usage(format!("{host} is not a host of the cluster file")).hint("homing hosts"));
    }
    if let Some(why) = site.needed(host) {
        return Err(Failure::usage(format!("{host} cannot be removed: {why}")));
    }
    let mut rest = site.without(host);
    let lead = (!args.dry_run).then(token);
    let mut session = UpSession { leaving: Some(host.clone()), ..UpSession::new(up, site, record, lead) };
    session.check_leaving(&args, &rest)?;
    let summary = session.summary_of_leaving(host, &rest)?;
    if args.dry_run {
        return session.show_leaving(&args, &summary, rest);
    }
    session.confirm(&format!("taking {host} out of the cluster"), &summary)?;
    session.drain(&args)?;
    let answers = session.answers(host);
    session.leave_volumes(&args, answers)?;
    take_copies(&mut rest)?;
    let lines = session.site.lines_without(host, &rest);
    session.site = rest;
    let status = session.set_up()?;
    let back = match answers {
        true => session.take_host_back(host, false).and_then(|()| session.nothing_remains(host)),
        false => {
            session.print_message(&format!("note: {host} does not answer; the changes of homing up on it stay"));
            Ok(())
        }
    };
    session.record.leave(host, &session.site.hosts)?;
    let hosts: NodeSet = session.site.hosts.iter().cloned().collect();
    println!(
        "removed {host}; now remove it from the cluster file, or homing up will add it again: hosts = \"{hosts}\""
    );
    lines.iter().for_each(|line| println!("  {line}"));
    back.map(|()| status)
}

/// Returns the record of a volume, if this machine has one.
fn record_of_volume(name: &str) -> Result<Option<VolumeRecord>, Failure> {
    VolumeRecord::load(&folder(), name)
        .map_err(|e| Failure::system(format!("reading the record of volume {name}: {e}")))
}

/// Takes over the number of copies that volumes have now: a host may have left with some of them.
fn take_copies(rest: &mut ClusterSite) -> Result<(), Failure> {
    for volume in &mut rest.volumes {
        if let Some(known) = record_of_volume(&volume.spec.name)? {
            volume.spec.copies = known.spec.copies;
        }
    }
    Ok(())
}

impl UpSession {
    /// Refuses a departure that could not be completed: the cluster file has a fault without the host, a volume
    /// differs from the file, or its bytes have nowhere to go. Nothing is changed by then.
    fn check_leaving(&self, args: &Args, rest: &ClusterSite) -> Result<(), Failure> {
        let cannot =
            |why: String| Failure::usage(format!("{} cannot be removed, and nothing was changed: {why}", args.host));
        let faults = rest.faults();
        if !faults.is_empty() {
            return Err(cannot(format!("faults of the cluster file without this host: {}", faults.join("; "))));
        }
        let wanted = rest.volumes.iter().map(|volume| &volume.spec);
        for wanted in wanted.filter(|spec| !spec.places.is_empty()) {
            let Some(mut known) = record_of_volume(&wanted.name)? else { continue };
            let has_bytes = known.spec.places.iter().any(|place| place.host == args.host);
            let mut left = known.spec.clone();
            left.places.retain(|place| place.host != args.host);
            lacking_places(&left, wanted)?;
            if has_bytes {
                planner(&self.way())?.allowing(args.losing()).drain_host(&mut known, &args.host)?;
            }
        }
        Ok(())
    }

    /// Returns one line for each change, without a query of any host.
    fn summary_of_leaving(&self, host: &str, rest: &ClusterSite) -> Result<String, Failure> {
        let mut lines = vec![format!("{host} leaves the cluster:")];
        if let Some(controller) = self.site.up.slurm.as_ref().and_then(|_| self.site.controller()) {
            lines.push(format!("  Slurm on {controller} starts no more jobs on it, and homing waits for its jobs"));
        }
        for volume in &self.site.volumes {
            let name = &volume.spec.name;
            let known = record_of_volume(name)?;
            if known.is_some_and(|known| known.spec.places.iter().any(|place| place.host == host)) {
                lines.push(format!("  its files of volume {name} move to other hosts"));
            }
        }
        let rest: NodeSet = rest.hosts.iter().cloned().collect();
        lines.push(format!("  {rest}: lines that name it are removed"));
        lines.push(format!("  {host}: changes of homing up are undone"));
        Ok(lines.join("\n") + "\n")
    }

    /// Prints the plan of each change, as far as it can be made before the first is carried out.
    fn show_leaving(mut self, args: &Args, summary: &str, rest: ClusterSite) -> Result<i32, Failure> {
        crate::cmd::runs::to_stdout(summary)?;
        self.leave_volumes(args, false)?;
        let back = self.back_text(&args.host);
        self.site = rest;
        let status = self.set_up()?;
        crate::cmd::runs::to_stdout(&back).map(|_| status)
    }

    /// Drains the host in Slurm, and waits until its jobs have ended. Fails if a queued job names the host.
    fn drain(&self, args: &Args) -> Result<(), Failure> {
        let Some(controller) = self.site.up.slurm.as_ref().and_then(|_| self.site.controller()) else { return Ok(()) };
        let (host, begun) = (&args.host, Instant::now());
        let mut last = String::new();
        loop {
            let call = (controller.to_string(), Call::Script(drain(host)));
            let said = self.executor.run(&[call]).remove(0);
            let said =
                said.map_err(|why| Failure::system(format!("draining {host} in Slurm on {controller}: {why}")))?;
            let held = held(&said);
            if !held.queued.is_empty() {
                return Err(queued(host, &held.queued));
            }
            let jobs = held.run.join(" ");
            if jobs.is_empty() {
                return Ok(());
            }
            if args.wait.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds)) {
                let failure = Failure::system(format!("jobs {jobs} still run on {host}, which Slurm has drained"));
                return Err(failure.hint(format!("run the same command again to wait longer; {}", takes_in(host))));
            }
            if jobs != last {
                self.print_message(&format!("slurm: {host} is drained; waiting for its jobs: {jobs}"));
                last = jobs;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Checks that no change of homing up remains on the host. Changes remain if the host has lost its journal.
    fn nothing_remains(&self, host: &str) -> Result<(), Failure> {
        let seen = self.look_as_root(&remains_question(), &[host.to_string()]);
        let Some(Ok(there)) = seen.get(host) else { return Ok(()) };
        let left = remains(there);
        if left.is_empty() {
            return Ok(());
        }
        let what = left.join("; ");
        let failure = format!(
            "removed {host} from the other hosts' files; could not restore {host}: its journal {JOURNAL} is missing, \
             and {what}"
        );
        Err(Failure::system(failure).hint("remove these changes by hand"))
    }

    /// Moves the bytes of volumes to other hosts, and unmounts the volumes on the host.
    fn leave_volumes(&self, args: &Args, answers: bool) -> Result<(), Failure> {
        let way = self.way();
        for volume in &self.site.volumes {
            let name = &volume.spec.name;
            let one = One::named(name);
            let Some(known) = record_of_volume(name)? else { continue };
            if known.spec.places.iter().any(|place| place.host == args.host) {
                self.print_message(&format!("volumes: moving the files of {name} off {}", args.host));
                change(&way, &one, args.losing(), |drive, record| drive.drain_host(record, &args.host))?;
            }
            if answers && known.spec.clients.contains(&args.host) {
                self.take_host_back(&args.host, true)?;
                self.print_message(&format!("volumes: unmounting {name} on {}", args.host));
                change(&way, &one, Vec::new(), |drive, record| drive.unmount(record, Some(vec![args.host.clone()])))?;
            }
        }
        Ok(())
    }
}
