//! Runs one setting: mounts with it, writes and reads.

use crate::volume::fio::{self, Case, FioOperation};
use crate::volume::{Bench, sh};
use homing_model::Failure;
use serde::{Deserialize, Serialize};

/// The mount point of trials.
const POINT: &str = "/run/homing-tune";
/// Mounts, and prints the values that client and server settled on.
const MOUNT: &str = r#"
umount "$3" 2>/dev/null; mkdir -p -- "$3" && mount -t nfs -o "nosharecache,$2" -- "$1" "$3" || exit
[ ! -L "$3/.homing-tune" ] || { echo "$1/.homing-tune is a link: remove it" >&2; exit 1; }
mkdir -p -- "$3/.homing-tune" || exit
findmnt -n -o OPTIONS --target "$3" | tr , '\n' | grep -E '^(rsize|wsize|nconnect)=' | tr '\n' ' '
"#;
const UNMOUNT: &str = r#"
mountpoint -q "$1" || exit 0
rm -rf --one-file-system -- "$1/.homing-tune"; umount "$1" && rmdir "$1"
"#;
/// Sets max_block_size, which the server reads when its first thread starts. rpc.nfsd works with and without systemd.
const SERVER_BLOCK: &str = r#"
PATH=$PATH:/usr/sbin:/sbin; n=$(cat /proc/fs/nfsd/threads) || exit
rpc.nfsd 0 || exit; echo "$1" > /proc/fs/nfsd/max_block_size; s=$?; rpc.nfsd "$n" || exit
[ $s = 0 ] && [ "$(cat /proc/fs/nfsd/max_block_size)" = "$1" ]
"#;

/// The measured export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// Its source, as in the client's mount table.
    pub source: String,
    /// Options of the mount that a trial does not change: the version of NFS, and how the server is reached.
    #[serde(default = "first_base")]
    pub base: String,
}

/// Returns the base of sweeps that earlier versions saved: they mounted with it, whatever the mount had.
fn first_base() -> String {
    "vers=4.2".into()
}

impl Export {
    /// Reads the source and the options of a mount, separated by a blank, as the mount table has them. `None` if it has
    /// no version.
    pub fn read(line: &str) -> Option<Export> {
        let (source, options) = line.trim().rsplit_once(' ')?;
        let is_kept = |word: &&str| match word.split_once('=') {
            Some((name, value)) => ["vers", "port", "sec"].contains(&name) || (name == "proto" && value != "udp"),
            None => *word == "nolock",
        };
        let base: Vec<&str> = options.split(',').filter(is_kept).collect();
        let has_version = base.iter().any(|word| word.starts_with("vers="));
        has_version.then(|| Export { source: source.into(), base: base.join(",") })
    }
}

/// The options of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialOptions {
    /// The server's max_block_size in bytes, if it was set.
    pub block: Option<u64>,
    /// Bytes of a read or write on the wire; 0: both sides choose.
    pub size: u64,
    /// TCP connections.
    pub connections: u32,
}

impl TrialOptions {
    pub const DEFAULT: TrialOptions = TrialOptions { block: None, size: 0, connections: 1 };

    /// Returns the options for mount. `base`: those of the measured mount that each trial has too.
    pub fn options(self, base: &str) -> String {
        let mut options = format!("hard,{base},nconnect={}", self.connections);
        if self.size > 0 {
            options += &format!(",rsize={0},wsize={0}", self.size);
        }
        options
    }
}

/// One setting and its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    pub setting: TrialOptions,
    /// MB/s written, one value for each measurement.
    pub write: Vec<f64>,
    /// MB/s read, one value for each measurement.
    pub read: Vec<f64>,
    /// The values that client and server settled on, from the mount table.
    pub settled: String,
}

impl Try {
    pub fn of(setting: TrialOptions) -> Try {
        Try { setting, write: Vec::new(), read: Vec::new(), settled: String::new() }
    }

    pub fn mean_write(&self) -> f64 {
        mean(&self.write)
    }

    pub fn mean_read(&self) -> f64 {
        mean(&self.read)
    }

    /// Geometric mean: a gain in one direction does not hide a loss in the other.
    pub fn score(&self) -> f64 {
        (self.mean_write() * self.mean_read()).sqrt()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mounts for a trial, and returns the values that both sides settled on.
pub fn mount(bench: &Bench, export: &Export, setting: TrialOptions) -> Result<String, Failure> {
    let script = sh(MOUNT, &[&export.source, &setting.options(&export.base), POINT]);
    let said = bench.all(&bench.setup.hosts[..1], |_, _| script.clone(), "mounting the export for a trial")?.remove(0);
    Ok(said.trim().into())
}

/// Removes the trial mount, if there is one.
pub fn unmount(bench: &Bench) -> Result<(), Failure> {
    bench.all(&bench.setup.hosts[..1], |_, _| sh(UNMOUNT, &[POINT]), "unmounting the trial mount").map(drop)
}

/// Measures the mounted setting once more.
pub fn measure(bench: &Bench, export: &Export, t: &mut Try) -> Result<(), Failure> {
    let write = rate(bench, FioOperation::Write)?;
    // A new mount has no cache of the file that was written through the old one.
    mount(bench, export, t.setting)?;
    bench.drop_caches();
    let read = rate(bench, FioOperation::Read)?;
    let options = t.setting.options(&export.base);
    (bench.reporter.note)(&format!("{options}: write {write:.1} MB/s, read {read:.1} MB/s ({})", t.settled));
    t.write.push(write);
    t.read.push(read);
    Ok(())
}

fn rate(bench: &Bench, op: FioOperation) -> Result<f64, Failure> {
    let case = Case { op, bs: "1M".into(), clients: 1, copies: None };
    let folder = format!("{POINT}/.homing-tune");
    let texts = bench.all(&bench.setup.hosts[..1], |_, _| fio::argv(&case, &folder, bench, 0), "measuring")?;
    let row = fio::row(&case, &texts).ok_or_else(|| Failure::system("homing cannot read the output of fio"))?;
    Ok(row.mb_per_s)
}

/// Restarts the server's NFS service with another max_block_size.
pub fn set_block(bench: &Bench, server: &str, block: u64) -> Result<(), Failure> {
    let script = sh(SERVER_BLOCK, &[&block.to_string()]);
    bench.all(&[server.to_string()], |_, _| script.clone(), "setting max_block_size").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_mounts_by_the_version_of_the_mount_that_is_there() {
        let base = |options: &str| Export::read(&format!("nas:/volume1/a {options}\n")).map(|export| export.base);
        let third = "rw,relatime,vers=3,rsize=32768,wsize=32768,namlen=255,hard,nolock,proto=tcp,timeo=600,sec=sys,\
            mountaddr=10.0.0.9,mountvers=3,mountport=892,mountproto=udp,local_lock=all,addr=10.0.0.9";
        assert_eq!(base(third).as_deref(), Some("vers=3,nolock,proto=tcp,sec=sys"));
        let fourth = "rw,vers=4.2,rsize=131072,hard,proto=rdma,port=20049,nconnect=4,sec=sys,addr=10.0.0.1";
        assert_eq!(base(fourth).as_deref(), Some("vers=4.2,proto=rdma,port=20049,sec=sys"));
        // Several connections need TCP.
        assert_eq!(base("rw,vers=3,proto=udp").as_deref(), Some("vers=3"));
        assert_eq!(base("rw,hard"), None);
        let setting = TrialOptions { block: None, size: 32768, connections: 1 };
        assert_eq!(setting.options("vers=3"), "hard,vers=3,nconnect=1,rsize=32768,wsize=32768");
        let saved = r#"{"source": "n1:/x"}"#;
        assert_eq!(serde_json::from_str::<Export>(saved).unwrap().base, "vers=4.2", "a sweep of an earlier version");
    }
}
