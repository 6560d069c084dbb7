//! `homing push` and `homing pull`: run rsync to and from many hosts, over the kept connections.

mod output;

use crate::cmd::targets::Targets;
use crate::cmd::tree::TreeArgs;
use homing_exec::{Command, Errand, PoolEvents, Remote};
use homing_model::Failure;
use homing_model::text::shown;
use homing_relay::{CopyResult, HostLine, Passed, RsyncRequest, base, copies, note, same_name};
use output::conclude;
use std::collections::HashMap;
use std::path::Path;

/// Arguments of `homing push` and `homing pull`.
///
/// Keeps owner, mode and times, as far as the user may. rsync checks transferred files
/// on arrival. The exit status is that of `homing exec`.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// push: destination on the hosts (default: for each path its folder here); pull: destination here (default: the
    /// current folder)
    #[arg(long, value_name = "PATH", verbatim_doc_comment)]
    dest: Option<String>,
    /// Compare files by content instead of size and time
    #[arg(short, long)]
    checksum: bool,
    /// Compare both sides by content afterwards; a difference is a failure
    #[arg(long)]
    verify: bool,
    /// Remove files in folders at the destination that the source does not have
    #[arg(long)]
    delete: bool,
    /// Print the files that changed
    #[arg(short, long)]
    verbose: bool,
    /// Do not print which hosts failed
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List files that would be copied, and copy nothing
    #[arg(long)]
    dry_run: bool,
    /// Files and folders; a folder is copied with its whole content
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// Arguments of `homing push`.
///
/// Keeps owner, mode and times, as far as the user may. rsync checks transferred files
/// on arrival. The exit status is that of `homing exec`.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PushArgs {
    #[command(flatten)]
    args: Args,
    /// PATH is a template: each host gets its own file at --dest. {host}, {index} (from 1) and
    /// {addr.NETWORK}, of [host.NAME] addresses in the cluster file, become the host's values
    #[arg(long, requires = "dest", conflicts_with = "delete", verbatim_doc_comment)]
    template: bool,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Copies files to the hosts.
pub fn push(PushArgs { args, template, tree }: PushArgs) -> Result<i32, Failure> {
    let parts = parts(sources(&args.paths)?, args.dest.as_deref())?;
    let hosts = args.targets.hosts()?;
    let remote = Remote::new(tree.of(args.targets.options()?));
    let mut all = None;
    for (dest, sources) in parts {
        let mut request = request(&args, true, sources, dest);
        let made = if template { Some(expanded(&args, &hosts, &mut request)?) } else { None };
        let errand = Passed::Copy(request.clone());
        let stream = match request.can_be_passed_on() {
            true => remote.stream_tree(&hosts, errand, note()),
            false => errand.begin(&remote, &hosts),
        };
        let mut copied = collected(&args, &hosts, stream, args.verbose || args.dry_run);
        // This machine compares all hosts itself, because a leader is not queried for its results.
        verified(&args, &remote, &hosts, &request, &HashMap::new(), &mut copied);
        drop(made);
        all = Some(joined(all, copied));
    }
    conclude(&args, &hosts, &all.unwrap_or_default(), true)
}

/// Returns the absolute paths to push, each once.
fn sources(paths: &[String]) -> Result<Vec<String>, Failure> {
    let mut sources: Vec<String> = Vec::new();
    for path in paths {
        if std::fs::symlink_metadata(path).is_err() {
            return Err(Failure::usage(format!("cannot copy {path:?}: no such file on this machine")));
        }
        let whole = std::path::absolute(path).map_err(|e| Failure::usage(format!("{path:?}: {e}")))?;
        let text = whole.to_str().ok_or_else(|| Failure::usage(format!("{path:?} is not UTF-8")))?;
        if base(text) == ".." {
            return Err(Failure::usage(format!("{path:?} has no file name to use on the hosts"))
                .hint("name the folder by its own path"));
        }
        // With a slash at the end, rsync would copy the content of the folder instead of the folder.
        let text = if text == "/" { text } else { text.trim_end_matches('/') };
        if !sources.iter().any(|other| other == text) {
            sources.push(text.to_string());
        }
    }
    Ok(sources)
}

/// Returns the sources of each destination: `dest` for all, or else each source's own folder.
fn parts(sources: Vec<String>, dest: Option<&str>) -> Result<Vec<(String, Vec<String>)>, Failure> {
    if let Some(dest) = dest {
        one_each(&sources, "--dest", "a separate push for each, with its own --dest")?;
        return Ok(vec![(dest.into(), sources)]);
    }
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for source in sources {
        let parent = Path::new(&source).parent().map_or("/".into(), |p| p.display().to_string());
        // Without the slash, a missing folder there would become a file of its name.
        let dest = if parent == "/" { parent } else { parent + "/" };
        match parts.iter_mut().find(|(other, _)| *other == dest) {
            Some((_, of)) => of.push(source),
            None => parts.push((dest, vec![source])),
        }
    }
    Ok(parts)
}

/// Refuses two sources of which one would replace the other.
fn one_each(sources: &[String], place: &str, hint: &str) -> Result<(), Failure> {
    let Some([one, other]) = same_name(sources) else { return Ok(()) };
    Err(Failure::usage(format!("{one:?} and {other:?} have the same name in {place}, and one would replace the other"))
        .hint(hint))
}

fn joined(all: Option<Vec<CopyResult>>, more: Vec<CopyResult>) -> Vec<CopyResult> {
    match all {
        Some(all) => all.into_iter().zip(more).map(|(before, one)| before.joined(one)).collect(),
        None => more,
    }
}

/// Replaces the template by a file for each host. Files of equal size and time may differ, so contents are compared.
fn expanded(args: &Args, hosts: &[String], request: &mut RsyncRequest) -> Result<tempfile::TempDir, Failure> {
    let [one] = request.sources.as_slice() else {
        return Err(Failure::usage("--template takes one file").hint("homing push --template FILE --dest PATH"));
    };
    let site = args.targets.cluster().load()?.site()?;
    let (folder, own) = homing_relay::written(Path::new(one), hosts, &site)?;
    (request.own, request.checksum) = (own, true);
    Ok(folder)
}

/// Copies files from the hosts.
pub fn pull(args: Args) -> Result<i32, Failure> {
    let hosts = args.targets.hosts()?;
    if let Some(odd) = hosts.iter().find(|h| h.contains('/')) {
        return Err(Failure::usage(format!("{odd:?} cannot be part of a file's name")));
    }
    if let Some(path) = args.paths.iter().find(|path| matches!(base(path), "" | "." | "..")) {
        return Err(Failure::usage(format!("{path:?} has no file name to which a host name can be added")));
    }
    one_each(&args.paths, "the local folder", "a separate pull for each, with its own --dest")?;
    let dest = args.dest.clone().unwrap_or_else(|| ".".into());
    if !args.dry_run {
        homing_os::folder::make_folders(Path::new(&dest))
            .map_err(|e| Failure::system(format!("cannot make the folder {dest:?}: {e}")))?;
    }
    let dest = std::path::absolute(&dest).map_err(|e| Failure::usage(format!("{dest:?}: {e}")))?;
    let dest = dest.to_str().ok_or_else(|| Failure::usage("--dest is not UTF-8"))?.to_string();
    let remote = Remote::new(args.targets.options()?);
    let mut all = None;
    for path in &args.paths {
        let folders = folders(&remote, &hosts, path);
        let source = path.trim_end_matches('/').to_string();
        let request = request(&args, false, vec![source], dest.clone());
        let stream = copies(&request, &remote, &hosts, &folders);
        let mut copied = collected(&args, &hosts, stream, args.verbose || args.dry_run);
        verified(&args, &remote, &hosts, &request, &folders, &mut copied);
        all = Some(joined(all, copied));
    }
    conclude(&args, &hosts, &all.unwrap_or_default(), false)
}

fn request(args: &Args, push: bool, sources: Vec<String>, dest: String) -> RsyncRequest {
    let Args { checksum, dry_run, delete, .. } = *args;
    RsyncRequest { push, sources, own: HashMap::new(), dest, checksum, verify: false, dry_run, delete }
}

/// Returns the hosts on which a path is a folder. rsync needs a slash behind such a path.
fn folders(remote: &Remote, hosts: &[String], path: &str) -> HashMap<String, bool> {
    let test = remote.run(hosts, &Command::argv(["test", "-d", path]));
    test.map(|result| (result.host, result.outcome.is_ok())).collect()
}

/// Compares both sides by content, if an option requests it.
fn verified(
    args: &Args,
    remote: &Remote,
    hosts: &[String],
    request: &RsyncRequest,
    folders: &HashMap<String, bool>,
    copied: &mut [CopyResult],
) {
    if !args.verify || args.dry_run {
        return;
    }
    let verify = RsyncRequest { verify: true, ..request.clone() };
    let found = collected(args, hosts, copies(&verify, remote, hosts, folders), true);
    for (host, (first, second)) in hosts.iter().zip(copied.iter_mut().zip(found)) {
        if let Some(differ) = first.compared(second) {
            eprintln!("homing: {host}: {differ} differ after the copy; they may have changed during it");
        }
    }
}

fn collected(args: &Args, hosts: &[String], stream: PoolEvents, show: bool) -> Vec<CopyResult> {
    homing_relay::collected(hosts, stream, &|host, said| match said {
        HostLine::Changed(line) if show && !args.json => println!("{host}: {line}"),
        HostLine::Wrong(line) if !args.json => eprintln!("{host}: {}", shown(line)),
        _ => {}
    })
}
