//! Are start-up files silent in sessions that are not interactive?

use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static TALKS: Code = Code {
    name: "HC-SSH-05",
    severity: Severity::Error,
    what: "a start-up file of the shell prints something in every ssh session",
    means: "scp, sftp and rsync fail (\"is your shell clean?\"), and programs take this text for answers",
    seen: "`ssh HOST true` prints something",
    mend: "end ~/.bashrc at once if the shell is not interactive",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "startup",
    // It is the output before the script's own.
    script: "",
    waits: false,
    slow: false,
    root: None,
    codes: &[&TALKS],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let loud = answers.hosts.iter().filter_map(|host| Some((host, host.stray.first()?)));
    let line = r#"sed -i '1i case $- in *i*) ;; *) return ;; esac' ~/.bashrc"#;
    loud.map(|(host, said)| {
        let said: String = said.chars().take(60).collect();
        TALKS
            .on(host, "a start-up file of the shell prints in every ssh session", format!("ssh true: {said:?}"))
            .mend_as_user(line)
    })
    .collect()
}
