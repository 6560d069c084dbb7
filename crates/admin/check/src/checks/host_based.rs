//! Can users log in from host to host, if `homing up` has set that up?

use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use homing_model::text::always_quoted;
use homing_setup::{HOST_BASED, failed_login, host_based_faults};

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

/// The command that shows settings.
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
        let said = said.join("\n");
        let faults = host_based_faults(&said, &host.name, &has);
        // If no setting is wrong, the cause is on the way or on the other host.
        let peer = failed_login(&said, &has).filter(|_| faults.len() == 1).map(|(peer, ..)| peer);
        let look = peer.map_or(LOOK.into(), way_to);
        (!faults.is_empty()).then(|| BARRED.on(host, faults.join("; "), "sshd -T, ssh -G, ssh").look(look))
    };
    answers.of(CHECK.key).filter_map(of_host).collect()
}

/// Returns the command that shows how far a login at `peer` comes.
fn way_to(peer: &str) -> String {
    let peer = always_quoted(peer);
    format!("getent hosts {peer}; ssh -v -o BatchMode=yes {peer} true 2>&1 | tail -n 20")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostAnswers;

    fn look(client: &str) -> String {
        let said = format!(
            "user alice\nserver hostbasedauthentication yes\nserver hostbasedusesnamefrompacketonly yes\n\
             client hostbasedauthentication {client}\nclient enablesshkeysign yes\n\
             login n2 255 connect to host n2 port 22: No route to host"
        );
        let rows = |text: &str| text.lines().map(|line| vec![line.to_string()]).collect::<Vec<_>>();
        let host = |name: &str| {
            let mut host = HostAnswers::read(name, &[]);
            host.set_rows("accounts", vec![vec!["user".into(), "alice".into()]]);
            host.set_rows(CHECK.key, rows(&said));
            host
        };
        let found = judge(&Answers { hosts: vec![host("n1"), host("n2")] });
        found[0].remedy.as_ref().unwrap().line.clone()
    }

    #[test]
    fn a_host_that_is_not_reached_sends_nobody_to_the_settings_of_sshd() {
        assert!(look("yes").starts_with("getent hosts 'n2'; ssh -v"), "{}", look("yes"));
        assert!(look("no").starts_with("sshd -T"), "{}", look("no"));
    }
}
