//! A host's root: an overlay of the machine's own, made into a host of its own
//! before its first boot.

use crate::error::{Doing, Result};
use crate::plan::{HostPlan, LabPlan, QUICK_KEYS};
use crate::program::{finish, run};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A pair of keys of ssh.
struct KeyPair {
    private: String,
    public: String,
}

/// The keys of a lab: root's, which all hosts have, and one of each host, by its place among the hosts.
pub(crate) struct Keys {
    root: KeyPair,
    hosts: Vec<KeyPair>,
    known_hosts: String,
}

/// Makes the lab's keys and the files by which the machine reaches the hosts.
pub(crate) fn make_keys(plan: &LabPlan) -> Result<Keys> {
    let generate = |file: &Path| -> Result<KeyPair> {
        let mut c = crate::program::command("ssh-keygen");
        c.args(["-q", "-t", "ed25519", "-N", "", "-C", "homing-lab", "-f"]).arg(file);
        finish("making the lab's ssh keys", &mut c)?;
        let read = |path: &Path| fs::read_to_string(path).doing("reading", path);
        Ok(KeyPair { private: read(file)?, public: read(&file.with_extension("pub"))? })
    };
    let of_host = |host: &HostPlan| {
        fs::create_dir_all(host.dir()).doing("making", host.dir())?;
        generate(&host.dir().join("host_ed25519"))
    };
    let root = generate(&plan.dir().join("id_ed25519"))?;
    let hosts = plan.hosts().iter().map(of_host).collect::<Result<Vec<_>>>()?;
    let known_hosts = plan.known_hosts_text(hosts.iter().map(|key| key.public.as_str()));
    let keys = Keys { root, hosts, known_hosts };
    write(&plan.dir().join("known_hosts"), &keys.known_hosts, 0o644)?;
    write(&plan.ssh_config(), &plan.ssh_config_text(), 0o644)?;
    write(&plan.cluster_file(), &plan.cluster_text(), 0o644)?;
    Ok(keys)
}

/// Mounts the overlay and writes the files that make it this host.
pub(crate) fn make(plan: &LabPlan, host: &HostPlan, keys: &Keys) -> Result<()> {
    let (dir, root) = (host.dir(), host.root());
    for part in ["upper", "work", "root"] {
        let path = dir.join(part);
        fs::create_dir_all(&path).doing("making", &path)?;
    }
    let program = std::env::current_exe().unwrap_or_default();
    let lower = host.system().root();
    crate::hidden::hide(&lower, &dir.join("upper"), &program)?;
    let layers = format!("lowerdir={},upperdir={d}/upper,workdir={d}/work", lower.display(), d = dir.display());
    let doing = format!("making the root of {}", host.name());
    run(&doing, "mount", &["-t", "overlay", "overlay", "-o", &layers, &root.display().to_string()])?;
    forget_the_machine(&root)?;
    if host.has_bash() {
        bash_as_sh(&root)?;
    }
    write_identity(plan, host, &root)?;
    write_ssh(host, &root, keys)
}

/// Removes the machine's own identity and services from the overlay.
fn forget_the_machine(root: &Path) -> Result<()> {
    let units = root.join("etc/systemd/system");
    for entry in list(&units) {
        let name = file_name(&entry);
        if name.ends_with(".wants") || name.ends_with(".requires") {
            empty(&entry)?;
        }
    }
    disable_at_boot(&root.join("etc"))?;
    forget_shell_start(&root.join("root"))?;
    let gluster = root.join("var/lib/glusterd");
    let info = gluster.join("glusterd.info");
    if info.exists() {
        fs::remove_file(&info).doing("removing", &info)?;
    }
    for part in ["peers", "vols"] {
        empty(&gluster.join(part))?;
    }
    Ok(())
}

/// Renames System V's start links, as `update-rc.d NAME disable` does. A host without any such link cannot enable the
/// service again: `systemctl enable` runs `update-rc.d NAME enable`, which needs one to rename.
fn disable_at_boot(etc: &Path) -> Result<()> {
    let is_level = |name: &str| name.strip_prefix("rc").is_some_and(|rest| rest.ends_with(".d"));
    for level in list(etc).iter().filter(|path| is_level(&file_name(path))) {
        for link in list(level) {
            if let Some(rest) = file_name(&link).strip_prefix('S') {
                fs::rename(&link, level.join(format!("K{rest}"))).doing("renaming", &link)?;
            }
        }
    }
    Ok(())
}

/// Makes bash the /bin/sh of this host. The name changes in one step, because the root is a running system's.
fn bash_as_sh(root: &Path) -> Result<()> {
    let (sh, fresh) = (root.join("usr/bin/sh"), root.join("usr/bin/.sh"));
    if !root.join("usr/bin/bash").exists() {
        return Ok(());
    }
    symlink("bash", &fresh).doing("linking", &fresh)?;
    fs::rename(&fresh, &sh).doing("renaming", &fresh)
}

/// Removes files that shells load at start, such as a version manager of some language. An emulated guest would spend
/// seconds on them at every ssh.
fn forget_shell_start(home: &Path) -> Result<()> {
    for file in [".bashrc", ".bash_profile", ".bash_login", ".profile"].map(|name| home.join(name)) {
        if file.symlink_metadata().is_ok() {
            fs::remove_file(&file).doing("removing", &file)?;
        }
    }
    Ok(())
}

/// Users and names come from the files alone. A module of the machine's (myhostname, mymachines, sss, ldap) would
/// answer for the machine, or wait for servers that no lab has.
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\ngshadow: files\nhosts: files\nnetworks: files\n\
                        protocols: files\nservices: files\nethers: files\nrpc: files\n";

/// Returns 128 random bits as systemd writes them.
fn machine_id() -> Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid").doing("reading", "/proc/sys/kernel/random/uuid")?;
    Ok(text.replace('-', ""))
}

fn write_identity(plan: &LabPlan, host: &HostPlan, root: &Path) -> Result<()> {
    // systemd takes D-Bus's number where its own is empty. Without both, all hosts would have the machine's.
    let id = machine_id()?;
    for file in ["etc/machine-id", "var/lib/dbus/machine-id"] {
        write(&root.join(file), &id, 0o444)?;
    }
    write(&root.join("etc/nsswitch.conf"), NSSWITCH, 0o644)?;
    write(&root.join("etc/timezone"), "Etc/UTC\n", 0o644)?;
    let local = root.join("etc/localtime");
    let _ = fs::remove_file(&local);
    symlink("/usr/share/zoneinfo/Etc/UTC", &local).doing("linking", &local)?;
    write(&root.join("etc/hostname"), &format!("{}\n", host.name()), 0o644)?;
    write(&root.join("etc/hosts"), &plan.etc_hosts_text(), 0o644)?;
    // Hosts know each other by their files; a name server of the machine cannot be reached from them.
    write(&root.join("etc/resolv.conf"), "", 0o644)?;
    write(&root.join("etc/systemd/network/10-host0.network"), &host.network_text(), 0o644)?;
    for link in host.further_links() {
        let file = format!("etc/systemd/network/20-{}.network", link.interface);
        write(&root.join(file), &link.network_text(), 0o644)?;
    }
    // Debian empties /tmp at boot, which would remove the machine's files there.
    write(&root.join("etc/tmpfiles.d/tmp.conf"), "d /tmp 1777 root root -\n", 0o644)?;
    write(&root.join("etc/systemd/journald.conf.d/10-lab.conf"), "[Journal]\nStorage=volatile\n", 0o644)?;
    write(&root.join("etc/systemd/system/chrony.service.d/10-lab.conf"), CHRONY, 0o644)?;
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).doing("making", &wants)?;
    let neighbours = plan.spec.switches.map(|_| "lldpd.service");
    let units = Path::new("/lib/systemd/system");
    // Debian's name of the unit, and that of Red Hat's family.
    let has_unit = |name: &str| root.join("usr/lib/systemd/system").join(name).exists();
    let sshd = if has_unit("sshd.service") && !has_unit("ssh.service") { "sshd.service" } else { "ssh.service" };
    for unit in [sshd, "systemd-networkd.service"].into_iter().chain(neighbours) {
        let link = wants.join(unit);
        symlink(units.join(unit), &link).doing("linking", &link)?;
    }
    // No user needs a login manager and its sessions here, and each ssh login would wait for them.
    for unit in ["systemd-logind.service", "systemd-networkd-wait-online.service"] {
        let link = root.join("etc/systemd/system").join(unit);
        let _ = fs::remove_file(&link);
        symlink("/dev/null", &link).doing("masking", &link)?;
    }
    let point = root.join("scratch");
    fs::create_dir_all(&point).doing("making", &point)
}

/// chronyd measures and serves the time, and sets no clock: that is the machine's. Its package would not start it
/// without the capability to set the clock.
const CHRONY: &str = "[Unit]\nConditionCapability=\n\n[Service]\nEnvironment=DAEMON_OPTS=-x\nEnvironmentFile=\n";

fn write_ssh(host: &HostPlan, root: &Path, keys: &Keys) -> Result<()> {
    let own = &keys.hosts[host.index as usize - 1];
    let server = root.join("etc/ssh");
    write(&server.join("ssh_host_ed25519_key"), &own.private, 0o600)?;
    write(&server.join("ssh_host_ed25519_key.pub"), &own.public, 0o644)?;
    write(&server.join("sshd_config.d/00-homing-lab.conf"), SSHD, 0o644)?;
    let home = root.join("root/.ssh");
    fs::create_dir_all(&home).doing("making", &home)?;
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).doing("protecting", &home)?;
    write(&home.join("authorized_keys"), &keys.root.public, 0o600)?;
    write(&home.join("id_ed25519"), &keys.root.private, 0o600)?;
    write(&home.join("id_ed25519.pub"), &keys.root.public, 0o644)?;
    write(&home.join("known_hosts"), &keys.known_hosts, 0o644)?;
    write(&home.join("config"), &format!("{SSH_INSIDE}{QUICK_KEYS}"), 0o600)
}

const SSHD: &str = "HostKey /etc/ssh/ssh_host_ed25519_key\nPermitRootLogin prohibit-password\nUseDNS no\n\
                    MaxStartups 200\nMaxSessions 200\n";
const SSH_INSIDE: &str = "Host *\n  User root\n  IdentityFile /root/.ssh/id_ed25519\n  StrictHostKeyChecking yes\n  \
                          BatchMode yes\n  LogLevel ERROR\n";

/// Writes a file of its own. It replaces a link of the machine's, and does not follow it.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).doing("making", parent)?;
    }
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path).doing("replacing", path)?;
    }
    fs::write(path, text).doing("writing", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("protecting", path)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn list(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

fn empty(dir: &Path) -> Result<()> {
    for path in list(dir) {
        let is_dir = path.symlink_metadata().is_ok_and(|m| m.is_dir());
        let done = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        done.doing("removing", &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_starts_shells_without_the_machines_own_start_up() {
        let home = tempfile::tempdir().unwrap();
        symlink("/nowhere", home.path().join(".bashrc")).unwrap();
        fs::write(home.path().join(".profile"), "sleep 5").unwrap();
        fs::write(home.path().join("kept"), "").unwrap();
        forget_shell_start(home.path()).unwrap();
        assert_eq!(list(home.path()), [home.path().join("kept")]);
    }

    #[test]
    fn the_last_of_several_hosts_has_bash_as_its_shell() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        symlink("dash", bin.join("sh")).unwrap();
        bash_as_sh(root.path()).unwrap();
        assert_eq!(fs::read_link(bin.join("sh")).unwrap(), Path::new("dash"), "there is no bash");
        fs::write(bin.join("bash"), "").unwrap();
        bash_as_sh(root.path()).unwrap();
        assert_eq!(fs::read_link(bin.join("sh")).unwrap(), Path::new("bash"));
    }

    #[test]
    fn a_service_that_the_machine_starts_can_be_enabled_again() {
        let etc = tempfile::tempdir().unwrap();
        for (level, link) in [("rc2.d", "S01munge"), ("rc0.d", "K01munge"), ("rcS.d", "S20x")] {
            fs::create_dir_all(etc.path().join(level)).unwrap();
            symlink("../init.d/munge", etc.path().join(level).join(link)).unwrap();
        }
        disable_at_boot(etc.path()).unwrap();
        for (level, link) in [("rc2.d", "K01munge"), ("rc0.d", "K01munge"), ("rcS.d", "K20x")] {
            assert_eq!(list(&etc.path().join(level)), [etc.path().join(level).join(link)]);
        }
    }

    #[test]
    fn a_host_is_itself_whatever_the_machine_answers_for() {
        let plan = LabPlan { spec: crate::LabSpec { name: "t".into(), hosts: 2, ..Default::default() }, number: 254 };
        let ids = ["n1", "n2"].map(|name| {
            let root = tempfile::tempdir().unwrap();
            let at = |file: &str| root.path().join(file);
            for (file, text) in
                [("etc/nsswitch.conf", "hosts: files myhostname"), ("var/lib/dbus/machine-id", "machine's")]
            {
                write(&at(file), text, 0o644).unwrap();
            }
            write_identity(&plan, &plan.host(name).unwrap(), root.path()).unwrap();
            assert!(fs::read_to_string(at("etc/nsswitch.conf")).unwrap().contains("hosts: files\n"));
            let id = fs::read_to_string(at("etc/machine-id")).unwrap();
            assert_eq!(fs::read_to_string(at("var/lib/dbus/machine-id")).unwrap(), id);
            assert!(id.len() == 33 && id.trim().bytes().all(|b| b.is_ascii_hexdigit()), "{id:?}");
            id
        });
        assert_ne!(ids[0], ids[1]);
    }
}
