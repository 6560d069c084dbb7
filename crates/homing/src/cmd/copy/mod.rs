//! `homing push` and `homing pull`: rsync to and from many hosts over the kept connections.

mod plan;
mod template;

use crate::cmd::exec::verdict;
use crate::cmd::targets::Targets;
use crate::failure::Failure;
use homing_exec::{Command, Event, Outcome, Remote, Stream, What};
use homing_model::NodeSet;
use homing_model::alike::label;
use plan::{Request, base};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

/// Arguments of `homing push` and `homing pull`.
///
/// Owner, mode and times are kept, as far as the user may. What is transferred
/// is checked by rsync on arrival. Exit status as `homing exec`'s.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// push: where to, there (default: the folder of the first file);
    /// pull: the folder here (default: this one)
    #[arg(long, value_name = "PATH", verbatim_doc_comment)]
    dest: Option<String>,
    /// Compare files by content instead of size and time
    #[arg(short, long)]
    checksum: bool,
    /// Compare both sides by content afterwards; a difference is a failure
    #[arg(long)]
    verify: bool,
    /// Remove in folders at the destination what the source does not have
    #[arg(long)]
    delete: bool,
    /// Say which files changed
    #[arg(short, long)]
    verbose: bool,
    /// Do not say which hosts failed
    #[arg(short, long)]
    quiet: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Show what would be copied, and copy nothing
    #[arg(long)]
    dry_run: bool,
    /// Files and folders; a folder is copied with all that lies in it
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// Arguments of `homing push`.
///
/// Owner, mode and times are kept, as far as the user may. What is transferred
/// is checked by rsync on arrival. Exit status as `homing exec`'s.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PushArgs {
    #[command(flatten)]
    args: Args,
    /// PATH is a template of which each host gets its own file, as --dest: {host}, {index} (from 1)
    /// and {addr.NETWORK}, of [host.NAME] addresses in the cluster file, become its values
    #[arg(long, requires = "dest", conflicts_with = "delete", verbatim_doc_comment)]
    template: bool,
}

/// What came of one host.
#[derive(Clone, Debug)]
struct Copied {
    outcome: Outcome,
    /// Files, folders and links that were changed.
    changed: u64,
    seconds: f64,
    text: String,
}

/// To the hosts.
pub fn push(PushArgs { args, template }: PushArgs) -> Result<i32, Failure> {
    let mut sources = Vec::new();
    for path in &args.paths {
        if std::fs::symlink_metadata(path).is_err() {
            return Err(Failure::usage(format!("cannot copy {path:?}: there is no such file here")));
        }
        let whole = std::path::absolute(path).map_err(|e| Failure::usage(format!("{path:?}: {e}")))?;
        let text = whole.to_str().ok_or_else(|| Failure::usage(format!("{path:?} is no UTF-8")))?;
        // With a slash at the end, rsync would copy what lies in it instead of the folder.
        sources.push(if text == "/" { text } else { text.trim_end_matches('/') }.to_string());
    }
    let parent = Path::new(&sources[0]).parent().map_or("/".into(), |p| p.display().to_string());
    // The slash keeps a folder that is missing there from becoming a file of its name.
    let dest = args.dest.clone().unwrap_or(if parent == "/" { parent } else { parent + "/" });
    let mut request = request(&args, true, sources, dest);
    let hosts = args.targets.hosts()?;
    let made = if template { Some(expanded(&args, &hosts, &mut request)?) } else { None };
    let remote = Remote::new(args.targets.options()?);
    let copied = transfer(&args, &remote, &hosts, &request, &HashMap::new())?;
    drop(made);
    conclude(&args, &hosts, &copied)
}

/// Puts a file of each host's own in the place of the template. Files of equal length and time may differ.
fn expanded(args: &Args, hosts: &[String], request: &mut Request) -> Result<tempfile::TempDir, Failure> {
    let [one] = request.sources.as_slice() else {
        return Err(Failure::usage("--template takes one file").hint("homing push --template FILE --dest PATH"));
    };
    let site = args.targets.cluster().load()?.site()?;
    let (folder, own) = template::written(Path::new(one), hosts, &site)?;
    (request.own, request.checksum) = (own, true);
    Ok(folder)
}

/// From the hosts.
pub fn pull(args: Args) -> Result<i32, Failure> {
    let hosts = args.targets.hosts()?;
    if let Some(odd) = hosts.iter().find(|h| h.contains('/')) {
        return Err(Failure::usage(format!("{odd:?} cannot be part of a file's name")));
    }
    let dest = args.dest.clone().unwrap_or_else(|| ".".into());
    if !args.dry_run {
        std::fs::create_dir_all(&dest).map_err(|e| Failure::usage(format!("cannot make the folder {dest:?}: {e}")))?;
    }
    let dest = std::path::absolute(&dest).map_err(|e| Failure::usage(format!("{dest:?}: {e}")))?;
    let dest = dest.to_str().ok_or_else(|| Failure::usage("--dest is no UTF-8"))?.to_string();
    let remote = Remote::new(args.targets.options()?);
    let mut all: Vec<Option<Copied>> = vec![None; hosts.len()];
    for path in &args.paths {
        if matches!(base(path), "" | "." | "..") {
            return Err(Failure::usage(format!("{path:?} has no name that a host's could be added to")));
        }
        let folders = folders(&remote, &hosts, path);
        let source = path.trim_end_matches('/').to_string();
        let request = request(&args, false, vec![source], dest.clone());
        let copied = transfer(&args, &remote, &hosts, &request, &folders)?;
        all.iter_mut().zip(copied).for_each(|(all, one)| *all = Some(joined(all.take(), one)));
    }
    conclude(&args, &hosts, &all.into_iter().flatten().collect::<Vec<_>>())
}

fn request(args: &Args, push: bool, sources: Vec<String>, dest: String) -> Request {
    let Args { checksum, dry_run, delete, .. } = *args;
    Request { push, sources, own: HashMap::new(), dest, checksum, verify: false, dry_run, delete }
}

/// The hosts on which a path is a folder: rsync is told so by a slash.
fn folders(remote: &Remote, hosts: &[String], path: &str) -> HashMap<String, bool> {
    let test = remote.run(hosts, &Command::argv(["test", "-d", path]));
    test.map(|result| (result.host, result.outcome.is_ok())).collect()
}

fn transfer(
    args: &Args,
    remote: &Remote,
    hosts: &[String],
    request: &Request,
    folders: &HashMap<String, bool>,
) -> Result<Vec<Copied>, Failure> {
    let pass = |request: &Request| {
        let (request, folders) = (request.clone(), folders.clone());
        remote.stream_through(hosts, move |host, way| {
            let folder = folders.get(host).copied().unwrap_or(false);
            Command::argv(request.words(host, way, &[folder]))
        })
    };
    let mut copied = collected(args, hosts, pass(request), args.verbose || args.dry_run);
    if args.verify && !args.dry_run {
        let verify = Request { verify: true, ..request.clone() };
        for (host, (first, second)) in
            hosts.iter().zip(copied.iter_mut().zip(collected(args, hosts, pass(&verify), true)))
        {
            if first.outcome.is_ok() && second.outcome.is_ok() && second.changed > 0 {
                first.outcome = Outcome::Exited(1);
                eprintln!("homing: {host}: {} differ after the copy; were they changed meanwhile?", second.changed);
            } else if first.outcome.is_ok() {
                first.outcome = second.outcome;
            }
        }
    }
    Ok(copied)
}

fn collected(args: &Args, hosts: &[String], stream: Stream, show: bool) -> Vec<Copied> {
    let none = Copied { outcome: Outcome::Killed, changed: 0, seconds: 0.0, text: String::new() };
    let mut copied = vec![none; hosts.len()];
    let mut begun: Vec<[Vec<u8>; 2]> = vec![Default::default(); hosts.len()];
    for Event { host, what } in stream {
        let (which, bytes) = match what {
            What::Begun => continue,
            What::Stdout(bytes) => (0, bytes),
            What::Stderr(bytes) => (1, bytes),
            What::Done(outcome, elapsed) => {
                copied[host].outcome = told(&hosts[host], outcome);
                copied[host].seconds = elapsed.as_secs_f64();
                continue;
            }
        };
        let open = &mut begun[host][which];
        open.extend(bytes);
        while let Some(end) = open.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = open.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            match which {
                0 => {
                    copied[host].changed += 1;
                    if show && !args.json {
                        println!("{}: {line}", hosts[host]);
                    }
                }
                _ if args.json => copied[host].text += &(line + "\n"),
                _ => eprintln!("{}: {line}", hosts[host]),
            }
        }
    }
    copied
}

/// rsync passes on ssh's status, and a shell's for a program that is not there.
fn told(host: &str, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Exited(255) => Outcome::Lost(format!("host {host}: the connection was lost during the copy")),
        Outcome::Exited(127) => {
            Outcome::Unreachable(format!("host {host}: rsync is missing, here or there; install it"))
        }
        other => other,
    }
}

fn joined(before: Option<Copied>, one: Copied) -> Copied {
    let Some(before) = before else { return one };
    let outcome = if before.outcome.is_ok() { one.outcome } else { before.outcome };
    let (changed, seconds) = (before.changed + one.changed, before.seconds + one.seconds);
    Copied { outcome, changed, seconds, text: before.text + &one.text }
}

fn conclude(args: &Args, hosts: &[String], copied: &[Copied]) -> Result<i32, Failure> {
    let rows = || hosts.iter().zip(copied);
    let status = copied.iter().map(|c| verdict::code(&c.outcome, false)).max().unwrap_or(0);
    if args.json {
        let row = |(host, c): (&String, &Copied)| {
            let exit = if let Outcome::Exited(status) = c.outcome { Some(status) } else { None };
            json!({
                "host": host, "outcome": verdict::word(&c.outcome), "exit": exit, "changed": c.changed,
                "seconds": (c.seconds * 1e6).round() / 1e6, "stderr": c.text,
            })
        };
        println!("{}", json!({ "hosts": rows().map(row).collect::<Vec<_>>(), "exit": status }));
    } else if !args.quiet {
        let lines = verdict::lines(rows().map(|(h, c)| (h.as_str(), &c.outcome)));
        lines.iter().for_each(|line| eprintln!("homing: {line}"));
        let same: NodeSet =
            rows().filter(|(_, c)| c.outcome.is_ok() && c.changed == 0).map(|(h, _)| h.clone()).collect();
        if args.verbose && !same.is_empty() {
            println!("{}: nothing to change", label(&same));
        }
    }
    Ok(status)
}
