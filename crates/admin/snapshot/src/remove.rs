//! Removes expired images: renames them first, which takes them out of the vault's images, then deletes them in the
//! background.

use crate::ask::{Expired, VaultLocation};
use crate::doubt::{self, ClockReading};
use crate::image::EXPIRED;
use crate::journal::{self, VaultEvent};
use crate::vault::{Vault, sync_folder};
use crate::{keep, run};
use homing_os::folder::lock::FileLock;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The argument that starts the removal in a process of its own.
pub const WORD: &str = "snapshot-remove";

/// Takes the images that have expired out of the vault, and returns their names. If this host's clock is in doubt, no
/// image is removed, and the result has the reason.
/// `readings`: of other clocks; `trust`: a person has checked the clock. The caller holds the vault's lock.
pub fn expire(vault: &Vault, readings: &[ClockReading], trust: bool, zone: &TimeZone) -> io::Result<Expired> {
    let (images, now) = (vault.images(zone), Timestamp::now());
    if !trust {
        let readings = [vault.readings()?, readings.to_vec()].concat();
        if let Some(why) = doubt::of_clock(&images, now, &readings) {
            return Ok(Expired { names: Vec::new(), doubt: Some(why) });
        }
    }
    let gone: Vec<String> = keep::expired(&images, now).into_iter().map(|image| image.name.clone()).collect();
    for name in &gone {
        aside(vault, name)?;
        journal::add(&vault.own(), VaultEvent::Expired { image: name.clone() })?;
    }
    Ok(Expired { names: gone, doubt: None })
}

/// Renames a folder of the vault to the name of an image that is being removed.
pub fn aside(vault: &Vault, name: &str) -> io::Result<()> {
    fs::rename(vault.folder(name), vault.folder(&format!("{name}{EXPIRED}")))?;
    sync_folder(&vault.path)
}

/// Begins the removal if there is an image to remove.
pub fn begin(vault: &Vault) -> io::Result<()> {
    let any = !vault.ending(EXPIRED).is_empty();
    if any { behind(Path::new("/proc/self/exe"), &vault.path) } else { Ok(()) }
}

/// Starts the removal as a process of its own, which outlives this one.
fn behind(program: &Path, vault: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    command.arg(WORD).arg(vault).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: only a system call is made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
    command.spawn().map(drop)
}

/// Deletes all folders with such a name; one process at a time in a vault.
pub fn all(path: &Path) -> Result<(), String> {
    let (Some(bank), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(format!("{} is not a vault", path.display()));
    };
    let vault = Vault::open(&VaultLocation { bank: bank.into(), vault: name.into() })?;
    let lock = FileLock::try_take(&vault.own().join("homing.removing"));
    let Some(_held) = lock.map_err(|e| format!("{}: {e}", path.display()))? else { return Ok(()) };
    run::lowest();
    for name in vault.ending(EXPIRED) {
        let folder = vault.folder(&name);
        delete(&folder).map_err(|e| format!("cannot remove {}: {e}", folder.display()))?;
    }
    Ok(())
}

/// Deletes a folder with all its content; links are not followed.
pub fn delete(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        // The user may lack write permission for folders of their own.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        other => other,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
