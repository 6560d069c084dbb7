//! Reads cluster files: decides which files count, and checks their content. A mistake is an error with its line. A
//! file in the current folder that another user could write is not read, and a note names it.

use super::cost::Cost;
use super::power::PowerSection;
use super::switches::{self, Rate, SwitchSection};
use homing_dispatch::source::leases::ServerSection;
use homing_locate::OwnLocator;
use homing_model::{Failure, Mount, NodeSet};
use homing_mounts::FileSystemKind;
use homing_queue::index::Index;
use homing_queue::plan::Queue;
use homing_setup::Up;
use homing_snapshot::section::Section;
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The administrator's cluster file.
const MACHINE: &str = "/etc/homing/cluster.toml";
/// The cluster file in the current folder.
const HERE: &str = "cluster.toml";
/// The most bytes of a cluster file.
const LONGEST: u64 = 4 << 20;

/// The content of a `cluster.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterFile {
    /// The hosts, as a node set, or a list of these.
    #[serde(default, deserialize_with = "node_set")]
    pub hosts: Option<String>,
    /// Named node sets, for `@name`.
    #[serde(default)]
    pub groups: BTreeMap<String, String>,
    /// Settings of single hosts, by name; in the file also by node set.
    #[serde(default)]
    pub host: BTreeMap<String, HostSection>,
    /// Load indices that the site defines.
    #[serde(default)]
    pub index: BTreeMap<String, Index>,
    /// Commands that locate the bytes of files, for file systems that homing does not know.
    #[serde(default)]
    pub locator: BTreeMap<String, OwnLocator>,
    /// Storage servers, by a name or an address of each.
    #[serde(default)]
    pub server: BTreeMap<String, ServerSection>,
    /// The file of `homing topology --json` with the hosts of each switch. A relative name is relative to the folder
    /// of the cluster file.
    pub topology: Option<PathBuf>,
    /// Switches, by name.
    #[serde(default)]
    pub switch: BTreeMap<String, SwitchSection>,
    /// Queues of `homing sub` and of the LSF front end.
    #[serde(default)]
    pub queue: BTreeMap<String, Queue>,
    /// Settings for `homing up`.
    pub up: Option<Up>,
    /// Prices, for `homing usage` and `homing report`.
    pub cost: Option<Cost>,
    /// The power that hosts draw, and the limits for several hosts together.
    pub power: Option<PowerSection>,
    /// The folders that `homing snapshot` copies.
    #[serde(default)]
    pub snapshot: BTreeMap<String, Section>,
}

/// Reads a node set from one text, or from several.
fn node_set<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a node set, such as \"n[1-4]\", or a list of these")]
    enum NodeSetValue {
        One(String),
        Several(Vec<String>),
    }
    Ok(Some(match NodeSetValue::deserialize(from)? {
        NodeSetValue::One(text) => text,
        NodeSetValue::Several(texts) => texts.join(","),
    }))
}

/// `[host.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostSection {
    /// Number of tasks at once.
    pub slots: Option<u32>,
    /// Its amounts of named resources, for `homing run`.
    #[serde(default)]
    pub resources: BTreeMap<String, u64>,
    /// Number of graphics processors, if the devices there do not show it: the resource `gpu`.
    pub gpus: Option<u32>,
    /// Its address in each network.
    #[serde(default)]
    pub addresses: BTreeMap<String, IpAddr>,
    /// Rate of the link that carries its data, if the interface does not report it or reports another.
    pub link: Option<Rate>,
    /// The power that it draws when nothing runs, watts.
    pub idle_w: Option<f64>,
    /// The power that it draws when all slots are in use, watts.
    pub full_w: Option<f64>,
}

fn add<T: Copy>(own: &mut BTreeMap<String, T>, other: &BTreeMap<String, T>) {
    for (name, value) in other {
        own.entry(name.clone()).or_insert(*value);
    }
}

impl HostSection {
    /// Takes settings that it lacks from `other`.
    fn take_from(&mut self, other: &HostSection) {
        self.slots = self.slots.or(other.slots);
        self.gpus = self.gpus.or(other.gpus);
        self.link = self.link.or(other.link);
        self.idle_w = self.idle_w.or(other.idle_w);
        self.full_w = self.full_w.or(other.full_w);
        add(&mut self.resources, &other.resources);
    }

    /// Returns its amounts of named resources, in units.
    pub fn amounts(&self) -> impl Iterator<Item = (String, u64)> {
        let gpus = self.gpus.map(|gpus| (homing_model::resource::GPU.to_string(), u64::from(gpus)));
        gpus.into_iter().chain(self.resources.iter().map(|(name, amount)| (name.clone(), *amount)))
    }

    /// Returns the power that it draws when nothing runs, and when all slots are in use.
    pub fn watts(&self) -> [Option<f64>; 2] {
        [self.idle_w, self.full_w]
    }
}

/// Returns the administrator's settings; empty without that file.
pub(super) fn machine() -> Result<ClusterFile, Failure> {
    let path = Path::new(MACHINE);
    if fs::symlink_metadata(path).is_ok() { read(path) } else { Ok(ClusterFile::default()) }
}

/// Returns the user's settings: from the file that the option or `$HOMING_CLUSTER` names, else from the first that is
/// found.
pub(super) fn own(option: Option<&Path>, here: bool) -> Result<ClusterFile, Failure> {
    own_path(option, here).map_or_else(|| Ok(ClusterFile::default()), |path| read(&path))
}

/// Returns the path of that file. `here`: a file in the current folder counts.
pub fn own_path(option: Option<&Path>, here: bool) -> Option<PathBuf> {
    if let Some(path) = option.map(PathBuf::from).or_else(named) {
        return Some(path);
    }
    if here && fs::symlink_metadata(HERE).is_ok() {
        match distrust(Path::new(HERE)) {
            None => return Some(HERE.into()),
            Some(why) => say_once(&why),
        }
    }
    config_folder().map(|folder| folder.join("cluster.toml")).filter(|p| fs::symlink_metadata(p).is_ok())
}

/// Returns the folder of the user's own files for homing.
pub fn config_folder() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| homing_os::names::home().map(|home| home.join(".config")));
    config.map(|config| config.join("homing"))
}

/// Returns the file that `$HOMING_CLUSTER` names.
pub(super) fn named() -> Option<PathBuf> {
    std::env::var_os("HOMING_CLUSTER").filter(|name| !name.is_empty()).map(PathBuf::from)
}

fn say_once(why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        homing_os::say!("homing: ./{HERE} was not read: {why}; to use its hosts, name it: --cluster ./{HERE}");
    });
}

/// Returns why a file that the user has not named is ignored: a user who can write it decides on which machines the
/// commands run.
fn distrust(path: &Path) -> Option<String> {
    let look = || {
        let real = fs::canonicalize(path)?;
        let folder = fs::metadata(real.parent().unwrap_or(Path::new("/")))?;
        Ok([("it", fs::metadata(&real)?), ("its folder", folder), ("this folder", fs::metadata(".")?)])
    };
    let looked: std::io::Result<[(&str, Metadata); 3]> = look();
    let all = match looked {
        Ok(all) => all,
        Err(error) => return Some(error.to_string()),
    };
    if !all[0].1.is_file() {
        return Some("it is no regular file".into());
    }
    let user = rustix::process::geteuid().as_raw();
    all.iter().find_map(|(what, meta)| writable_by_others(what, meta, user))
}

/// Returns how a user other than this one and root could change a file or a folder. In a folder with the sticky bit,
/// others cannot replace the user's files.
fn writable_by_others(what: &str, meta: &Metadata, user: u32) -> Option<String> {
    if meta.uid() != user && meta.uid() != 0 {
        return Some(format!("{what} belongs to user {}", homing_queue::user_name(meta.uid())));
    }
    let shared = meta.is_dir() && meta.mode() & 0o1000 != 0;
    (!shared && meta.mode() & 0o022 != 0).then(|| format!("others may write {what} (chmod go-w)"))
}

/// Reads a file. Each error contains the name of the file, and the line if it has one.
fn read(path: &Path) -> Result<ClusterFile, Failure> {
    let cannot = |e: std::io::Error| Failure::usage(format!("cannot read the cluster file {}: {e}", path.display()));
    let text = text_of(path).map_err(cannot)?;
    let parsed = parse(&text).map_err(|(line, why)| {
        let hint = "correct that line; --cluster FILE or HOMING_CLUSTER=FILE names another file";
        let hint = super::lsf_keys::instead(&why).unwrap_or_else(|| hint.into());
        Failure::usage(format!("cluster file {}, line {line}: {why}", path.display())).hint(hint)
    })?;
    let beside = |file: PathBuf| path.parent().unwrap_or(Path::new(".")).join(file);
    Ok(ClusterFile { topology: parsed.topology.clone().map(beside), ..parsed })
}

/// Returns the text of a file of settings.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    let short = text.len() as u64 <= LONGEST;
    short.then_some(text).ok_or_else(|| std::io::Error::other(format!("it is longer than {LONGEST} bytes")))
}

/// Opens a regular file only: opening a pipe without a writer would block, and opening a device may have effects.
fn open(path: &Path) -> std::io::Result<File> {
    let irregular = || std::io::Error::other("it is no regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Returns the settings, or the line, from 1, and its fault.
fn parse(text: &str) -> Result<ClusterFile, (usize, String)> {
    let mut settings: ClusterFile = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line_of(text, at), error.message().replace("unknown field", "unknown key"))
    })?;
    settings.host = by_host(settings.host)
        .map_err(|(set, why)| (line_of(text, text.find(&format!("[host.\"{set}")).unwrap_or(0)), why))?;
    for (name, queue) in &settings.queue {
        if let Some((index, value)) = queue.load.iter().find(|(_, v)| homing_queue::thresholds(v).is_none()) {
            let at = text.find(value.as_str()).unwrap_or(0);
            let why = format!(
                "{index} = {value:?} in [queue.{name}] is not a pair of thresholds: \"1500/4000\", \"1500\", \"/4000\""
            );
            return Err((line_of(text, at), why));
        }
    }
    if let Some(fault) = switches::fault(&settings.switch) {
        let at = text.find(&format!("[switch.{}]", fault.switch)).unwrap_or(0);
        return Err((line_of(text, at), format!("[switch.{}]: {}", fault.switch, fault.why)));
    }
    if let Some((name, why)) = settings.locator.iter().find_map(|(name, own)| Some((name, odd_locator(own)?))) {
        let at = text.find(&format!("[locator.{name}")).unwrap_or(0);
        return Err((line_of(text, at), format!("[locator.{name}]: {why}")));
    }
    if let Some((at, why)) = settings.up.as_ref().and_then(|_| odd_text(text)) {
        return Err((line_of(text, at), why));
    }
    if let Some((key, why)) = settings.cost.as_ref().and_then(Cost::fault) {
        return Err((line_of(text, text.find(key).unwrap_or(0)), why));
    }
    Ok(settings)
}

/// Applies a section of a node set to each of its hosts; settings under a host's own name have priority. `Err`: a
/// section, and its fault.
fn by_host(sections: BTreeMap<String, HostSection>) -> Result<BTreeMap<String, HostSection>, (String, String)> {
    let is_set = |name: &str| name.contains(['[', ',', '@', '!', '&', '^']);
    let (sets, mut all): (BTreeMap<_, _>, BTreeMap<_, _>) = sections.into_iter().partition(|(name, _)| is_set(name));
    let mut from: BTreeMap<String, String> = BTreeMap::new();
    for (set, section) in sets {
        let hosts = NodeSet::parse(&set).map_err(|e| (set.clone(), format!("[host.{set:?}]: no node set: {e}")))?;
        if !section.addresses.is_empty() {
            return Err((
                set.clone(),
                format!("[host.{set:?}]: addresses belong to one host; write a section for each host"),
            ));
        }
        for host in hosts.iter().map(String::from) {
            if let Some(other) = from.insert(host.clone(), set.clone()) {
                return Err((set.clone(), format!("[host.{set:?}]: {host} is in [host.{other:?}] too")));
            }
            all.entry(host).or_default().take_from(&section);
        }
    }
    Ok(all)
}

/// Returns a key or a value of `[up]` with a control character, and its place. All of them become lines of files that
/// know no quoting: a newline would add a second line to a file of root.
fn odd_text(text: &str) -> Option<(usize, String)> {
    /// Returns the path of keys, and the last key.
    fn find(path: &str, key: &str, value: &toml::Value) -> Option<(String, String)> {
        match value {
            toml::Value::String(text) => text.contains(char::is_control).then(|| (path.into(), key.into())),
            toml::Value::Array(all) => all.iter().find_map(|value| find(path, key, value)),
            toml::Value::Table(all) => all.iter().find_map(|(key, value)| {
                let path = format!("{path}.{}", key.escape_debug());
                if key.contains(char::is_control) { Some((path, key.clone())) } else { find(&path, key, value) }
            }),
            _ => None,
        }
    }
    let whole: toml::Table = toml::from_str(text).ok()?;
    let (path, key) = find("up", "up", whole.get("up")?)?;
    let begin = text.find("[up").unwrap_or(0);
    let at = begin + text[begin..].find(&key).unwrap_or(0);
    Some((
        at,
        format!("{path} has a control character (a newline, a tab), which would break the file that homing up writes"),
    ))
}

/// Returns the fault of a locator that the site defines.
fn odd_locator(own: &OwnLocator) -> Option<String> {
    let mount = Mount { point: "/".into(), fstype: own.fstype.clone(), source: "".into() };
    if !FileSystemKind::of(&mount).is_network() {
        return Some(format!("fstype = {:?} is not a type of network file system", own.fstype));
    }
    own.command.trim().is_empty().then(|| "command = \"...\" is missing".into())
}

/// Returns the line, from 1, that contains a byte.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_mistake_names_its_line_its_key_and_the_keys_that_there_are() {
        for (text, line, words) in [
            ("hosts = \"n1\"\n[host.n1]\nslotz = 2\n", 3, vec!["unknown key `slotz`", "`slots`"]),
            ("hosts = \"n1\n", 1, vec!["string"]),
            ("\n[host.\"n[1-\"]\nslots = 2\n", 2, vec!["n[1-", "no node set"]),
            ("[host.\"n[1-2]\"]\n[host.\"n2,n3\"]\n", 1, vec!["n2 is in", "n2,n3"]),
            ("[host.\"@web\"]\nslots = 2\n", 1, vec!["@web", "no node set"]),
            ("[host.\"n[1-2]\"]\naddresses = { data = \"10.0.0.1\" }\n", 1, vec!["n[1-2]", "belong to one host"]),
            ("[queue.a]\nprio = 3\n", 2, vec!["`prio`", "`priority`", "`per_user`"]),
            ("\n\nqueues = 1\n", 3, vec!["`queues`", "`queue`", "`groups`"]),
            ("[queue.a]\nload = { bio = \"x\" }\n", 2, vec!["bio", "thresholds"]),
            ("[queue.a]\nslots = \"four\"\n", 2, vec!["\"four\""]),
            ("[queue.a]\npriority = 1\nnice = 40\n", 3, vec!["nice = 40", "0 to 19"]),
            ("[queue.a]\nres_req = \"mem>\"\n", 2, vec!["res_req", "\"mem>\""]),
            ("[queue.a]\nslots = 1\ndispatch_window = \"7\"\n", 3, vec!["\"7\"", "window"]),
            ("[switch.a]\nuplink = \"fast\"\n", 2, vec!["\"fast\"", "10G"]),
            ("[switch.a]\nhost = \"n1\"\n", 2, vec!["`host`", "`hosts`", "`uplink`"]),
            ("[switch.a]\nhosts = \"n1\"\n[switch.b]\nhosts = \"n[1-2]\"\n", 3, vec!["switch.b", "n1", "already"]),
            (
                "\n[locator.a]\nfstype = \"ext4\"\ncommand = \"x\"\n",
                2,
                vec!["locator.a", "\"ext4\"", "network file system"],
            ),
            ("[locator.a]\nfstype = \"beegfs\"\n", 1, vec!["`command`"]),
            ("[locator.a]\nfstype = \"beegfs\"\ncommand = \" \"\n", 1, vec!["locator.a", "command"]),
            ("[up.user.a]\nshell = \"/bin/a\\nb\"\n", 2, vec!["up.user.a.shell", "control character"]),
            ("[up]\npackages = [\"a\", \"b\\tc\"]\n", 2, vec!["up.packages", "control character"]),
            ("[up]\n[up.sysctl]\n\"vm.x\" = '''\n1\nkernel.y = 2'''\n", 3, vec!["up.sysctl.vm.x", "control character"]),
            ("[cost]\ncurrency = \"EUR\"\nhost_hour = -1\n", 3, vec!["-1", "price"]),
            ("[cost]\ncurrency = \"EUR\"\nkwh = 0.3\nhost_price = 1\n", 4, vec!["host_years"]),
        ] {
            let (at, why) = parse(text).unwrap_err();
            assert_eq!(at, line, "{text}: {why}");
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
        }
    }

    #[test]
    fn hosts_may_be_a_list() {
        assert_eq!(parse("hosts = [\"n1\", \"n[2-3]\"]\n").unwrap().hosts.as_deref(), Some("n1,n[2-3]"));
        let (_, why) = parse("hosts = 3\n").unwrap_err();
        assert!(why.contains("a node set, such as"), "{why}");
    }

    #[test]
    fn a_section_of_hosts_may_be_of_a_node_set() {
        let text = "[host.\"n[1-3]\"]\nslots = 2\nlink = \"10G\"\nresources = { gpu = 1, disk = 4 }\n\
                    [host.n2]\nslots = 0\nresources = { gpu = 8 }\n";
        let told = parse(text).unwrap().host;
        assert_eq!(told.keys().collect::<Vec<_>>(), ["n1", "n2", "n3"]);
        assert_eq!((told["n1"].slots, told["n2"].slots), (Some(2), Some(0)));
        assert!(told.values().all(|host| host.link.is_some()));
        assert_eq!(told["n2"].resources, [("disk".to_string(), 4), ("gpu".to_string(), 8)].into());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
        for path in [pipe.as_path(), dir.path(), Path::new("/dev/zero")] {
            assert!(read(path).unwrap_err().message.contains("no regular file"), "{}", path.display());
        }
    }

    #[test]
    fn only_the_user_and_root_may_be_able_to_write_it() {
        let dir = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let said = |path: &Path, user: u32| writable_by_others("it", &fs::metadata(path).unwrap(), user);
        let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        for (mode, trusted) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            chmod(&file, mode);
            assert_eq!(said(&file, user).is_none(), trusted, "{mode:o}");
        }
        for (mode, trusted) in [(0o755, true), (0o775, false), (0o777, false), (0o1777, true)] {
            chmod(dir.path(), mode);
            assert_eq!(said(dir.path(), user).is_none(), trusted, "{mode:o}");
        }
        if user != 0 {
            assert!(said(&file, user + 1).unwrap().contains("belongs to"));
        }
    }
}
