//! A host's end of a channel: it reads an order, carries it out, and answers.

use crate::ask::{Control, Expire, Later, ReplySender, Restored, SnapshotReply, SnapshotRequest, Staging};
use crate::destination::{Presence, RestoreEntry};
use crate::doubt::ClockReading;
use crate::restore::{LocalRecipient, Recipient};
use crate::run::Reins;
use crate::split::CopyPart;
use crate::vault::{Refused, Vault};
use crate::{freeze, gate, look, make, remove, repository, restic, restore, scratch, share, verify, walk};
use homing_model::RawText;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cell::RefCell;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, Sender};

/// The argument that starts this end.
pub const WORD: &str = "snapshot-host";

/// Serves the one order of a channel. When the channel ends, this process ends with the rsync that it has started.
///
/// # Errors
/// The error of reading or writing the channel.
pub fn serve(mut orders: impl BufRead + Send + 'static, out: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    orders.read_line(&mut line)?;
    let ask: SnapshotRequest = serde_json::from_str(&line)?;
    // The transport of this program sets a strict umask, but users read vaults. A restore keeps the umask of its
    // caller.
    let is_restore = |order: &repository::RepositoryRequest| matches!(order.act, repository::Act::Restore(_));
    let restores = matches!(&ask, SnapshotRequest::Restore(_) | SnapshotRequest::Examine(_, true))
        || matches!(&ask, SnapshotRequest::Restic(order) if is_restore(order));
    if restores {
        // A terminal sends its signals to this process, too. It ignores them: the channel ends as well, and then this
        // process removes its private folders.
        // SAFETY: no handler is installed.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
    } else {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    }
    let mut say = |answer: SnapshotReply| {
        serde_json::to_writer(&mut *out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    if let SnapshotRequest::Freeze(order) = &ask {
        // The process outlives its channel: the copy has to be removed.
        return freeze::hold(order, orders, &mut say).and_then(|()| say(SnapshotReply::Done));
    }
    if let SnapshotRequest::Examine(folder, stages) = &ask {
        return examine(folder, *stages, orders, &mut say);
    }
    let reins = Reins::default();
    let theirs = reins.clone();
    let ((parts, told_parts), (recipient, told_recipient)) = (mpsc::channel(), mpsc::channel());
    homing_os::threads::begin(move || heed(orders, &theirs, &parts, &recipient))?;
    let replies = Replies { parts: told_parts, recipient: told_recipient };
    let last = match answer(ask, &reins, &replies, &mut say) {
        Ok(last) => last,
        Err(Refused::Busy(why)) => SnapshotReply::Busy(why),
        Err(Refused::Absent(why)) => SnapshotReply::Absent(why),
        Err(Refused::Advised(why, hint)) => SnapshotReply::Advised(why, hint),
        Err(Refused::Failed(why)) => SnapshotReply::Failed(why),
    };
    say(last)
}

/// The messages that arrive while an order is carried out.
struct Replies {
    parts: Receiver<Vec<CopyPart>>,
    /// Of the destination of a restore.
    recipient: Receiver<Control>,
}

impl Replies {
    /// Requests from the other end the state of a restore's destination under these names.
    fn judge(&self, entries: Vec<RestoreEntry>, say: ReplySender) -> Result<Vec<Presence>, String> {
        match self.request(SnapshotReply::Examine(entries), say)? {
            Control::Present(present) => Ok(present),
            other => Err(format!("{other:?} is not an answer about the destination")),
        }
    }

    /// Requests something of the destination from the other end.
    fn request(&self, what: SnapshotReply, say: ReplySender) -> Result<Control, String> {
        say(what).map_err(|e| format!("sending the request to the destination: {e}"))?;
        self.recipient.recv().map_err(|_| "the destination did not answer".into())
    }
}

/// The destination of a restore on another host. The other end of the channel answers for it.
struct RemoteRecipient<'a> {
    replies: &'a Replies,
    say: ReplySender<'a>,
}

impl Recipient for RemoteRecipient<'_> {
    fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, String> {
        self.replies.judge(entries, self.say)
    }

    fn stage(&mut self) -> Result<Staging, String> {
        match self.replies.request(SnapshotReply::Stage, self.say)? {
            Control::Staged(staging) => Ok(staging),
            other => Err(format!("{other:?} is not an answer with a folder for the restored files")),
        }
    }

    fn place(&mut self, done: Restored) -> Result<Restored, String> {
        match self.replies.request(SnapshotReply::Place(Box::new(done)), self.say)? {
            Control::Placed(done) => Ok(*done),
            other => Err(format!("{other:?} is not an answer at the end of a restore")),
        }
    }
}

/// Follows the controls while the order is carried out; when they end, the process ends.
fn heed(orders: impl BufRead, reins: &Reins, parts: &Sender<Vec<CopyPart>>, recipient: &Sender<Control>) {
    for line in orders.lines().map_while(Result::ok) {
        match serde_json::from_str::<Control>(&line) {
            Ok(Control::Parts(told)) => drop(parts.send(told)),
            Ok(reply @ (Control::Present(_) | Control::Staged(_) | Control::Placed(_))) => drop(recipient.send(reply)),
            Ok(control) => reins.heed(&control),
            Err(_) => {}
        }
    }
    reins.end();
    std::process::exit(1);
}

fn answer(ask: SnapshotRequest, reins: &Reins, replies: &Replies, say: ReplySender) -> Result<SnapshotReply, Refused> {
    let zone = TimeZone::system();
    if let Some(vault) = ask.site().and_then(|site| Vault::open(site).ok()) {
        scratch::sweep(&vault);
    }
    if let Some(site) = ask.site().filter(|_| !ask.makes_vault()) {
        Vault::must_exist(site)?;
    }
    let unsaid = |e: io::Error| Refused::Failed(format!("sending the answer: {e}"));
    match ask {
        SnapshotRequest::Look(paths) => Ok(SnapshotReply::Seen(look::look(&paths))),
        SnapshotRequest::Lease(watch) => {
            Ok(gate::hold(watch, reins, say).map(|()| SnapshotReply::Done).map_err(unsaid)?)
        }
        SnapshotRequest::Share(order) => Ok(share::hold(&order, reins, say).map(|()| SnapshotReply::Done)?),
        SnapshotRequest::Freeze(_) | SnapshotRequest::Examine(..) => {
            Err(Refused::Failed("this request needs its own channel".into()))
        }
        SnapshotRequest::Make(order) => {
            let made = make::make(&order, reins, &replies.parts, say)?;
            Ok(SnapshotReply::Made(Box::new(made)))
        }
        SnapshotRequest::Keep(site) => {
            let _held = Vault::make(&site)?.lock()?;
            say(SnapshotReply::Kept).map_err(unsaid)?;
            // The lock is held until the channel ends, and this process with it.
            loop {
                std::thread::park();
            }
        }
        SnapshotRequest::Restic(order) => restic::serve(&order, reins, &zone, say),
        SnapshotRequest::Prove(site, proof) => Ok(Vault::open(&site)?.prove(proof).map(|()| SnapshotReply::Done)?),
        SnapshotRequest::List(site) => Ok(SnapshotReply::Listed(Box::new(Vault::open(&site)?.list(&zone)))),
        SnapshotRequest::Expire(order) => expire(&order, &zone),
        SnapshotRequest::Where(site, when) => {
            let vault = Vault::open(&site)?;
            let image = vault.pick(&when, &zone)?.name;
            let tree = vault.folder(&image).join("tree");
            walk::folder(&tree).map_err(|e| format!("{}: {e}", tree.display()))?;
            Ok(SnapshotReply::Where(image, tree))
        }
        SnapshotRequest::Cat(site, when, path) => {
            let image = Vault::open(&site)?;
            let name = image.pick(&when, &zone)?.name;
            restore::cat(&image.folder(&name).join("tree"), &path, &mut |piece| say(SnapshotReply::Piece(piece)))?;
            Ok(SnapshotReply::Done)
        }
        SnapshotRequest::Diff(site, when, below, later) => {
            let vault = Vault::open(&site)?;
            let image = vault.pick(&when, &zone)?;
            match later {
                Later::Image(when) => {
                    let mut each = |change| say(SnapshotReply::Change(change));
                    restore::between(&vault, &image, &vault.pick(&when, &zone)?, &below, &mut each)?;
                }
                Later::Now(at, ssh) => {
                    let say = RefCell::new(say);
                    let mut each = |change| (*say.borrow_mut())(SnapshotReply::Change(change));
                    let mut judge = |entries| replies.judge(entries, &mut **say.borrow_mut());
                    let both = restore::Replies { judge: &mut judge, each: &mut each };
                    restore::from_now(&vault, &image, &below, &at, ssh.as_deref(), reins, both)?;
                }
            }
            Ok(SnapshotReply::Done)
        }
        SnapshotRequest::Restore(order) => {
            let mut far = RemoteRecipient { replies, say };
            Ok(SnapshotReply::Restored(restore::restore(&order, &mut far, reins, &zone)?))
        }
        SnapshotRequest::Verify(site, when, files) => {
            Ok(SnapshotReply::Verified(verify::verify(&site, &when, files, reins, &zone)?))
        }
    }
}

fn expire(order: &Expire, zone: &TimeZone) -> Result<SnapshotReply, Refused> {
    let readings = ClockReading::of_hosts(&order.clocks, Timestamp::now());
    let vault = Vault::make(&order.site)?;
    let _held = vault.lock()?;
    let failed = |e: io::Error| format!("{}: {e}", vault.path.display());
    let gone = remove::expire(&vault, &readings, order.trust, zone).map_err(failed)?;
    remove::begin(&vault).map_err(failed)?;
    Ok(SnapshotReply::Expired(gone))
}

/// Serves another host that restores into a folder of this one, until the channel ends.
///
/// # Errors
/// The error of answering.
fn examine(
    folder: &RawText,
    stages: bool,
    orders: impl BufRead,
    say: &mut dyn FnMut(SnapshotReply) -> io::Result<()>,
) -> io::Result<()> {
    // The end of the channel ends the loop, and the private folders are removed.
    let mut recipient = match LocalRecipient::open(folder.as_path(), stages, true, &Reins::default()) {
        Ok(recipient) => recipient,
        Err(why) => return say(SnapshotReply::Failed(why)),
    };
    for line in orders.lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(Control::Entries(entries)) => recipient.examine(entries).map(SnapshotReply::Present),
            Ok(Control::Stage) => recipient.stage().map(SnapshotReply::Staged),
            Ok(Control::Place(done)) => recipient.place(*done).map(|done| SnapshotReply::Placed(Box::new(done))),
            _ => continue,
        };
        say(answer.unwrap_or_else(SnapshotReply::Failed))?;
    }
    Ok(())
}
