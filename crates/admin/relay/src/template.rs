//! Makes a file for each host from one template.

use homing_model::Failure;
use homing_setup::{ClusterSite, expand};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use tempfile::TempDir;

/// Writes the file of each host into a folder of its own; the folder is removed with the first value.
pub fn written(
    template: &Path,
    hosts: &[String],
    site: &ClusterSite,
) -> Result<(TempDir, HashMap<String, String>), Failure> {
    let unread = |e: std::io::Error| Failure::usage(format!("cannot read the template {}: {e}", template.display()));
    let text = fs::read_to_string(template).map_err(unread)?;
    let like = fs::metadata(template).map_err(unread)?;
    let name = template
        .file_name()
        .ok_or_else(|| Failure::usage(format!("the template {} is not a file", template.display())))?;
    let unwritten = |e: std::io::Error| {
        Failure::system(format!("writing the files made from template {}: {e}", template.display()))
            .hint("TMPDIR=FOLDER names another folder for temporary files")
    };
    let folder = tempfile::tempdir().map_err(unwritten)?;
    let mut own = HashMap::new();
    for (i, host) in hosts.iter().enumerate() {
        let text = expand(&text, host, i + 1, site)
            .map_err(|why| Failure::usage(format!("template {}: {why}", template.display())))?;
        // A host's name may be any word; its number cannot lead to another folder.
        let path = folder.path().join(i.to_string()).join(name);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            fs::write(&path, text)?;
            fs::set_permissions(&path, like.permissions())?;
            // rsync keeps times: a file with equal bytes then counts as unchanged.
            File::options().write(true).open(&path)?.set_modified(like.modified()?)
        };
        write().map_err(unwritten)?;
        own.insert(host.clone(), path.display().to_string());
    }
    Ok((folder, own))
}
