//! The library that make is started with. It is written to a file for one build, and tried before the build starts.

use crate::failure::Failure;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library, as a file that this make loads.
pub struct Hook {
    path: PathBuf,
    /// A folder that is removed when the build is over.
    _folder: Option<tempfile::TempDir>,
}

impl Hook {
    /// Writes the library to the build's own folder or, if programs cannot be executed there, below the user's home.
    /// The inner error explains to users why recipes of this make cannot be handed over.
    ///
    /// # Errors
    /// Make cannot be started.
    pub fn install(private: &Path, program: &OsStr) -> Result<Result<Hook, String>, Failure> {
        let name = program.to_string_lossy();
        if homing_make::hook::LIBRARY.is_empty() {
            return Ok(Err(format!("recipes of {name} can be sent to hosts only on 64-bit Linux")));
        }
        let first = Hook { path: private.join("hook.so"), _folder: None };
        if first.is_loaded(private, program)? {
            return Ok(Ok(first));
        }
        let second = match Hook::below_home() {
            Ok(second) => second,
            Err(why) => return Ok(Err(format!("{name} does not load homing's library: {why}"))),
        };
        Ok(match second.is_loaded(private, program)? {
            true => Ok(second),
            false => Err(format!("{name} does not load homing's library (a static program, or not GNU make)")),
        })
    }

    fn below_home() -> Result<Hook, String> {
        let state = homing_os::folder::state();
        let made = homing_os::folder::make_folder(&state, 0o700)
            .and_then(|()| tempfile::Builder::new().prefix("make").tempdir_in(&state));
        let folder = made.map_err(|e| format!("cannot make a folder in {}: {e}", state.display()))?;
        Ok(Hook { path: folder.path().join("hook.so"), _folder: Some(folder) })
    }

    /// Returns whether make loads the library. It is started once for that, to print its version.
    fn is_loaded(&self, private: &Path, program: &OsStr) -> Result<bool, Failure> {
        // The dynamic linker splits its list of libraries at colons and blanks.
        if self.path.as_os_str().as_bytes().iter().any(|byte| b": ".contains(byte)) {
            return Ok(false);
        }
        homing_os::folder::write_file(&self.path, homing_make::hook::LIBRARY)
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", self.path.display())))?;
        let (probe, none) = (private.join("probe"), Path::new("/nonexistent"));
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.serve(&mut command, none)?;
        command.env(homing_make::hook::PROBE, &probe).status().map_err(|e| not_started(program, &e))?;
        Ok(probe.exists())
    }

    /// Sets the environment in which this make hands its recipes over at the socket.
    pub fn serve(&self, command: &mut Command, socket: &Path) -> Result<(), Failure> {
        let own = crate::programs::own_path()?;
        let outer = std::env::var_os(homing_make::hook::HOOK);
        let before = std::env::var_os(homing_make::hook::PRELOAD);
        let preload = homing_make::hook::preload(self.path.as_os_str(), before.as_deref(), outer.as_deref());
        command
            .env(homing_make::hook::SOCKET, socket)
            .env(homing_make::hook::SELF, own)
            .env(homing_make::hook::HOOK, &self.path);
        command.env(homing_make::hook::PRELOAD, preload).env_remove(homing_make::hook::OUTER);
        Ok(())
    }
}

/// Returns the failure for a make that cannot be started.
pub fn not_started(program: &OsStr, error: &std::io::Error) -> Failure {
    let program = program.to_string_lossy();
    Failure::usage(format!("cannot run {program}: {error}")).hint("apt install make, or --program")
}
