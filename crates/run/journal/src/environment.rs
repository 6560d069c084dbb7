//! Compares the environment of a run's tasks with the environment of the run's first part, for the note of a resumed
//! run. Only digests are kept: values hold secrets, and the folder of a run may lie on a shared file system.

use homing_model::RawText;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file of digests in the folder of a run.
const FILE: &str = "environment";

/// Returns the names of variables that differ from those of the run's first part. The first part writes the file.
pub fn differing(dir: &Path, env: &[(RawText, RawText)]) -> io::Result<Vec<String>> {
    // This variable is the process id of the coordinator, which differs in every part.
    let told = env.iter().filter(|(name, _)| name.0 != b"PARALLEL_PID");
    let now: BTreeMap<String, String> = told.map(|(name, value)| (name.display(), digest(dir, name, value))).collect();
    let path = dir.join(FILE);
    match fs::read(&path) {
        Ok(text) => {
            let then: BTreeMap<String, String> = serde_json::from_slice(&text)?;
            let names: std::collections::BTreeSet<&String> = then.keys().chain(now.keys()).collect();
            Ok(names.into_iter().filter(|name| then.get(*name) != now.get(*name)).cloned().collect())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(&serde_json::to_vec(&now)?).map(|()| Vec::new())
        }
        Err(e) => Err(e),
    }
}

/// 64 bits of a SHA-256, salted with the name of the run.
fn digest(dir: &Path, name: &RawText, value: &RawText) -> String {
    let salt = dir.file_name().unwrap_or_default().as_encoded_bytes();
    let mut sum = Sha256::new();
    [salt, &name.0, &value.0].iter().for_each(|part| {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part);
    });
    sum.finalize()[..8].iter().map(|b| format!("{b:02x}")).collect()
}
