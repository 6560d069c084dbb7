//! Checks logins from host to host by host keys. It reads the settings of sshd and ssh for a user, and the result of
//! a login of that user at the next host. Hosts run the script; the code here does no input or output. Both `homing
//! up` and `homing check` use it.

/// Script for a host that `homing up` has set up. `$@` are the names of all hosts, `u` is a user; without one it
/// takes the first ordinary user.
///
/// It prints `server KEY VALUE` and `client KEY VALUE` as they are in force. `SIDE-set FILE:LINE:TEXT` shows a line
/// of another file with such a key, and `login HOST STATUS WORDS` a login. It waits 5 s for a peer, and tries two at
/// most.
pub const HOST_BASED: &str = r#"[ -f /etc/ssh/sshd_config.d/60-homing.conf ] && [ "$(id -u)" = 0 ] || exit 0
[ -n "${u-}" ] || u=$(getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 && $7 !~ /(nologin|false|sync)$/ { print $1; exit }')
[ -n "$u" ] || exit 0
echo "user $u"
own=$(ip -o addr show 2>/dev/null | sed 's/.* inet6* \([^ /]*\).*/\1/')
peers=; after=; me=
for h; do
  h=${h##*@}; a=$(getent ahosts "$h" | cut -d' ' -f1 | sort -u)
  if [ -z "$me" ] && [ -n "$a" ] && echo "$a" | grep -qxF -e "$own"; then me=$h; elif [ -n "$me" ]; then after="$after $h"; else peers="$peers $h"; fi
done
set -- $after $peers
[ $# -gt 0 ] || set -- ${me:-localhost}
a=$(getent ahosts "$1" | head -n 1 | cut -d' ' -f1)
keys='hostbasedauthentication|hostbasedusesnamefrompacketonly|enablesshkeysign'
t=$(sshd -T -C "user=$u,host=$1,addr=${a:-127.0.0.1},laddr=127.0.0.1,lport=22" 2>&1) && echo "$t" | grep -E "^($keys) " | sed 's/^/server /' ||
  echo "server-words $(echo "$t" | tail -n 1)"
# A host that did not answer is not in the file: its settings are none of it.
for g; do
  awk -v h="$g" '$1 == "Host" { for (i = 2; i <= NF; i++) if ($i == h) found = 1 } END { exit !found }' /etc/ssh/ssh_config.d/60-homing.conf 2>/dev/null && break
  g=$1
done
t=$(timeout -s KILL 30 runuser -u "$u" -- ssh -G "$g" 2>&1 </dev/null) && echo "$t" | grep -E "^($keys) " | sed 's/^/client /' ||
  echo "client-words $(echo "$t" | tail -n 1)"
d=$(getent passwd "$u" | cut -d: -f6)
grep -HniE "^[[:space:]]*($keys)[[:space:]=]" /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf 2>/dev/null | sed 's/^/server-set /'
grep -HniE "^[[:space:]]*($keys)[[:space:]=]" "$d/.ssh/config" /etc/ssh/ssh_config /etc/ssh/ssh_config.d/*.conf 2>/dev/null | sed 's/^/client-set /'
n=0
for h; do
  w=$(timeout -s KILL 40 runuser -u "$u" -- ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o PreferredAuthentications=hostbased -o ControlPath=none "$h" true 2>&1 </dev/null); r=$?
  echo "login $h $r $(echo "$w" | tr -d '\r' | grep -v '^$' | tail -n 1)"; n=$((n + 1))
  case $w in *refused*|*"timed out"*|*"o route"*|*unreachable*) [ $n = 2 ] && break;; *) break;; esac
done"#;

/// Settings that host-based logins need, with the program that uses them.
const NEEDED: [(&str, &str, &str); 4] = [
    ("server", "sshd", "hostbasedauthentication"),
    ("server", "sshd", "hostbasedusesnamefrompacketonly"),
    ("client", "ssh", "hostbasedauthentication"),
    ("client", "ssh", "enablesshkeysign"),
];

/// Returns the reasons why users cannot log in from `host` to the next, or why that is not known, from the output of
/// [`HOST_BASED`]. `is_there`: whether a host has answered and has that user. A login that fails because of the other
/// host is no fault of the host that tried.
pub fn host_based_faults(output: &str, host: &str, is_there: &dyn Fn(&str, &str) -> bool) -> Vec<String> {
    let lines = |key: &str| lines_of(output, key);
    let Some(user) = lines("user").first().copied() else { return Vec::new() };
    let mut against = Vec::new();
    for (side, program, key) in NEEDED {
        let value = lines(side).into_iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        match value {
            Some("yes") => {}
            Some(value) => against.push(format!(
                "{program} uses {key} {value} for {user}, not the value in homing's file{}",
                winner(&lines(&format!("{side}-set")), key)
            )),
            None => {
                let words = lines(&format!("{side}-words"))
                    .first()
                    .map_or("its output does not contain it", |words| *words)
                    .to_string();
                against.push(format!("the value of {key} that {program} uses for {user} is unknown: {words}"));
            }
        }
    }
    if let Some((peer, status, words)) = failed_login(output, is_there) {
        let words = if words.is_empty() { format!("ssh ended with status {status}") } else { words.to_string() };
        against.push(format!("{user} cannot log in from {host} to {peer}: {words}"));
    }
    against
}

/// Returns the host, status and words of the login that failed and counts.
pub fn failed_login<'s>(output: &'s str, is_there: &dyn Fn(&str, &str) -> bool) -> Option<(&'s str, &'s str, &'s str)> {
    let user = *lines_of(output, "user").first()?;
    let mut logins = lines_of(output, "login").into_iter().filter_map(login);
    logins.find(|(peer, ..)| is_there(peer, user)).filter(|(_, status, _)| *status != "0")
}

/// Returns a login's host, status and words.
fn login(line: &str) -> Option<(&str, &str, &str)> {
    let (peer, rest) = line.split_once(' ')?;
    let (status, words) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((peer, status, words))
}

/// Returns the rest of each line that begins with a key.
fn lines_of<'s>(said: &'s str, key: &str) -> Vec<&'s str> {
    said.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).collect()
}

/// Returns the lines of other files that may have set it, for people.
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
    if lines.is_empty() { String::new() } else { format!("; {} comes first: remove that line", lines.join(" and ")) }
}
