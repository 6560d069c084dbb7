//! The place of a user's files other than runs.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns homing's folder for files of the user: `$XDG_STATE_HOME/homing`, else `~/.local/state/homing`.
pub fn state() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    state_from(set, crate::names::home())
}

/// Returns [`state`] for a given environment and home.
pub fn state_from(var: impl Fn(&str) -> Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    // The XDG rules require to ignore a relative path there.
    let state = var("XDG_STATE_HOME").filter(|p| p.is_absolute());
    let state =
        state.unwrap_or_else(|| home.unwrap_or_else(|| PathBuf::from(crate::names::NO_HOME)).join(".local/state"));
    state.join("homing")
}

/// Returns the folder for records of a cluster. Clusters are kept apart, because their hosts may have the same names.
/// Examples are two labs, or two sites with ssh configurations of their own (`HOMING_SSH='ssh -F FILE'`, `--lab`).
/// Without such a file it is [`state`] itself.
pub fn cluster_state() -> PathBuf {
    crate::names::ssh_config().map_or_else(state, |file| cluster_state_of(&file))
}

/// Returns [`cluster_state`] of an ssh configuration.
pub fn cluster_state_of(config: &Path) -> PathBuf {
    state().join("clusters").join(cluster_key(config))
}

/// Returns the name of the configuration's folder, for people, and 64 bits of FNV-1a of the whole path.
fn cluster_key(config: &Path) -> String {
    let folder = config.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let plain: String = folder.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(40).collect();
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = config.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{plain}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_labs_have_two_folders_and_a_lab_the_same_each_time() {
        let [a, b] = ["/var/lib/homing/labs/a/ssh_config", "/var/lib/homing/labs/b/ssh_config"].map(Path::new);
        assert_eq!(cluster_key(a), cluster_key(a));
        assert_ne!(cluster_key(a), cluster_key(b));
        // The key must not change with a release, because users have folders of this name.
        assert_eq!(cluster_key(Path::new("/x/lab/c")), format!("lab-{:016x}", 0xc3fa_fcab_d67b_4388_u64));
    }

    #[test]
    fn a_relative_folder_of_state_does_not_count() {
        let with = |state: &str| {
            let state = PathBuf::from(state);
            state_from(|name| (name == "XDG_STATE_HOME").then(|| state.clone()), Some("/h".into()))
        };
        assert_eq!(with("/s"), PathBuf::from("/s/homing"));
        assert_eq!(with("s"), PathBuf::from("/h/.local/state/homing"));
    }
}
