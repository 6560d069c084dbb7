//! Logins from host to host as they are: what sshd and ssh go by for a user, and a login of that user at the next host.
//! A file of homing's that another file overrules is not in force.

use super::person;
use crate::site::{AllSeen, Site};
use homing_model::text::quoted_unless;

/// Lines `server KEY VALUE` and `client KEY VALUE` that count, `set FILE:LINE:TEXT` of files that name such a key, and
/// `login HOST STATUS WORDS`. It waits for a peer that does not answer for 5 s, and asks two at most.
const LOOK: &str = r#"[ -n "$u" ] && [ -f /etc/ssh/sshd_config.d/60-homing.conf ] || exit 0
echo "user $u"
own=$(ip -o addr show 2>/dev/null | sed 's/.* inet6* \([^ /]*\).*/\1/')
peers=; after=; me=
for h; do
  a=$(getent ahosts "$h" | cut -d' ' -f1 | sort -u)
  if [ -z "$me" ] && [ -n "$a" ] && echo "$a" | grep -qxF -e "$own"; then me=$h; elif [ -n "$me" ]; then after="$after $h"; else peers="$peers $h"; fi
done
set -- $after $peers
[ $# -gt 0 ] || set -- ${me:-localhost}
a=$(getent ahosts "$1" | head -n 1 | cut -d' ' -f1)
keys='hostbasedauthentication|hostbasedusesnamefrompacketonly|enablesshkeysign'
t=$(sshd -T -C "user=$u,host=$1,addr=${a:-127.0.0.1},laddr=127.0.0.1,lport=22" 2>&1) && echo "$t" | grep -E "^($keys) " | sed 's/^/server /' ||
  echo "server-words $(echo "$t" | tail -n 1)"
t=$(timeout -s KILL 30 runuser -u "$u" -- ssh -G "$1" 2>&1 </dev/null) && echo "$t" | grep -E "^($keys) " | sed 's/^/client /' ||
  echo "client-words $(echo "$t" | tail -n 1)"
d=$(getent passwd "$u" | cut -d: -f6)
grep -HniE "^[[:space:]]*($keys)[[:space:]=]" /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf 2>/dev/null | sed 's/^/server-set /'
grep -HniE "^[[:space:]]*($keys)[[:space:]=]" "$d/.ssh/config" /etc/ssh/ssh_config /etc/ssh/ssh_config.d/*.conf 2>/dev/null | sed 's/^/client-set /'
n=0
for h; do
  w=$(timeout -s KILL 40 runuser -u "$u" -- ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o PreferredAuthentications=hostbased -o ControlPath=none "$h" true 2>&1 </dev/null); r=$?
  echo "login $h $r $(echo "$w" | grep -v '^$' | tail -n 1)"; n=$((n + 1))
  case $w in *refused*|*"timed out"*|*"o route"*|*unreachable*) [ $n = 2 ] && break;; *) break;; esac
done"#;

/// Settings that host-based logins need, by the program that goes by them.
const NEEDED: [(&str, &str, &str); 4] = [
    ("server", "sshd", "hostbasedauthentication"),
    ("server", "sshd", "hostbasedusesnamefrompacketonly"),
    ("client", "ssh", "hostbasedauthentication"),
    ("client", "ssh", "enablesshkeysign"),
];

/// The command that looks.
pub(super) fn command(site: &Site) -> String {
    let hosts: Vec<String> = site.hosts.iter().map(|host| quoted_unless(host, |_| false)).collect();
    format!("set -- {}\n{}{LOOK}", hosts.join(" "), person::choose(site))
}

/// Reasons why users do not get from this host to the next, or why that is not known.
pub(super) fn untaken(site: &Site, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let Some(said) = there.outputs.get(&command(site)) else { return Vec::new() };
    let lines = |key: &str| lines_of(said, key);
    let user = lines("user").first().copied().unwrap_or_default().to_string();
    let mut against = Vec::new();
    for (side, program, key) in NEEDED {
        let value = lines(side).into_iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        match value {
            Some("yes") => {}
            Some(value) => against.push(format!(
                "{program} goes by {key} {value} for {user}, not by homing's file{}",
                winner(&lines(&format!("{side}-set")), key)
            )),
            None => {
                let words =
                    lines(&format!("{side}-words")).first().copied().unwrap_or("it does not show it").to_string();
                against.push(format!("what {program} goes by ({key}) for {user} is not known: {words}"));
            }
        }
    }
    let judged = lines("login").into_iter().find_map(|line| login(line, &user, seen));
    if let Some((peer, status, words)) = judged.filter(|(_, status, _)| *status != "0") {
        let words = if words.is_empty() { format!("ssh ended with status {status}") } else { words.to_string() };
        against.push(format!("{user} cannot log in from {host} to {peer}: {words}"));
    }
    against
}

/// A login's host, status and words. One that fails at a host without this user, or at one that does not answer, is no
/// fault of the host that tried.
fn login<'l>(line: &'l str, user: &str, seen: &AllSeen) -> Option<(&'l str, &'l str, &'l str)> {
    let (peer, rest) = line.split_once(' ')?;
    let (status, words) = rest.split_once(' ').unwrap_or((rest, ""));
    let there = seen.get(peer)?.as_ref().ok()?;
    there.users.contains_key(user).then_some((peer, status, words))
}

/// What follows a key in the lines that begin with it.
fn lines_of<'s>(said: &'s str, key: &str) -> Vec<&'s str> {
    said.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).collect()
}

/// The lines of other files that may have set it, for a person.
fn winner(set: &[&str], key: &str) -> String {
    let names = |line: &&&str| {
        let text = line.splitn(3, ':').nth(2).unwrap_or("").to_ascii_lowercase();
        let mut words = text.split(|c: char| c.is_whitespace() || c == '=').filter(|word| !word.is_empty());
        words.next() == Some(key) && words.next() != Some("yes")
    };
    let lines: Vec<String> = set
        .iter()
        .filter(names)
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            Some(format!("{} (line {}: {})", fields.next()?, fields.next()?, fields.next()?.trim()))
        })
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!(", since {} comes first: take that line out", lines.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::{Account, Observed};

    const WELL: &str = "user alice\nserver hostbasedauthentication yes\nserver hostbasedusesnamefrompacketonly yes\n\
                        client hostbasedauthentication yes\nclient enablesshkeysign yes\n";

    fn of(said: &str) -> Vec<String> {
        let site = Site { hosts: vec!["n1".into(), "n2".into(), "n3".into()], ..Site::default() };
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
                "sshd goes by hostbasedauthentication no for alice, not by homing's file, since \
                 /etc/ssh/sshd_config.d/10-local.conf (line 1: HostbasedAuthentication no) comes first: take that line out",
                "alice cannot log in from n1 to n2: alice@n2: Permission denied (hostbased).",
            ]
        );
        assert_eq!(of(&format!("{WELL}login n4 255 timed out\nlogin n3 255 Permission denied\n")), [""; 0]);
        let unknown = WELL
            .replace("client hostbasedauthentication yes\nclient enablesshkeysign yes\n", "client-words bad option\n");
        assert!(
            of(&unknown)[0].contains("what ssh goes by (hostbasedauthentication) for alice is not known: bad option")
        );
    }
}
