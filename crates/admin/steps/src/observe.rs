//! Observes the present state of hosts, with one script and one answer for each.

use crate::change::{Account, DiskFs, FileState, HostChange, MountState, UnitState};
use crate::content::FileContent;
use crate::disk::DiskFacts;
use crate::executor::{Call, CallResult, Executor};
use crate::home::{HomeCopyState, Homed};
use crate::link::InterfaceSettings;
use homing_model::text::WordReader;
use std::collections::{BTreeMap, BTreeSet};

/// The functions that the queries call.
const PROBE: &str = concat!(include_str!("in_use.sh"), include_str!("disk.sh"), include_str!("probe.sh"));

/// The facts to query, besides those that are always reported.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct FactQuery {
    pub files: BTreeSet<String>,
    pub packages: BTreeSet<String>,
    pub units: BTreeSet<String>,
    pub sysctls: BTreeSet<String>,
    pub mounts: BTreeSet<String>,
    /// By mount point: the source that is wanted there, as in the first column of fstab.
    pub sources: BTreeMap<String, String>,
    /// Network interfaces.
    pub links: BTreeSet<String>,
    /// Addresses: for each that belongs to the host, its interface is reported, with its settings.
    pub carriers: BTreeSet<String>,
    /// Disks, by the user's names for them.
    pub disks: BTreeSet<String>,
    /// Shell commands that only read.
    pub outputs: BTreeSet<String>,
    /// A folder of homes, and the folder on a volume that is to replace it.
    pub homes: Option<(String, String)>,
    /// The journal of earlier changes.
    pub journal: bool,
    /// The process that means to act on the answer, as in [`crate::ChangePhase::lead`]: letters, digits and `-`.
    pub lead: Option<String>,
}

/// The thing at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathState {
    /// It does not exist.
    Absent,
    /// A regular file, and the time of its last change, seconds since 1970.
    File(FileState, u64),
    /// A folder, and the time when a name in it was last added or removed, seconds since 1970.
    Folder(u64),
    /// Another thing, such as a link.
    Other,
}

/// A line of the kernel's mount table, as findmnt prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountEntry {
    /// Where it comes from.
    pub source: String,
    /// Type of the file system.
    pub fstype: String,
    /// Options in force, separated by commas.
    pub options: String,
    /// Whether the host finds that its source is the wanted one, under another name.
    pub is_wanted: bool,
}

/// The facts of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The queried files, by path.
    pub files: BTreeMap<String, PathState>,
    /// The queried packages that are installed.
    pub packages: BTreeSet<String>,
    /// Known units, and the time of the last change of their state, seconds since 1970.
    pub units: BTreeMap<String, (UnitState, u64)>,
    /// Values of the kernel.
    pub sysctls: BTreeMap<String, String>,
    /// Mount points, and whether an unmounted one contains files.
    pub mounts: BTreeMap<String, (MountState, bool)>,
    /// By mount point: the file system that is mounted there, the last of several.
    pub mounted: BTreeMap<String, MountEntry>,
    /// The queried disks that are present.
    pub disks: BTreeMap<String, DiskFacts>,
    /// The queried folder of homes.
    pub homes: Homed,
    /// Settings of network interfaces.
    pub links: BTreeMap<String, InterfaceSettings>,
    /// The queried addresses that belong to the host, and their interfaces.
    pub carriers: BTreeMap<String, String>,
    /// The output of the queried commands that ended with status 0.
    pub outputs: BTreeMap<String, String>,
    /// All users.
    pub users: BTreeMap<String, Account>,
    /// All groups: number and further members.
    pub groups: BTreeMap<String, (u32, BTreeSet<String>)>,
    /// `user NAME` and `group NAME`: names that are in the files beside the databases and not in the databases.
    pub rests: BTreeSet<String>,
    /// The kernel's name of the host.
    pub hostname: String,
    /// Its addresses, except loopback.
    pub addresses: Vec<String>,
    /// The address at which its sshd was reached.
    pub reached_at: Option<String>,
    /// Public host keys, `type base64`.
    pub host_keys: Vec<String>,
    /// `ID` and `ID_LIKE` of os-release, in that order.
    pub family: Vec<String>,
    /// The number of the user that ran the query.
    pub uid: u32,
    /// Whether it will undo steps of an earlier homing that were not confirmed.
    pub guarded: bool,
    /// Changes that were made here, the oldest first, each with the name of its entry.
    pub journal: Vec<(String, HostChange)>,
    /// By journal entry: the set-up that made the change, as in [`crate::ChangePhase::owner`]. Older versions recorded
    /// none.
    pub owners: BTreeMap<String, String>,
}

/// The part of a journal entry besides its change.
#[derive(serde::Deserialize)]
struct Owned {
    by: Option<String>,
}

impl FactQuery {
    /// Returns the script for `sh -s`.
    pub fn script(&self) -> String {
        let ask = |verb: &'static str, names: &BTreeSet<String>| -> String {
            names.iter().map(|name| format!("{verb} {}\n", word(name))).collect()
        };
        let parts = [
            ask("file", &self.files),
            ask("package", &self.packages),
            ask("unit", &self.units),
            ask("kernel", &self.sysctls),
            ask("point", &self.mounts),
            ask("link", &self.links),
            ask("disk", &self.disks),
            ask("output", &self.outputs),
        ];
        let carriers: String = self.carriers.iter().map(|address| format!(" {}", word(address))).collect();
        let carriers = if carriers.is_empty() { String::new() } else { format!("carriers{carriers}\n") };
        let sources =
            self.sources.iter().map(|(point, source)| format!("source_is {} {}\n", word(point), word(source)));
        let sources: String = sources.collect();
        let homes = self.homes.iter().map(|(point, copy)| format!("homes {} {}\n", word(point), word(copy)));
        let homes: String = homes.collect();
        let journal = match self.journal {
            true => "journal\n",
            // Shows which disk a name meant.
            false if !self.disks.is_empty() => "journal disk\n",
            false => "",
        };
        let lead = word(self.lead.as_deref().unwrap_or(""));
        let parts = parts.concat();
        format!(
            "{PROBE}main() {{\nlook {lead}\nbasics\n{parts}{sources}{carriers}{homes}{journal}echo done\n}}\nmain </dev/null\n"
        )
    }

    /// Returns the query for the undo of these changes.
    pub fn of_changes<'c>(changes: impl IntoIterator<Item = &'c HostChange>) -> FactQuery {
        let mut question = FactQuery { journal: true, ..FactQuery::default() };
        for change in changes {
            match change {
                HostChange::File { path, .. } => drop(question.files.insert(path.clone())),
                HostChange::Unit { name, .. } => drop(question.units.insert(name.clone())),
                HostChange::Sysctl { key, .. } => drop(question.sysctls.insert(key.clone())),
                HostChange::Mount { point, .. } => drop(question.mounts.insert(point.clone())),
                HostChange::Disk { name, .. } => drop(question.disks.insert(name.clone())),
                HostChange::Link { interface, .. } => drop(question.links.insert(interface.clone())),
                HostChange::Package { name, .. } => drop(question.packages.insert(name.clone())),
                _ => {}
            }
        }
        question
    }
}

pub(crate) fn word(text: &str) -> String {
    WordReader::LoginShell.quoted(text)
}

/// Queries all hosts at once; returns a reason for each that does not answer.
pub fn observe(
    executor: &dyn Executor,
    hosts: &[String],
    question: &FactQuery,
) -> BTreeMap<String, Result<Observed, String>> {
    let ask = |host: &String| (host.clone(), Call::Script(question.script()));
    let scripts: Vec<(String, Call)> = hosts.iter().map(ask).collect();
    let read = |said: CallResult| Observed::read(&said?).ok_or_else(|| "its answer is incomplete".into());
    hosts.iter().cloned().zip(executor.look(&scripts).into_iter().map(read)).collect()
}

impl Observed {
    /// Reads the output of the probe; `None` if it is incomplete.
    pub fn read(text: &str) -> Option<Observed> {
        let mut seen = Observed::default();
        text.lines().for_each(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let _ = seen.take(&fields);
        });
        (text.lines().last() == Some("done")).then_some(seen)
    }

    /// Reads one line; `None` if it contains no known fact.
    fn take(&mut self, fields: &[&str]) -> Option<()> {
        let flag = |text: &str| text == "yes";
        match *fields {
            ["file", path, "absent"] => drop(self.files.insert(path.into(), PathState::Absent)),
            ["file", path, "folder", at] => drop(self.files.insert(path.into(), PathState::Folder(at.parse().ok()?))),
            ["file", path, "other"] => drop(self.files.insert(path.into(), PathState::Other)),
            ["file", path, mode, uid, gid, at, content] => {
                let mode = u32::from_str_radix(mode, 8).ok()?;
                let (uid, gid, content) = (uid.parse().ok()?, gid.parse().ok()?, FileContent::decoded(content)?);
                let state = FileState { content, mode, uid, gid };
                self.files.insert(path.into(), PathState::File(state, at.parse().ok()?));
            }
            ["package", name] => drop(self.packages.insert(name.into())),
            ["unit", name, enabled, active, at] => {
                let state = UnitState { enabled: flag(enabled), active: flag(active) };
                self.units.insert(name.into(), (state, at.parse().unwrap_or(0)));
            }
            ["kernel", key, ref value @ ..] => drop(self.sysctls.insert(key.into(), value.join(" "))),
            ["point", path, exists, mounted, files] => {
                let state = MountState { exists: flag(exists), mounted: flag(mounted) };
                self.mounts.insert(path.into(), (state, flag(files)));
            }
            ["mounted", path, source, fstype, options] => {
                let entry = self.mounted.entry(path.into()).or_default();
                let [source, fstype, options] = [source, fstype, options].map(String::from);
                *entry = MountEntry { source, fstype, options, ..entry.clone() };
            }
            ["same", path] => self.mounted.entry(path.into()).or_default().is_wanted = true,
            ["disk", name, said] => {
                let said = String::from_utf8_lossy(&FileContent::decoded(said)?.0).into_owned();
                self.disks.insert(name.into(), DiskFacts::read(&said)?);
            }
            ["homes", key, value] => self.homes.take(key, value)?,
            ["link", interface, part, said] => {
                let said = String::from_utf8(FileContent::decoded(said)?.0).ok()?;
                self.links.entry(interface.into()).or_default().read(part, &said);
            }
            ["carrier", address, interface] => drop(self.carriers.insert(address.into(), interface.into())),
            ["output", command, said] => {
                let text = |encoded: &str| String::from_utf8(FileContent::decoded(encoded)?.0).ok();
                self.outputs.insert(text(command)?, text(said)?);
            }
            ["user", line] => self.user(&line.split(':').collect::<Vec<_>>())?,
            ["group", line] => self.group(&line.split(':').collect::<Vec<_>>())?,
            ["rest", kind, name] => drop(self.rests.insert(format!("{kind} {name}"))),
            ["hostname", name] => self.hostname = name.into(),
            ["address", address] => self.addresses.push(address.into()),
            ["reached", address] => self.reached_at = Some(address.into()),
            ["key", key] => self.host_keys.push(key.into()),
            ["family", names] => self.family.extend(names.split(' ').map(String::from)),
            ["guarded"] => self.guarded = true,
            ["uid", uid] => self.uid = uid.parse().ok()?,
            ["journal", name, entry] => {
                let entry = FileContent::decoded(entry)?.0;
                self.journal.push((name.into(), serde_json::from_slice(&entry).ok()?));
                let owned: Owned = serde_json::from_slice(&entry).ok()?;
                self.owners.extend(owned.by.map(|by| (name.to_string(), by)));
            }
            _ => return None,
        }
        Some(())
    }

    fn apply_disk(&mut self, name: &str, fs: Option<DiskFs>) {
        let Some(disk) = self.disks.get_mut(name) else { return };
        (disk.signs, disk.data, disk.begun, disk.is_empty) = (Vec::new(), Vec::new(), Vec::new(), fs.is_some());
        disk.signs.extend(fs.map(|fs| (fs.kind, disk.node.clone(), fs.uuid)));
    }

    fn user(&mut self, fields: &[&str]) -> Option<()> {
        let [name, _, uid, gid, _, home, shell] = *fields else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        self.users.insert(name.into(), Account { uid, gid, home: home.into(), shell: shell.into() });
        Some(())
    }

    fn group(&mut self, fields: &[&str]) -> Option<()> {
        let [name, _, gid, members] = *fields else { return None };
        let members = members.split(',').filter(|m| !m.is_empty()).map(String::from).collect();
        self.groups.insert(name.into(), (gid.parse().ok()?, members));
        Some(())
    }

    /// Returns the text of a queried file.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            PathState::File(state, _) => state.content.text(),
            _ => None,
        }
    }

    /// Changes the observed state as a change would change the host. This allows a plan of several parts from one
    /// query.
    pub fn apply(&mut self, change: &HostChange) {
        match change.clone() {
            HostChange::File { path, to, .. } => {
                // Newer than the last change of any unit.
                let seen = to.map_or(PathState::Absent, |state| PathState::File(state, u64::MAX));
                self.files.insert(path, seen);
            }
            HostChange::Group { name, to, .. } => match to {
                Some(gid) => self.groups.entry(name).or_default().0 = gid,
                None => {
                    self.rests.remove(&format!("group {name}"));
                    self.groups.remove(&name);
                }
            },
            HostChange::User { name, to, .. } => match to {
                Some(account) => drop(self.users.insert(name, account)),
                None => {
                    self.rests.remove(&format!("user {name}"));
                    self.users.remove(&name);
                }
            },
            HostChange::Member { user, group, to, .. } => {
                let members = &mut self.groups.entry(group).or_default().1;
                if to {
                    members.insert(user)
                } else {
                    members.remove(&user)
                };
            }
            // A unit that is started now reads its files now.
            HostChange::Unit { name, to, .. } => drop(self.units.insert(name, (to, u64::MAX))),
            HostChange::Nudge { unit, .. } => self.units.entry(unit).or_default().1 = u64::MAX,
            HostChange::Sysctl { key, to, .. } => drop(self.sysctls.insert(key, to)),
            HostChange::Link { interface, setting, to, .. } => {
                self.links.entry(interface).or_default().set(&setting, &to)
            }
            HostChange::Hostname { to, .. } => self.hostname = to,
            HostChange::Mount { point, to, over, .. } => {
                self.homes.shared |= over.is_some() && to.mounted;
                self.mounts.insert(point, (to, false));
            }
            HostChange::Disk { name, to, .. } => self.apply_disk(&name, to),
            HostChange::Copy { host, .. } => self.homes.copied = Some(HomeCopyState::Whole(host)),
            HostChange::Package { name, .. } => drop(self.packages.insert(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This machine is the host.
    #[test]
    fn what_commands_of_several_lines_print_is_known_by_them() {
        let command = "echo one\nprintf 'two\\tx\\n'";
        let question = FactQuery { outputs: [command.to_string()].into(), ..FactQuery::default() };
        let done = std::process::Command::new("sh").args(["-c", &question.script()]).output().unwrap();
        let seen = Observed::read(&String::from_utf8(done.stdout).unwrap()).unwrap();
        assert_eq!(seen.outputs, [(command.to_string(), "one\ntwo\tx\n".to_string())].into());
    }
}
