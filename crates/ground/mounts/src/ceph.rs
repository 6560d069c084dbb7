//! CephFS: the cluster, the file system, the folder and the read copies of a mount, as the mount and its client show
//! them.

pub use crate::ceph_source::is_kernel;
use crate::ceph_source::{after_monitors, is_id, named};
use crate::patience::FS_TIMEOUT;
use crate::table::MountLine;
use homing_model::Mount;
use homing_os::threads::within;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which OSDs a client reads from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// The primary of each placement group, which is the default.
    #[default]
    Primary,
    /// The copy that is nearest by the CRUSH map (`read_from_replica=localize`, `--localize-reads`).
    Nearest,
    /// Any copy (`read_from_replica=balance`).
    Any,
}

/// How a client was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Options with which the program `ceph` queries the same cluster as the same user.
    pub options: Vec<String>,
    /// Name of the file system, if the mount names it.
    fs: Option<String>,
    /// The folder that is mounted.
    folder: Option<String>,
    /// Which OSDs it reads from.
    pub read_from: ReadFrom,
}

/// Returns the client behind a mount. Unknown settings have their defaults.
pub fn client(line: &MountLine) -> Client {
    if is_kernel(&line.mount) { of_options(&line.of_super, &line.mount.source.display()) } else { of_process(line) }
}

/// Returns the id of the cluster, which any client reports to any user. `None` if it does not answer or is too old
/// for it.
pub fn cluster(point: &Path) -> Option<String> {
    let point = point.to_path_buf();
    within(FS_TIMEOUT, move || told_by(&point)).flatten().filter(|id| is_id(id))
}

#[cfg(target_os = "linux")]
fn told_by(point: &Path) -> Option<String> {
    // The text of a UUID has 36 bytes.
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(point, c"ceph.cluster_fsid", &mut value[..]).ok()?;
    Some(String::from_utf8_lossy(&value[..length]).trim_end_matches('\0').to_string())
}

/// Other systems may have no extended attributes.
#[cfg(not(target_os = "linux"))]
fn told_by(_: &Path) -> Option<String> {
    None
}

/// Returns the mount with a source that is the same on all hosts with the volume. It is `FSID.NAME=/folder`, as
/// mount.ceph writes it, without a user. The file system's name is left out if it is unknown.
pub(crate) fn identified(line: &MountLine) -> Mount {
    let mount = &line.mount;
    let source = mount.source.display();
    if named(&source).is_some() {
        let plain = source.split_once('@').map_or(source.as_str(), |(_, after)| after);
        return Mount { source: plain.into(), ..mount.clone() };
    }
    let Some(id) = cluster(mount.point.as_path()) else { return mount.clone() };
    let client = client(line);
    let fs = client.fs.map(|name| format!(".{name}")).unwrap_or_default();
    let folder = client.folder.unwrap_or_else(|| "/".into());
    Mount { source: format!("{id}{fs}={folder}").as_str().into(), ..mount.clone() }
}

/// Reads the options of the kernel's mount.
fn of_options(options: &[String], source: &str) -> Client {
    let value = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let user = value("name").or(source.split_once('@').map(|(user, _)| user)).unwrap_or("guest");
    Client {
        options: vec!["--name".into(), format!("client.{user}")],
        fs: value("mds_namespace").or_else(|| value("fs")).or(named(source).and_then(|it| it.fs)).map(String::from),
        folder: Some(after_monitors(source).to_string()),
        read_from: match value("read_from_replica") {
            Some("localize") => ReadFrom::Nearest,
            Some("balance") => ReadFrom::Any,
            _ => ReadFrom::Primary,
        },
    }
}

/// Reads the command line of the ceph-fuse that serves the mount.
fn of_process(line: &MountLine) -> Client {
    let point = line.mount.point.as_path();
    let user = line.of_super.iter().find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    let own = [0, rustix::process::getuid().as_raw()];
    // The options of another user's process must not be passed on to a program of homing.
    let Some(user) = user.filter(|user| own.contains(user)) else { return Client::default() };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let serves = |dir: PathBuf| {
        let of_user = dir.metadata().is_ok_and(|meta| meta.uid() == user);
        let words = of_user.then(|| std::fs::read(dir.join("cmdline")).ok()).flatten()?;
        let words: Vec<String> = words
            .split(|b| *b == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into())
            .collect();
        let is_it =
            words.first().is_some_and(|name| Path::new(name).file_name().is_some_and(|name| name == "ceph-fuse"));
        (is_it && words.iter().any(|word| word.trim_end_matches('/') == point.to_string_lossy()))
            .then(|| of_words(&words))
    };
    processes.filter_map(|entry| serves(entry.path())).last().unwrap_or_default()
}

/// Reads the words of a ceph-fuse. An option and its value are two words, or one word with `=`.
fn of_words(words: &[String]) -> Client {
    let mut client = Client::default();
    let mut options = Vec::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--localize-reads" {
            client.read_from = ReadFrom::Nearest;
            continue;
        }
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let mut value = || value.map(String::from).or_else(|| words.next().cloned());
        let mut hand_on = |name: &str, value: Option<String>| {
            options.extend(value.into_iter().flat_map(|value| [name.to_string(), value]))
        };
        // Ceph's options treat dashes and underscores as equal.
        match name.replace('_', "-").as_str() {
            "--id" | "--user" => hand_on("--name", value().map(|id| format!("client.{id}"))),
            "-n" | "--name" => hand_on("--name", value()),
            "-c" | "--conf" => hand_on("--conf", value()),
            "-k" | "--keyring" => hand_on("--keyring", value()),
            "-m" => hand_on("-m", value()),
            "--cluster" => hand_on("--cluster", value()),
            "--client-fs" | "--client-mds-namespace" => client.fs = value(),
            "-r" | "--client-mountpoint" => client.folder = value(),
            _ => {}
        }
    }
    Client { options, ..client }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_whom_to_ask_and_what_it_reads() {
        let of = |line: &str| of_words(&line.split(' ').map(String::from).collect::<Vec<_>>());
        let told =
            of("ceph-fuse --id=user -c /etc/ceph/b.conf /data -o nonempty --localize-reads --client_fs b -r /sub");
        assert_eq!(told.options, ["--name", "client.user", "--conf", "/etc/ceph/b.conf"]);
        assert_eq!((told.fs.as_deref(), told.folder.as_deref()), (Some("b"), Some("/sub")));
        assert_eq!(told.read_from, ReadFrom::Nearest);
        assert_eq!(of("ceph-fuse /data"), Client::default());
    }

    #[test]
    fn the_kernel_tells_by_options() {
        let options = ["rw", "name=ann", "secret=<hidden>", "mds_namespace=b", "read_from_replica=localize"];
        let told = of_options(&options.map(String::from), "10.0.0.1:6789:/sub");
        assert_eq!(told.options, ["--name", "client.ann"]);
        assert_eq!((told.fs.as_deref(), told.folder.as_deref()), (Some("b"), Some("/sub")));
        assert_eq!(told.read_from, ReadFrom::Nearest);
    }
}
