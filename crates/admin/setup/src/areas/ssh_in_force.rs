//! Checks whether the settings of the ssh area are in force: see [`crate::host_based`].

use super::person;
use crate::host_based::{HOST_BASED, host_based_faults};
use crate::site::{AllSeen, ClusterSite};
use homing_model::text::always_quoted;

/// Returns the command that checks.
pub(super) fn command(site: &ClusterSite) -> String {
    let hosts: Vec<String> = site.hosts.iter().map(|host| always_quoted(host)).collect();
    format!("set -- {}\n{}{HOST_BASED}", hosts.join(" "), person::choose(site))
}

/// Returns the reasons why users cannot log in from this host to the next, or why that is not known.
pub(super) fn untaken(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let Some(said) = there.outputs.get(&command(site)) else { return Vec::new() };
    let is_there = |peer: &str, user: &str| {
        let there = seen.get(peer).and_then(|there| there.as_ref().ok());
        there.is_some_and(|there| there.users.contains_key(user))
    };
    host_based_faults(said, host, &is_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::{Account, Observed};

    const WELL: &str = "user alice\nserver hostbasedauthentication yes\nserver hostbasedusesnamefrompacketonly yes\n\
                        client hostbasedauthentication yes\nclient enablesshkeysign yes\n";

    fn of(said: &str) -> Vec<String> {
        let site = ClusterSite { hosts: vec!["n1".into(), "n2".into(), "n3".into()], ..ClusterSite::default() };
        let alice = Account { uid: 1000, gid: 1000, home: "/home/alice".into(), shell: "/bin/sh".into() };
        let users = [("alice".to_string(), alice)].into();
        let outputs = [(command(&site), said.to_string())].into();
        let host = |users, outputs| Ok(Observed { users, outputs, ..Observed::default() });
        let seen = [
            ("n1".to_string(), host(std::collections::BTreeMap::clone(&users), outputs)),
            ("n2".to_string(), host(users, Default::default())),
            ("n3".to_string(), host(Default::default(), Default::default())),
            ("n4".to_string(), Err("no route to host".into())),
        ];
        untaken(&site, "n1", &seen.into())
    }

    #[test]
    fn a_setting_of_another_file_and_a_login_that_fails_are_named() {
        assert_eq!(of(&format!("{WELL}login n2 0 \n")), [""; 0]);
        let other = WELL.replacen("server hostbasedauthentication yes", "server hostbasedauthentication no", 1);
        let set = "server-set /etc/ssh/sshd_config.d/10-local.conf:1:HostbasedAuthentication no\n\
                   server-set /etc/ssh/sshd_config.d/60-homing.conf:1:HostbasedAuthentication yes\n";
        let why = of(&format!("{other}{set}login n2 255 alice@n2: Permission denied (hostbased).\n"));
        assert_eq!(
            why,
            [
                "sshd uses hostbasedauthentication no for alice, not the value in homing's file; \
                 /etc/ssh/sshd_config.d/10-local.conf (line 1: HostbasedAuthentication no) comes first: remove that line",
                "alice cannot log in from n1 to n2: alice@n2: Permission denied (hostbased).",
            ]
        );
        assert_eq!(of(&format!("{WELL}login n4 255 timed out\nlogin n3 255 Permission denied\n")), [""; 0]);
        let unknown = WELL
            .replace("client hostbasedauthentication yes\nclient enablesshkeysign yes\n", "client-words bad option\n");
        assert!(
            of(&unknown)[0]
                .contains("the value of hostbasedauthentication that ssh uses for alice is unknown: bad option")
        );
    }
}
