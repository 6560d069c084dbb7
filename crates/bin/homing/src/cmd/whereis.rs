//! `homing where`: finds the hosts that hold the bytes of files.

use crate::cluster::Cluster;
use homing_locate::{Locator, locate_everything, name_hosts};
use homing_model::document::Document;
use homing_model::{Failure, FileLayout, RawText, exit, units};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `homing where`.
#[derive(clap::Args)]
pub struct Args {
    /// Show each extent of each file
    #[arg(short, long)]
    extents: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Read paths from FILE too, one a line (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    /// Paths in --files-from end with NUL
    #[arg(short = '0', long)]
    null: bool,
    /// Most files to look at below each directory
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    limit: usize,
    /// Report a file as silent after this time without an answer of its file system
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = crate::cmd::times::fs_timeout)]
    fs_timeout: Duration,
    /// Files and directories
    #[arg(required_unless_present = "files_from")]
    paths: Vec<PathBuf>,
}

/// Prints the locations of files.
pub fn run(args: Args) -> Result<i32, Failure> {
    let patience = args.fs_timeout;
    let locator = Locator::new().map_err(Failure::system)?.with_own(Cluster::load(None)?.locators()).patient(patience);
    let mut paths = args.paths.clone();
    if let Some(file) = &args.files_from {
        paths.extend(listed(file, args.null)?);
    }
    let mut cut = |path: &Path| {
        eprintln!("homing: {}: only the first {} files were read (--limit)", path.display(), args.limit);
    };
    let mut files = locate_everything(&locator, paths, args.limit, patience, &mut cut);
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
    Ok(status(&files))
}

/// Returns the exit status. A name that is wrong is a mistake of the request, as an input file that is not there is one
/// of `homing run`.
fn status(files: &[FileLayout]) -> i32 {
    match files.iter().any(|file| file.missing) {
        true => exit::USAGE,
        false if files.iter().all(|file| file.reason.is_none()) => 0,
        false => exit::SYSTEM,
    }
}

fn listed(file: &PathBuf, null: bool) -> Result<Vec<PathBuf>, Failure> {
    let text = if file.as_os_str() == "-" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(file)
    };
    let text = text.map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
    let end = if null { 0 } else { b'\n' };
    let names = text.split(|b| *b == end).filter(|n| !n.is_empty());
    Ok(names.map(|n| RawText(n.to_vec()).to_path()).collect())
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
struct WhereisJson<'a> {
    files: &'a [FileLayout],
    hosts: BTreeMap<String, serde_json::Value>,
}

fn as_json(files: &[FileLayout]) -> io::Result<()> {
    let hosts = sums(files).into_iter().map(|(h, (n, b))| (h, json!({"files": n, "bytes": b}))).collect();
    // Standard output is line-buffered: a system call for each line or kilobyte would take longer than finding the
    // files.
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    serde_json::to_writer(&mut out, &Document::new(WhereisJson { files, hosts }))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_comes_from_what_the_file_system_answered_and_not_from_words() {
        let at = Path::new("/nowhere/nofile");
        let missing = Locator::default().locate(at);
        let words = FileLayout { missing: false, ..missing.clone() };
        let placed = FileLayout { reason: None, ..words.clone() };
        assert!(missing.missing && missing.reason.is_some(), "{missing:?}");
        assert_eq!(status(&[placed.clone(), missing]), exit::USAGE);
        assert_eq!(status(&[words, placed.clone()]), exit::SYSTEM);
        assert_eq!(status(&[placed]), 0);
    }
}
