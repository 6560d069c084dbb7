//! `homing cache`: packages for many hosts, of which each file is fetched once.

mod show;
mod transfer;

use crate::cmd::targets::Targets;
use crate::failure::{Failure, exit};
use homing_exec::{Options, Remote};
use homing_setup::cache::{self, PackageFile};
use homing_steps::{Call, Executor, SshExecutor};
use show::Came;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a host's answer: a line for each package.
const ANSWER: usize = 8 << 20;

/// Arguments of `homing cache`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Install packages of Debian's on many hosts; one host fetches each file, the others get it from there
    Install(Install),
}

/// Arguments of `homing cache install`.
///
/// Hosts tell which files they need. The first that can fetches all of them; they go
/// to the others over the connections that homing has, so that these need no way out.
/// Each host compares each file with its own signed index before it installs.
///
/// Exit status: 0: installed everywhere; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Install {
    #[command(flatten)]
    targets: Targets,
    /// Tell what would be fetched, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Say nothing but what failed
    #[arg(short, long)]
    quiet: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Packages, as apt-get install takes them
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<String>,
}

/// Runs it.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Install(args) => install(&args),
    }
}

/// Files by the host that wants them.
type Wanted = BTreeMap<String, BTreeSet<PackageFile>>;

/// What hosts want, and those that could not say.
fn ask(executor: &SshExecutor, hosts: &[String], packages: &[String]) -> (Wanted, Vec<(String, String)>) {
    let call = |host: &String| (host.clone(), Call::Script(cache::wanted(packages)));
    let said = executor.run(&hosts.iter().map(call).collect::<Vec<_>>());
    let (mut wanted, mut failed) = (Wanted::new(), Vec::new());
    for (host, said) in hosts.iter().zip(said) {
        match said.and_then(|said| cache::files(&said)) {
            Ok(files) => drop(wanted.insert(host.clone(), files)),
            Err(why) => failed.push((host.clone(), why)),
        }
    }
    (wanted, failed)
}

fn install(args: &Install) -> Result<i32, Failure> {
    let odd = |name: &&String| name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace);
    if let Some(odd) = args.packages.iter().find(odd) {
        return Err(Failure::usage(format!("{odd:?} can be no package")));
    }
    let hosts = args.targets.hosts()?;
    let options = Options { keep: ANSWER, ..args.targets.options()? };
    let executor = SshExecutor { remote: Remote::new(options), sudo: args.sudo };
    let (mut wanted, failed) = ask(&executor, &hosts, &args.packages);
    let mut came = Came { failed, packages: args.packages.clone(), ..Came::default() };
    let (files, odd) = cache::union(&wanted);
    odd.iter().for_each(|(host, _)| drop(wanted.remove(host)));
    came.failed.extend(odd);
    wanted.retain(|host, files| !files.is_empty() || !came.has.insert(host.clone()));
    came.asked = wanted.values().flatten().map(|file| file.size).sum();
    came.files = files.iter().map(|file| (file.name.clone(), file.size)).collect();
    if !args.dry_run && !files.is_empty() {
        act(&executor, args, &wanted, &files, &mut came)?;
    } else {
        came.wants = wanted.into_keys().collect();
    }
    let status = if came.failed.is_empty() { 0 } else { exit::SYSTEM };
    if args.json {
        return crate::cmd::runs::to_stdout(&show::json(&hosts, &came, status)).map(|_| status);
    }
    if !args.quiet {
        crate::cmd::runs::to_stdout(&show::text(&came))?;
    }
    if status == 0 { Ok(0) } else { Err(Failure::system(show::failures(&came))) }
}

/// Fetches on the first host that can, and installs on all.
fn act(
    executor: &SshExecutor,
    args: &Install,
    wanted: &Wanted,
    files: &[PackageFile],
    came: &mut Came,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| Failure::system(format!("making a folder for packages: {e}")))?;
    // One that has all that it wants may still have the way out that the others lack.
    let mut whys = Vec::new();
    for host in wanted.keys().chain(&came.has) {
        if !args.quiet && !args.json {
            eprintln!("{host} fetches {} files", files.len());
        }
        match transfer::fetch(executor, host, files, folder.path()) {
            Ok(()) => {
                came.fetcher = Some(host.clone());
                break;
            }
            Err(why) => whys.push((host.clone(), why)),
        }
    }
    if came.fetcher.is_none() {
        came.failed.extend(whys);
        return Ok(());
    }
    let mut groups: BTreeMap<&BTreeSet<PackageFile>, Vec<&String>> = BTreeMap::new();
    wanted.iter().for_each(|(host, files)| groups.entry(files).or_default().push(host));
    for (files, hosts) in groups {
        for (host, said) in transfer::install(executor, &hosts, files, folder.path(), &args.packages)? {
            match said {
                Ok(()) => drop(came.installed.insert(host)),
                Err(why) => came.failed.push((host, why)),
            }
        }
    }
    Ok(())
}
