//! `homing cache`: installs packages on many hosts, and fetches each file once.

mod update;

use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use crate::cmd::tree::TreeArgs;
use crate::consent::Consent;
use homing_exec::{Options, Remote};
use homing_model::text::shown_lines;
use homing_model::{Failure, NodeSet, alike, exit};
use homing_relay::{
    DeliveryRequest, Fetch, Fetched, PackageReport, Packages, Unbrought, bring, lacking, query_packages, say_what,
};
use homing_setup::cache::{self, MissingPackageAction, Purpose};
use homing_steps::SshExecutor;

/// The most bytes of a host's answer, which has a line for each package.
const ANSWER: usize = 8 << 20;

/// Arguments of `homing cache`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Install packages of Debian on many hosts; one host fetches each file, and the others copy it from there
    Install(Install),
    /// Fetch the indexes of packages anew on many hosts; one host fetches each
    Update(update::Update),
}

/// Options that all of these commands have.
#[derive(clap::Args)]
struct Manner {
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Print only failures
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tree: TreeArgs,
}

impl Manner {
    fn executor(&self, targets: &Targets) -> Result<SshExecutor, Failure> {
        let options = Options { keep: ANSWER, ..self.tree.of(targets.options()?) };
        Ok(SshExecutor { remote: Remote::new(options), sudo: self.sudo })
    }

    fn print_message(&self, text: &str) {
        if !self.quiet && !self.json {
            eprintln!("{}", shown_lines(text));
        }
    }
}

/// Arguments of `homing cache install`.
///
/// Hosts list the files that they need. The first that can fetches all of them; they go
/// to the others over the connections that homing has, so that these need no way out.
/// Each host compares each file with its own signed index before it installs.
///
/// Exit status: 0: installed everywhere; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Install {
    #[command(flatten)]
    targets: Targets,
    /// List files that would be fetched, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    manner: Manner,
    /// Packages, as apt-get install takes them
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<String>,
}

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Install(args) => install(&args),
        Verb::Update(args) => update::update(&args),
    }
}

/// Requests consent to a change of hosts.
fn confirm(consent: Consent, hosts: &[String], action: &str) -> Result<(), Failure> {
    let hosts: NodeSet = hosts.iter().cloned().collect();
    consent.confirm(&format!("changing {hosts}"), &format!("{}: {action}", alike::label(&hosts)))
}

fn install(args: &Install) -> Result<i32, Failure> {
    let odd = |name: &&String| name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace);
    if let Some(odd) = args.packages.iter().find(odd) {
        return Err(Failure::usage(format!("{odd:?} is not a valid package name")));
    }
    let hosts = args.targets.hosts()?;
    if !args.dry_run {
        confirm(args.consent, &hosts, &format!("install {}", args.packages.join(" ")))?;
    }
    let executor = args.manner.executor(&args.targets)?;
    let packages: Packages = hosts.iter().map(|host| (host.clone(), args.packages.clone())).collect();
    let (mut wanted, failed) = if args.dry_run {
        let (wanted, failed, _) = say_what(&executor, &packages, Purpose::Install, |_| MissingPackageAction::Fail);
        (wanted, failed)
    } else {
        query_packages(&executor, &packages, Purpose::Install, &[], &|text| args.manner.print_message(text))
            .map_err(Failure::system)?
    };
    let mut came = PackageReport { failed, packages: args.packages.clone(), ..PackageReport::default() };
    let (files, odd) = cache::union(&wanted);
    odd.iter().for_each(|(host, _)| drop(wanted.remove(host)));
    came.failed.extend(odd);
    wanted.retain(|host, files| !files.is_empty() || !came.has.insert(host.clone()));
    came.fetched = Fetched::of(&files, &wanted);
    if args.dry_run || files.is_empty() {
        came.wants = wanted.into_keys().collect();
        return concluded(&hosts, &came, &args.manner);
    }
    let (fetch, script) = (Fetch::packages(&files), cache::came(&args.packages));
    let fetchers = wanted.keys().chain(&came.has).cloned().collect();
    let load = DeliveryRequest { wanted: &wanted, fetchers, fetch: &fetch, script: &script };
    match bring(&executor, &load, &|text| args.manner.print_message(text)) {
        Ok((by, gone)) => {
            came.fetched.by = Some(by);
            came.take(gone.confirmed(|hosts| lacking(&executor, &packages, hosts)));
        }
        Err(Unbrought::Nobody(whys)) => came.failed.extend(whys),
        Err(Unbrought::Here(failure)) => return Err(failure),
    }
    concluded(&hosts, &came, &args.manner)
}

/// Prints the result; returns the exit status.
fn concluded(hosts: &[String], came: &PackageReport, manner: &Manner) -> Result<i32, Failure> {
    let status = if came.failed.is_empty() { 0 } else { exit::SYSTEM };
    if manner.json {
        return to_stdout(&came.json(hosts, status)).map(|_| status);
    }
    if !manner.quiet {
        to_stdout(&came.text())?;
    }
    if status == 0 { Ok(0) } else { Err(Failure::system(came.failures())) }
}
