//! Do file systems on disks make the disk write its cache when it must?

use super::mounted::mounts;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static NONE: Code = Code {
    name: "HC-DISK-13",
    severity: Severity::Warning,
    what: "a file system is mounted without write barriers",
    means: "when the power fails, files and the file system itself are damaged, unless the disk's cache has a battery",
    seen: "/proc/self/mountinfo: nobarrier, barrier=0",
    mend: "mount -o remount,barrier=1 POINT, and in /etc/fstab",
};

pub(crate) static CHECK: HostCheck =
    HostCheck { key: "barriers", script: "", waits: false, slow: false, root: None, codes: &[&NONE], judge };

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let of_host = |host: &HostAnswers| -> Vec<HostFinding> {
        let lines = mounts(host).unwrap_or_default();
        let is_off = |option: &&String| ["nobarrier", "barrier=0"].contains(&option.as_str());
        let ill = lines.iter().filter(|line| line.mount.source.0.starts_with(b"/dev/"));
        ill.filter_map(|line| {
            let (option, point) = (line.of_super.iter().find(is_off)?, line.mount.point.display());
            let found =
                NONE.on(host, format!("{point} has no write barriers"), format!("/proc/self/mountinfo: {option}"));
            Some(found.mend(format!("mount -o remount,barrier=1 {}", word(&point))))
        })
        .collect()
    };
    answers.hosts.iter().flat_map(of_host).collect()
}
