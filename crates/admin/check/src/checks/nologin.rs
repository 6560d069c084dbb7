//! May users other than root log in?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static CLOSED: Code = Code {
    name: "HC-USER-07",
    severity: Severity::Error,
    what: "only root may log in",
    means: "every login of a user is refused, and so is every job that arrives by ssh",
    seen: "/etc/nologin, /run/nologin",
    mend: "remove the file",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "nologin",
    script: r#"for f in /etc/nologin /run/nologin; do [ -e "$f" ] && echo "$f"; done"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&CLOSED],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key).map(|(host, row)| (host, &row[0]));
    rows.map(|(host, file)| {
        let found = CLOSED.on(host, "only root may log in", format!("{file} exists"));
        // systemd makes the other one while a host boots or shuts down, and removes it itself.
        if file == "/etc/nologin" {
            found.mend(format!("rm {}", word(file)))
        } else {
            found.look(format!("cat {}; systemctl is-system-running; systemctl list-jobs", word(file)))
        }
    })
    .collect()
}
