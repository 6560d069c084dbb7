//! Faults of hosts: how each is planted, and its expected finding.

/// A fault and how it is removed.
pub struct Fault {
    /// A thing that other faults use as well: of each such thing one fault is planted at a time. Empty: none.
    pub uses: &'static str,
    pub code: &'static str,
    /// The host of the finding.
    pub on: &'static str,
    /// The scripts that run before, by host.
    pub plant: Scripts,
    /// The scripts that run when the fault was seen and mended, or instead of mending it.
    pub undo: Scripts,
    /// Whether the printed remedy is pasted.
    pub pasted: bool,
}

pub type Scripts = &'static [(&'static str, &'static str)];

const fn mended(uses: &'static str, code: &'static str, plant: Scripts, undo: Scripts) -> Fault {
    Fault { uses, code, on: "n3", plant, undo, pasted: true }
}

const fn seen(uses: &'static str, code: &'static str, plant: Scripts, undo: Scripts) -> Fault {
    Fault { uses, code, on: "n3", plant, undo, pasted: false }
}

pub const N3: &str = "n3";
pub const ALL: &str = "n1 n2 n3";
pub const OTHERS: &str = "n1 n2";

/// Functions for the scripts below.
pub const WORDS: &str = r#"
# fake NAME TEXT: a program of that name that prints the text.
fake() { printf '#!/bin/sh\ncat <<"E"\n%s\nE\n' "$2" > /usr/local/bin/$1; chmod 755 /usr/local/bin/$1; }
unfake() { rm -f /usr/local/bin/$1; }
# over FILE TEXT: a file of /proc or /sys says that.
over() { f=/root/over$(echo $1 | tr / .); printf '%s\n' "$2" > $f; mount --bind $f $(readlink -f $1); }
unover() { umount $(readlink -f $1); }
# system FILE TEXT ...: files below /sys/devices/system, which may be written.
system() { mkdir -p /mnt/o; mount -t tmpfs tmpfs /mnt/o; mkdir /mnt/o/up /mnt/o/work
  while [ $# -gt 1 ]; do mkdir -p /mnt/o/up/$(dirname $1); echo "$2" > /mnt/o/up/$1; shift 2; done
  mount -t overlay overlay -o lowerdir=/sys/devices/system,upperdir=/mnt/o/up,workdir=/mnt/o/work /sys/devices/system; }
unsystem() { umount /sys/devices/system; umount /mnt/o; }
unit() { printf '[Service]\nExecStart=/bin/sleep 9999\n' > /etc/systemd/system/$1.service; systemctl daemon-reload; systemctl start $1; }
ununit() { systemctl stop $1; rm -f /etc/systemd/system/$1.service; systemctl daemon-reload; systemctl reset-failed $1; true; }
tmp() { mkdir -p /mnt/t; echo "tmpfs /mnt/t tmpfs $1 0 0" >> /etc/fstab; }
untmp() { umount /mnt/t; sed -i '/mnt.t /d' /etc/fstab; rm -rf /mnt/t /mnt/t.beneath.*; }
bind() { mkdir -p /srv/b /mnt/b; echo 'bindfs#/srv/b /mnt/b fuse noauto 0 0' >> /etc/fstab; }
unbind() { kill -9 $(pidof bindfs); umount -l /mnt/b; umount -l /mnt/b; sed -i '/mnt.b /d' /etc/fstab; true; }
# killed NAME: the kernel takes a while to end a process that is killed. With -f the pattern must not match itself.
killed() { pkill -9 "$@"; while pgrep "$@" > /dev/null; do sleep 0.1; done; }
fakes() { mkdir -p $(dirname $1); [ ! -e $1 ] || mv $1 $1.kept; echo "$2" > $1; }
unfakes() { rm -f $1; [ ! -e $1.kept ] || mv $1.kept $1; }
"#;

pub const FAULTS: &[Fault] = &[
    mended("hosts", "HC-NAME-01", &[(N3, "sed -i '1i 127.0.1.1 n3' /etc/hosts")], &[]),
    // An address outside of the lab would have the MTU of this machine's uplink.
    mended("hosts", "HC-NAME-02", &[(N3, "sed -i \"1i $(hostname -I | cut -d. -f1-3).250 n1\" /etc/hosts")], &[]),
    mended("hosts", "HC-NAME-03", &[(N3, "sed -i '/ n1$/d' /etc/hosts")], &[]),
    mended(
        "hosts",
        "HC-NAME-04",
        &[
            (
                ALL,
                "cp -P /etc/resolv.conf /root/; rm -f /etc/resolv.conf; : > /etc/resolv.conf; sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf",
            ),
            // No host has this address: the query gets no answer at all.
            (N3, "a=$(getent ahostsv4 n1 | awk 'NR == 1 {print $1}'); echo nameserver ${a%.*}.250 > /etc/resolv.conf"),
        ],
        &[(
            ALL,
            "rm /etc/resolv.conf; mv /root/resolv.conf /etc/; sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf",
        )],
    ),
    mended("", "HC-NAME-05", &[(N3, "ssh n1 cat /etc/machine-id > /etc/machine-id")], &[]),
    mended("time", "HC-CLOCK-05", &[(N3, "unit chrony; unit ntpsec")], &[(N3, "ununit chrony; ununit ntpsec")]),
    seen(
        "time",
        "HC-CLOCK-06",
        &[(N3, "unit chrony; fake chronyc 7F7F0101,,10,1,0,0,0,0,0,0,0,0,0,Normal")],
        &[(N3, "ununit chrony; unfake chronyc")],
    ),
    mended("alice", "HC-SSH-01", &[(N3, "chmod 777 /home/alice")], &[]),
    mended(
        "alice",
        "HC-SSH-02",
        &[(
            N3,
            "mkdir -p /home/alice/.ssh; touch /home/alice/.ssh/authorized_keys; chown -R alice: /home/alice/.ssh; chmod 666 /home/alice/.ssh/authorized_keys",
        )],
        &[],
    ),
    mended(
        "alice",
        "HC-SSH-03",
        &[(
            N3,
            "mkdir -p ~alice/.ssh; ssh-keygen -q -t ed25519 -N '' -f ~alice/.ssh/id_ed25519; chown -R alice: ~alice/.ssh; chmod 644 ~alice/.ssh/id_ed25519",
        )],
        &[(N3, "rm -r ~alice/.ssh")],
    ),
    seen(
        "alice",
        "HC-SSH-04",
        &[(
            N3,
            "mkdir -p /srv/k ~alice/.ssh; ssh-keygen -q -t ed25519 -N '' -f /srv/k/id_ed25519; chown -R alice: /srv/k; bindfs /srv/k ~alice/.ssh",
        )],
        &[(N3, "umount ~alice/.ssh; rm -r ~alice/.ssh /srv/k")],
    ),
    mended("bashrc", "HC-SSH-05", &[(N3, "echo 'echo hello' > ~/.bashrc")], &[(N3, "rm ~/.bashrc")]),
    seen(
        "alice",
        "HC-SSH-08",
        &[(N3, "echo 'HostbasedAuthentication no' > /etc/ssh/sshd_config.d/60-homing.conf")],
        &[(N3, "rm /etc/ssh/sshd_config.d/60-homing.conf")],
    ),
    seen("bashrc", "HC-SSH-07", &[(N3, "echo 'sleep 2' > ~/.bashrc")], &[(N3, "rm ~/.bashrc")]),
    seen(
        "",
        "HC-SSH-06",
        &[(
            N3,
            "cp -p ~/.ssh/known_hosts /root/kept; sed -i '/^n1[ ,]/d' ~/.ssh/known_hosts; ssh-keygen -q -t ed25519 -N '' -f /root/other; echo n1 $(cat /root/other.pub) >> ~/.ssh/known_hosts",
        )],
        &[(
            N3,
            "mv /root/kept ~/.ssh/known_hosts 2>/dev/null || rm ~/.ssh/known_hosts; rm -f ~/.ssh/known_hosts.old /root/other*",
        )],
    ),
    mended("alice", "HC-USER-01", &[(N3, "usermod -u 3050 alice")], &[]),
    mended("team", "HC-USER-03", &[(N3, "userdel bob")], &[]),
    mended("team", "HC-USER-02", &[(N3, "groupmod -g 4050 team")], &[]),
    mended("team", "HC-USER-05", &[(N3, "gpasswd -d alice team")], &[]),
    // A person must decide whether somebody loses the rights that others have: there is nothing to paste.
    seen("team", "HC-USER-05", &[(N3, "gpasswd -a bob team")], &[(N3, "gpasswd -d bob team")]),
    mended("team", "HC-USER-04", &[(N3, "useradd -o -u 3001 -M carol")], &[(N3, "userdel carol")]),
    mended("alice", "HC-USER-06", &[(N3, "chown bob /home/alice")], &[]),
    mended("", "HC-USER-07", &[(N3, "touch /etc/nologin")], &[]),
    mended("", "HC-USER-08", &[(N3, "echo '# other' >> /etc/nsswitch.conf")], &[]),
    mended("mount", "HC-MOUNT-01", &[(N3, "tmp size=10m")], &[(N3, "untmp")]),
    mended("mount", "HC-MOUNT-02", &[(N3, "tmp size=10m; mount /mnt/t; mount -o remount,ro /mnt/t")], &[(N3, "untmp")]),
    mended("fuse", "HC-MOUNT-03", &[(ALL, "bind"), (OTHERS, "mount /mnt/b")], &[(ALL, "unbind")]),
    mended(
        "mount",
        "HC-MOUNT-04",
        &[(ALL, "tmp size=10m; mount /mnt/t"), (N3, "mount -o remount,noexec /mnt/t")],
        &[(ALL, "untmp")],
    ),
    mended("fuse", "HC-MOUNT-07", &[(N3, "bind; mount /mnt/b; kill -STOP $(pidof bindfs)")], &[(N3, "unbind")]),
    mended("fuse", "HC-MOUNT-08", &[(N3, "bind; mount /mnt/b; kill -9 $(pidof bindfs)")], &[(N3, "unbind")]),
    // The first look hangs, and the second does not.
    seen(
        "fuse",
        "HC-MOUNT-11",
        &[(
            N3,
            r#"bind; mount /mnt/b; fake stat; cat > /usr/local/bin/stat <<'E'
#!/bin/sh
case $* in
*-n3) ;;
*/mnt/b/.homing-check-*) rm /srv/looked 2>/dev/null || { : > /srv/looked; exec sleep 600; };;
esac
exec /usr/bin/stat "$@"
E"#,
        )],
        &[(N3, "pkill -x -f 'sleep 600'; unfake stat; unbind")],
    ),
    mended("mount", "HC-MOUNT-09", &[(N3, "tmp size=10m; echo lost > /mnt/t/result; mount /mnt/t")], &[(N3, "untmp")]),
    seen("", "HC-MOUNT-10", &[(N3, "fakes /etc/exports '/home n1(rw)'")], &[(N3, "unfakes /etc/exports")]),
    seen(
        "smartctl",
        "HC-DISK-09",
        &[(N3, "fake smartctl '/dev/sda -d scsi'; echo 'exit 8' >> /usr/local/bin/smartctl")],
        &[(N3, "unfake smartctl")],
    ),
    seen(
        "smartctl",
        "HC-DISK-10",
        &[(N3, "fake smartctl '/dev/sda -d scsi\n197 Current_Pending_Sector 0x0012 100 100 000 Old_age Always - 8'")],
        &[(N3, "unfake smartctl")],
    ),
    seen(
        "mount",
        "HC-DISK-01",
        &[(N3, "tmp size=1m; mount /mnt/t; dd if=/dev/zero of=/mnt/t/f bs=64k count=16")],
        &[(N3, "untmp")],
    ),
    seen(
        "mount",
        "HC-DISK-02",
        &[(N3, "tmp nr_inodes=20; mount /mnt/t; cd /mnt/t; seq 19 | xargs touch")],
        &[(N3, "untmp")],
    ),
    seen(
        "dmesg",
        "HC-DISK-03",
        &[(N3, "fake dmesg 'blk_update_request: I/O error, dev sdb, sector 8'")],
        &[(N3, "unfake dmesg")],
    ),
    mended("", "HC-DISK-06", &[(N3, "chmod 755 /tmp")], &[]),
    mended("", "HC-DISK-07", &[(N3, "chmod 600 /dev/null")], &[]),
    seen(
        "dmesg",
        "HC-DISK-08",
        &[(N3, "fake dmesg 'INFO: task cp:7 blocked for more than 120 seconds.'")],
        &[(N3, "unfake dmesg")],
    ),
    seen("system", "HC-MEM-01", &[(N3, "system edac/mc/mc0/ue_count 1")], &[(N3, "unsystem")]),
    seen("system", "HC-MEM-02", &[(N3, "system edac/mc/mc0/ce_count 12")], &[(N3, "unsystem")]),
    seen("meminfo", "HC-MEM-03", &[(N3, "over /proc/meminfo 'MemTotal: 900000 kB'")], &[(N3, "unover /proc/meminfo")]),
    seen(
        "meminfo",
        "HC-MEM-04",
        &[(
            N3,
            "over /proc/meminfo \"$(sed 's/^SwapTotal:.*/SwapTotal: 9000000 kB/; s/^SwapFree:.*/SwapFree: 1000 kB/' /proc/meminfo)\"",
        )],
        &[(N3, "unover /proc/meminfo")],
    ),
    seen("dmesg", "HC-MEM-05", &[(N3, "fake dmesg 'Out of memory: Killed process 7 (bwa)'")], &[(N3, "unfake dmesg")]),
    seen(
        "dmesg",
        "HC-MEM-06",
        &[(N3, "fake dmesg 'mce: [Hardware Error]: CPU 2: Machine Check: 0'")],
        &[(N3, "unfake dmesg")],
    ),
    seen("system", "HC-CPU-01", &[(N3, "system cpu/present 0 cpu/online 0")], &[(N3, "unsystem")]),
    seen("system", "HC-CPU-02", &[(N3, "system cpu/online 0")], &[(N3, "unsystem")]),
    mended(
        "system",
        "HC-CPU-03",
        &[
            (OTHERS, "system cpu/cpu0/cpufreq/scaling_governor performance"),
            (N3, "system cpu/cpu0/cpufreq/scaling_governor powersave"),
        ],
        &[(ALL, "unsystem")],
    ),
    seen("system", "HC-CPU-04", &[(N3, "system cpu/cpu0/thermal_throttle/core_throttle_count 9")], &[(N3, "unsystem")]),
    mended(
        "system",
        "HC-CPU-05",
        &[(N3, "system clocksource/clocksource0/current_clocksource hpet")],
        &[(N3, "unsystem")],
    ),
    seen("", "HC-NET-01", &[(N3, "over /sys/class/net/host0/speed 100")], &[(N3, "unover /sys/class/net/host0/speed")]),
    seen(
        "duplex",
        "HC-NET-02",
        &[(N3, "over /sys/class/net/host0/duplex half")],
        &[(N3, "unover /sys/class/net/host0/duplex")],
    ),
    // The host's end is full duplex for this one. Both come after the first round, in which HC-NET-03 makes the MTU
    // 1400.
    seen(
        "duplex",
        "HC-NET-11",
        &[(
            N3,
            "fake lldpcli 'lldp.host0.via=LLDP\nlldp.host0.chassis.mac=02:00:00:00:00:01\nlldp.host0.chassis.name=s1\nlldp.host0.chassis.Bridge.enabled=on\nlldp.host0.port.ifname=p1\nlldp.host0.port.auto-negotiation.current=1000BaseTHD - half duplex mode'",
        )],
        &[(N3, "unfake lldpcli")],
    ),
    seen(
        "duplex",
        "HC-NET-12",
        &[(
            N3,
            "fake lldpcli 'lldp.host0.via=LLDP\nlldp.host0.chassis.mac=02:00:00:00:00:01\nlldp.host0.chassis.name=s1\nlldp.host0.chassis.Bridge.enabled=on\nlldp.host0.port.ifname=p1\nlldp.host0.port.mfs=1400'",
        )],
        &[(N3, "unfake lldpcli")],
    ),
    mended("", "HC-NET-03", &[(N3, "ip link set dev host0 mtu 1400")], &[]),
    seen(
        "",
        "HC-NET-04",
        &[(N3, "over /sys/class/net/host0/statistics/rx_errors 5000")],
        &[(N3, "unover /sys/class/net/host0/statistics/rx_errors")],
    ),
    seen(
        "",
        "HC-NET-06",
        &[(
            N3,
            "ip route show dev host0 scope link | head -1 > /root/route; ip route change $(cat /root/route) dev host0 mtu 1300",
        )],
        &[(N3, "ip route change $(cat /root/route) dev host0; ip route flush cache")],
    ),
    seen(
        "",
        "HC-NET-07",
        &[(N3, "echo 'n1:/data /mnt/nfs nfs noauto 0 0' >> /etc/fstab")],
        &[(N3, "sed -i '/mnt.nfs /d' /etc/fstab")],
    ),
    seen(
        "",
        "HC-NET-09",
        &[(N3, "echo '203.0.113.9:/d /mnt/far nfs noauto 0 0' >> /etc/fstab; ip route add unreachable 203.0.113.9")],
        &[(N3, "sed -i '/mnt.far /d' /etc/fstab; ip route del unreachable 203.0.113.9")],
    ),
    seen("", "HC-DISK-12", &[(N3, "fake lvs '  vg0|data|partial'")], &[(N3, "unfake lvs")]),
    seen(
        "",
        "HC-SVC-01",
        &[(N3, "systemd-run -q --unit=bad /bin/false; sleep 0.3")],
        &[(N3, "systemctl reset-failed bad")],
    ),
    mended("", "HC-SVC-02", &[(ALL, "unit munge"), (N3, "systemctl stop munge")], &[(ALL, "ununit munge")]),
    seen("", "HC-SVC-03", &[(N3, "over /proc/sys/kernel/tainted 128")], &[(N3, "unover /proc/sys/kernel/tainted")]),
    seen("", "HC-SVC-04", &[(N3, "touch /run/reboot-required")], &[(N3, "rm /run/reboot-required")]),
    mended(
        "",
        "HC-SVC-05",
        &[(N3, "systemd-run -q --unit=leaky bash -c 'for n in {1..60}; do sleep 5 & done; exec sleep 9999'; sleep 6")],
        &[(N3, "systemctl reset-failed leaky || true")],
    ),
    seen("", "HC-VER-01", &[(N3, "fake uname 5.10.0-1")], &[(N3, "unfake uname")]),
    seen("", "HC-VER-02", &[(N3, "fake getconf 'glibc 2.28'")], &[(N3, "unfake getconf")]),
    seen(
        "",
        "HC-VER-03",
        &[(N3, "over /etc/os-release 'NAME=Other\nVERSION_ID=1'")],
        &[(N3, "unover /etc/os-release")],
    ),
    seen(
        "",
        "HC-VER-04",
        &[(OTHERS, "fake glusterfs 'glusterfs 10.3'"), (N3, "fake glusterfs 'glusterfs 9.2'")],
        &[(ALL, "unfake glusterfs")],
    ),
    seen(
        "",
        "HC-VER-05",
        &[(OTHERS, "fake mfsmount 'MFS version 3.0.117'"), (N3, "fake mfsmount 'MFS version 3.0.9'")],
        &[(ALL, "unfake mfsmount")],
    ),
    seen(
        "",
        "HC-VER-06",
        &[(OTHERS, "fake mount.nfs '2.6.2'"), (N3, "fake mount.nfs '1.3.4'")],
        &[(ALL, "unfake mount.nfs")],
    ),
    seen(
        "",
        "HC-VER-07",
        &[(OTHERS, "fake slurmd 'slurm 22.05.8'"), (N3, "fake slurmd 'slurm 20.11.7'")],
        &[(ALL, "unfake slurmd")],
    ),
    seen("", "HC-VER-08", &[(N3, "fake rsync 'rsync  version 3.1.3  protocol version 31'")], &[(N3, "unfake rsync")]),
    mended("", "HC-SET-01", &[(N3, "ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime")], &[]),
    mended(
        "",
        "HC-SET-02",
        &[(OTHERS, "fakes /etc/default/locale LANG=C.UTF-8"), (N3, "fakes /etc/default/locale LANG=C")],
        &[(ALL, "unfakes /etc/default/locale")],
    ),
    mended(
        "",
        "HC-SET-03",
        &[(N3, "printf '%s\\n' '* - nofile 777' 'root - nofile 777' > /etc/security/limits.d/plant.conf")],
        &[(N3, "rm /etc/security/limits.d/plant.conf")],
    ),
    mended("", "HC-SET-05", &[(N3, "sysctl -qw net.ipv4.tcp_congestion_control=reno")], &[]),
    mended(
        "",
        "HC-SET-06",
        &[(N3, "over /sys/kernel/mm/transparent_hugepage/enabled '[other]'")],
        &[(N3, "unover /sys/kernel/mm/transparent_hugepage/enabled")],
    ),
    mended("", "HC-SET-07", &[(N3, "over /proc/sys/vm/swappiness 77")], &[(N3, "unover /proc/sys/vm/swappiness")]),
    mended(
        "",
        "HC-SET-08",
        &[(N3, "over /proc/sys/vm/overcommit_memory 9")],
        &[(N3, "unover /proc/sys/vm/overcommit_memory")],
    ),
    mended("", "HC-SET-09", &[(N3, "sysctl -qw net.core.somaxconn=77")], &[]),
    mended(
        "",
        "HC-SLURM-01",
        &[(
            "n1",
            "fake sinfo 'n3\tdown*\tNot responding'; printf '#!/bin/sh\\nrm /usr/local/bin/sinfo\\n' > /usr/local/bin/scontrol; chmod 755 /usr/local/bin/scontrol",
        )],
        &[("n1", "unfake sinfo; unfake scontrol")],
    ),
    mended(
        "",
        "HC-SLURM-02",
        &[(OTHERS, "fakes /etc/slurm/slurm.conf a"), (N3, "fakes /etc/slurm/slurm.conf b")],
        &[(ALL, "unfakes /etc/slurm/slurm.conf")],
    ),
    // homing reports this difference beside that of slurm.conf, the fault before.
    mended(
        "",
        "HC-SLURM-03",
        &[(OTHERS, "fakes /etc/munge/munge.key a"), (N3, "fakes /etc/munge/munge.key b")],
        &[(ALL, "unfakes /etc/munge/munge.key")],
    ),
];
