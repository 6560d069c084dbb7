//! Plans limits of a login's processes, by pam_limits, for every user but root. The limits of an actual login show
//! which are in force.

use super::person;
use crate::login_limit::{kernel, number};
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement};

const FILE: &str = "/etc/security/limits.d/60-homing.conf";
/// Prints the limits of a user's login, without the files that its shell reads. Then it prints the limits in other
/// files, and PAM's message.
const LOGIN: &str = r#"[ -n "$u" ] || u=nobody
echo "user $u"
timeout -s KILL 30 su "$u" -s /bin/sh -c 'cat /proc/self/limits' </dev/null 2>&1 | sed 's/^/login /'
grep -HnE '^[^#]*[[:space:]](soft|hard|-)[[:space:]]' /etc/security/limits.conf /etc/security/limits.d/*.conf 2>/dev/null | sed 's/^/set /'
journalctl -q -n 50 -o cat _COMM=su 2>/dev/null | grep pam_limits | tail -n 1 | sed 's/^/words /'
"#;

fn command(site: &ClusterSite) -> String {
    person::choose(site) + LOGIN
}

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.insert(FILE.into());
    question.outputs.insert(command(site));
}

pub(super) fn wanted(site: &ClusterSite) -> Vec<HostRequirement> {
    let line = |(item, value): (&String, &String)| match value.split_once(':') {
        Some((soft, hard)) => format!("* soft {item} {soft}\n* hard {item} {hard}\n"),
        None => format!("* - {item} {value}\n"),
    };
    vec![HostRequirement::file(FILE, site.up.limits.iter().map(line).collect::<String>())]
}

/// Returns the limits that a login does not have.
pub(super) fn untaken(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let Some(said) = there.outputs.get(&command(site)) else { return Vec::new() };
    let of = |key: &'static str| said.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '));
    let user = of("user").next().unwrap_or_default();
    if !of("login").any(|line| line.starts_with("Max open files")) {
        let words = of("login").next_back().unwrap_or("su did not end within 30 s");
        return vec![format!("the limits of a login of {user} are unknown: {words}")];
    }
    let words = of("words").next().map(|words| format!("; PAM logged: {words}")).unwrap_or_default();
    let one = |(item, value): (&String, &String)| {
        let (name, unit) = kernel(item)?;
        let line = of("login").find_map(|line| line.strip_prefix(name))?;
        let has: Vec<&str> = line.split_whitespace().take(2).collect();
        let (soft, hard) = value.split_once(':').unwrap_or((value, value));
        let is_so = |wanted: &str, has: Option<&&str>| {
            number(wanted).map(|wanted| unit.of(wanted)) == has.and_then(|has| number(has))
        };
        if is_so(soft, has.first()) && is_so(hard, has.get(1)) {
            return None;
        }
        let others =
            of("set").filter(|line| !line.starts_with(FILE) && line.split_whitespace().any(|word| word == item));
        let others: Vec<&str> = others.collect();
        let why = if others.is_empty() {
            format!("no other file sets it, so the system refused it{words}")
        } else {
            format!("another file sets it: {}", others.join("; "))
        };
        Some(format!("{item} = {value} is not in force: a login of {user} has {} ({name}); {why}", has.join(":")))
    };
    site.up.limits.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::Observed;

    fn of(login: &str) -> Vec<String> {
        let up =
            toml::from_str("[limits]\nmemlock = \"unlimited\"\nnofile = \"1024:65536\"\nmaxlogins = \"3\"\n").unwrap();
        let site = ClusterSite { hosts: vec!["n1".into()], up, ..ClusterSite::default() };
        let outputs = [(command(&site), login.to_string())].into();
        untaken(&site, "n1", &[("n1".to_string(), Ok(Observed { outputs, ..Observed::default() }))].into())
    }

    #[test]
    fn a_limit_that_a_login_does_not_have_is_named_with_the_file_or_the_systems_words() {
        let open = "login Max open files            1024                 65536                files\n";
        let well = format!(
            "user alice\n{open}login Max locked memory         unlimited            unlimited            bytes\n"
        );
        assert_eq!(of(&well), [""; 0]);
        let low = format!(
            "user alice\n{open}login Max locked memory         8388608              8388608              bytes\n"
        );
        let why = of(&format!(
            "{low}set {FILE}:1:* - memlock unlimited\nset /etc/security/limits.d/99-x.conf:3:* - memlock 8192\n"
        ));
        assert_eq!(
            why,
            [
                "memlock = unlimited is not in force: a login of alice has 8388608:8388608 (Max locked memory); another file sets it: \
              /etc/security/limits.d/99-x.conf:3:* - memlock 8192"
            ]
        );
        let why = of(&format!("{low}words Could not set limit for 'memlock': Operation not permitted\n")).remove(0);
        assert!(
            why.ends_with("refused it; PAM logged: Could not set limit for 'memlock': Operation not permitted"),
            "{why}"
        );
        let why = of("user alice\nlogin su: Permission denied\n").remove(0);
        assert_eq!(why, "the limits of a login of alice are unknown: su: Permission denied");
    }
}
