//! Where mutes are kept, and files that are written whole.

use crate::failure::Failure;
use homing_check::mute::Mute;
use homing_model::NodeSet;
use std::path::{Path, PathBuf};

fn file() -> PathBuf {
    homing_folder::state().join("mutes.json")
}

/// All that there are, those that have ended too.
pub fn load() -> Result<Vec<Mute>, Failure> {
    let file = file();
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::system(format!("reading what is muted, {}: {e}", file.display()))),
    };
    serde_json::from_slice(&text).map_err(|e| {
        Failure::system(format!("{} is damaged: {e}", file.display())).hint(format!("rm {}", file.display()))
    })
}

/// Mutes a code until then.
pub fn add(code: &str, hosts: Vec<String>, until: u64, because: String) -> Result<i32, Failure> {
    let code = code.to_ascii_uppercase();
    let hosts: NodeSet = hosts.into_iter().collect();
    let fresh = Mute { code, hosts: hosts.to_string(), until, because };
    let mut all = load()?;
    all.retain(|mute| mute.until > super::now() && (&mute.code, &mute.hosts) != (&fresh.code, &fresh.hosts));
    all.push(fresh);
    save(&all)
}

/// Tells of a code again.
pub fn remove(code: &str) -> Result<i32, Failure> {
    let mut all = load()?;
    all.retain(|mute| !mute.code.eq_ignore_ascii_case(code));
    save(&all)
}

fn save(all: &[Mute]) -> Result<i32, Failure> {
    let file = file();
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|e| Failure::system(format!("making {}: {e}", folder.display())))?;
    let text = serde_json::to_string_pretty(all).map_err(Failure::system)? + "\n";
    write_whole(&file, &text).map(|()| 0)
}

/// A reader sees the old text or the new one, and all may read it: the node exporter is another user.
pub fn write_whole(file: &Path, text: &str) -> Result<(), Failure> {
    let written = homing_folder::write_whole(file, text.as_bytes(), Some(0o644));
    written.map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}
