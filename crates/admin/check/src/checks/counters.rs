//! Counters of the kernel that should be zero.

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static DEGRADED: Code = Code {
    name: "HC-DISK-04",
    severity: Severity::Error,
    what: "a RAID array runs without one of its disks",
    means: "if another disk fails, the data are lost",
    seen: "/sys/block/md*/md/degraded",
    mend: "replace the disk; mdadm --manage ARRAY --add DEVICE",
};
static DAMAGED: Code = Code {
    name: "HC-DISK-05",
    severity: Severity::Error,
    what: "ext4 has found errors in a file system",
    means: "files may be lost, and it becomes read-only at the next one",
    seen: "/sys/fs/ext4/*/errors_count",
    mend: "unmount it and run e2fsck -f",
};
static UNCORRECTED: Code = Code {
    name: "HC-MEM-01",
    severity: Severity::Error,
    what: "memory gave wrong data that could not be corrected",
    means: "results may be wrong, programs crash",
    seen: "/sys/devices/system/edac/mc/mc*/ue_count",
    mend: "replace the module: `grep . /sys/devices/system/edac/mc/mc*/dimm*/dimm_label`",
};
static CORRECTED: Code = Code {
    name: "HC-MEM-02",
    severity: Severity::Warning,
    what: "memory gave wrong data that was corrected",
    means: "the module is wearing out",
    seen: "/sys/devices/system/edac/mc/mc*/ce_count",
    mend: "watch whether it grows, then replace the module",
};
static THROTTLED: Code = Code {
    name: "HC-CPU-04",
    severity: Severity::Warning,
    what: "a processor was slowed down because it was too hot",
    means: "tasks take longer on this host than on the others",
    seen: "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    mend: "clean fans and filters, and check the temperature of the room",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "counters",
    script: r#"grep -H -v '^0$' /sys/block/md*/md/degraded /sys/fs/ext4/*/errors_count /sys/devices/system/edac/mc/mc*/ue_count \
  /sys/devices/system/edac/mc/mc*/ce_count /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count | head -50; true"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&DEGRADED, &DAMAGED, &UNCORRECTED, &CORRECTED, &THROTTLED],
    judge,
};

/// The ending of the file's name, the code, and the message.
const COUNTERS: [(&str, &Code, &str); 5] = [
    ("/degraded", &DEGRADED, "the array lacks a disk"),
    ("/errors_count", &DAMAGED, "ext4 has found errors"),
    ("/ue_count", &UNCORRECTED, "memory gave wrong data"),
    ("/ce_count", &CORRECTED, "memory gave wrong data that was corrected"),
    ("/core_throttle_count", &THROTTLED, "processors were slowed down by heat"),
];

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.of(CHECK.key).flat_map(|(host, rows)| of_host(host, rows)).collect()
}

/// Returns the first file of each kind with a count: 64 hot cores are one fault.
fn of_host(host: &HostAnswers, rows: &[Vec<String>]) -> Vec<HostFinding> {
    let lines: Vec<(&str, &str)> = rows.iter().filter_map(|row| row.first()?.rsplit_once(':')).collect();
    let of_kind = |(end, code, what): &(&str, &'static Code, &str)| {
        let mut counting =
            lines.iter().filter(|(file, n)| file.ends_with(end) && n.parse::<u64>().is_ok_and(|n| n > 0));
        let (file, n) = counting.next()?;
        Some(code.on(host, *what, format!("{file}: {n}")).look(format!("grep -H . {}", word(file))))
    };
    COUNTERS.iter().filter_map(of_kind).collect()
}
