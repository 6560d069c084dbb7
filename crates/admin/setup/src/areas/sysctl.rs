//! Plans values of the kernel: now, and at each boot. The steps compare the present values; this area finds other
//! files that override them at boot.

use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement};

const FILE: &str = "/etc/sysctl.d/60-homing.conf";
/// Prints the lines of all such files in the order in which systemd-sysctl reads them: sorted by name. Of files with
/// one name, only that in the first folder counts (sysctl.d(5)).
const FILES: &str = r#"for f in /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf /usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf; do
  [ ! -f "$f" ] || echo "${f##*/} $f"
done | sort -s -u -k1,1 | while read -r _ f; do grep -HnE '^[[:space:]]*-?[[:alnum:]]' "$f"; done"#;

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.insert(FILE.into());
    question.sysctls.extend(site.up.sysctl.keys().cloned());
    question.outputs.insert(FILES.into());
}

pub(super) fn wanted(site: &ClusterSite) -> Vec<HostRequirement> {
    let text: String = site.up.sysctl.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let file = HostRequirement::file(FILE, text);
    let value = |(key, value): (&String, &String)| HostRequirement::Sysctl { key: key.clone(), value: value.clone() };
    std::iter::once(file).chain(site.up.sysctl.iter().map(value)).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Returns the values that will not be in force after the next boot.
pub(super) fn untaken(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let Some(lines) = there.outputs.get(FILES) else { return Vec::new() };
    let one = |(key, value): (&String, &String)| {
        let sets = |line: &&str| {
            let (_, name, _) = setting(line)?;
            (name == key.replace('/', ".")).then_some(())
        };
        let (place, _, later) = setting(lines.lines().rfind(|line| sets(line).is_some())?)?;
        (words(later) != words(value)).then(|| {
            format!(
                "{key} = {value} until the next boot, and then {later}: {place} comes after {FILE}; remove that line"
            )
        })
    };
    site.up.sysctl.iter().filter_map(one).collect()
}

/// Splits `FILE:LINE:KEY = VALUE` into place, key and value.
fn setting(line: &str) -> Option<(String, String, &str)> {
    let mut fields = line.splitn(3, ':');
    let (file, number, text) = (fields.next()?, fields.next()?, fields.next()?);
    let (key, value) = text.split_once('=')?;
    let key = key.trim().trim_start_matches('-').replace('/', ".");
    Some((format!("{file} (line {number})"), key, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::Observed;

    #[test]
    fn a_file_that_is_read_later_at_boot_is_named() {
        let up = toml::from_str("[sysctl]\n\"net.ipv4.tcp_rmem\" = \"1 2 3\"\n\"vm.swappiness\" = \"10\"\n").unwrap();
        let site = ClusterSite { hosts: vec!["n1".into()], up, ..ClusterSite::default() };
        let of = |lines: &str| {
            let outputs = [(FILES.to_string(), lines.to_string())].into();
            untaken(&site, "n1", &[("n1".to_string(), Ok(Observed { outputs, ..Observed::default() }))].into())
        };
        let own = format!(
            "/etc/sysctl.d/10-a.conf:1:vm.swappiness=60\n{FILE}:1:net.ipv4.tcp_rmem = 1 2 3\n{FILE}:2:vm.swappiness = 10\n"
        );
        assert_eq!(of(&own), [""; 0]);
        assert_eq!(of(&format!("{own}/etc/sysctl.d/99-a.conf:7:-net/ipv4/tcp_rmem=1\t2 3\n")), [""; 0]);
        assert_eq!(
            of(&format!("{own}/etc/sysctl.d/99-a.conf:7:vm/swappiness = 60\n")),
            [format!(
                "vm.swappiness = 10 until the next boot, and then 60: /etc/sysctl.d/99-a.conf (line 7) comes after {FILE}; remove that line"
            )]
        );
    }
}
