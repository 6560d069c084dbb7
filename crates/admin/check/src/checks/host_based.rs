//! Can users log in from host to host, if `homing up` has set that up?

use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use homing_setup::{HOST_BASED, host_based_faults};

static BARRED: Code = Code {
    name: "HC-SSH-08",
    severity: Severity::Error,
    what: "users cannot log in from host to host, although homing up has set it up",
    means: "MPI, rsync and jobs that start a program on another host fail, or wait for a password",
    seen: "`sshd -T -C user=USER,...`, `ssh -G HOST`, and a login of a user at the next host",
    mend: "remove the line that overrides it from the other file; systemctl reload ssh",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "host_based",
    script: HOST_BASED,
    waits: true,
    slow: true,
    root: Some("whether users can log in from host to host"),
    codes: &[&BARRED],
    judge,
};

/// The command that shows more.
const LOOK: &str = "sshd -T | grep -i hostbased; grep -rniE 'hostbased|keysign' /etc/ssh/sshd_config /etc/ssh/sshd_config.d \
                    /etc/ssh/ssh_config /etc/ssh/ssh_config.d";

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let has = |peer: &str, user: &str| {
        let is_user = |row: &[String]| row.len() > 1 && row[0] == "user" && row[1] == user;
        let is_peer = |name: &str| name.rsplit('@').next() == Some(peer);
        answers.each("accounts").any(|(host, row)| is_peer(&host.name) && is_user(row))
    };
    let of_host = |(host, rows): (&crate::HostAnswers, &[Vec<String>])| {
        let said: Vec<&str> = rows.iter().filter_map(|row| row.first().map(String::as_str)).collect();
        let faults = host_based_faults(&said.join("\n"), &host.name, &has);
        (!faults.is_empty()).then(|| BARRED.on(host, faults.join("; "), "sshd -T, ssh -G, ssh").look(LOOK))
    };
    answers.of(CHECK.key).filter_map(of_host).collect()
}
