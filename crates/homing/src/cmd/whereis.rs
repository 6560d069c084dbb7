//! `homing where`: which hosts hold the bytes of files.

use crate::cluster::Cluster;
use crate::failure::{Failure, exit};
use homing_locate::{HostNames, Locator};
use homing_model::units;
use homing_model::{FileLayout, RawText};
use homing_mounts::{Bounded, Looking, silence};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `homing where`.
#[derive(clap::Args)]
pub struct Args {
    /// Each extent of each file
    #[arg(short, long)]
    extents: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Read paths from FILE too, one a line (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    /// Paths in --files-from end with NUL
    #[arg(short = '0', long)]
    null: bool,
    /// Files looked at below each directory
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    limit: usize,
    /// A file whose file system is silent for so long is told as such
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    fs_timeout: u32,
    /// Files and directories
    #[arg(required_unless_present = "files_from")]
    paths: Vec<PathBuf>,
}

/// Prints where files lie.
pub fn run(args: Args) -> Result<i32, Failure> {
    let locator = Locator::new().map_err(Failure::system)?.with_own(Cluster::load(None)?.locators());
    let mut paths = args.paths.clone();
    if let Some(file) = &args.files_from {
        paths.extend(listed(file, args.null)?);
    }
    let mut files = locate_all(&locator, paths, args.limit, Duration::from_secs(args.fs_timeout.into()));
    name_hosts(&mut files);
    let printed = if args.json { as_json(&files) } else { as_text(&files, args.extents) };
    match printed {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::system(format!("cannot write to standard output: {e}")));
        }
        _ => {}
    }
    let homeless: Vec<&FileLayout> = files.iter().filter(|f| f.reason.is_some()).collect();
    for file in homeless.iter().take(20) {
        eprintln!("homing: {}: {}", file.path.display(), file.reason.as_deref().unwrap_or(""));
    }
    if homeless.len() > 20 {
        eprintln!("homing: and {} more", homeless.len() - 20);
    }
    Ok(if homeless.is_empty() { 0 } else { exit::SYSTEM })
}

fn listed(file: &PathBuf, null: bool) -> Result<Vec<PathBuf>, Failure> {
    let text = if file.as_os_str() == "-" {
        io::stdin().lock().split(0xff).next().transpose().map(Option::unwrap_or_default)
    } else {
        std::fs::read(file)
    };
    let text = text.map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
    let end = if null { 0 } else { b'\n' };
    let names = text.split(|b| *b == end).filter(|n| !n.is_empty());
    Ok(names.map(|n| RawText(n.to_vec()).to_path()).collect())
}

/// Each path, and whether it is a directory; those whose file system is silent by themselves.
fn answering(paths: Vec<PathBuf>, patience: Duration) -> Bounded<PathBuf, (), (PathBuf, bool)> {
    Bounded::new(paths.into_iter(), patience, || {
        Box::new(|path: PathBuf, looking: &Looking<()>| {
            looking.begins((), &path);
            let is_dir = path.is_dir();
            (path, is_dir)
        })
    })
}

fn unanswered(path: &Path, patience: Duration) -> FileLayout {
    FileLayout {
        path: path.into(),
        size: 0,
        volume: String::new(),
        extents: Vec::new(),
        reason: Some(silence(path, patience)),
        server_path: None,
    }
}

/// Files and directories in the order of the arguments.
fn locate_all(locator: &Locator, paths: Vec<PathBuf>, limit: usize, patience: Duration) -> Vec<FileLayout> {
    let (mut found, mut pending) = (Vec::new(), Vec::new());
    for path in answering(paths, patience) {
        let path = match path {
            Ok((path, false)) => {
                pending.push(path);
                continue;
            }
            Ok((path, true)) => path,
            Err(silent) => {
                found.extend(locator.locate_all(&std::mem::take(&mut pending)));
                found.push(unanswered(&silent.path, patience));
                continue;
            }
        };
        found.extend(locator.locate_all(&std::mem::take(&mut pending)));
        let tree = locator.locate_tree(&path, limit);
        if tree.truncated {
            eprintln!("homing: {}: only the first {limit} files were looked at (--limit)", path.display());
        }
        found.extend(tree.files);
    }
    found.extend(locator.locate_all(&pending));
    found
}

/// Addresses become the names by which people know their hosts.
fn name_hosts(files: &mut [FileLayout]) {
    let names = HostNames::default();
    let replicas = files.iter().flat_map(|f| &f.extents).flat_map(|e| &e.replicas);
    names.learn(&replicas.map(|r| r.host.clone()).collect());
    for replica in files.iter_mut().flat_map(|f| &mut f.extents).flat_map(|e| &mut e.replicas) {
        replica.host = names.of(&replica.host);
    }
}

fn sums(files: &[FileLayout]) -> BTreeMap<String, (u64, u64)> {
    let mut sum: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for file in files {
        for (host, bytes) in file.bytes_per_host() {
            let entry = sum.entry(host).or_default();
            *entry = (entry.0 + 1, entry.1 + bytes);
        }
    }
    sum
}

/// Files with their extents, and the sum of each host.
#[derive(Serialize)]
struct Told<'a> {
    files: &'a [FileLayout],
    hosts: BTreeMap<String, serde_json::Value>,
}

fn as_json(files: &[FileLayout]) -> io::Result<()> {
    let hosts = sums(files).into_iter().map(|(h, (n, b))| (h, json!({"files": n, "bytes": b}))).collect();
    // One call of the system a line or a kilobyte, as standard output is buffered, would take longer than the files.
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    serde_json::to_writer(&mut out, &Told { files, hosts })?;
    out.write_all(b"\n")?;
    out.flush()
}

fn as_text(files: &[FileLayout], extents: bool) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for file in files {
        let hosts: Vec<String> = file.bytes_per_host().into_keys().collect();
        let place = if hosts.is_empty() { "-".to_string() } else { hosts.join(",") };
        writeln!(out, "{:>12}  {:<24} {}", file.size, place, file.path.display())?;
        for extent in file.extents.iter().filter(|_| extents) {
            let hosts: Vec<&str> = extent.replicas.iter().map(|r| r.host.as_str()).collect();
            writeln!(out, "{:>12}  {:<24}   {} bytes from {}", "", hosts.join(","), extent.length, extent.offset)?;
        }
    }
    let total: u64 = files.iter().map(|f| f.size).sum();
    writeln!(out, "\n{}, {}", units::count(files.len() as u64, "file"), units::bytes(total))?;
    for (host, (count, bytes)) in sums(files) {
        let share = if total > 0 { bytes as f64 * 100.0 / total as f64 } else { 0.0 };
        let (count, bytes) = (units::count(count, "file"), units::bytes(bytes));
        writeln!(out, "{host:<24} {count:>14}  {bytes:>10}  {share:5.1} %")?;
    }
    out.flush()
}
