//! `homing down`: a host is drained and leaves the cluster.

use super::{Session, executor, record_of, token};
use crate::cluster::ClusterArgs;
use crate::cmd::volume::args::One;
use crate::cmd::volume::change::change;
use homing_model::{Failure, NodeSet};
use homing_setup::{drain, held, remains, remains_question};
use homing_steps::{Call, Executor, Lost};
use homing_volume::{Danger, Record, folder};
use std::time::{Duration, Instant};

/// What homing up has changed on a host.
const JOURNAL: &str = "/var/lib/homing/up";
/// Between two looks at what still runs on the host.
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `homing down`.
///
/// Slurm starts nothing more on the host, and what runs there is waited for. Volumes
/// move its bytes to other hosts. Then the others lose what names it, and what
/// homing up has changed on it goes back. A host that does not answer is taken out
/// of the others all the same. The same command goes on after a crash.
///
/// Exit status: 0: it is out; 254: not everything was done; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The host
    host: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Seconds to wait for jobs of Slurm on it (default: until they have ended)
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// Keep fewer copies than volumes have now
    #[arg(long)]
    allow_losing_copies: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Say nothing of the steps
    #[arg(short, long)]
    quiet: bool,
    /// Seconds for one area on one host
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    timeout: u64,
}

impl Args {
    fn as_up(&self) -> super::Args {
        super::Args {
            file: self.cluster.file().map(Into::into),
            cluster: self.cluster.clone(),
            no_check: true,
            sudo: self.sudo,
            quiet: self.quiet,
            timeout: self.timeout,
            ..super::Args::default()
        }
    }
}

fn takes_in(host: &str) -> String {
    format!("scontrol update NodeName={host} State=RESUME takes the host in again")
}

/// They would be lost: it is their users' to say where else they may run.
fn queued(host: &str, jobs: &[String]) -> Failure {
    let failure =
        Failure::system(format!("jobs {} are queued for {host} by name, and Slurm would end them", jobs.join(" ")));
    let elsewhere = format!("scontrol update JobId={} ReqNodeList= lets it run elsewhere, scancel ends it", jobs[0]);
    failure.hint(format!("{elsewhere}; then the same command once more; {}", takes_in(host)))
}

/// Takes a host out.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    let site = cluster.site_with_volumes()?;
    let up = args.as_up();
    let record = record_of(up.file.as_deref(), &site)?;
    let host = &args.host;
    if !site.hosts.contains(host) && !record.hosts.contains(host) {
        return Err(Failure::usage(format!("{host} is none of the hosts of the cluster file")).hint("homing hosts"));
    }
    if let Some(why) = site.needed(host) {
        return Err(Failure::usage(format!("{host} cannot go: {why}")));
    }
    let rest = site.without(host);
    let executor = executor(&up, &site);
    let mut session = Session { args: up, site, executor, record, lead: Some(token()) };
    session.drain(&args)?;
    let answers = session.answers(host);
    session.leave_volumes(&args, answers)?;
    session.site = rest;
    let status = session.set_up()?;
    let back = match answers {
        true => session.take_host_back(host, false).and_then(|()| session.nothing_remains(host)),
        false => {
            session.say(&format!("note: {host} does not answer; what homing up has changed on it stays there"));
            Ok(())
        }
    };
    session.record.leave(host)?;
    let hosts: NodeSet = session.site.hosts.iter().cloned().collect();
    println!("{host} is out; now take it out of the cluster file, or homing up takes it in again: hosts = \"{hosts}\"");
    back.map(|()| status)
}

impl Session {
    /// Slurm gives the host no more work, what runs there ends, and nothing in the queue names it.
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
                let failure = Failure::system(format!("jobs {jobs} still run on {host}, which Slurm gives no more"));
                return Err(failure.hint(format!("the same command goes on waiting; {}", takes_in(host))));
            }
            if jobs != last {
                self.say(&format!("slurm: {host} is drained; jobs that still run there: {jobs}"));
                last = jobs;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A host that has lost its journal keeps what homing up made there, and that is told.
    fn nothing_remains(&self, host: &str) -> Result<(), Failure> {
        let seen = self.look(&remains_question(), &[host.to_string()], &Lost::default());
        let Some(Ok(there)) = seen.get(host) else { return Ok(()) };
        let left = remains(there);
        if left.is_empty() {
            return Ok(());
        }
        let what = left.join("; ");
        let failure =
            format!("{host} is out of the others, and not as before: its journal {JOURNAL} is gone, and {what}");
        Err(Failure::system(failure).hint("take that away by hand"))
    }

    /// No byte of a volume is left there, and nothing is mounted.
    fn leave_volumes(&self, args: &Args, answers: bool) -> Result<(), Failure> {
        let way = self.way();
        let losing = || args.allow_losing_copies.then_some(Danger::LastCopy).into_iter().collect();
        for volume in &self.site.volumes {
            let name = &volume.spec.name;
            let one = One { name: name.clone(), hosts: None };
            let unread = |e| Failure::system(format!("reading the record of volume {name}: {e}"));
            let Some(known) = Record::load(&folder(), name).map_err(unread)? else { continue };
            if known.spec.places.iter().any(|place| place.host == args.host) {
                self.say(&format!("volumes: the bytes of {name} leave {}", args.host));
                change(&way, &one, losing(), |drive, record| drive.drain_host(record, &args.host))?;
            }
            if answers && known.spec.clients.contains(&args.host) {
                self.take_host_back(&args.host, true)?;
                self.say(&format!("volumes: {name} is unmounted on {}", args.host));
                change(&way, &one, Vec::new(), |drive, record| drive.unmount(record, Some(vec![args.host.clone()])))?;
            }
        }
        Ok(())
    }
}
