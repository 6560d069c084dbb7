//! Is rsync older than the repair of its known races?

use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use homing_model::rsync;

static RACES: Code = Code {
    name: "HC-VER-08",
    severity: Severity::Warning,
    what: "rsync has known race conditions",
    means: "a user who may write to a folder during its copy can make rsync read or write other files (CVE-2024-12747, CVE-2024-12087)",
    seen: "`rsync --version`, the changelog of its package",
    mend: "install rsync 3.4, or the distribution's repaired package",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "rsync_races",
    script: rsync::VERSION_SCRIPT,
    waits: true,
    slow: false,
    root: None,
    codes: &[&RACES],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key).filter_map(|(host, row)| Some((host, rsync::with_races(row.first()?)?, row)));
    rows.map(|(host, version, row)| {
        let found = RACES.on(host, format!("rsync {version} has known race conditions"), row[0].clone());
        found.look("command -v rsync; rsync --version | head -1")
    })
    .collect()
}
