//! Connections that are new each time. A kept connection may outlive a fault that cuts others off, and proves
//! nothing.

use crate::{Options, Remote};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tempfile::TempDir;

/// Makes connections that no other process shares.
pub struct Fresh {
    options: Options,
    folder: TempDir,
}

impl Fresh {
    /// Takes these options, except those about keeping connections.
    pub fn new(options: Options) -> Result<Fresh, String> {
        // The path of a socket must be short, whatever TMPDIR is.
        let place = std::env::var_os("XDG_RUNTIME_DIR").unwrap_or_else(|| "/tmp".into());
        let owner_only = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(owner_only).tempdir_in(&place);
        let folder =
            folder.map_err(|e| format!("cannot make a folder for connections in {} ({e})", place.display()))?;
        Ok(Fresh { options, folder })
    }

    /// Returns a [`Remote`] whose connections end with it.
    pub fn remote(&self) -> Remote {
        let folder = Some(self.folder.path().into());
        Remote::new(Options { persist: Duration::ZERO, folder, ..self.options.clone() })
    }
}
