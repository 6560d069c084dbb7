//! Arguments of `homing snapshot`.

use crate::cluster::ClusterArgs;
use crate::consent::Consent;
use clap::Subcommand;
use homing_snapshot::instant::InstantPolicy;
use homing_snapshot::section::Engine;
use homing_snapshot::split::When;
use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;

/// Arguments.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub make: Make,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// A new image.
#[derive(clap::Args)]
pub struct Make {
    /// A [snapshot.NAME] of the cluster file, or a folder: /PATH or HOST:/PATH
    #[arg(value_name = "NAME|PATH", required = true)]
    pub what: Option<String>,
    #[command(flatten)]
    pub vault: VaultArgs,
    /// Leave out files that match this pattern of rsync
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Which instant copy of the file system to read from: auto (btrfs), any (MooseFS, XFS and ZFS, too) or none
    #[arg(long, value_name = "KIND", value_parser = instant)]
    pub instant: Option<InstantPolicy>,
    /// When several hosts read, each its own bricks of a GlusterFS volume: large (1 GiB and more), always or never
    #[arg(long, value_name = "WHEN", value_parser = split)]
    pub split: Option<When>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print only the summary and errors
    #[arg(short, long)]
    pub quiet: bool,
}

fn engine(word: &str) -> Result<Engine, String> {
    as_in_the_cluster_file(word).ok_or_else(|| "must be rsync or restic".into())
}

fn instant(word: &str) -> Result<InstantPolicy, String> {
    as_in_the_cluster_file(word).ok_or_else(|| "must be auto, any or none".into())
}

fn split(word: &str) -> Result<When, String> {
    as_in_the_cluster_file(word).ok_or_else(|| "must be large, always or never".into())
}

/// Parses a word as a section of the cluster file would.
fn as_in_the_cluster_file<T: DeserializeOwned>(word: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<serde::de::value::Error>::new(word)).ok()
}

/// The vault, if no cluster file defines it.
#[derive(clap::Args, Clone, Default)]
pub struct VaultArgs {
    /// The bank: a folder on the host that keeps the images
    #[arg(long, value_name = "HOST:/PATH")]
    pub to: Option<String>,
    /// The vault in the bank (default: the section's name, or the folder's)
    #[arg(long, value_name = "NAME")]
    pub vault: Option<String>,
    /// Format of the images: rsync (plain trees) or restic (a repository in the vault)
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub engine: Option<Engine>,
    /// With restic: a file with the repository's password, on the source's host
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<std::path::PathBuf>,
}

#[derive(Subcommand)]
pub enum Verb {
    /// List images: when they were made, when they expire, their content, and the last trial of a restore
    List(List),
    /// Compare an image with a later one, or with the folder as it is now
    Diff(Diff),
    /// Print a file as it was
    Cat(Cat),
    /// Write files back; existing files stay, unless --overwrite is given
    Restore(Restore),
    /// Restore some files, chosen at random, to a place of their own, and compare their hashes
    Verify(Verify),
    /// Remove images that have expired; of each branch the last three good ones stay
    Expire(Expire),
    /// Show an image as a read-only folder of this host: a bind mount, or sshfs if the bank is on another host
    Mount(MountArgs),
    /// Have systemd make the images of each [snapshot.NAME] that has a schedule, on one host
    Schedule(Schedule),
}

/// A vault.
#[derive(clap::Args)]
pub struct One {
    /// A [snapshot.NAME] of the cluster file, or a folder
    #[arg(value_name = "NAME|PATH")]
    pub what: String,
    #[command(flatten)]
    pub vault: VaultArgs,
}

#[derive(clap::Args)]
pub struct List {
    /// A [snapshot.NAME] of the cluster file, or a folder (default: each of the cluster file)
    #[arg(value_name = "NAME|PATH")]
    pub what: Option<String>,
    #[command(flatten)]
    pub vault: VaultArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the state of the vaults to a file for Prometheus's node exporter
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub prometheus: Option<std::path::PathBuf>,
}

/// Something in an image.
#[derive(clap::Args)]
pub struct Past {
    /// A path below a source of the cluster file, NAME, or NAME:PATH with a path below its source
    #[arg(value_name = "PATH")]
    pub what: String,
    /// The state of a day or a moment, as GNU date reads it ("last tuesday"), or an image's name
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,
    #[command(flatten)]
    pub vault: VaultArgs,
}

#[derive(clap::Args)]
pub struct Diff {
    #[command(flatten)]
    pub past: Past,
    /// Compare with this later image, not with the folder as it is now
    #[arg(long, value_name = "WHEN")]
    pub with: Option<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct Cat {
    #[command(flatten)]
    pub past: Past,
}

#[derive(clap::Args)]
pub struct Restore {
    #[command(flatten)]
    pub past: Past,
    /// To this folder, on the bank's host or as HOST:/PATH (default: where it was)
    #[arg(long, value_name = "[HOST:]/PATH")]
    pub into: Option<String>,
    /// Replace existing files
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub consent: Consent,
    /// List files that would be written and files that would be left, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(clap::Args)]
pub struct Verify {
    #[command(flatten)]
    pub one: One,
    /// The image of a day or a moment, or of this name (default: the newest good one)
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,
    /// Files to restore
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub files: usize,
}

#[derive(clap::Args)]
pub struct Expire {
    #[command(flatten)]
    pub one: One,
    /// Remove images even if another clock, or the dates of images, contradict the clock of the bank's host
    #[arg(long)]
    pub trust_clock: bool,
    #[command(flatten)]
    pub consent: Consent,
}

#[derive(clap::Args)]
pub struct Schedule {
    /// The host with the timers; it needs this program and the cluster file under the same paths (default: this one)
    #[arg(long, value_name = "HOST")]
    pub on: Option<String>,
    /// Spread the starts of the vaults of one schedule evenly over this time; a number alone is minutes
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = |text: &str| homing_batch::parse_minutes("--spread", text))]
    pub spread: u32,
    /// Show the steps, with the text of the units, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub consent: Consent,
    /// Stop the timers and remove their files; files that somebody has changed since stay
    #[arg(long)]
    pub undo: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    pub sudo: bool,
}

#[derive(clap::Args)]
pub struct MountArgs {
    #[command(flatten)]
    pub past: Past,
    /// An empty folder of this host
    #[arg(value_name = "DIR")]
    pub dir: std::path::PathBuf,
}
