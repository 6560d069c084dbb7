//! The worker's program as bytes, with the hash by which hosts keep it.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A program to copy.
pub struct Payload {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
}

impl Payload {
    fn new(bytes: Vec<u8>) -> Payload {
        let sha256 = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        Payload { bytes, sha256 }
    }
}

/// Reads and hashes `exe`, once per process: a run opens one channel per host,
/// and all must be given the same bytes even if the file is replaced meanwhile.
pub fn load(exe: &Path) -> io::Result<Arc<Payload>> {
    static LOADED: Mutex<Option<HashMap<PathBuf, Arc<Payload>>>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if let Some(payload) = loaded.get(exe) {
        return Ok(payload.clone());
    }
    let payload = Arc::new(Payload::new(std::fs::read(exe)?));
    loaded.insert(exe.to_path_buf(), payload.clone());
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_what_sha256sum_prints() {
        let abc = Payload::new(b"abc".to_vec());
        assert_eq!(abc.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
