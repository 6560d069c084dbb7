//! Faults planted in a lab of three hosts: they are found, and nothing else; their remedies are pasted as they were
//! printed, and the hosts are clean again. And hosts that do not answer, over real OpenSSH without a lab.

#[path = "../../../tests/sshd.rs"]
mod sshd;
mod support;

use serde_json::Value;
use sshd::Sshd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{EXE, err, missing};

/// What a fault is and how it is taken away.
struct Fault {
    /// What others need as well: of each such thing one fault is planted at a time. Empty: nothing.
    uses: &'static str,
    code: &'static str,
    /// The host that has it.
    on: &'static str,
    /// Who runs what before.
    plant: Scripts,
    /// What is done when it was seen and mended, or instead of mending it.
    undo: Scripts,
    /// The remedy is printed to be pasted, and was.
    pasted: bool,
}

type Scripts = &'static [(&'static str, &'static str)];

const fn mended(uses: &'static str, code: &'static str, plant: Scripts, undo: Scripts) -> Fault {
    Fault { uses, code, on: "n3", plant, undo, pasted: true }
}

const fn seen(uses: &'static str, code: &'static str, plant: Scripts, undo: Scripts) -> Fault {
    Fault { uses, code, on: "n3", plant, undo, pasted: false }
}

const N3: &str = "n3";
const ALL: &str = "n1 n2 n3";
const OTHERS: &str = "n1 n2";

/// Functions for the scripts below.
const WORDS: &str = r#"
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
untmp() { umount /mnt/t; sed -i '/mnt.t /d' /etc/fstab; rm -rf /mnt/t /mnt/t.beneath; }
bind() { mkdir -p /srv/b /mnt/b; echo 'bindfs#/srv/b /mnt/b fuse noauto 0 0' >> /etc/fstab; }
unbind() { kill -9 $(pidof bindfs); umount -l /mnt/b; umount -l /mnt/b; sed -i '/mnt.b /d' /etc/fstab; true; }
fakes() { mkdir -p $(dirname $1); [ ! -e $1 ] || mv $1 $1.kept; echo "$2" > $1; }
unfakes() { rm -f $1; [ ! -e $1.kept ] || mv $1.kept $1; }
"#;

const FAULTS: &[Fault] = &[
    mended("hosts", "HC-NAME-01", &[(N3, "sed -i '1i 127.0.1.1 n3' /etc/hosts")], &[]),
    mended("hosts", "HC-NAME-02", &[(N3, "sed -i '1i 10.250.9.9 n1' /etc/hosts")], &[]),
    mended("hosts", "HC-NAME-03", &[(N3, "sed -i '/ n1$/d' /etc/hosts")], &[]),
    mended(
        "hosts",
        "HC-NAME-04",
        &[
            (
                ALL,
                "cp -P /etc/resolv.conf /root/; rm -f /etc/resolv.conf; : > /etc/resolv.conf; sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf",
            ),
            // Nobody has this address: the question stays without any answer.
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
            "mkdir -p ~alice/.ssh; chown alice: ~alice/.ssh; ssh-keygen -q -t ed25519 -N '' -f ~alice/.ssh/id_ed25519; chmod 644 ~alice/.ssh/id_ed25519",
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
    seen("bashrc", "HC-SSH-07", &[(N3, "echo 'sleep 2' > ~/.bashrc")], &[(N3, "rm ~/.bashrc")]),
    mended(
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
    mended("team", "HC-USER-05", &[(N3, "gpasswd -M bob team")], &[]),
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
        "",
        "HC-NET-02",
        &[(N3, "over /sys/class/net/host0/duplex half")],
        &[(N3, "unover /sys/class/net/host0/duplex")],
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
        &[(N3, "systemd-run -q --unit=leaky perl -e 'for (1..60) { exit 0 unless fork } sleep 9999'; sleep 0.3")],
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
    mended(
        "",
        "HC-SLURM-03",
        &[(OTHERS, "fakes /etc/munge/munge.key a"), (N3, "fakes /etc/munge/munge.key b")],
        &[(ALL, "unfakes /etc/munge/munge.key")],
    ),
];

struct Lab {
    hosts: support::Lab,
    state: tempfile::TempDir,
}

impl Lab {
    fn run(&self, hosts: &str, script: &str) {
        for host in hosts.split(' ') {
            self.hosts.ok(host, &format!("{WORDS}\n{script}"));
        }
    }

    /// A program with homing in its path, and a way to the hosts.
    fn command(&self, program: &str, connections: &str) -> Command {
        let config = PathBuf::from("/var/lib/homing/labs").join(&self.hosts.name).join("ssh_config");
        let folder = self.state.path().join(connections);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(program);
        let path = format!("{}:{}", Path::new(EXE).parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.env("HOMING_SSH", format!("ssh -F {}", config.display())).env("PATH", path);
        command.env("XDG_STATE_HOME", self.state.path()).env("XDG_RUNTIME_DIR", folder).env_remove("HOMING_CLUSTER");
        command.env_remove("HOMING_VOLUMES");
        command
    }

    /// New connections each time: limits are those of a new login.
    fn check(&self, words: &[&str]) -> Output {
        let mut command = self.command(EXE, "check");
        // A machine that is busy with other tests is no dead host.
        command.args(["check", "--persist", "0", "--deadline", "60", "-w", "n[1-3]"]).args(words).output().unwrap()
    }

    fn findings(&self) -> Vec<Value> {
        let output = self.check(&["--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
        assert!(
            told["unknown"].as_array().unwrap().iter().all(|u| u["what"].as_str().unwrap().starts_with("dns")),
            "{told}"
        );
        told["findings"].as_array().unwrap().clone()
    }
}

fn shown(found: &[Value]) -> Vec<String> {
    let row = |f: &Value| format!("{} on {}: {}", f["code"].as_str().unwrap(), f["hosts"], f["what"]);
    found.iter().map(row).collect()
}

#[test]
fn planted_faults_are_found_and_mended_as_printed() {
    if missing(&["systemd-nspawn", "sshd", "bindfs", "perl"]) {
        return;
    }
    let lab = Lab { hosts: support::Lab::up("chk", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    // The kernel's log is the whole machine's; what it said before this host booted is another's.
    lab.run(N3, "fake dmesg '[    0.500000] I/O error, dev sdb, sector 8'");
    assert_eq!(shown(&lab.findings()), [""; 0], "a clean lab");
    lab.run(N3, "unfake dmesg");
    lab.run(ALL, "for u in 3001:alice 3002:bob; do useradd -m -u ${u%:*} ${u#*:}; done; groupadd -g 4001 team; gpasswd -M alice team");
    clean_is_a_line_an_area(&lab);
    rounds().iter().for_each(|faults| planted(&lab, faults));
    assert_eq!(shown(&lab.findings()), [""; 0], "all is undone");
    a_clock_that_is_behind(&lab);
    a_mute_holds_for_its_host(&lab);
    hosts_under_load(&lab);
}

/// Where n3 sends slowly. Whoever connects to its port without the secret is not let in.
fn hosts_under_load(lab: &Lab) {
    lab.run(N3, "tc qdisc add dev host0 root tbf rate 100mbit burst 64k latency 50ms");
    let stranger =
        "until exec 3<> /dev/tcp/n3/47113; do sleep 0.05; done 2>/dev/null; head -c 9 <&3 | wc -c > /tmp/got";
    lab.run("n2", &format!("timeout 100 bash -c '{stranger}' > /dev/null 2>&1 &"));
    let output = lab.check(&["--deep=1", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    for host in ["n1", "n2", "n3"] {
        for what in ["processors", "memory", "disk read", "disk randread", "network"] {
            assert!(told["measured"][host][what].as_f64().is_some_and(|rate| rate > 0.0), "{host}, {what}: {told}");
        }
    }
    // Hosts of one machine are no twins: what else is slow there is another's load.
    let found = found_names(told["findings"].as_array().unwrap());
    assert!(found.contains(&"HC-NET-08 [\"n3\"]".into()), "{told}");
    assert!(!found.iter().any(|name| name.starts_with("HC-CPU-06")), "{told}");
    let kept = std::fs::read_to_string(lab.state.path().join("homing/burn-in.json")).unwrap();
    assert!(kept.contains("\"n3\"") && kept.contains("disk randread"), "{kept}");
    lab.run(ALL, "! ss -ltn | grep :47113 && ! ls -d /dev/shm/homing-check* /var/tmp/homing-check* 2>/dev/null");
    lab.run("n2", "! [ -e /tmp/got ] || [ \"$(cat /tmp/got)\" = 0 ]");
    lab.run(N3, "tc qdisc del dev host0 root");
}

/// Faults that do not touch each other, at the same time: the n-th of each thing that several use.
fn rounds() -> Vec<Vec<&'static Fault>> {
    let mut rounds: Vec<Vec<&Fault>> = Vec::new();
    for (at, fault) in FAULTS.iter().enumerate() {
        let nth = FAULTS[..at].iter().filter(|f| !fault.uses.is_empty() && f.uses == fault.uses).count();
        rounds.resize_with(rounds.len().max(nth + 1), Vec::new);
        rounds[nth].push(fault);
    }
    rounds
}

/// `CODE HOST`, sorted.
fn names<'a>(faults: impl Iterator<Item = &'a &'static Fault>) -> Vec<String> {
    let mut names: Vec<String> = faults.map(|f| format!("{} [\"{}\"]", f.code, f.on)).collect();
    names.sort();
    names
}

fn found_names(found: &[Value]) -> Vec<String> {
    let mut names: Vec<String> =
        found.iter().map(|f| format!("{} {}", f["code"].as_str().unwrap(), f["hosts"])).collect();
    names.sort();
    names
}

/// Plants all, looks, pastes each remedy, looks for what no remedy was pasted for, and takes away what is left.
fn planted(lab: &Lab, faults: &[&'static Fault]) {
    let run = |scripts: Scripts| scripts.iter().for_each(|(hosts, script)| lab.run(hosts, script));
    faults.iter().for_each(|fault| run(fault.plant));
    let found = lab.findings();
    assert_eq!(found_names(&found), names(faults.iter()), "{:?}", shown(&found));
    let mut said = Vec::new();
    for fault in faults.iter().filter(|fault| fault.pasted) {
        let finding = found.iter().find(|f| f["code"] == fault.code).unwrap();
        assert_eq!(finding["mends"], true, "{}", fault.code);
        let command = finding["command"].as_str().unwrap();
        let pasted = lab.command("bash", "exec").args(["-c", command]).output().unwrap();
        said.push(format!("{command}: {}", err(&pasted)));
    }
    let after = lab.findings();
    let left = names(faults.iter().filter(|fault| !fault.pasted));
    assert_eq!(found_names(&after), left, "{:?} after {}", shown(&after), said.join("\n"));
    faults.iter().for_each(|fault| run(fault.undo));
}

fn clean_is_a_line_an_area(lab: &Lab) {
    let output = lab.check(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(0), 9), "{text}");
    assert!(text.lines().all(|line| line.ends_with("well on 3 hosts")), "{text}");
}

/// The library of `tests/clock_shift.c` in every session of n3.
fn a_clock_that_is_behind(lab: &Lab) {
    let library = lab.state.path().join("shift.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clock_shift.c");
    assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap().success());
    let push = ["push", "-w", "n3", "--dest", "/usr/local/lib/", library.to_str().unwrap()];
    assert!(lab.command(EXE, "exec").args(push).status().unwrap().success());
    let config = "SetEnv LD_PRELOAD=/usr/local/lib/shift.so CLOCK_SHIFT=-30";
    lab.run(N3, &format!("echo '{config}' > /etc/ssh/sshd_config.d/shift.conf; systemctl reload ssh; sleep 1"));
    let found = lab.findings();
    assert_eq!(found[0]["code"], "HC-CLOCK-01", "{:?}", shown(&found));
    // The round trip bounds how exactly it can be told.
    let what = found[0]["what"].as_str().unwrap();
    let seconds = what.strip_prefix("its clock is ").and_then(|rest| rest.split_once(" s behind"));
    assert!(seconds.is_some_and(|(s, _)| (29.0..31.0).contains(&s.parse().unwrap())), "{:?}", shown(&found));
    lab.run(N3, "rm /etc/ssh/sshd_config.d/shift.conf; systemctl reload ssh; sleep 1");
    assert_eq!(shown(&lab.findings()), [""; 0]);
}

fn a_mute_holds_for_its_host(lab: &Lab) {
    let status = |words: &[&str]| lab.check(words).status.code();
    lab.run(N3, "touch /etc/nologin");
    let mut mute = lab.command(EXE, "check");
    mute.args(["check", "--mute", "hc-user-07", "-w", "n3", "--for", "1h", "--because", "it moves"]);
    assert!(mute.status().unwrap().success());
    let output = lab.check(&["--quick"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(0) && text.contains("muted: HC-USER-07 on n3: it moves"), "{text}");
    lab.run("n2", "touch /etc/nologin");
    assert_eq!(status(&["--only", "users"]), Some(2));
    lab.run("n2 n3", "rm /etc/nologin");
    assert_eq!(status(&["--only", "users"]), Some(0));
}

/// Hosts that are all this machine, and one whose connection is open but says nothing.
struct World(Sshd);

impl World {
    fn new() -> Option<World> {
        let world = World(Sshd::new()?);
        let hosts = format!(
            "Match originalhost deaf\n  ProxyCommand sleep 600\nMatch originalhost n*\n  ProxyCommand {}",
            world.0.proxy()
        );
        world.0.client("user", &hosts);
        Some(world)
    }

    fn check(&self, words: &[&str]) -> Output {
        let mut command = Command::new(EXE);
        command
            .args(["check", "--persist", "5", "--only", "disks", "-o"])
            .arg(format!("-F {}", self.0.path("user_config").display()));
        command.env("XDG_RUNTIME_DIR", self.0.0.path()).env("XDG_STATE_HOME", self.0.0.path()).env_remove("HOMING_SSH");
        command.env("SHELL", "/bin/sh").current_dir(self.0.0.path()).args(words).output().unwrap()
    }
}

#[test]
fn a_host_that_says_nothing_holds_up_nobody() {
    let Some(world) = World::new() else { return };
    let output = world.check(&["-w", "n[1-8],deaf", "--json", "--deadline", "20"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let silent: Vec<&Value> = told["hosts"].as_array().unwrap().iter().filter(|h| h["status"] == "silent").collect();
    assert_eq!(silent.len(), 1, "{told}");
    assert_eq!((&silent[0]["host"], output.status.code()), (&"deaf".into(), Some(3)));
}

#[test]
fn what_is_asked_of_nobody() {
    let Some(world) = World::new() else { return };
    let text = |words: &[&str]| String::from_utf8(world.check(words).stdout).unwrap();
    let told = text(&["--explain", "hc-disk-06"]);
    assert!(told.starts_with("HC-DISK-06: /tmp") && told.contains("chmod 1777"), "{told}");
    assert_eq!(world.check(&["--explain", "HC-NONE-01"]).status.code(), Some(255));
    assert_eq!(world.check(&["--mute", "HC-DISK-06"]).status.code(), Some(255), "without a reason");
}

/// Slurm's commands and the kernel's log are stand-ins of this machine.
#[test]
fn a_node_drains_itself_and_comes_back() {
    let Some(world) = World::new() else { return };
    let bin = world.0.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = |name: &str, text: &str| {
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let log = world.0.path("log");
    program("scontrol", &format!("printf '%s|' \"$@\" >> {}", log.display()));
    let health = || {
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(EXE);
        command.args(["check", "--slurm-health", "--only", "memory", "--deadline", "60"]).env("PATH", path);
        command.env("XDG_STATE_HOME", world.0.0.path()).env("SLURMD_NODENAME", "n7");
        let output = command.output().unwrap();
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        (output.status.code(), told, err(&output))
    };
    program("sinfo", "echo 'idle|none'");
    program("dmesg", "echo 'mce: [Hardware Error]: CPU 2: Machine Check: 0'");
    let (status, told, said) = health();
    let reason = "homing check: HC-MEM-06 the processor reports a machine check (1 line)";
    assert_eq!((status, told), (Some(2), format!("update|NodeName=n7|State=DRAIN|Reason={reason}|")), "{said}");
    program("sinfo", &format!("echo 'drained|{reason}'"));
    assert_eq!(health().1, "", "it is drained already");
    program("dmesg", "true");
    let (_, told, said) = health();
    assert_eq!(told, "update|NodeName=n7|State=RESUME|", "{said}");
}
