//! Refuses values of `[up]` that cannot take effect on any host, by their keys, before any host is observed.

use crate::login_limit;
use crate::site::{ClusterSite, MountSection, UserSection};
use homing_model::folders::{odd_path, system_folder};
use std::collections::BTreeMap;

/// The largest number of a user or group: tools with signed 32-bit numbers read a larger one as negative.
const LARGEST: u32 = i32::MAX as u32;
/// Reserved numbers, and their owners. 65535 and 4294967295 are -1 in 16 and 32 bits: for chown(2) that means "leave
/// it as it is".
const RESERVED: [(u32, &str); 4] =
    [(0, "root"), (65534, "nobody"), (65535, "-1 in 16 bits"), (u32::MAX, "-1 in 32 bits")];

/// Returns why no user or group may have this number.
fn number_fault(number: u32) -> Option<String> {
    let reserved = RESERVED.iter().find(|(taken, _)| *taken == number);
    let why = reserved.map(|(_, whose)| format!("this number is reserved for {whose}"));
    why.or_else(|| (number > LARGEST).then(|| format!("some tools do not accept a number above {LARGEST}")))
}

/// Finds numbers that two names share.
fn shared<'n>(numbers: impl Iterator<Item = (&'n String, Option<u32>)>, key: &str) -> Vec<String> {
    let mut holders: BTreeMap<u32, &String> = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, number) in numbers.filter_map(|(name, number)| Some((name, number?))) {
        match holders.get(&number) {
            Some(other) => faults.push(format!("{key} = {number} is set for both {other} and {name}")),
            None => drop(holders.insert(number, name)),
        }
    }
    faults
}

fn user_faults(name: &str, user: &UserSection) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(user.uid.and_then(|uid| Some(format!("uid = {uid}: {}", number_fault(uid)?))));
    if let Some(home) = &user.home {
        let why = match home.as_str() {
            "/home" | "/root" => Some("it contains the homes of other users".to_string()),
            colon if colon.contains(':') => Some("`:` ends a field of /etc/passwd".to_string()),
            home => system_folder(home),
        };
        faults.extend(why.map(|why| format!("home = {home:?}: {why}")));
    }
    if let Some(shell) = &user.shell {
        let why = if shell.contains(':') { Some("`:` ends a field of /etc/passwd".into()) } else { odd_path(shell) };
        faults.extend(why.map(|why| format!("shell = {shell:?}: {why}")));
    }
    faults.into_iter().map(|why| format!("[up.user.{name}] {why}")).collect()
}

/// Whether a text is a word of fstab: blanks end a word, and `#` begins a comment.
fn is_column(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control()) && !text.starts_with('#')
}

fn mount_faults(point: &str, mount: &MountSection) -> Vec<String> {
    let columns = [("source", &mount.source), ("type", &mount.fstype), ("options", &mount.options)];
    let odd = columns.into_iter().filter(|(_, text)| !is_column(text));
    let odd = odd.map(|(key, text)| {
        format!("{key} = {text:?} cannot be a column of /etc/fstab: it is empty, has a blank, or begins with `#`")
    });
    let all = system_folder(point).into_iter().chain(odd);
    all.map(|why| format!("[up.mount.{point:?}] {why}")).collect()
}

/// Whether a text is the name of a kernel value, as sysctl(8) takes it, and no option or pattern.
fn is_sysctl(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    key.starts_with(|c: char| c.is_ascii_alphanumeric())
        && key.contains(['.', '/'])
        && key.chars().all(plain)
        && !key.contains("..")
}

/// Whether a text is the name of a package, without patterns, versions and signs that make apt-get do something other
/// than install it.
fn is_package(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+._:-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain) && !name.ends_with('-')
}

/// Whether slurm.conf reads a line `KEY=VALUE` unchanged: `#` begins a comment, `\` continues in the next line.
fn is_setting(key: &str, value: &str) -> bool {
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
    is_key && !value.trim().is_empty() && !value.contains(|c: char| c.is_control() || c == '#' || c == '\\')
}

impl ClusterSite {
    /// Returns the refused values, each with its key and the reason.
    pub(crate) fn value_faults(&self) -> Vec<String> {
        let up = &self.up;
        let mut faults: Vec<String> = up.user.iter().flat_map(|(name, user)| user_faults(name, user)).collect();
        let gids = up.group.iter().filter_map(|(name, group)| Some((name, group.gid?, number_fault(group.gid?)?)));
        faults.extend(gids.map(|(name, gid, why)| format!("[up.group.{name}] gid = {gid}: {why}")));
        faults.extend(shared(up.user.iter().map(|(name, user)| (name, user.uid)), "[up.user] uid"));
        faults.extend(shared(up.group.iter().map(|(name, group)| (name, group.gid)), "[up.group] gid"));
        faults.extend(up.mount.iter().flat_map(|(point, mount)| mount_faults(point, mount)));
        faults.extend(up.packages.iter().filter(|name| !is_package(name)).map(|name| {
            format!("[up] packages: {name:?} is not a name of a package; versions and patterns are not accepted")
        }));
        for (key, value) in &up.sysctl {
            if !is_sysctl(key) {
                faults.push(format!(
                    "[up.sysctl] {key:?} is not a name of a kernel setting, such as \"net.core.somaxconn\""
                ));
            } else if value.trim().is_empty() || value.contains(char::is_control) {
                faults.push(format!("[up.sysctl] {key} = {value:?} is empty or has more than one line"));
            }
        }
        faults.extend(up.limits.iter().filter_map(|(item, value)| login_limit::fault(item, value)));
        let settings = up.slurm.iter().flat_map(|slurm| &slurm.settings).filter(|(key, value)| !is_setting(key, value));
        faults.extend(
            settings.map(|(key, _)| format!("[up.slurm] settings: {key:?} and its value are not a line of slurm.conf")),
        );
        let called = up.family.iter().flat_map(|(family, lines)| lines.iter().map(move |line| (family, line)));
        let odd = called.filter(|(_, (_, names))| names.split_whitespace().any(|name| name.starts_with('-')));
        faults.extend(
            odd.map(|(family, (thing, names))| format!("[up.family.{family}] {thing:?} = {names:?} begins with -")),
        );
        faults.extend(self.place_faults());
        faults
    }

    /// Finds mount points that are in two sections of `[up]`.
    fn place_faults(&self) -> Vec<String> {
        let mounts = self.up.mount.keys().map(|point| (point.as_str(), format!("[up.mount.{point:?}]")));
        let of_volume = |volume: &'_ crate::SiteVolume| format!("[up.volume.{}]", volume.spec.name);
        let volumes = self.volumes.iter().map(|volume| (volume.spec.mount.as_str(), of_volume(volume)));
        let homes = self.up.homes.iter().map(|_| ("/home", "[up.homes]".to_string()));
        let disks = self.up.disk.keys().map(|point| (point.as_str(), format!("[up.disk.{point:?}]")));
        let mut holders: BTreeMap<&str, String> = BTreeMap::new();
        let mut faults = Vec::new();
        for (point, section) in mounts.chain(volumes).chain(homes).chain(disks) {
            match holders.get(point) {
                Some(other) => faults.push(format!("{other} and {section} have the same mount point {point}")),
                None => drop(holders.insert(point, section)),
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(up: &str) -> Vec<String> {
        ClusterSite { hosts: vec!["n1".into()], up: toml::from_str(up).unwrap(), ..ClusterSite::default() }.faults()
    }

    #[test]
    fn each_odd_value_is_refused_by_its_key() {
        for (up, why) in [
            ("[user.a]\nuid = 4294967295", "[up.user.a] uid = 4294967295: this number is reserved for -1 in 32 bits"),
            ("[user.a]\nuid = 0", "[up.user.a] uid = 0: this number is reserved for root"),
            ("[user.a]\nuid = 65534", "reserved for nobody"),
            ("[user.a]\nuid = 3000000000", "not accept a number above 2147483647"),
            ("[user.a]\nuid = 2001\n[user.b]\nuid = 2001", "[up.user] uid = 2001 is set for both a and b"),
            ("[group.a]\ngid = 0", "[up.group.a] gid = 0"),
            ("[group.a]\ngid = 7\n[group.b]\ngid = 7", "[up.group] gid = 7 is set for both a and b"),
            ("[user.a]\nhome = \"relative\"", "[up.user.a] home = \"relative\": it is no absolute path"),
            ("[user.a]\nhome = \"/home/a:b\"", "home = \"/home/a:b\": `:` ends"),
            ("[user.a]\nhome = \"/\"", "home = \"/\": / belongs to the system"),
            ("[user.a]\nhome = \"/home\"", "it contains the homes of other users"),
            ("[user.a]\nhome = \"/home/../etc\"", "is no absolute path"),
            ("[user.a]\nhome = \"/home/a\\nb\"", "is no absolute path"),
            ("[user.a]\nshell = \"bash\"", "[up.user.a] shell = \"bash\": it is no absolute path"),
            ("[user.a]\nshell = \"/bin/ba:sh\"", "shell = \"/bin/ba:sh\": `:` ends"),
            ("[sysctl]\n\"vm.swappiness\" = \"1\\nkernel.x = 2\"", "[up.sysctl] vm.swappiness = "),
            ("[sysctl]\n\"vm.swappiness\" = \"\"", "is empty"),
            ("[sysctl]\n\"--system\" = \"1\"", "[up.sysctl] \"--system\" is not a name"),
            ("[sysctl]\n\"net.*.x\" = \"1\"", "[up.sysctl] \"net.*.x\" is not a name"),
            ("packages = [\"gcc-\"]", "\"gcc-\" is not a name of a package"),
            ("packages = [\"gcc=1.2\"]", "\"gcc=1.2\" is not a name of a package"),
            ("packages = [\"linux*\"]", "\"linux*\" is not a name of a package"),
            ("[mount.\"/\"]\nsource = \"n1:/y\"\ntype = \"nfs\"", "[up.mount.\"/\"] / belongs to the system"),
            ("[mount.\"/proc\"]\nsource = \"n1:/y\"\ntype = \"nfs\"", "/proc belongs to the system"),
            ("[mount.\"/usr/lib\"]\nsource = \"n1:/y\"\ntype = \"nfs\"", "/usr belongs to the system"),
            ("[mount.\"/a/\"]\nsource = \"n1:/y\"\ntype = \"nfs\"", "is no absolute path"),
            (
                "[mount.\"/a\"]\nsource = \"#n1:/y\"\ntype = \"nfs\"",
                "source = \"#n1:/y\" cannot be a column of /etc/fstab",
            ),
            (
                "[mount.\"/a\"]\nsource = \"n1:/y\"\ntype = \"nfs\"\n[disk.\"/a\"]\ndevices = { n1 = \"/dev/sdb\" }",
                "have the same mount point /a",
            ),
            ("[disk.\"/boot\"]\ndevices = { n1 = \"/dev/sdb\" }", "/boot belongs to the system"),
            ("[slurm]\nsettings = { KillWait = \"10 # x\" }", "\"KillWait\" and its value are not a line"),
            ("[slurm]\nsettings = { \"\" = \"10\" }", "are not a line"),
            ("[family.arch]\n\"clock.unit\" = \"-x\"", "begins with -"),
        ] {
            let found = faults(up);
            assert!(found.iter().any(|fault| fault.contains(why)), "{up}: {why}: {found:?}");
        }
        let good = "packages = [\"g++\", \"libc6:i386\", \"python3.11\"]\n[sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"\n\
                    [user.a]\nuid = 2000200000\nhome = \"/srv/homes/a\"\nshell = \"/bin/zsh\"\n[mount.\"/usr/local\"]\nsource = \"n1:/y\"\ntype = \"nfs\"";
        assert_eq!(faults(good), [""; 0]);
    }
}
