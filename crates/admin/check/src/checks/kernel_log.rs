//! Which faults does the kernel report?

use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::units::count;

static DISK: Code = Code {
    name: "HC-DISK-03",
    severity: Severity::Error,
    what: "the kernel could not read or write a disk",
    means: "files are lost or damaged; more will follow",
    seen: "`dmesg`",
    mend: "save the data and replace the disk: `smartctl -a DEVICE` shows its state",
};
static OOM: Code = Code {
    name: "HC-MEM-05",
    severity: Severity::Warning,
    what: "the kernel killed processes because memory ran out",
    means: "jobs end without a message, and sometimes a daemon that other hosts need",
    seen: "`dmesg`",
    mend: "set a limit for jobs (`homing sub --mem`), or run fewer jobs on the host",
};
static HARDWARE: Code = Code {
    name: "HC-MEM-06",
    severity: Severity::Error,
    what: "the processor reports a machine check",
    means: "results may be wrong, and the host will stop",
    seen: "`dmesg`",
    mend: "take the host out of service; `ras-mc-ctl --errors` names the part",
};
static HUNG: Code = Code {
    name: "HC-DISK-08",
    severity: Severity::Warning,
    what: "processes waited for more than two minutes for a disk or a server",
    means: "users see programs that hang and cannot be killed",
    seen: "`dmesg`",
    mend: "find the disk or server: the lines after the message name the file system",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "kernel_log",
    // A container reads the log of the whole machine: lines from before its first process are not its own. Floppies
    // and empty drives of virtual machines cause errors at every boot.
    script: r#"{ dmesg || journalctl -k -b -q --no-pager -o cat; } |
awk -v begun="$(sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20)" -v ticks="$(getconf CLK_TCK)" '
  match($0, /^\[ *[0-9]+\.[0-9]+\]/) && substr($0, 2, RLENGTH - 2) * ticks < begun { next } { print }' |
grep -E 'I/O error|EXT4-fs error|XFS .*(Shutting down|shutdown)|lost (async|sync) page write|Out of memory: Killed|Hardware Error|blocked for more than' | grep -Ev 'dev (fd|sr)[0-9]' | tail -200"#,
    waits: true,
    slow: false,
    root: Some("the kernel's log"),
    codes: &[&DISK, &HARDWARE, &OOM, &HUNG],
    judge,
};

/// A part of a line, its code, and the message. The first that matches counts.
const PATTERNS: [(&str, &Code, &str); 8] = [
    ("Hardware Error", &HARDWARE, "the processor reports a machine check"),
    ("Out of memory: Killed", &OOM, "the kernel killed processes because memory ran out"),
    ("blocked for more than", &HUNG, "processes waited for more than two minutes for a disk or a server"),
    ("EXT4-fs error", &DISK, "a file system is damaged"),
    ("XFS", &DISK, "a file system was shut down"),
    ("lost async page write", &DISK, "written data were lost"),
    ("lost sync page write", &DISK, "written data were lost"),
    ("I/O error", &DISK, "the kernel could not read or write a disk"),
];

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.of(CHECK.key).flat_map(|(host, rows)| of_host(host, rows)).collect()
}

/// Returns one finding for each pattern, with the last line that shows it.
fn of_host(host: &HostAnswers, rows: &[Vec<String>]) -> Vec<HostFinding> {
    let is = |text: &str| PATTERNS.iter().position(|(pattern, ..)| text.contains(pattern));
    let kinds: Vec<(usize, &String)> = rows.iter().filter_map(|row| Some((is(row.first()?)?, row.first()?))).collect();
    let told = |(nth, (pattern, code, what)): (usize, &(&str, &'static Code, &str))| {
        let lines: Vec<&String> = kinds.iter().filter(|(kind, _)| *kind == nth).map(|(_, line)| *line).collect();
        let last = lines.last()?.chars().take(160).collect::<String>();
        let finding =
            code.on(host, format!("{what} ({})", count(lines.len() as u64, "line")), format!("dmesg: {last}"));
        Some(finding.look(format!("dmesg -T | grep -F {} | tail", crate::finding::word(pattern))))
    };
    PATTERNS.iter().enumerate().filter_map(told).collect()
}
