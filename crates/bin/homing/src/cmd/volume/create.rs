//! `homing volume create`.

use super::args::{Create, VolumeOptions};
use super::{change, drive};
use homing_model::{Failure, NodeSet};
use homing_volume::{ExportOptions, Spec};
use std::time::Instant;

fn spec(way: &VolumeOptions, args: &Create) -> Result<Spec, Failure> {
    let places = way.cluster.load()?.places(&args.hosts)?;
    let clients = match &args.clients {
        Some(text) => way.cluster.load()?.hosts(Some(text))?,
        None => Vec::new(),
    };
    let mut spec = Spec {
        name: args.name.clone(),
        kind: args.kind,
        places,
        copies: args.copies,
        arbiter: args.arbiter,
        stripe: args.stripe,
        mount: args.mount.clone().unwrap_or_else(|| format!("/{}", args.name)),
        clients,
        master: args.master.clone(),
        options: change::options(&args.options)?.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
        export: ExportOptions::parse(&args.export).map_err(Failure::usage)?,
    };
    if args.clients.is_none() {
        spec.clients = spec.servers();
    }
    spec.check().map_err(Failure::usage)?;
    Ok(spec)
}

/// Creates a volume, or completes it.
pub fn run(way: &VolumeOptions, args: Create) -> Result<i32, Failure> {
    let begun = Instant::now();
    let spec = spec(way, &args)?;
    drive(way, Some(&spec.name))?.allowing(args.allow.list()).create(&spec)?;
    if !way.dry_run {
        let clients: NodeSet = spec.clients.iter().cloned().collect();
        let took = begun.elapsed().as_secs_f64();
        println!("volume {} is mounted at {} on {clients} ({took:.1} s)", spec.name, spec.mount);
    }
    Ok(0)
}
