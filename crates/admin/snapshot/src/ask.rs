//! Requests to a host and its answers: lines of JSON over a channel.

use crate::destination::{EntryKind, Presence, RestoreEntry};
use crate::doubt::HostClock;
use crate::flaws::Compared;
use crate::image::{Image, When};
use crate::instant::{InstantMethod, InstantPolicy};
use crate::manifest::EntryChange;
use crate::repository::RepositoryRequest;
use crate::rsync::HostFolder;
use crate::space::{Space, space};
use crate::split::{CopyPart, Deal, HostFiles, PartResult, Share};
use homing_model::RawText;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A vault and the bank that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultLocation {
    /// The bank's folder.
    pub bank: PathBuf,
    /// The vault's name.
    pub vault: String,
}

/// A request for a new image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// Its vault.
    pub site: VaultLocation,
    /// The host and folder with the bytes; `None`: the vault's own configuration names it.
    pub source: Option<HostFolder>,
    /// The folder that is read on that host if it is an instant copy of the source.
    pub instant: Option<RawText>,
    /// The mark of the rsync process that reads on another host.
    pub mark: Option<String>,
    /// The bank's host, for the summary.
    pub server: String,
    /// As in [`crate::section::Section`], like the fields below.
    pub exclude: Vec<String>,
    /// Whether to leave out other file systems.
    pub xdev: Option<bool>,
    /// The image's name.
    pub image: Option<String>,
    /// When the image expires if no rule matches.
    pub expire: Option<String>,
    /// Rules for when the image expires.
    pub rules: Vec<String>,
    /// ssh and its options.
    pub ssh: Option<String>,
    /// Whether several hosts may read: the bank's host then requests parts.
    pub split: bool,
    /// Clocks that the bank's host compares its own with before anything expires.
    pub clocks: Vec<HostClock>,
}

/// The folder of the leases of the source's file server, as its host sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The folder.
    pub folder: PathBuf,
    /// The server's name.
    pub server: String,
    /// The most tasks at once, of all users, if the administrator set a limit.
    pub limit: Option<u32>,
}

/// The things that a copy watches while it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyWatch {
    /// The leases of the file server, if it has any.
    pub gate: Option<Gate>,
    /// The folder that is read.
    pub folder: RawText,
    /// Whether only reads count, because the copy itself may write to the same disk.
    pub reads_only: bool,
    /// The mark of the rsync that reads there, if another host starts it.
    pub mark: Option<String>,
}

/// A request for an instant copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// The folder.
    pub folder: RawText,
    /// The kinds of instant copies that may be used.
    pub wanted: InstantPolicy,
}

/// A request to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotRequest {
    /// Look these paths up on that host.
    Look(Vec<RawText>),
    /// Hold a lease for as long as the channel is open, and report when others use the disk.
    Lease(CopyWatch),
    /// Find the files that a host reads of a volume, and keep the list for as long as the channel is open.
    Share(Share),
    /// Keep an instant copy for as long as the channel is open.
    Freeze(Freeze),
    /// Look up the names of [`Control::Entries`] in this folder, for as long as the channel is open. True: prepare
    /// private folders for the missing entries, too.
    Examine(RawText, bool),
    /// Make an image.
    Make(Box<Make>),
    /// Lock a vault for as long as the channel is open. No other process makes an image there meanwhile.
    Keep(VaultLocation),
    /// Carry out an order for a repository of restic.
    Restic(Box<RepositoryRequest>),
    /// Record the result of a trial restore.
    Prove(VaultLocation, Proof),
    /// Return the images.
    List(VaultLocation),
    /// Remove the images that have expired.
    Expire(Expire),
    /// Return the folder of an image's tree.
    Where(VaultLocation, When),
    /// Return the bytes of a file.
    Cat(VaultLocation, When, RawText),
    /// Return the differences between an image and a later one, or the source as it is now.
    Diff(VaultLocation, When, RawText, Later),
    /// Write files back.
    Restore(Box<Restore>),
    /// Restore this many files of an image to a folder of their own, and compare.
    Verify(VaultLocation, When, usize),
}

impl SnapshotRequest {
    /// Returns the vault that the request is about.
    pub fn site(&self) -> Option<&VaultLocation> {
        match self {
            SnapshotRequest::Look(_)
            | SnapshotRequest::Lease(_)
            | SnapshotRequest::Share(_)
            | SnapshotRequest::Freeze(_)
            | SnapshotRequest::Examine(..)
            | SnapshotRequest::Restic(_) => None,
            SnapshotRequest::Make(order) => Some(&order.site),
            SnapshotRequest::Restore(order) => Some(&order.site),
            SnapshotRequest::Expire(order) => Some(&order.site),
            SnapshotRequest::List(site)
            | SnapshotRequest::Keep(site)
            | SnapshotRequest::Prove(site, _)
            | SnapshotRequest::Where(site, ..)
            | SnapshotRequest::Cat(site, ..)
            | SnapshotRequest::Diff(site, ..)
            | SnapshotRequest::Verify(site, ..) => Some(site),
        }
    }

    /// Whether it makes a vault that does not exist.
    pub fn makes_vault(&self) -> bool {
        matches!(self, SnapshotRequest::Make(_) | SnapshotRequest::Keep(_))
    }
}

/// A request to remove images by their dates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expire {
    /// The vault.
    pub site: VaultLocation,
    /// Clocks that the bank's host compares its own with.
    pub clocks: Vec<HostClock>,
    /// Whether a person has checked the clock of the bank's host.
    pub trust: bool,
}

/// Images that are removed from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// The names of the images.
    pub names: Vec<String>,
    /// Why no image is removed: the host's clock is in doubt.
    pub doubt: Option<String>,
}

/// The side that an image is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Later {
    /// Another image.
    Image(When),
    /// The folder that was copied, as it is now.
    Now(HostFolder, Option<String>),
}

/// A request to write files of an image back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// The vault.
    pub site: VaultLocation,
    /// The image.
    pub when: When,
    /// The part of the image to restore, below the source.
    pub below: RawText,
    /// The folder that gets it.
    pub into: HostFolder,
    /// Whether to replace files that are there.
    pub overwrite: bool,
    /// Whether to report only the files that would be written.
    pub trial: bool,
    /// ssh and its options.
    pub ssh: Option<String>,
}

/// Messages while an image is made, to the bank's host and to the hosts that read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Others need the file server.
    Pause,
    /// The file server has room.
    Resume,
    /// The number of hosts that read: each wants a lease.
    Wanted(u32),
    /// The parts that other hosts read first.
    Parts(Vec<CopyPart>),
    /// Entries that the destination of a restore looks for.
    Entries(Vec<RestoreEntry>),
    /// The entries that the destination has, in the order of the request.
    Present(Vec<Presence>),
    /// Requests the private folders for the missing entries.
    Stage,
    /// The private folders.
    Staged(Staging),
    /// Requests that the restored entries be moved to their places. The value: the restore before that.
    Place(Box<Restored>),
    /// The restore after that.
    Placed(Box<Restored>),
}

/// An answer. Notes, pieces, changes, leases and messages about parts or entries precede the last answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReply {
    /// A message for the user.
    Note(String),
    /// Bytes of a file.
    Piece(RawText),
    /// A difference.
    Change(EntryChange),
    /// How many hosts may read now: there are leases, and others leave room. [`u32::MAX`]: without limit.
    Lease(u32),
    /// A request for parts; [`Control::Parts`] answers it.
    Deal(Deal),
    /// A request for the entries of the destination of a restore under these names; [`Control::Present`] answers it.
    Examine(Vec<RestoreEntry>),
    /// The entries that the destination has, in the order of [`Control::Entries`].
    Present(Vec<Presence>),
    /// Requests the private folders for the missing entries; [`Control::Staged`] answers.
    Stage,
    /// The answer to [`Control::Stage`].
    Staged(Staging),
    /// Requests that the restored entries be moved to their places; [`Control::Placed`] answers.
    Place(Box<Restored>),
    /// The answer to [`Control::Place`].
    Placed(Box<Restored>),
    /// The files that one host has to read.
    Found(HostFiles),
    /// The part of this number has ended.
    Ended(usize),
    /// How an instant copy was made, and its path; `None`: there is none.
    Frozen(Option<(InstantMethod, RawText)>),
    /// The view of the looked-up paths.
    Seen(HostView),
    /// An image is made.
    Made(Box<ImageReport>),
    /// The images.
    Listed(Box<Listed>),
    /// An image and the folder of its tree.
    Where(String, PathBuf),
    /// Images that are removed from now on.
    Expired(Expired),
    /// The result of a restore.
    Restored(Restored),
    /// The result of a comparison.
    Verified(Proof),
    /// The vault is locked.
    Kept,
    /// The work is done, and no other answer follows.
    Done,
    /// The work failed, for this reason.
    Failed(String),
    /// The same, with an advice for the user.
    Advised(String, String),
    /// Another process does the same work.
    Busy(String),
    /// The bank has no such vault.
    Absent(String),
}

/// Sends an answer to the other end.
pub type ReplySender<'a> = &'a mut dyn FnMut(SnapshotReply) -> std::io::Result<()>;

/// A host's view of paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// A text that differs between hosts.
    pub identity: String,
    /// The text of the NFS server's table of exports.
    pub exports: String,
    /// For each path: its volume and its inode; `None`: it is not there.
    pub paths: Vec<Option<(String, u64)>>,
    /// The host's clock.
    pub clock: Timestamp,
    /// The version of its rsync; `None`: it has none.
    pub rsync: Option<String>,
}

/// An image that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageReport {
    /// Its name.
    pub image: String,
    /// The image whose files it shares.
    pub reference: Option<String>,
    /// Whether an interrupted copy was continued.
    pub resumed: bool,
    /// Whether an instant copy was read instead of the source.
    pub instant: bool,
    /// The number of entries.
    pub files: u64,
    /// Bytes of regular files.
    pub bytes: u64,
    /// Files that were read.
    pub read_files: u64,
    /// Bytes read on the source's host, where that is known.
    pub read: Option<u64>,
    /// Whether the source is on the bank's host.
    pub local: bool,
    /// Bytes over the network, where that is known.
    pub network: Option<u64>,
    /// Bytes not shared with the reference.
    pub own_bytes: u64,
    /// The files that each host read first, of a volume that is split over several. They are counted above, too.
    pub parts: Vec<PartResult>,
    /// The duration, microseconds.
    pub took_us: u64,
    /// The part of the duration in which the copy paused for others, microseconds.
    pub paused_us: u64,
    /// Some of the names that patterns left out.
    pub excluded: Vec<String>,
    /// The number of all such names.
    pub excluded_count: u64,
    /// Files that could not be read, in rsync's words; such an image is not good.
    pub unreadable: Vec<String>,
    /// Images that are removed now.
    pub expired: Vec<String>,
    /// Why no image is removed although some may have expired: the host's clock is in doubt.
    pub doubt: Option<String>,
    /// The folder with the complete lists of both.
    pub folder: PathBuf,
}

/// The content of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Images, the oldest first.
    pub images: Vec<Image>,
    /// Copies that were interrupted.
    pub unfinished: Vec<String>,
    /// Images that are being removed.
    pub removing: Vec<String>,
    /// The last trial restore and its result.
    pub proved: Option<Proof>,
    /// Whether this user may read that result.
    pub journal: bool,
    /// Free bytes of the bank.
    pub free: u64,
    /// The host's clock.
    pub now: Timestamp,
}

impl Listed {
    /// Returns the newest image that can be relied upon.
    pub fn newest_good(&self) -> Option<&Image> {
        self.images.iter().rev().find(|image| image.is_good())
    }

    /// Returns the space that the images take, if all of them are counted.
    pub fn space(&self) -> Option<Space> {
        space(&self.images, self.now)
    }
}

/// The result of a comparison of an image with its manifest, and of a trial restore of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The image.
    pub image: String,
    /// The time of the comparison.
    pub at: Timestamp,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that differ after the restore.
    pub bad: Vec<RawText>,
    /// Why the manifest is not the one that was written with the image. In that case nothing else was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// The comparison of the tree with its manifest; `None`: it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Compared>,
}

impl Proof {
    /// Whether nothing has changed since the image was made.
    pub fn is_sound(&self) -> bool {
        self.bad.is_empty() && self.manifest.is_none() && self.tree.as_ref().is_none_or(|tree| tree.count == 0)
    }
}

/// The result of a restore or of its trial run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The image.
    pub image: String,
    /// Whether it was a trial: nothing was written.
    pub trial: bool,
    /// Entries that were written.
    pub written: u64,
    /// The first names of these, only in a trial.
    pub names: Vec<RawText>,
    /// The number of entries left as they are: they differ from the image, or an entry of another kind is in the way.
    pub left: u64,
    /// The first of these.
    pub obstacles: Vec<Obstacle>,
    /// The number of entries below a folder whose name another kind of entry has: they have no place.
    pub beneath: u64,
    /// Errors of reading and writing, in the system's words.
    pub failed: Vec<String>,
}

/// Private folders of a destination, into which rsync writes the missing entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    /// One for each part of the destination that files cannot be moved out of.
    pub folders: Vec<StagedFolder>,
    /// Folders of the destination for which there is none, and why.
    pub refused: Vec<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFolder {
    /// The folder in place of the destination.
    pub tree: PathBuf,
    /// The file with the names of its entries, as rsync takes them.
    pub list: PathBuf,
}

/// An entry that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// Its path below the folder that gets the files.
    pub path: RawText,
    /// The kind of the entry in the image.
    pub wanted: EntryKind,
    /// The entry that is there.
    pub there: Presence,
}
