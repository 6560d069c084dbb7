//! Are all file systems of /etc/fstab mounted, and writable?

use super::fstab_volume::{FSTAB, of_volume};
use super::mounted::{Mounts, mounts};
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_mounts::unescape;

static ABSENT: Code = Code {
    name: "HC-MOUNT-01",
    severity: Severity::Error,
    what: "a file system of /etc/fstab is not mounted",
    means: "programs find an empty folder, and files that they write fill the disk below it",
    seen: "/etc/fstab and /proc/self/mountinfo",
    mend: "mount POINT",
};
static READ_ONLY: Code = Code {
    name: "HC-MOUNT-02",
    severity: Severity::Error,
    what: "a file system is read-only, but should not be",
    means: "every write fails there; the kernel does this after a disk error to protect the other files",
    seen: "/proc/self/mountinfo",
    mend: "find the cause in the kernel log, check the file system, mount it again",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: FSTAB,
    script: r#"awk '$1 !~ /^#/ && NF > 3 {print $1 "\t" $2 "\t" $3 "\t" $4}' /etc/fstab"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&ABSENT, &READ_ONLY],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let known = answers.of(CHECK.key).filter_map(|(host, fstab)| Some((host, fstab, mounts(host)?)));
    known
        .flat_map(|(host, fstab, mounts)| {
            fstab.iter().filter_map(move |line| of_line(host, line, &mounts)).collect::<Vec<_>>()
        })
        .collect()
}

fn of_line(host: &HostAnswers, line: &[String], mounts: &Mounts) -> Option<HostFinding> {
    let [_, point, fstype, options] = line else { return None };
    let point = String::from_utf8_lossy(&unescape(point.as_bytes())).into_owned();
    let point = if point.len() > 1 { point.trim_end_matches('/') } else { &point };
    let has = |option: &str| options.split(',').any(|o| o == option);
    if !point.starts_with('/')
        || has("noauto")
        || has("x-systemd.automount")
        || matches!(fstype.as_str(), "swap" | "proc" | "sysfs")
    {
        return None;
    }
    let Some(mount) = mounts.iter().rev().find(|m| m.mount.point.display() == point) else {
        let found = ABSENT.on(
            host,
            format!("{point} is not mounted"),
            format!("/etc/fstab has {point}, /proc/self/mountinfo has not"),
        );
        if let Some(command) = of_volume(options) {
            return Some(found.here(&command));
        }
        return Some(found.mend(format!("mountpoint -q {0} || {{ mkdir -p {0} && mount {0}; }}", word(point))));
    };
    let is = |option: &str| mount.options.iter().chain(&mount.of_super).any(|o| o == option);
    let broken = ["emergency_ro", "shutdown"].into_iter().find(|o| is(o));
    let state = broken.or((is("ro") && !has("ro")).then_some("ro"))?;
    let found = READ_ONLY.on(host, format!("{point} is read-only"), format!("/proc/self/mountinfo: {point} {state}"));
    // After an error of the disk each write may damage more.
    if broken.is_some() {
        return Some(found.look(format!("dmesg -T | tail -50; findmnt {}", word(point))));
    }
    let errors = "cat /sys/fs/ext4/\"${d##*/}\"/errors_count 2>/dev/null || echo 0";
    Some(found.mend(format!(
        "d=$(findmnt -nro SOURCE -M {0} | tail -n 1); [ \"$({errors})\" = 0 ] && mount -o remount,rw {0}",
        word(point)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_mounted_by_homing_and_no_other_line_is() {
        let remedy = |options: &str| {
            let line = ["n4:/d3", "/d3", "glusterfs", options].map(String::from);
            of_line(&HostAnswers::named("n4"), &line, &Mounts::new()).unwrap().command("")
        };
        let volume = remedy("x-homing.d3,defaults,_netdev,backup-volfile-servers=n1:n2");
        assert_eq!(volume.as_deref(), Some("homing volume mount d3"), "it also mends a line with an old server");
        assert!(remedy("defaults,_netdev").is_some_and(|command| command.contains("mkdir -p /d3 && mount /d3")));
    }
}
