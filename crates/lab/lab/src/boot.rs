//! Starts one host, and waits until its sshd answers.

use crate::disk::{self, detach, reap_in_background};
use crate::error::{Doing, LabError, Result};
use crate::exec::on_each;
use crate::guest::Booted;
use crate::plan::{HostPlan, LabPlan};
use crate::spec::HostSystem;
use crate::{cgroup, folder, gluster, guest, inotify, net, process, program};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// Hosts answer in two to three seconds; a busy machine needs more.
const PATIENCE: Duration = Duration::from_secs(90);
/// Guests are emulated: fifteen seconds on an idle machine.
const GUEST_PATIENCE: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(25);

/// Boots a host whose root and disk are made; returns when ssh answers and the link is shaped.
pub(crate) fn boot(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    let mut nspawn = start(plan, host)?;
    let until = Instant::now() + PATIENCE;
    wait(host, &mut nspawn, until, "its sshd does not answer", || ssh_answers(host).then_some(()))?;
    let leader = wait(host, &mut nspawn, until, "its first process is missing", || process::leader_of(host))?;
    net::join(host, leader)?;
    // Only after the boot: the first process exists earlier than the link.
    if let Some(rate) = plan.spec.link_bits_per_s {
        net::shape(host, leader, rate)?;
    }
    if plan.spec.spare_bytes.is_some() {
        disk::show_spare(plan, host)?;
    }
    reap_in_background(nspawn);
    Ok(())
}

/// Cuts the power of a host: ends its first process, and with it all others. Returns when no process is left; false
/// if there was none.
pub fn power_off(lab: &str, host: &str) -> Result<bool> {
    program::need_root()?;
    let host = container(lab, host)?;
    let killed = match process::leader_of(&host).and_then(Pid::from_raw) {
        Some(first) => kill_process(first, Signal::KILL).is_ok(),
        None => false,
    };
    wait_for_end(&host);
    Ok(killed)
}

/// Boots a host without processes, like [`reboot`]. Returns false if the host runs.
pub fn power_on(lab: &str, host: &str) -> Result<bool> {
    program::need_root()?;
    let off = process::leader_of(&container(lab, host)?).is_none();
    if off {
        reboot(lab, host)?;
    }
    Ok(off)
}

/// Returns a host that is no guest: the disk of a guest's own kernel may be damaged by a power cut.
fn container(lab: &str, host: &str) -> Result<HostPlan> {
    let host = folder::load(lab)?.known_host(host)?;
    let refused = || LabError::Request("a guest cannot be switched off".into());
    if host.is_guest() { Err(refused()) } else { Ok(host) }
}

fn wait_for_end(host: &HostPlan) {
    let until = Instant::now() + PATIENCE;
    while process::nspawn_of(host).is_some() && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
}

/// Boots a host again whose first process was killed, as after a loss of power. Its disk and its link stay the same.
/// Returns when its volume is mounted again, too.
pub fn reboot(lab: &str, host: &str) -> Result<()> {
    let plan = folder::load(lab)?;
    let host = plan.known_host(host)?;
    wait_for_end(&host);
    boot(&plan, &host)?;
    if plan.spec.gluster.is_some() { gluster::join(&plan, &host) } else { Ok(()) }
}

/// Mounts the gluster volume of a lab again on the hosts where its mount is dead.
pub fn remount(lab: &str) -> Result<()> {
    let plan = folder::load(lab)?;
    on_each(&plan, |host| gluster::join(&plan, host))
}

/// Unmounts the other labs in the namespace of the host, then becomes systemd-nspawn. nspawn moves its root over the
/// machine's, whose mounts live on below it, unseen, as long as the host. They would keep the disks of another lab in
/// use after that lab went down. `$0` is this lab's folder.
const ALONE: &str = r#"while read -r _ _ _ _ point _; do
  case $point in "$0"/*) ;; "${0%/*}"/*) umount -l "$point" 2>/dev/null ;; esac
done </proc/self/mountinfo
exec systemd-nspawn "$@""#;

/// Boots a guest; returns when ssh answers.
pub(crate) fn boot_guest(plan: &LabPlan, host: &HostPlan, kernel: &Booted, disk: &Path) -> Result<()> {
    let mut guest = guest::start(plan, host, kernel, disk)?;
    let until = Instant::now() + GUEST_PATIENCE;
    let answers = wait(host, &mut guest, until, "its sshd does not answer", || ssh_answers(host).then_some(()));
    answers.map_err(|e| guest::complaint(host).unwrap_or(e))?;
    if let Some(rate) = plan.spec.link_bits_per_s {
        net::shape_guest(host, rate)?;
    }
    reap_in_background(guest);
    Ok(())
}

fn start(plan: &LabPlan, host: &HostPlan) -> Result<Child> {
    let console = host.console();
    let out = File::create(&console).doing("making", &console)?;
    let err = out.try_clone().doing("opening", &console)?;
    let doors = cgroup::make(&host.cgroup(), plan.spec.cpus)?;
    let mut c = program::command("unshare");
    c.args(["--mount", "--propagation=slave", "sh", "-c", ALONE]).arg(plan.dir());
    c.args(host.nspawn_arguments()).stdout(out).stderr(err);
    // The machine's /tmp must be visible in the host, as is the rest of its root.
    c.env("SYSTEMD_NSPAWN_TMPFS_TMP", "0");
    if *host.system() != HostSystem::This {
        // From 256 on systemd boots on version 2 of the control groups alone, whatever this machine has.
        c.env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1");
    }
    detach(&mut c);
    cgroup::enter(&mut c, doors);
    c.spawn().doing("starting systemd-nspawn on", host.root())
}

fn wait<T>(
    host: &HostPlan,
    nspawn: &mut Child,
    until: Instant,
    missing: &str,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T> {
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        let ended = nspawn.try_wait().doing("waiting for the machine of", host.root())?;
        let why = match ended {
            Some(status) => format!("{} ended with {status}", host.program()),
            None if Instant::now() > until => format!("{missing} in time"),
            None => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        let why = [Some(why), inotify::shortage()].into_iter().flatten().collect::<Vec<_>>().join("; ");
        return Err(LabError::Boot { host: host.name(), why, console: console_end(host) });
    }
}

fn console_end(host: &HostPlan) -> String {
    let text = fs::read(host.console()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Whether an SSH server greets at the host's address.
pub(crate) fn ssh_answers(host: &HostPlan) -> bool {
    let address = SocketAddr::from((host.address(), 22));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) else { return false };
    let mut greeting = [0; 4];
    stream.set_read_timeout(Some(Duration::from_secs(2))).is_ok()
        && stream.read_exact(&mut greeting).is_ok()
        && &greeting == b"SSH-"
}
