//! Does a host export folders of the partition that its own system is on?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static SYSTEM: Code = Code {
    name: "HC-MOUNT-10",
    severity: Severity::Warning,
    what: "NFS exports a folder of the system partition",
    means: "clients can fill the disk that the server itself needs, and a guessed file handle reaches every file on it",
    seen: "/etc/exports, /etc/exports.d, `stat -c %m FOLDER`",
    mend: "mount a separate partition there, and export a folder of it",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "exports",
    script: r#"cat /etc/exports /etc/exports.d/*.exports | awk '/^[/]/ {print $1}' | head -40 |
while read -r p; do printf '%s\t%s\n' "$p" "$(stat -c %m -- "$p")"; done"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&SYSTEM],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key).filter(|(_, row)| row.len() == 2 && row[1] == "/");
    rows.map(|(host, row)| {
        let what = format!("{} is exported, and is on the system partition", row[0]);
        let found = SYSTEM.on(host, what, format!("/etc/exports: {}; stat -c %m: /", row[0]));
        found.look(format!("df -h {}; exportfs -v", word(&row[0])))
    })
    .collect()
}
