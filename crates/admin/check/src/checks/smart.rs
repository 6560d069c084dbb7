//! Which faults do disks report of themselves?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

/// Bits of smartctl's exit status: the disk is failing, an attribute is below its threshold, a self-test failed.
const FAILS: u32 = 8 | 16 | 128;

static FAILING: Code = Code {
    name: "HC-DISK-09",
    severity: Severity::Error,
    what: "a disk reports that it is failing",
    means: "it may fail within days, and its data are lost then",
    seen: "`smartctl -H -A -l selftest DEVICE`: bits 3, 4 and 7 of its exit status",
    mend: "save the data, replace the disk",
};
static WORN: Code = Code {
    name: "HC-DISK-10",
    severity: Severity::Warning,
    what: "a disk could not read some sectors, or has replaced them",
    means: "such disks fail within a year much more often than others",
    seen: "`smartctl -A DEVICE`: attributes 5, 187, 197, 198",
    mend: "watch the numbers; replace the disk if they grow",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "smart",
    script: r#"[ "$(id -u)" = 0 ] && command -v smartctl >/dev/null || exit 0
smartctl --scan | awk '$1 ~ /^[/]dev[/]/ {print $1}' | head -100 | { while read -r d; do
  { o=$(smartctl -n standby -H -A -l selftest -- "$d"); s=$?
    w=$(printf '%s\n' "$o" | awk '$1 ~ /^(5|187|197|198)$/ && $10 + 0 > 0 {printf "%s=%s ", $2, $10}')
    printf '%s\t%s\t%s\n' "$d" "$s" "$w"; } &
done; wait; }"#,
    waits: true,
    slow: false,
    root: Some("the health reports of disks"),
    codes: &[&FAILING, &WORN],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.each(CHECK.key).filter_map(|(host, row)| of_disk(host, row)).collect()
}

fn of_disk(host: &HostAnswers, row: &[String]) -> Option<HostFinding> {
    let [disk, status, worn] = row else { return None };
    let look = format!("smartctl -x {}", word(disk));
    if status.parse::<u32>().is_ok_and(|status| status & FAILS != 0) {
        let found =
            FAILING.on(host, format!("{disk} reports that it is failing"), format!("smartctl {disk}: status {status}"));
        return Some(found.look(look));
    }
    let found = WORN.on(host, format!("{disk} has lost sectors"), format!("smartctl -A {disk}: {}", worn.trim()));
    (!worn.is_empty()).then(|| found.look(look))
}
