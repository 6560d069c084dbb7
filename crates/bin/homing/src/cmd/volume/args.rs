//! Arguments of `homing volume`.

use crate::cluster::ClusterArgs;
use crate::cmd::targets::HostArgs;
use crate::consent::Consent;
use clap::Subcommand;
use homing_volume::{Danger, VolumeKind};

const WAY: &str = "Execution";
const DANGERS: &str = "Dangers to accept";

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub way: VolumeOptions,
    #[command(subcommand)]
    pub verb: Verb,
}

/// How hosts are reached, and how much is printed.
#[derive(clap::Args, Clone, Debug)]
pub struct VolumeOptions {
    #[command(flatten, next_help_heading = WAY)]
    pub cluster: ClusterArgs,
    /// Print the commands for each host, and run none
    #[arg(help_heading = WAY, long, global = true)]
    pub dry_run: bool,
    #[command(flatten, next_help_heading = WAY)]
    pub consent: Consent,
    /// Begin commands with `sudo -n`
    #[arg(help_heading = WAY, long, global = true)]
    pub sudo: bool,
    /// Do not print the steps
    #[arg(help_heading = WAY, short, long, global = true)]
    pub quiet: bool,
    /// Time limit of one command on one host
    #[arg(help_heading = WAY, long, value_name = "TIME", default_value = "3m", global = true, value_parser = crate::cmd::times::step_limit)]
    pub timeout: u64,
    /// Whether steps that were carried out are not printed either, because the caller prints them.
    #[arg(skip)]
    pub silent: bool,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Make a volume from folders of hosts and mount it everywhere; a repeat completes it
    Create(Create),
    /// List volumes: name, kind, mount, hosts, copies
    List(List),
    /// Show daemons, mounts and operations under way
    Status(Shown),
    /// Show how full each host is
    BalanceReport(Shown),
    /// Mount on more hosts
    Mount(On),
    /// Unmount on hosts
    Unmount(On),
    /// Add space: NODESET:/PATH
    AddHost(AddHost),
    /// Move all bytes off a host, and remove it from the volume
    DrainHost(DrainHost),
    /// Change the number of copies of the files below a path
    SetCopies(SetCopies),
    /// Change how new files are cut into pieces
    SetStripe(SetStripe),
    /// Change options of the file system (GlusterFS)
    SetOption(SetOption),
    /// Change how the volume is exported (NFS)
    SetExport(SetExport),
    /// Bring all copies up to date
    Heal(Heal),
    /// Spread files over all hosts again
    Rebalance(One),
    /// Unmount everywhere and take the volume away
    #[command(visible_alias = "remove")]
    Delete(Delete),
    /// Finish a change that was interrupted
    Resume(One),
    /// Take back a change that was interrupted
    Undo(One),
}

/// Options by which a user accepts a danger to data, one each.
#[derive(clap::Args, Clone, Debug)]
pub struct Allow {
    /// Keep data on the disk of the system
    #[arg(help_heading = DANGERS, long)]
    allow_system_disk: bool,
    /// Keep two copies of a file on one host
    #[arg(help_heading = DANGERS, long)]
    allow_copies_on_one_host: bool,
    /// Keep fewer copies than the volume has now
    #[arg(help_heading = DANGERS, long)]
    allow_losing_copies: bool,
    /// Hide the files at the mount point
    #[arg(help_heading = DANGERS, long)]
    mount_over_files: bool,
    /// Use folders that hold something already
    #[arg(help_heading = DANGERS, long)]
    use_store_with_content: bool,
    /// Cut files into pieces where writes are known to hang (GlusterFS before 11, one copy)
    #[arg(help_heading = DANGERS, long)]
    allow_hanging_writes: bool,
}

impl Allow {
    /// Returns all dangers that the user accepts.
    pub fn list(&self) -> Vec<Danger> {
        let all = [
            (self.allow_system_disk, Danger::SystemDisk),
            (self.allow_copies_on_one_host, Danger::CopiesOnOneHost),
            (self.allow_losing_copies, Danger::LastCopy),
            (self.mount_over_files, Danger::MountOverFiles),
            (self.use_store_with_content, Danger::StoreInUse),
            (self.allow_hanging_writes, Danger::HangingWrites),
        ];
        all.into_iter().filter_map(|(on, danger)| on.then_some(danger)).collect()
    }
}

#[derive(clap::Args)]
pub struct Create {
    /// Name of the volume
    pub name: String,
    /// File system: gluster, moosefs, nfs
    #[arg(long)]
    pub kind: VolumeKind,
    /// Hosts and the folder on each that holds the data, as 'n[1-4]:/brick'; may be repeated
    #[arg(long, value_name = "NODESET:/PATH", required = true)]
    pub hosts: Vec<String>,
    /// Copies of each file (GlusterFS: replica, MooseFS: goal)
    #[arg(long, visible_alias = "goal", default_value_t = 1)]
    pub copies: u32,
    /// Keep only names of files on a third host, so that two copies cannot disagree (GlusterFS)
    #[arg(long)]
    pub arbiter: bool,
    /// Cut files into pieces of this size, spread over hosts (GlusterFS: sharding)
    #[arg(long, value_name = "SIZE", value_parser = homing_lab::parse_size, num_args = 0..=1, default_missing_value = "64M")]
    pub stripe: Option<u64>,
    /// Network transport: only tcp (GlusterFS dropped rdma)
    #[arg(long, default_value = "tcp", value_parser = super::transport::parse)]
    pub transport: String,
    /// Mount point (default: /NAME)
    #[arg(long, value_name = "PATH")]
    pub mount: Option<String>,
    /// Hosts that mount it (default: those of --hosts)
    #[arg(long, value_name = "NODESET")]
    pub clients: Option<String>,
    /// Host of the master (MooseFS; default: the first)
    #[arg(long, value_name = "HOST")]
    pub master: Option<String>,
    /// Option of the file system, as performance.io-thread-count=8; may be repeated (GlusterFS)
    #[arg(long = "option", value_name = "KEY=VALUE")]
    pub options: Vec<String>,
    /// root_squash, no_root_squash, all_squash, anonuid=, anongid=, sec=, client=; may be repeated (NFS)
    #[arg(long = "export-option", value_name = "OPTION")]
    pub export: Vec<String>,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    pub query: HostArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct One {
    /// Name of the volume
    pub name: String,
    #[command(flatten)]
    pub query: HostArgs,
}

impl One {
    /// Returns the volume of this name, whose hosts are those of its record.
    pub fn named(name: &str) -> One {
        One { name: name.into(), query: HostArgs::default() }
    }
}

#[derive(clap::Args)]
pub struct Shown {
    /// Name of the volume (default: each that is recorded here, or known to the hosts of -w)
    pub name: Option<String>,
    #[command(flatten)]
    pub query: HostArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct On {
    #[command(flatten)]
    pub one: One,
    /// Hosts (default: all that the volume has)
    #[arg(long, value_name = "NODESET")]
    pub on: Option<String>,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct AddHost {
    #[command(flatten)]
    pub one: One,
    /// Hosts and folders, as n5:/brick
    #[arg(value_name = "NODESET:/PATH", required = true)]
    pub places: Vec<String>,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct DrainHost {
    #[command(flatten)]
    pub one: One,
    /// Host to drain
    pub host: String,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct SetCopies {
    #[command(flatten)]
    pub one: One,
    /// Path below the mount point, or the mount point (GlusterFS: only that)
    pub path: String,
    /// Number of copies
    pub copies: u32,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct SetStripe {
    #[command(flatten)]
    pub one: One,
    /// Path of the volume; for Lustre any directory, with --lustre-client
    pub path: String,
    /// Size of the pieces
    #[arg(long, value_parser = homing_lab::parse_size)]
    pub size: Option<u64>,
    /// Number of targets, -1 for all (Lustre)
    #[arg(long, allow_hyphen_values = true)]
    pub count: Option<i32>,
    /// The path is on Lustre; run lfs on this host
    #[arg(long, value_name = "HOST")]
    pub lustre_client: Option<String>,
    #[command(flatten)]
    pub allow: Allow,
}

#[derive(clap::Args)]
pub struct SetOption {
    #[command(flatten)]
    pub one: One,
    /// Options and their values; KEY= restores the default
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub options: Vec<String>,
}

#[derive(clap::Args)]
pub struct SetExport {
    #[command(flatten)]
    pub one: One,
    /// All options of the export, as for --export-option of create; without any, homing's own
    #[arg(value_name = "OPTION")]
    pub options: Vec<String>,
}

#[derive(clap::Args)]
pub struct Heal {
    #[command(flatten)]
    pub one: One,
    /// Look at every file, not only at those known to be behind
    #[arg(long)]
    pub full: bool,
}

#[derive(clap::Args)]
pub struct Delete {
    #[command(flatten)]
    pub one: One,
    /// Delete the files in it too
    #[arg(long)]
    pub delete_files: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &str, danger: Danger) -> Verb {
        Whole::try_parse_from(words.split(' ').chain([danger.flag()])).unwrap_or_else(|e| panic!("{e}")).args.verb
    }

    /// The option that a refusal names is one that the command accepts.
    #[test]
    fn the_words_of_a_refusal_lift_it() {
        use Danger::{CopiesOnOneHost, DeleteFiles, HangingWrites, LastCopy, MountOverFiles, StoreInUse, SystemDisk};
        for danger in [SystemDisk, CopiesOnOneHost, LastCopy, MountOverFiles, StoreInUse, HangingWrites] {
            let Verb::Create(create) = parsed("volume create data --kind nfs --hosts n1:/x", danger) else { panic!() };
            assert_eq!(create.allow.list(), [danger]);
            let Verb::AddHost(add) = parsed("volume add-host data n1:/x", danger) else { panic!() };
            assert_eq!(add.allow.list(), [danger]);
        }
        let Verb::DrainHost(drain) = parsed("volume drain-host data n1", LastCopy) else { panic!() };
        let Verb::SetCopies(set) = parsed("volume set-copies data /data 1", LastCopy) else { panic!() };
        assert_eq!((drain.allow.list(), set.allow.list()), (vec![LastCopy], vec![LastCopy]));
        let Verb::Delete(delete) = parsed("volume delete data", DeleteFiles) else { panic!() };
        assert!(delete.delete_files);
    }
}
