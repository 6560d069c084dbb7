//! A large file in memory: are its bytes unchanged when they are read, and is reading as fast as on the twins?

use super::processors::{LOOK, WRONG};
use super::{rows_of_kind, slow};
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static SLOW: Code = Code {
    name: "HC-MEM-07",
    severity: Severity::Warning,
    what: "memory is slower than on others of the model, or than before",
    means: "programs with much data take longer there; often a module is in the wrong slot",
    seen: "reading a file of /dev/shm",
    mend: "compare `dmidecode -t memory` with that of another host of its model",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "burn_memory",
    // 2 GB at most and a quarter of the free memory. The file has no name once it is open: nothing of it remains when
    // the script ends for any reason.
    script: r#"m=$(awk -v b="$BURN" '$1 == "MemAvailable:" {m = int($2 / 4096); m = m > 2000 ? 2000 : m; print (m > b * 100 ? b * 100 : m)}' /proc/meminfo)
f=$(mktemp /dev/shm/homing-check-XXXXXX) && exec 9<> "$f" && rm "$f" || exit 1
head -c "${m}000000" /dev/zero | tr '\0' '\125' >&9
[ "$(stat -L -c %s /proc/self/fd/9)" = "${m}000000" ] || { printf 'note\tmemory: no room in /dev/shm\n'; exit 0; }
a=$(date +%s%3N) e=$(($(date +%s) + BURN)) n=0
while dd if=/proc/self/fd/9 of=/dev/null bs=1M status=none && n=$((n + 1)) && [ "$(date +%s)" -lt "$e" ]; do :; done
awk -v n="$((n * m))" -v t=$(($(date +%s%3N) - a)) 'BEGIN {printf "rate\tmemory\t%.0f\n", n * 1000 / (t > 0 ? t : 1)}'
printf 'wrong\t%s\n' "$(tr -d '\125' < /proc/self/fd/9 | wc -c)""#,
    waits: false,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let wrong = answers.hosts.iter().filter_map(|host| {
        let bytes = rows_of_kind(host, "wrong").filter_map(|row| row.get(1)).find(|bytes| *bytes != "0")?;
        let seen = format!("{bytes} bytes of a file in /dev/shm differ from the written ones");
        Some(WRONG.on(host, "its memory loses data", seen).look(LOOK))
    });
    wrong.chain(slow(answers, &SLOW, "memory", "dmidecode -t memory | grep -E 'Size|Speed|Locator'")).collect()
}
