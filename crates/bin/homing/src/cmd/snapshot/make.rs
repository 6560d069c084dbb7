//! `homing snapshot NAME`: makes an image.

use super::args::Make as Args;
use super::show;
use super::target::{known, target};
use crate::cluster::ClusterArgs;
use homing_model::Failure;
use homing_snapshot::asking::{self, CreatedImage, Wishes};
use homing_snapshot::output;

/// Makes the image and reports it. Returns 1 if part of the source could not be read.
pub fn run(cluster: &ClusterArgs, args: Args) -> Result<i32, Failure> {
    let what = args.what.as_deref().ok_or_else(|| Failure::usage("no folder or snapshot is named"))?;
    let target = target(cluster, what, &args.vault)?;
    if !target.below.as_os_str().is_empty() {
        let whole = format!("{what} is only a part of the source of [snapshot.{}]", target.name);
        return Err(Failure::usage(whole).hint(format!("homing snapshot {}", target.name)));
    }
    let note = |text: &str| {
        if !args.quiet {
            eprintln!("homing: {text}");
        }
    };
    let wishes = Wishes { exclude: args.exclude, instant: args.instant, split: args.split };
    let CreatedImage { source, way, made } = asking::make(&known(cluster)?, &target, &wishes, &note)?;
    show::print(&match args.json {
        true => output::made_json(&target, way, &made),
        false => output::made(&target, source.as_deref().unwrap_or("its host"), way, &made),
    })?;
    Ok(i32::from(!made.unreadable.is_empty()))
}
