//! `homing advise`: shows the bytes that runs read over the network, and the savings of another layout.

mod read;

use super::runs::to_stdout;
use crate::cluster::ClusterArgs;
use crate::progress::columns;
use homing_account::advise::{AdjustableVolume, Price, advice, as_json, hot, text};
use homing_batch::parse_duration;
use homing_model::fit::wrapped;
use homing_model::text::shown;
use homing_model::{Failure, document};
use homing_volume::{VolumeKind, VolumeRecord};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// Folders of runs: of other machines, of other users [default: this user's]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Only runs that ended within this time: 12h, 7d
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = |text: &str| parse_duration("--since", text))]
    since: Duration,
    /// Print folders and advice as JSON
    #[arg(long)]
    json: bool,
    /// Leave out a file whose file system does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = crate::cmd::times::fs_timeout)]
    fs_timeout: Duration,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Prints the bytes that were read over the network, and advice.
pub fn run(args: Args) -> Result<i32, Failure> {
    let since_ns = homing_os::clock::system_ns() - i64::try_from(args.since.as_nanos()).unwrap_or(i64::MAX);
    are_folders(&args.folders)?;
    let roots = if args.folders.is_empty() { vec![homing_journal::root()] } else { args.folders };
    let cluster = args.cluster.load()?;
    let evidence = read::evidence(&roots, since_ns, cluster, args.fs_timeout)?;
    evidence.notes.iter().for_each(|note| eprintln!("homing: {}", shown(note)));
    let cost = cluster.cost();
    let stored = |bytes| cost?.of_stored(bytes);
    let price = cost.map(|cost| Price { stored: &stored, currency: &cost.currency });
    let folders = hot(&evidence.seen);
    let advice = advice(&evidence.seen, &folders, &sites()?);
    if args.json {
        return to_stdout(&document::text(as_json(&evidence, &folders, &advice, price.as_ref())));
    }
    if evidence.runs == 0 {
        eprintln!("homing: no run within this time has read files of a network file system that still exist");
        return Ok(0);
    }
    to_stdout(&wrapped(&text(&evidence, &folders, &advice, price.as_ref()), columns()))
}

/// Refuses names of folders of runs that are not there.
pub fn are_folders(folders: &[PathBuf]) -> Result<(), Failure> {
    folders.iter().find(|folder| !folder.is_dir()).map_or(Ok(()), |missing| {
        Err(Failure::usage(format!("{}: no such folder of runs", shown(&missing.to_string_lossy()))))
    })
}

/// Returns the recorded volumes whose number of copies can be changed.
fn sites() -> Result<Vec<AdjustableVolume>, Failure> {
    let folder = homing_volume::folder();
    let mut sites = Vec::new();
    for name in VolumeRecord::names(&folder) {
        let record = VolumeRecord::load(&folder, &name);
        let record = record.map_err(|e| Failure::system(format!("reading the record of volume {name}: {e}")))?;
        let spec = record.map(|record| record.spec).filter(|spec| spec.kind != VolumeKind::Nfs);
        sites.extend(spec.map(|spec| AdjustableVolume {
            mount: spec.mount.into(),
            hosts: spec.places.into_iter().map(|place| place.host).collect(),
            by_folder: spec.kind == VolumeKind::Moosefs,
            name: spec.name,
        }));
    }
    Ok(sites)
}
