//! Do logical volumes have all their disks?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static LACKS: Code = Code {
    name: "HC-DISK-12",
    severity: Severity::Error,
    what: "a logical volume lacks a disk, or its copies differ",
    means: "if another disk fails, the data are lost, or reads return wrong data",
    seen: "`lvs -o vg_name,lv_name,lv_health_status`",
    mend: "replace the disk; vgextend, lvconvert --repair VG/LV",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "lvm",
    // It reads every disk, and may wait for a dead one.
    script: r#"[ "$(id -u)" = 0 ] && command -v lvs >/dev/null || exit 0
lvs --noheadings --separator '|' -o vg_name,lv_name,lv_health_status | awk -F '|' '$3 != "" {sub(/^ */, "", $1); print $1 "\t" $2 "\t" $3}'"#,
    waits: true,
    slow: false,
    root: Some("whether logical volumes lack disks"),
    codes: &[&LACKS],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key).filter(|(_, row)| row.len() == 3);
    rows.map(|(host, row)| {
        let (name, state) = (format!("{}/{}", row[0], row[1]), &row[2]);
        let found = LACKS.on(host, format!("the logical volume {name}: {state}"), format!("lvs {name}: {state}"));
        found.look(format!("lvs -a -o +devices,lv_health_status {}; pvs", word(&row[0])))
    })
    .collect()
}
