//! The commands that change a volume.

use super::args::{
    AddHost, Delete, DrainHost, Heal, On, One, SetCopies, SetExport, SetOption, SetStripe, VolumeOptions,
};
use super::{drive, found};
use crate::cmd::targets::shell_word;
use homing_model::{Failure, NodeSet};
use homing_volume::{Danger, Drive, ExportOptions, OptionChanges, VolumeChange, VolumeRecord, read_option};

/// Changes a volume, and prints the result.
pub fn change(
    way: &VolumeOptions,
    one: &One,
    allowed: Vec<Danger>,
    act: impl FnOnce(Drive, &mut VolumeRecord) -> Result<Option<String>, Failure>,
) -> Result<i32, Failure> {
    let drive = drive(way, Some(&one.name))?.allowing(allowed);
    let mut record = found(&drive, way, one)?;
    if let Some(text) = act(drive, &mut record)?.filter(|_| !way.dry_run && !way.silent) {
        println!("{text}");
    }
    Ok(0)
}

fn named(way: &VolumeOptions, on: Option<&str>) -> Result<Option<Vec<String>>, Failure> {
    on.map(|text| way.cluster.load()?.hosts(Some(text))).transpose()
}

/// Refuses -w for a volume that has a record, with the option that names the hosts to change.
fn refuse_hosts(way: &VolumeOptions, args: &On, verb: &str) -> Result<(), Failure> {
    let name = &args.one.name;
    let known = VolumeRecord::load(&homing_volume::folder(), name).ok().flatten();
    let Some(record) = known.filter(|_| args.one.query.is_given() && args.on.is_none()) else { return Ok(()) };
    let hosts = args.one.query.chosen(way.cluster.load()?, None)?;
    record.refuse_hosts(&hosts).map_err(|failure| failure.hint(on(verb, name, hosts)))
}

/// Returns the command for these hosts.
fn on(verb: &str, name: &str, hosts: Vec<String>) -> String {
    let hosts: NodeSet = hosts.into_iter().collect();
    format!("homing volume {verb} {name} --on {}", shell_word(&hosts.to_string()))
}

/// Mounts a volume on more hosts.
pub fn mount(way: &VolumeOptions, args: &On) -> Result<i32, Failure> {
    refuse_hosts(way, args, "mount")?;
    let hosts = named(way, args.on.as_deref())?;
    change(way, &args.one, args.allow.list(), |drive, record| drive.mount(record, hosts))
}

/// Unmounts a volume on hosts.
pub fn unmount(way: &VolumeOptions, args: &On) -> Result<i32, Failure> {
    refuse_hosts(way, args, "unmount")?;
    let hosts = named(way, args.on.as_deref())?;
    change(way, &args.one, Vec::new(), |drive, record| drive.unmount(record, hosts))
}

/// Adds space to a volume.
pub fn add_host(way: &VolumeOptions, args: &AddHost) -> Result<i32, Failure> {
    let places = way.cluster.load()?.places(&args.places)?;
    change(way, &args.one, args.allow.list(), |drive, record| drive.add_host(record, places))
}

/// Moves all bytes off a host.
pub fn drain_host(way: &VolumeOptions, args: &DrainHost) -> Result<i32, Failure> {
    change(way, &args.one, args.allow.list(), |drive, record| drive.drain_host(record, &args.host))
}

/// Changes the number of copies.
pub fn set_copies(way: &VolumeOptions, args: &SetCopies) -> Result<i32, Failure> {
    change(way, &args.one, args.allow.list(), |drive, record| drive.set_copies(record, &args.path, args.copies))
}

/// Changes how new files are cut.
pub fn set_stripe(way: &VolumeOptions, args: &SetStripe) -> Result<i32, Failure> {
    let Some(client) = &args.lustre_client else {
        return change(way, &args.one, args.allow.list(), |drive, record| {
            drive.set_stripe(record, &args.path, args.size)
        });
    };
    let drive = drive(way, Some(&args.one.name))?.allowing(args.allow.list());
    drive.set_lustre_stripe(&args.one.name, client, &args.path, args.count, args.size).map(|_| 0)
}

/// Reads options, each once.
pub fn options(texts: &[String]) -> Result<OptionChanges, Failure> {
    let mut all = OptionChanges::new();
    for text in texts {
        let (key, value) = read_option(text).map_err(Failure::usage)?;
        if all.insert(key.clone(), value).is_some() {
            return Err(Failure::usage(format!("option {key} is named twice")));
        }
    }
    Ok(all)
}

/// Changes options of the file system.
pub fn set_option(way: &VolumeOptions, args: &SetOption) -> Result<i32, Failure> {
    let options = options(&args.options)?;
    change(way, &args.one, Vec::new(), |drive, record| drive.set_option(record, options))
}

/// Changes how the volume is exported.
pub fn set_export(way: &VolumeOptions, args: &SetExport) -> Result<i32, Failure> {
    let export = ExportOptions::parse(&args.options).map_err(Failure::usage)?;
    change(way, &args.one, Vec::new(), |drive, record| drive.set_export(record, export))
}

/// Brings copies up to date.
pub fn heal(way: &VolumeOptions, args: &Heal) -> Result<i32, Failure> {
    change(way, &args.one, Vec::new(), |drive, record| drive.heal(record, args.full))
}

/// Spreads files over all hosts again.
pub fn rebalance(way: &VolumeOptions, args: &One) -> Result<i32, Failure> {
    change(way, args, Vec::new(), |drive, record| drive.rebalance(record))
}

/// Deletes the volume.
pub fn delete(way: &VolumeOptions, args: &Delete) -> Result<i32, Failure> {
    let told = args.delete_files.then_some(Danger::DeleteFiles).into_iter().collect();
    change(way, &args.one, told, |drive, record| drive.delete(record))
}

/// Finishes an interrupted change by the function that began it.
pub fn resume(way: &VolumeOptions, args: &One) -> Result<i32, Failure> {
    change(way, args, Vec::new(), Drive::resume)
}

/// Undoes an interrupted change.
pub fn undo(way: &VolumeOptions, args: &One) -> Result<i32, Failure> {
    let told = |what: VolumeChange| Some(format!("undone: {what}"));
    change(way, args, Vec::new(), |drive, record| drive.undo(record).map(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_named_twice_is_refused() {
        let read = |texts: &[&str]| options(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        assert_eq!(read(&["a.b=1", "c.d="]).unwrap().len(), 2);
        assert!(read(&["a.b=1", "a.b=2"]).unwrap_err().message.contains("named twice"));
        assert!(read(&["io-threads 8"]).unwrap_err().message.contains("KEY=VALUE"));
    }

    #[test]
    fn the_command_for_the_hosts_of_a_mount_can_be_pasted() {
        assert_eq!(on("mount", "data", vec!["n4".into()]), "homing volume mount data --on n4");
        let two = vec!["n4".to_string(), "n5".to_string()];
        assert_eq!(on("unmount", "data", two), "homing volume unmount data --on 'n[4-5]'");
    }
}
