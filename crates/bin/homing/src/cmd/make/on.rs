//! `homing on`: runs one command on the host where it should end first. It serves builds without make: `CC="homing on
//! gcc"`, a launcher of CMake, ninja.
//!
//! Inside `homing make`, the coordinator of that build chooses the host. Elsewhere, the first command starts a
//! coordinator, as OpenSSH's ControlPersist does. It keeps the connections for later commands, and ends when none
//! arrives for a while.

use super::stub::{self, RecipeProgram};
use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use homing_launch::WIDTH;
use homing_make::{Build, BuildSession};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time in which a new coordinator must answer.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// The most that is shown of the messages of a coordinator that did not start, bytes.
const LONGEST_WORDS: u64 = 4 << 10;

/// Arguments of `homing on`.
#[derive(clap::Args)]
pub struct Args {
    /// Hosts, as a node set (default: $HOMING_HOSTS, those of cluster.toml, those that hold the folder's files)
    #[arg(short = 'w', long, value_name = "NODESET", env = "HOMING_HOSTS")]
    hosts: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Close connections after this time without a command
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = |text: &str| homing_batch::parse_seconds("--persist", text, 0..=u64::MAX))]
    persist: u64,
    /// Treat the folders as the same on all hosts, even if no network file system shows it
    #[arg(long)]
    assume_shared: bool,
    /// Be the coordinator behind this socket
    #[arg(long, hide = true, value_name = "SOCKET")]
    keep: Option<PathBuf>,
    /// The command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required_unless_present = "keep")]
    command: Vec<OsString>,
}

/// Runs the command; returns its exit status.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("cannot read the current folder: {e}")))?;
    let root = super::root_of(&cwd);
    if let Some(socket) = &args.keep {
        return keep(&args, socket, root);
    }
    let of_make = std::env::var_os(homing_make::hook::SOCKET).and_then(|socket| UnixStream::connect(socket).ok());
    let stream = match of_make {
        Some(stream) => stream,
        None => kept(&args, &root)?,
    };
    Ok(stub::hand_over(stream, RecipeProgram::of(args.command)))
}

/// Connects to the coordinator for these hosts and this checkout, and starts it if there is none.
fn kept(args: &Args, root: &Path) -> Result<UnixStream, Failure> {
    let folder = folder()?;
    let what = format!("{:?} {:?} {}", args.hosts, args.cluster, root.display());
    let hash: String = Sha256::digest(what.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect();
    let socket = folder.join(&hash);
    if let Ok(stream) = UnixStream::connect(&socket) {
        return Ok(stream);
    }
    // Of several commands at once, one starts the coordinator. The others wait for the lock.
    let lock = std::fs::File::create(folder.join(format!("{hash}.lock")))
        .map_err(|e| Failure::system(format!("cannot write into {}: {e}", folder.display())))?;
    let _ = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive);
    if let Ok(stream) = UnixStream::connect(&socket) {
        return Ok(stream);
    }
    // The coordinator would fail without a word: its caller must not wait for its output.
    super::plans(args.hosts.as_deref(), args.cluster.load()?, root)?;
    let _ = std::fs::remove_file(&socket);
    let words = tempfile::tempfile_in(&folder)
        .map_err(|e| Failure::system(format!("cannot make a file for the coordinator's messages: {e}")))?;
    let mut coordinator = start(args, &socket, root, &words)?;
    let began = Instant::now();
    while began.elapsed() < STARTS_WITHIN {
        if let Ok(stream) = UnixStream::connect(&socket) {
            return Ok(stream);
        }
        if coordinator.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err(not_begun(words));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(Failure::system(format!("no coordinator answers at {} within 10 s", socket.display()))
        .hint("run the same command again; or homing make --hosts 'n[1-4]', which shows its steps"))
}

/// Returns the failure of a coordinator that ended before it answered, in its own words.
fn not_begun(mut words: std::fs::File) -> Failure {
    use std::io::{Read, Seek};
    let mut text = Vec::new();
    let read = words.rewind().and_then(|()| words.take(LONGEST_WORDS).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text).trim().to_string();
    let text = text.strip_prefix("homing: ").unwrap_or(&text);
    match read {
        Ok(_) if !text.is_empty() => Failure::system(format!("the coordinator did not start: {text}")),
        _ => Failure::system("the coordinator ended before it answered, without a message"),
    }
}

fn start(args: &Args, socket: &Path, root: &Path, words: &std::fs::File) -> Result<Child, Failure> {
    let own = crate::programs::own_path()?;
    let mut command = Command::new(own);
    command.arg("on").arg("--keep").arg(socket).arg("--persist").arg(args.persist.to_string());
    if let Some(hosts) = &args.hosts {
        command.arg("--hosts").arg(hosts);
    }
    command.args(args.cluster.words());
    if args.assume_shared {
        command.arg("--assume-shared");
    }
    command.current_dir(root).env_remove(homing_make::hook::SOCKET).process_group(0);
    // The coordinator outlives this process, whose caller may wait for the end of these streams. Its messages go to a
    // file without a name.
    let words =
        words.try_clone().map_err(|e| Failure::system(format!("cannot pass on the coordinator's messages: {e}")))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(words);
    command.spawn().map_err(|e| Failure::system(format!("cannot start the coordinator: {e}")))
}

/// Returns a folder of the user that no other user can open.
fn folder() -> Result<PathBuf, Failure> {
    let uid = rustix::process::getuid().as_raw();
    let place = homing_os::folder::place().map_err(Failure::system)?;
    let name = format!("homing-on-{uid}");
    homing_os::folder::own(&place, &name, 0o700)
        .map_err(|e| Failure::system(format!("cannot make {}: {e}", place.join(&name).display())))
}

fn keep(args: &Args, socket: &Path, root: PathBuf) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    let plans = super::plans(args.hosts.as_deref(), cluster, &root)?;
    let (assume_shared, locators, meter) = (args.assume_shared, cluster.locators(), cluster.meter());
    let build = Build { root, plans, tree: WIDTH, assume_shared, fenced: true, locators, meter };
    let session = BuildSession::start(socket, build, Box::new(())).map_err(Failure::system)?;
    let (mut served, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(args.persist) {
        std::thread::sleep(Duration::from_millis(200));
        let ever = session.traffic.ever.load(Ordering::SeqCst);
        if ever != served || session.traffic.now.load(Ordering::SeqCst) > 0 {
            (served, since) = (ever, Instant::now());
        }
    }
    let _ = std::fs::remove_file(socket);
    session.end();
    Ok(0)
}
