//! `homing volume create`.

use super::args::{Create, VolumeOptions};
use super::{change, drive};
use homing_model::{Failure, NodeSet};
use homing_volume::{ExportOptions, Spec};
use std::collections::BTreeMap;
use std::time::Instant;

/// Reads options of a new volume, each with a value.
fn options(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let given = |(key, value): (String, Option<String>)| match value {
        Some(value) => Ok((key, value)),
        None => Err(Failure::usage(format!("--option {key}= has no value; a new volume has the default without it"))),
    };
    change::options(texts)?.into_iter().map(given).collect()
}

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
        options: options(&args.options)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_new_volume_has_a_value() {
        assert_eq!(options(&["auth.allow=n1".into()]).unwrap()["auth.allow"], "n1");
        assert!(options(&["auth.allow=".into()]).unwrap_err().message.contains("has no value"));
    }
}
