//! What is asked of a host, and what it answers: lines of JSON over a channel.

use crate::destination::{EntryKind, Presence, RestoreEntry};
use crate::doubt::HostClock;
use crate::flaws::Compared;
use crate::image::{Image, When};
use crate::instant::{Wanted, Way};
use crate::manifest::Change;
use crate::repository::Order;
use crate::rsync::At;
use crate::space::{Space, space};
use crate::split::{Deal, Found, Part, Read, Share};
use homing_model::RawText;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The bank's folder.
    pub bank: PathBuf,
    /// The vault's name.
    pub vault: String,
}

/// A new image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// Its vault.
    pub site: Site,
    /// Where the bytes are; without one the vault's own configuration says it.
    pub source: Option<At>,
    /// The folder that is read on that host, where it is an instant copy of the source.
    pub instant: Option<RawText>,
    /// What marks the rsync that reads on another host.
    pub mark: Option<String>,
    /// The bank's host, for the summary.
    pub server: String,
    /// As in [`crate::section::Section`], and so are those below.
    pub exclude: Vec<String>,
    /// Leave out other file systems.
    pub xdev: Option<bool>,
    /// The image's name.
    pub image: Option<String>,
    /// When it goes, without a rule.
    pub expire: Option<String>,
    /// When it goes.
    pub rules: Vec<String>,
    /// ssh and its options.
    pub ssh: Option<String>,
    /// Several hosts may read: parts are asked for.
    pub split: bool,
    /// Clocks that the bank's host compares its own with before anything expires.
    pub clocks: Vec<HostClock>,
}

/// Where the leases of the source's file server are, as its host sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The folder.
    pub folder: PathBuf,
    /// The server's name.
    pub server: String,
    /// Tasks at once of everybody, where the administrator says it.
    pub limit: Option<u32>,
}

/// What a copy goes by while it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The leases of the file server, where there are any.
    pub gate: Option<Gate>,
    /// The folder that is read.
    pub folder: RawText,
    /// Whether the copy may write to the same disk.
    pub reads_only: bool,
    /// What marks the rsync that reads there, where another host starts it.
    pub mark: Option<String>,
}

/// An instant copy that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// The folder.
    pub folder: RawText,
    /// Of which kinds.
    pub wanted: Wanted,
}

/// A question, or an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What these paths are on that host.
    Look(Vec<RawText>),
    /// Hold a lease for as long as the channel is open, and tell when others use the disk.
    Lease(Watch),
    /// Find what a host reads of a volume, and keep the list for as long as the channel is open.
    Share(Share),
    /// Keep an instant copy for as long as the channel is open.
    Freeze(Freeze),
    /// Look at what this folder has under the names of [`Control::Entries`], for as long as the channel is open.
    Examine(RawText),
    /// Make an image.
    Make(Box<Make>),
    /// Keep a vault for as long as the channel is open, so that nobody else makes an image there.
    Keep(Site),
    /// Do something with a repository of restic.
    Restic(Box<Order>),
    /// Keep what came of a trial.
    Prove(Site, Proof),
    /// Tell the images.
    List(Site),
    /// Remove what has expired.
    Expire(Expire),
    /// Tell where an image's tree is.
    Where(Site, When),
    /// Tell the bytes of a file.
    Cat(Site, When, RawText),
    /// Tell what differs between an image and a later one, or the source as it is now.
    Diff(Site, When, RawText, Later),
    /// Write files back.
    Restore(Box<Restore>),
    /// Restore this many files of an image to a place of their own, and compare.
    Verify(Site, When, usize),
}

impl Ask {
    /// The vault that it is about.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Ask::Look(_) | Ask::Lease(_) | Ask::Share(_) | Ask::Freeze(_) | Ask::Examine(_) | Ask::Restic(_) => None,
            Ask::Make(order) => Some(&order.site),
            Ask::Restore(order) => Some(&order.site),
            Ask::Expire(order) => Some(&order.site),
            Ask::List(site)
            | Ask::Keep(site)
            | Ask::Prove(site, _)
            | Ask::Where(site, ..)
            | Ask::Cat(site, ..)
            | Ask::Diff(site, ..)
            | Ask::Verify(site, ..) => Some(site),
        }
    }
}

/// What is to be removed by its date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expire {
    /// The vault.
    pub site: Site,
    /// Clocks that the bank's host compares its own with.
    pub clocks: Vec<HostClock>,
    /// A person has looked at the clock of the bank's host.
    pub trust: bool,
}

/// Images that are removed from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// Their names.
    pub names: Vec<String>,
    /// Why none is: the host's clock cannot be believed.
    pub doubt: Option<String>,
}

/// What an image is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Later {
    /// Another image.
    Image(When),
    /// The folder that was copied, as it is now.
    Now(At, Option<String>),
}

/// What is written back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// From which vault.
    pub site: Site,
    /// From which image.
    pub when: When,
    /// What of it: below the source.
    pub below: RawText,
    /// The folder that gets it.
    pub into: At,
    /// Replace what is there.
    pub overwrite: bool,
    /// Only find out what would be written.
    pub trial: bool,
    /// ssh and its options.
    pub ssh: Option<String>,
}

/// Said while an image is made, to the bank's host and to those that read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Others need the file server.
    Pause,
    /// The file server has room.
    Resume,
    /// So many hosts read: each wants a lease.
    Wanted(u32),
    /// The parts that others read first.
    Parts(Vec<Part>),
    /// Entries that the destination of a restore looks for.
    Entries(Vec<RestoreEntry>),
    /// What it has, in their order.
    Present(Vec<Presence>),
}

/// An answer; the last one is neither a note, a piece, a change, a lease nor something of parts or entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Something to tell.
    Note(String),
    /// Bytes of a file.
    Piece(RawText),
    /// A difference.
    Change(Change),
    /// How many hosts may read now: there are leases, and others leave room. [`u32::MAX`]: as many as like.
    Lease(u32),
    /// Parts are asked for; [`Control::Parts`] tells them.
    Deal(Deal),
    /// Asks what the destination of a restore has under these names; [`Control::Present`] answers.
    Examine(Vec<RestoreEntry>),
    /// What the destination has, in the order of [`Control::Entries`].
    Present(Vec<Presence>),
    /// What one host has to read.
    Found(Found),
    /// The part of this number has ended.
    Ended(usize),
    /// How an instant copy was made, and where it is; `None`: there is none.
    Frozen(Option<(Way, RawText)>),
    /// What was looked at.
    Seen(Seen),
    /// An image is made.
    Made(Box<Made>),
    /// The images.
    Listed(Box<Listed>),
    /// An image and the folder of its tree.
    Where(String, PathBuf),
    /// Images that are removed from now on.
    Expired(Expired),
    /// What was written back.
    Restored(Restored),
    /// What was compared.
    Verified(Proof),
    /// The vault is kept.
    Kept,
    /// It is done; there is no more to say.
    Done,
    /// It could not be done.
    Failed(String),
    /// The same, with what to try.
    Advised(String, String),
    /// Somebody else is at it.
    Busy(String),
}

/// Says an answer to the other end.
pub type Say<'a> = &'a mut dyn FnMut(Answer) -> std::io::Result<()>;

/// A host's view of paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Tells hosts apart.
    pub identity: String,
    /// What an NFS server exports.
    pub exports: String,
    /// Of each path: the volume that it is on and its inode; `None` where it is not there.
    pub paths: Vec<Option<(String, u64)>>,
    /// The host's clock.
    pub clock: Timestamp,
    /// What its rsync calls itself; `None`: there is none.
    pub rsync: Option<String>,
}

/// An image that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Its name.
    pub image: String,
    /// The image whose files it shares.
    pub reference: Option<String>,
    /// An interrupted one was gone on with.
    pub resumed: bool,
    /// An instant copy was read in the place of the source.
    pub instant: bool,
    /// Entries.
    pub files: u64,
    /// Bytes of regular files.
    pub bytes: u64,
    /// Files that were read.
    pub read_files: u64,
    /// Bytes read at home, where that is known.
    pub read: Option<u64>,
    /// The source is on the bank's host.
    pub local: bool,
    /// Bytes over the network, where that is known.
    pub network: Option<u64>,
    /// Bytes not shared with the reference.
    pub own_bytes: u64,
    /// What each host has read first, of a volume that is split over several; it is counted above, too.
    pub parts: Vec<Read>,
    /// Microseconds that it took.
    pub took_us: u64,
    /// Of these, microseconds in which it stood still for others.
    pub paused_us: u64,
    /// Names that patterns left out.
    pub excluded: Vec<String>,
    /// How many of these there are.
    pub excluded_count: u64,
    /// What could not be read, in rsync's words; such an image is not good.
    pub unreadable: Vec<String>,
    /// Images that go now.
    pub expired: Vec<String>,
    /// Why none goes, whatever has expired: the host's clock cannot be believed.
    pub doubt: Option<String>,
    /// Where the lists of both are.
    pub folder: PathBuf,
}

/// What a vault holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Images, the oldest first.
    pub images: Vec<Image>,
    /// Copies that were interrupted.
    pub unfinished: Vec<String>,
    /// Images that are being removed.
    pub removing: Vec<String>,
    /// When a sample was last restored, and what came of it.
    pub proved: Option<Proof>,
    /// Whether this user may know that.
    pub journal: bool,
    /// Free bytes of the bank.
    pub free: u64,
    /// The host's clock.
    pub now: Timestamp,
}

impl Listed {
    /// The newest image that can be relied upon.
    pub fn newest_good(&self) -> Option<&Image> {
        self.images.iter().rev().find(|image| image.is_good())
    }

    /// What the images take, where all of them are counted.
    pub fn space(&self) -> Option<Space> {
        space(&self.images, self.now)
    }
}

/// An image that was compared with its manifest, and a sample that was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Of which image.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that came back otherwise.
    pub bad: Vec<RawText>,
    /// Why the manifest is not the one that was written with the image; then nothing else was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// The tree beside its manifest; `None`: it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Compared>,
}

impl Proof {
    /// Whether all was as it was when the image was made.
    pub fn is_sound(&self) -> bool {
        self.bad.is_empty() && self.manifest.is_none() && self.tree.as_ref().is_none_or(|tree| tree.count == 0)
    }
}

/// What was written back, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// From which image.
    pub image: String,
    /// It was a trial: nothing was written.
    pub trial: bool,
    /// Entries that were written.
    pub written: u64,
    /// The first of these, of a trial.
    pub names: Vec<RawText>,
    /// Entries that were left as they are: they differ from the image, or something of another kind is in the way.
    pub left: u64,
    /// The first of these.
    pub obstacles: Vec<Obstacle>,
    /// Entries of folders whose name something else has: they have no place.
    pub beneath: u64,
    /// What could not be read or written, in the system's words.
    pub failed: Vec<String>,
}

/// Something that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// Below the folder that gets the files.
    pub path: RawText,
    /// What the image has.
    pub wanted: EntryKind,
    /// What is there.
    pub there: Presence,
}
