//! Is there room on the disks?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::units::bytes;

/// A file system is full if less than 3 % and less than 20 GB are free: 3 % of a large disk is room for a while.
const LEAST_PERCENT: u64 = 3;
const LEAST_BYTES: u64 = 20_000_000_000;

static ROOM: Code = Code {
    name: "HC-DISK-01",
    severity: Severity::Error,
    what: "a file system is full",
    means: "writes fail, logs stop, and daemons end",
    seen: "`stat -f POINT`, as `df` does",
    mend: "remove unneeded files: `du -xh POINT | sort -h | tail` lists the largest",
};
static INODES: Code = Code {
    name: "HC-DISK-02",
    severity: Severity::Error,
    what: "a file system has no room for more files, though it has bytes left",
    means: "new files cannot be made: \"No space left on device\", while df shows room",
    seen: "`stat -f POINT`, as `df -i` does",
    mend: "remove small files: `du -x --inodes POINT | sort -n | tail` lists the folders with most",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "full",
    // An overlay below / is a container's, on a disk that is listed anyway. Only file systems of this host are
    // listed: one of the network may not answer, and is the same for all.
    script: r#"awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") t = $(i + 1)
  if (t ~ /^(ext[234]|xfs|btrfs|zfs|f2fs|tmpfs|overlay|bcachefs|jfs)$/ && $5 !~ /^[/](proc|sys|run[/]credentials)/ && $5 !~ /\\/ && (t != "overlay" || $5 == "/")) print $5}' /proc/self/mountinfo |
sort -u | head -100 | xargs stat -f -c "%S$T%b$T%a$T%c$T%d$T%n" --"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&ROOM, &INODES],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.each(CHECK.key).filter_map(|(host, row)| of_point(host, row)).collect()
}

fn of_point(host: &HostAnswers, row: &[String]) -> Option<HostFinding> {
    let [size, blocks, free, inodes, free_inodes, point] = row else { return None };
    let number = |text: &String| text.parse::<u64>().ok();
    let (size, all, free) = (number(size)?, number(blocks)?, number(free)?);
    let (inodes, free_inodes) = (number(inodes)?, number(free_inodes)?);
    let scarce = |free: u64, of: u64| of > 0 && u128::from(free) * 100 < u128::from(of) * u128::from(LEAST_PERCENT);
    let left = free.saturating_mul(size);
    if scarce(free, all) && left < LEAST_BYTES {
        let what = format!("{point} is full");
        return Some(
            ROOM.on(host, what, format!("df {point}: {} of {} left", bytes(left), bytes(all.saturating_mul(size))))
                .look(biggest(point, "-h")),
        );
    }
    let what = format!("{point} has no room for more files");
    scarce(free_inodes, inodes).then(|| {
        INODES.on(host, what, format!("df -i {point}: {free_inodes} of {inodes} left")).look(biggest(point, "--inodes"))
    })
}

fn biggest(point: &str, unit: &str) -> String {
    format!("du -x {unit} {} 2>/dev/null | sort {} | tail", word(point), if unit == "-h" { "-h" } else { "-n" })
}
