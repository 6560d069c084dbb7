//! Lists the files that a host reads of a volume: those of its own bricks that are its share. The list is kept for as
//! long as the channel is open. When others need the volume, the rsync that another host has started to read them is
//! stopped.

use crate::ask::{ReplySender, SnapshotReply};
use crate::rsync;
use crate::run::{self, Reins};
use crate::sender::{Sender, guard};
use crate::split::{BrickTurn, HostFiles, Share, look_words};
use crate::tree::private;
use jiff::Timestamp;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The time between two looks at whether the rsync that reads may run. One that has just been started is stopped by
/// then.
const TICK: Duration = Duration::from_millis(500);
/// GlusterFS's own folder on a brick, whose links give each file one more name.
const OWN: &str = ".glusterfs";
/// The mode of a file that only points to another brick: the sticky bit alone (`DHT_LINKFILE_MODE` of GlusterFS's
/// dht-common.h).
const ELSEWHERE: u32 = 0o1000;
/// The shell script that removes the list when its maker has ended.
const GUARD: &str = "cat >/dev/null; rm -r \"$1\"";
/// Clocks of hosts differ. A file that is listed without need costs only a look.
const MARGIN: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// Reports the files, and keeps the list until the channel ends.
pub fn hold(share: &Share, reins: &Reins, send: ReplySender) -> Result<(), String> {
    let failed = |e: io::Error| format!("making a list of files to read: {e}");
    let list = List::new().map_err(failed)?;
    let mut found = HostFiles { list: list.path.clone(), files: 0, bytes: 0 };
    let mut out = BufWriter::new(&list.file);
    for turn in &share.turns {
        look(share, turn, reins, &mut out, &mut found)?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    send(SnapshotReply::Found(found)).map_err(failed)?;
    let (mut sender, mut ran) = (Sender::new(share.mark.clone()), true);
    loop {
        let may_run = !reins.are_held();
        if !may_run || !ran {
            sender.may_run(may_run);
        }
        ran = may_run;
        std::thread::sleep(TICK);
    }
}

/// A file that is removed when this process ends for any reason. It has a name, because rsync cannot open it by its
/// number in /proc: rsync follows no link there.
struct List {
    file: File,
    path: PathBuf,
    _guard: Child,
}

impl List {
    fn new() -> io::Result<List> {
        let folder = tempfile::Builder::new().prefix("homing-share.").tempdir()?;
        let path = folder.path().canonicalize()?.join("files");
        let file = private(&path)?;
        let guard = guard(GUARD, folder.path().as_os_str())?;
        let _ = folder.keep();
        Ok(List { file, path, _guard: guard })
    }
}

fn look(
    share: &Share,
    turn: &BrickTurn,
    reins: &Reins,
    out: &mut impl Write,
    found: &mut HostFiles,
) -> Result<(), String> {
    let brick = turn.brick.as_path();
    let failed = |e: io::Error| format!("listing files on the brick {}: {e}", brick.display());
    // A brick whose disk is not mounted is an empty folder.
    fs::metadata(brick.join(OWN)).map_err(failed)?;
    let folder = brick.join(share.below.as_path());
    if !folder.is_dir() {
        return Ok(());
    }
    let empty = tempfile::tempdir().map_err(failed)?;
    let patterns = patterns(&share.deal.exclude).map_err(failed)?;
    let mut command = run::rsync(look_words(&folder, empty.path()));
    command.stdin(patterns).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = run::start(&mut command, None, reins).map_err(failed)?;
    let said = running.child.stdout.take().map(BufReader::new);
    for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
        let line = line.map_err(failed)?;
        let Some(name) = line.strip_prefix(b"=") else { continue };
        let path = rsync::name(name);
        let Ok(meta) = fs::symlink_metadata(folder.join(path.as_path())) else { continue };
        if turn.is_ours(&path.0) && is_to_read(&meta, share.deal.since) {
            out.write_all(&path.0).and_then(|()| out.write_all(b"\0")).map_err(failed)?;
            (found.files, found.bytes) = (found.files + 1, found.bytes + meta.size());
        }
    }
    // The last copy handles files that could not be read, or have vanished (23, 24).
    match running.wait().map_err(failed)? {
        Some(0 | 23 | 24) => Ok(()),
        status => Err(format!("listing files on the brick {}: rsync ended with {status:?}", brick.display())),
    }
}

fn patterns(exclude: &[String]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    exclude.iter().try_for_each(|pattern| writeln!(file, "{pattern}"))?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

/// Whether it is a regular, non-empty file that has changed since. Files with several names are left to the last
/// copy, which sees all names.
fn is_to_read(meta: &Metadata, since: Option<Timestamp>) -> bool {
    // A program that sets a file's times back, such as tar, sets this one to the present.
    let changed = since.is_none_or(|since| meta.ctime() >= (since - MARGIN).as_second());
    meta.is_file() && meta.size() > 0 && meta.nlink() <= 2 && meta.mode() & 0o7777 != ELSEWHERE && changed
}

#[cfg(test)]
mod tests;
