//! A guest of QEMU: a whole machine, emulated, since a lab must run without hardware virtualisation. It is ten times
//! slower than the machine itself.

use crate::error::{Doing, Result};
use crate::kernel::Kernel;
use crate::plan::{BOOTED, HostPlan, LabPlan};
use crate::program::command;
use std::path::Path;
use std::process::Command;

/// The program, as the process table shows it.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";

/// Memory of a guest, MiB. With less than 1 GiB nfsd lets clients write in small pieces only.
const MEMORY_MIB: u32 = 1024;

/// The command line of its kernel. Where this machine is busy, the ticks of an emulated timer come late. A kernel
/// that checks them ends with "IO-APIC + timer doesn't work" (`no_timer_check`).
const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off no_timer_check";

/// Returns the command that runs the guest.
pub(crate) fn command_of(plan: &LabPlan, host: &HostPlan, kernel: &Kernel, disk: &Path) -> Result<Command> {
    let initrd = host.dir().join("initrd");
    std::fs::write(&initrd, initramfs(plan, host, kernel)?).doing("writing", &initrd)?;
    let mut c = command(PROGRAM);
    c.args(arguments(plan, host, kernel, disk));
    Ok(c)
}

fn arguments(plan: &LabPlan, host: &HostPlan, kernel: &Kernel, disk: &Path) -> Vec<String> {
    let dir = host.dir().display().to_string();
    let words = [
        format!("-name {}", host.machine()),
        "-accel tcg -cpu max -smp 1 -nographic -monitor none -no-reboot -nodefaults".into(),
        format!("-m {MEMORY_MIB}"),
        format!("-serial file:{}", host.console().display()),
        format!("-kernel {}", kernel.image.display()),
        format!("-initrd {dir}/initrd"),
        // Without remap, inode numbers of the machine's several mounts collide.
        format!(
            "-virtfs local,path={},mount_tag=root,security_model=passthrough,readonly=on,multidevs=remap",
            host.root().display()
        ),
        format!("-drive file={},if=virtio,format=raw,cache=unsafe", disk.display()),
        format!("-netdev tap,id=net,ifname={},script=no,downscript=no", host.veth()),
        format!("-device virtio-net-pci,netdev=net,mac=52:54:00:{}{}", host.mac_end(), rate(plan)),
    ];
    let mut words: Vec<String> = words.iter().flat_map(|w| w.split(' ')).map(String::from).collect();
    words.extend(["-append".into(), KERNEL_WORDS.into()]);
    words
}

/// The guest's interface reports the rate of its link, Mbit/s, as a real one does. Placement reads it to decide which
/// files to fetch.
fn rate(plan: &LabPlan) -> String {
    let mbit = plan.spec.link_bits_per_s.map(|bits| (bits / 1_000_000).max(1));
    mbit.map_or(String::new(), |mbit| format!(",speed={mbit},duplex=full"))
}

/// The script that runs before the root is there.
fn first_steps(plan: &LabPlan, host: &HostPlan, kernel: &Kernel) -> String {
    let modules = kernel.modules.display();
    format!(
        "#!/bin/busybox sh\n\
         b=/bin/busybox\n\
         $b mount -t proc proc /proc; $b mount -t sysfs sysfs /sys; $b mount -t devtmpfs dev /dev\n\
         for m in $($b cat /modules); do $b insmod /$m || echo \"cannot load $m\"; done\n\
         $b mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro root /lower || echo no root\n\
         $b mount -t tmpfs tmpfs /upper; $b mkdir /upper/u /upper/w\n\
         $b mount -t overlay -o lowerdir=/lower,upperdir=/upper/u,workdir=/upper/w overlay /new\n\
         $b mkdir -p /new/scratch /new/lib/modules/{version}\n\
         $b mount -t ext4 -o noatime /dev/vda /new/scratch\n\
         $b mount -o bind /new{modules} /new/lib/modules/{version}\n\
         $b ip link set lo up; $b ip addr add {address}/24 dev eth0; $b ip link set eth0 up\n\
         $b ip route add default via {gateway}\n\
         $b hostname {name}\n\
         for d in proc sys dev; do $b mount -o move /$d /new/$d; done\n\
         exec $b switch_root /new {BOOTED}\n",
        version = kernel.version,
        address = host.address(),
        gateway = plan.gateway(),
        name = host.name(),
    )
}

/// Returns an archive that the kernel unpacks: busybox, the modules for root, disk and link, and the first steps.
fn initramfs(plan: &LabPlan, host: &HostPlan, kernel: &Kernel) -> Result<Vec<u8>> {
    let busybox = std::path::Path::new("/bin/busybox");
    let needed = kernel.needed_for(&[
        "9pnet_virtio",
        "9p",
        "overlay",
        "virtio_pci",
        "virtio_net",
        "virtio_blk",
        "crc32c_generic",
        "ext4",
    ])?;
    let mut archive = Archive::default();
    for dir in ["bin", "proc", "sys", "dev", "lower", "upper", "new"] {
        archive.add(dir, 0o040755, &[]);
    }
    archive.add("bin/busybox", 0o100755, &std::fs::read(busybox).doing("reading", busybox)?);
    let mut list = String::new();
    for module in needed {
        let name = module.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        archive.add(&name, 0o100644, &std::fs::read(&module).doing("reading", &module)?);
        list += &format!("{name}\n");
    }
    archive.add("modules", 0o100644, list.as_bytes());
    archive.add("init", 0o100755, first_steps(plan, host, kernel).as_bytes());
    archive.add("TRAILER!!!", 0, &[]);
    Ok(archive.bytes)
}

/// The "newc" form of cpio (kernel: Documentation/driver-api/early-userspace/buffer-format.rst).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode & 0o040000 != 0 { 2 } else { 1 };
        let name_size = name.len() as u32 + 1;
        let fields = [self.entries, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, name_size, 0]
            .map(|n| format!("{n:08x}"));
        self.bytes.extend(b"070701");
        self.bytes.extend(fields.concat().bytes());
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive::default();
        archive.add("bin", 0o040755, &[]);
        archive.add("bin/abc", 0o100755, b"hello");
        archive.add("TRAILER!!!", 0, &[]);
        assert!(archive.bytes.len() % 4 == 0);
        let text = String::from_utf8_lossy(&archive.bytes);
        assert!(text.starts_with("07070100000001000041ed0000000000000000"), "{text}");
        // Head and name, then content, each padded to four bytes.
        assert!(text.contains("bin/abc\0\0\0hello\0\0\0"), "{text}");
    }
}
