//! `homing make`: GNU make decides, the hosts of the cluster do the work.
//!
//! homing starts make with a library that replaces each program of a recipe by a stub. The stub hands the recipe over
//! to this process by a socket. No feature of make's own language is used for that: docs/make-hook.md has the
//! reasons.

mod book;
mod hook;
pub mod on;
mod part;
pub mod stub;
mod words;

use crate::cluster::{BatchHosts, Cluster, ClusterArgs};
use crate::cmd::evidence::tell_run;
use crate::cmd::gateway;
use crate::cmd::tree::width;
use crate::failure::{Failure, exit};
use crate::switched;
use book::BuildRecorder;
use homing_launch::{HostPlan, WIDTH};
use homing_locate::Finder;
use homing_make::{Build, BuildSession, Evidence};
use homing_model::alike;
use homing_os::folder::NamedFile;
use hook::Hook;
use rustix::process::{PidfdFlags, Signal};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use words::own_first;

/// Arguments of `homing make`.
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Make's -j is the number of recipes at once over all hosts (default: 1).\n\
                  All other options are make's: -h, --help, --trace, --version."
)]
pub struct Args {
    /// Hosts, as a node set (default: those of cluster.toml, else those that hold the folder's files)
    #[arg(long, value_name = "NODESET")]
    hosts: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// With more than N hosts, connect to a few of them, which connect to the others by ssh; 0: connect to all from
    /// here
    #[arg(long, default_value_t = WIDTH, value_name = "N", value_parser = width)]
    tree: usize,
    /// Write where and when each recipe ran, for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE")]
    trace_file: Option<PathBuf>,
    /// Run the whole command on HOST, a member of the cluster, in the same folder
    #[arg(long, value_name = "HOST")]
    gateway: Option<String>,
    /// Treat the folders as the same on all hosts, even if no network file system shows it
    #[arg(long)]
    assume_shared: bool,
    /// The make to run
    #[arg(long, value_name = "PROGRAM", default_value = "make")]
    program: OsString,
    /// Print nothing at the end
    #[arg(long)]
    no_evidence: bool,
    /// Let hosts read their caches, to measure the effect of fences
    #[arg(long, hide = true)]
    no_fence: bool,
    /// Arguments for make
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "MAKE_ARGUMENTS")]
    make: Vec<OsString>,
}

/// Runs make; returns its exit status.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(host) = &args.gateway {
        let words = gateway::without_gateway(std::env::args_os().skip(1).collect(), 0);
        return gateway::run(host, &words);
    }
    let began = Instant::now();
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("cannot read the current folder: {e}")))?;
    let root = root_of(&words::folder(&args.make, &cwd));
    let cluster = args.cluster.load()?;
    let batch = if args.hosts.is_none() && !args.cluster.is_lab() { BatchHosts::from_env()? } else { None };
    let plans = match batch {
        Some(hosts) => hosts.plans(cluster)?,
        None => plans(args.hosts.as_deref(), cluster, &root)?,
    };
    let trace = args.trace_file.as_deref().map(trace_file).transpose()?;
    let folder = private_folder()?;
    let socket = folder.path().join("make");
    let hook = match Hook::install(folder.path(), &args.program)? {
        Ok(hook) => hook,
        Err(why) => {
            eprintln!("homing: {why}: all recipes run here");
            return leave_as(run_make(&args, None)?);
        }
    };
    let (book, listener) = BuildRecorder::open(&cwd);
    let (tree, assume_shared, fenced) = (args.tree, args.assume_shared, !args.no_fence);
    let (locators, meter) = (cluster.locators(), cluster.meter());
    let build = Build { root, plans, tree, assume_shared, fenced, locators, meter };
    let session = BuildSession::start(&socket, build, listener).map_err(Failure::system)?;
    book.begun(session.asker());
    let status = run_make(&args, Some((&hook, &socket)));
    let evidence = session.end();
    let closed = book.close(status.as_ref().map_or(exit::USAGE, |status| exit_of(*status)));
    print_evidence(&args, &evidence, &closed.path, began.elapsed(), trace)?;
    if let Some(run) = closed.run.filter(|_| !args.no_evidence) {
        tell_run(&run);
    }
    leave_as(status?)
}

/// The most files of the folder that are checked to learn which hosts hold it.
const SAMPLE: usize = 64;

/// Returns the hosts of a build.
fn plans(hosts: Option<&str>, cluster: &Cluster, root: &Path) -> Result<Vec<HostPlan>, Failure> {
    cluster.plans(on(host_names(hosts, cluster, root)?)?)
}

/// Removes hosts that are switched off: a build is seldom longer than a host takes to boot.
fn on(names: Vec<String>) -> Result<Vec<String>, Failure> {
    let known = switched::all();
    let (off, on): (Vec<String>, Vec<String>) = names.into_iter().partition(|host| known.off_s(host).is_some());
    if off.is_empty() {
        return Ok(on);
    }
    let off = alike::label(&off.into_iter().collect());
    if on.is_empty() {
        return Err(Failure::system(format!("{off}: switched off")).hint(format!("homing power on {off}")));
    }
    eprintln!("homing: {off}: switched off and not used: homing power on {off}");
    Ok(on)
}

/// Returns the names of the hosts. The location of the folder counts only if no hosts are named.
fn host_names(hosts: Option<&str>, cluster: &Cluster, root: &Path) -> Result<Vec<String>, Failure> {
    if hosts.is_some() || cluster.has_hosts() {
        return cluster.hosts(hosts);
    }
    let (looked, root) = (vec![root.to_path_buf()], root.to_path_buf());
    let own = cluster.locators();
    let finder = move || Finder::with_own(own);
    let look = move || finder().folder(&root, SAMPLE).shared.into_keys().collect();
    homing_mounts::patiently(looked, homing_mounts::FS_TIMEOUT, look).map_err(Failure::system)
}

/// Returns the folder that is watched: the whole checkout, since recipes write outside their own folder, too.
fn root_of(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|p| p.join(".git").exists()).unwrap_or(cwd).to_path_buf()
}

fn private_folder() -> Result<tempfile::TempDir, Failure> {
    use std::os::unix::fs::PermissionsExt;
    let parent = homing_os::folder::place().map_err(Failure::system)?;
    let private = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .prefix("homing-make")
        .permissions(private)
        .tempdir_in(&parent)
        .map_err(|e| Failure::system(format!("cannot make a private folder in {}: {e}", parent.display())))
}

/// Runs make. The terminal sends its signals to make directly, and this process must stay until make has ended.
/// Without the library, make runs alone.
fn run_make(args: &Args, served: Option<(&Hook, &Path)>) -> Result<ExitStatus, Failure> {
    let interrupted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted);
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]).map_err(Failure::system)?;
    let mut command = Command::new(&args.program);
    command.args(&args.make);
    if let Some((hook, socket)) = served {
        hook.serve(&mut command, socket)?;
    }
    let mut child = command.spawn().map_err(|e| hook::not_started(&args.program, &e))?;
    // A signal to this process alone ends make too, which ends its recipes.
    let ended = signals.handle();
    let pid = rustix::process::Pid::from_child(&child);
    if let Ok(make) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        let _ = homing_os::threads::begin(move || {
            for signal in signals.forever().filter_map(Signal::from_named_raw) {
                let _ = rustix::process::pidfd_send_signal(&make, signal);
            }
        });
    }
    let waiting = |e| Failure::system(format!("waiting for {}: {e}", args.program.to_string_lossy()));
    let status = child.wait().map_err(waiting);
    ended.close();
    status
}

/// Checks the trace file before make starts: a misspelt folder must not cost a build.
fn trace_file(path: &Path) -> Result<NamedFile, Failure> {
    NamedFile::open(path).map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))
}

fn print_evidence(
    args: &Args,
    evidence: &Evidence,
    path: &[String],
    took: Duration,
    trace: Option<NamedFile>,
) -> Result<(), Failure> {
    if let Some(file) = trace {
        let json = homing_make::trace(evidence).to_string();
        file.write(json.as_bytes()).map_err(|e| Failure::system(format!("cannot write the trace: {e}")))?;
    }
    let ran = !evidence.ran.is_empty() || !evidence.here.is_empty();
    if ran && !args.no_evidence {
        eprint!("{}", evidence.text(took.as_micros() as u64));
        path.iter().for_each(|line| eprintln!("  {line}"));
    }
    Ok(())
}

fn leave_as(status: ExitStatus) -> Result<i32, Failure> {
    if let Some(signal) = status.signal() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    Ok(exit_of(status))
}

/// Returns the exit status as a shell reports it.
fn exit_of(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(128)
}
