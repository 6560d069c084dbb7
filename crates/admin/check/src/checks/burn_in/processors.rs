//! All processors at once: do they compute right, and as fast as the twins'?

use super::{rows_of_kind, slow};
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

pub(super) static WRONG: Code = Code {
    name: "HC-CPU-06",
    severity: Severity::Error,
    what: "under load a host computes wrong results, or its memory loses bytes",
    means: "results are wrong without any error: a processor or a memory module is defective",
    seen: "digests of the same bytes on each processor; bytes written to memory and read again",
    mend: "take the host out of use; test its memory modules one by one (memtest86+)",
};
static SLOW: Code = Code {
    name: "HC-CPU-07",
    severity: Severity::Warning,
    what: "processors are slower than on others of the model, or than before",
    means: "every task takes longer there; jobs over several hosts wait for it",
    seen: "sha256sum on all processors at once",
    mend: "check for heat, a dead fan, a power limit, firmware settings, another user's load",
};
/// The command that shows more when a host computes wrong.
pub(super) const LOOK: &str = "dmesg | grep -iE 'mce|edac|error'; grep . /sys/devices/system/edac/mc/mc*/*_count";

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "burn_processors",
    script: r#"a=$(date +%s%3N) e=$(($(date +%s) + BURN))
s=$(for _ in $(seq "$(nproc)"); do
  while head -c 50000000 /dev/zero | sha256sum && [ "$(date +%s)" -lt "$e" ]; do :; done &
done | sort | uniq -c)
printf '%s\n' "$s" | awk -v t=$(($(date +%s%3N) - a)) '{n += $1; print "sum\t" $2}
  END {printf "rate\tprocessors\t%.0f\n", n * 50 * 1000 / t}'"#,
    waits: false,
    slow: true,
    root: None,
    codes: &[&WRONG, &SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let wrong = answers.hosts.iter().filter_map(|host| wrong(answers, host));
    wrong.chain(slow(answers, &SLOW, "processors", "uptime; lscpu | grep MHz; dmesg | tail -20")).collect()
}

/// Reports a host whose digests of the same bytes differ among its processors, or from most hosts'.
fn wrong(answers: &Answers, host: &HostAnswers) -> Option<HostFinding> {
    let sums = |host| -> Vec<&[String]> { rows_of_kind(host, "sum").collect() };
    let own = sums(host);
    let like = answers.hosts.iter().filter(|other| sums(other) == own).count();
    let known = answers.hosts.iter().filter(|other| !sums(other).is_empty()).count();
    let ill = own.len() > 1 || (!own.is_empty() && like * 2 < known);
    let said = || own.iter().filter_map(|row| row.get(1)).map(|sum| &sum[..sum.len().min(8)]).collect::<Vec<_>>();
    ill.then(|| {
        WRONG.on(host, "its processors compute wrong results", format!("sha256sum: {}", said().join(" "))).look(LOOK)
    })
}
