//! The disk behind a host's `/scratch`: an ext4 of its own on a loop device. The loop device is on a file, or on a
//! disk with one head.

use crate::error::{Doing, LabError, Result};
use crate::plan::{HostPlan, LabPlan};
use crate::program::{command, run};
use crate::spec::{DiskModel, LabSpec};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The one-head disk, an nbdkit plugin.
const HDD_MODEL: &str = include_str!("hdd_model.py");

/// Makes the host's disk and mounts it at its `scratch` folder.
pub(crate) fn make(host: &HostPlan, spec: &LabSpec) -> Result<()> {
    let backing = image(host, spec, &[])?;
    let doing = format!("making the disk of {}", host.name());
    let scratch = host.scratch();
    fs::create_dir_all(&scratch).doing("making", &scratch)?;
    run(&doing, "mount", &["-o".as_ref(), "loop".as_ref(), backing.as_path(), scratch.as_path()])?;
    if spec.disk_model == DiskModel::Plain { Ok(()) } else { read_ahead_as_a_disk(&backing) }
}

/// Name of the spare disk in a host.
const SPARE: &str = "/dev/disk/by-id/lab-spare";

/// Makes the host's spare disk: a loop device on a file of zeros.
pub(crate) fn make_spare(host: &HostPlan, bytes: u64) -> Result<()> {
    let image = host.spare();
    File::create(&image).and_then(|file| file.set_len(bytes)).doing("making", &image)?;
    let doing = format!("making the spare disk of {}", host.name());
    run(&doing, "losetup", &["-f".as_ref(), image.as_path()]).map(drop)
}

/// Gives a booted host the node of its spare disk and mounts the file systems of its table that are on it: no udev
/// runs there that would.
pub(crate) fn show_spare(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    let image = host.spare();
    for device in crate::mounts::loops_below(&image) {
        let sys = Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("dev");
        let number = fs::read_to_string(&sys).doing("reading", &sys)?;
        let (major, minor) = number.trim().split_once(':').unwrap_or_default();
        let words = ["sh", "-c", NODE, "sh", &device.display().to_string(), major, minor, SPARE];
        crate::exec::output(plan, host, "showing the spare disk", &words)?;
    }
    Ok(())
}

/// Words: device, its numbers, its further name.
const NODE: &str = r#"[ -b "$1" ] || mknod -m 660 "$1" b "$2" "$3" || exit
mkdir -p "${4%/*}" && ln -sf "$1" "$4" || exit
mount -a -t ext4,xfs 2>/dev/null || :"#;

/// Makes an ext4 of the host's own and returns the file that serves as its disk. `more` are further words for its
/// mkfs.
pub(crate) fn image(host: &HostPlan, spec: &LabSpec, more: &[&str]) -> Result<PathBuf> {
    let image = host.dir().join("disk.img");
    let file = File::create(&image).doing("making", &image)?;
    file.set_len(spec.disk_bytes).doing("sizing", &image)?;
    let words: Vec<&Path> = ["-q", "-F", "-m", "0"].iter().chain(more).map(Path::new).chain([&*image]).collect();
    run(&format!("making the disk of {}", host.name()), "mkfs.ext4", &words)?;
    match spec.disk_model {
        DiskModel::Plain => Ok(image),
        DiskModel::Hdd(times) => serve_with_one_head(host, &image, times),
    }
}

/// Sets the usual 128 KiB of a disk. A loop device reads ahead by megabytes, which would hide the seeks.
fn read_ahead_as_a_disk(backing: &Path) -> Result<()> {
    for device in crate::mounts::loops_below(backing) {
        let block = Path::new("/sys/block").join(device.file_name().unwrap_or_default());
        let setting = block.join("queue/read_ahead_kb");
        fs::write(&setting, "128").doing("setting", &setting)?;
    }
    Ok(())
}

/// Starts the server of a one-head disk over `image`, `times` times slower than a disk. Returns the file that serves
/// as its disk.
fn serve_with_one_head(host: &HostPlan, image: &Path, times: u32) -> Result<PathBuf> {
    let (model, point) = (host.dir().join("hdd_model.py"), host.dir().join("hdd"));
    fs::write(&model, HDD_MODEL).doing("writing", &model)?;
    fs::create_dir_all(&point).doing("making", &point)?;
    let log = host.dir().join("hdd.log");
    let out = File::create(&log).doing("making", &log)?;
    let err = out.try_clone().doing("opening", &log)?;
    let mut server = command("nbdfuse");
    server.arg(&point).args(["--command", "nbdkit", "-s", "-t", "16", "python"]).arg(&model);
    server.arg(format!("image={}", image.display())).arg(format!("times={times}")).stdout(out).stderr(err);
    detach(&mut server);
    let mut child = server.spawn().doing("starting nbdfuse on", &point)?;
    let disk = point.join("nbd");
    let until = Instant::now() + Duration::from_secs(20);
    while !disk.exists() {
        let ended = child.try_wait().doing("waiting for nbdfuse on", &point)?;
        if ended.is_some() || Instant::now() > until {
            return Err(LabError::Program {
                doing: format!("starting the one-head disk of {}", host.name()),
                command: "nbdfuse ... nbdkit python".into(),
                status: ended.map_or("no answer in 20 s".into(), |s| s.to_string()),
                stderr: fs::read_to_string(&log).unwrap_or_default(),
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    reap_in_background(child);
    Ok(disk)
}

/// Gives a server a session of its own, so that neither the terminal's Ctrl-C nor its end reaches it.
pub(crate) fn detach(c: &mut Command) {
    // SAFETY: setsid is async-signal-safe and touches no memory of the parent.
    unsafe {
        c.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// A caller that lives on after `up` must not collect zombies.
pub(crate) fn reap_in_background(mut child: std::process::Child) {
    // Without a thread it stays a zombie until its parent ends.
    let _ = homing_os::threads::begin(move || child.wait());
}
