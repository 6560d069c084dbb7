//! Is the kernel healthy, and does it run the installed version?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

/// Bits of `tainted` that are faults: a machine check (4), an oops (7), a processor that hung (14).
const FAULTS: [(u32, &str); 3] = [(4, "a machine check"), (7, "a crash in the kernel"), (14, "a processor that hung")];
/// The most processes that have ended and were not reaped by their parent; more are a leak of one program.
const MOST_ZOMBIES: u64 = 50;

static TAINTED: Code = Code {
    name: "HC-SVC-03",
    severity: Severity::Error,
    what: "a part of the kernel has crashed since the boot",
    means: "processes may hang, and data may be lost",
    seen: "/proc/sys/kernel/tainted",
    mend: "save the kernel log, then reboot",
};
static REBOOT: Code = Code {
    name: "HC-SVC-04",
    severity: Severity::Warning,
    what: "an update waits for a reboot",
    means: "the security hole that it closes is still open",
    seen: "/run/reboot-required",
    mend: "reboot the host when no job runs on it",
};
static ZOMBIES: Code = Code {
    name: "HC-SVC-05",
    severity: Severity::Warning,
    what: "a program leaves dead processes behind",
    means: "when all process numbers are used, no program can start",
    seen: "/proc/*/stat",
    mend: "end or restart the program",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "kernel_state",
    script: r#"printf 'tainted\t%s\n' "$(cat /proc/sys/kernel/tainted)"
[ -e /run/reboot-required ] && printf 'reboot\tyes\n'
cat /proc/[0-9]*/stat 2>/dev/null | awk '{sub(/^[0-9]+ \(.*\) /, "")} $1 == "Z" && ++n[$2] > n[m] {m = $2}
END {if (m) print m, n[m]}' | while read -r p n; do printf 'zombies\t%s\t%s\t%s\n' "$p" "$n" "$(cat "/proc/$p/comm")"; done; true"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&TAINTED, &REBOOT, &ZOMBIES],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| of_row(host, row)).collect()
}

fn of_row(host: &HostAnswers, row: &[String]) -> Option<HostFinding> {
    match row.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tainted", bits] => {
            let bits: u64 = bits.parse().ok()?;
            let (_, fault) = FAULTS.into_iter().find(|(bit, _)| bits & (1 << bit) != 0)?;
            let seen = format!("/proc/sys/kernel/tainted: {bits}");
            Some(
                TAINTED
                    .on(host, format!("the kernel had {fault}"), seen)
                    .look("dmesg -T | grep -A20 -E 'Oops|BUG:|Hardware Error|soft lockup' | tail -40"),
            )
        }
        ["reboot", _] => Some(
            REBOOT
                .on(host, "an update waits for a reboot", "/run/reboot-required exists")
                .look("cat /run/reboot-required*; w"),
        ),
        ["zombies", parent, n, name] if n.parse::<u64>().is_ok_and(|n| n > MOST_ZOMBIES) => {
            let what = format!("{name} leaves dead processes behind");
            let found = ZOMBIES.on(host, what, format!("/proc/*/stat: {n} zombies of process {parent}"));
            let (number, comm) = (word(parent), word(name));
            // The first process is the host itself. A number may belong to another program when this is pasted.
            Some(if parent == "1" {
                found.look("ps -e -o ppid,pid,stat,comm | awk '$1 == 1 && $3 ~ /^Z/' | head")
            } else {
                found.mend(format!("[ \"$(cat /proc/{number}/comm)\" = {comm} ] && kill {number}"))
            })
        }
        _ => None,
    }
}
