//! `homing hosts --trust`: records the host keys of many hosts at once, after the user saw their fingerprints.

use crate::cmd::targets::shell_word;
use crate::consent::Consent;
use homing_model::text::{shown, shown_lines};
use homing_model::{Failure, NodeSet, alike, exit};
use homing_os::folder::{Existing, make_file};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ACTION: &str = "recording host keys";
/// The time limit for the keys of a host, in seconds.
const PATIENCE: &str = "5";

/// How ssh, by its own configuration, reaches a host.
#[derive(Debug, Default, PartialEq, Eq)]
struct SshRoute {
    hostname: String,
    port: String,
    /// The name under which its key is recorded, if it is another than the host's.
    alias: Option<String>,
    /// The file that records its key.
    known: Option<PathBuf>,
    /// All files in which ssh looks for it.
    read: Vec<PathBuf>,
}

impl SshRoute {
    /// Returns the name under which ssh records the key. An alias has no port.
    fn name(&self) -> String {
        match &self.alias {
            Some(alias) => alias.clone(),
            None if self.port == "22" => self.hostname.clone(),
            None => format!("[{}]:{}", self.hostname, self.port),
        }
    }

    /// Returns the lines of `ssh-keyscan`, under that name.
    fn lines(&self, scanned: &str) -> String {
        let lines = scanned.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let named = |line: &str| match (&self.alias, line.split_once(' ')) {
            (Some(alias), Some((_, key))) => format!("{alias} {key}\n"),
            _ => format!("{line}\n"),
        };
        lines.map(named).collect()
    }
}

/// The keys of one host that are not recorded yet.
struct Fresh {
    host: String,
    known: PathBuf,
    /// The lines for that file.
    lines: String,
    prints: Vec<String>,
}

/// Requests the keys of hosts, shows their fingerprints, and records them if the user agrees.
pub fn run(hosts: &[String], consent: Consent) -> Result<i32, Failure> {
    let answers = homing_os::threads::each_of(hosts, homing_launch::FAN_OUT, |host| fresh(host));
    let mut failed = Vec::new();
    let mut all: Vec<Fresh> = Vec::new();
    let mut recorded = Vec::new();
    for (host, answer) in hosts.iter().zip(answers) {
        match answer {
            Ok(Some(fresh)) => all.push(fresh),
            Ok(None) => recorded.push(host.clone()),
            Err(why) => failed.push((host.as_str(), why)),
        }
    }
    if !all.is_empty() {
        let row =
            |fresh: &Fresh| fresh.prints.iter().map(|print| format!("  {}: {}\n", fresh.host, shown(print))).collect();
        let rows: Vec<String> = all.iter().map(row).collect();
        let text = format!("host keys received; compare them with the keys on the hosts:\n{}", rows.concat());
        if let Err(refused) = consent.possible(ACTION) {
            eprintln!("{}", shown_lines(text.trim_end()));
            return Err(refused);
        }
        consent.confirm(ACTION, &text)?;
    }
    for fresh in &all {
        add(&fresh.known, &fresh.lines).map_err(|e| {
            Failure::system(format!("adding the key of {} to {}: {e}", fresh.host, fresh.known.display()))
        })?;
        println!("{}: recorded in {}", fresh.host, fresh.known.display());
    }
    if !recorded.is_empty() {
        println!("{}: recorded before, and the same", recorded.into_iter().collect::<NodeSet>());
    }
    let lines = alike::folded(failed.iter().map(|(host, why)| (*host, why.as_str())));
    lines.iter().for_each(|line| eprintln!("homing: {line}"));
    Ok(if failed.is_empty() { 0 } else { exit::SYSTEM })
}

/// Returns the keys of a host; none if they are recorded.
fn fresh(host: &str) -> Result<Option<Fresh>, String> {
    let mut asked = ssh().ok_or("HOMING_SSH has a quote without an end")?;
    let config = output(asked.args(["-G", "--", host]))?;
    let way = way(&String::from_utf8_lossy(&config.stdout));
    let known = way.known.clone().ok_or("ssh reports no file of known hosts")?;
    let name = way.name();
    let mut before = None;
    for file in way.read.iter().filter(|file| file.exists()) {
        let mut find = Command::new("ssh-keygen");
        let found = output(find.arg("-F").arg(&name).arg("-f").arg(file))?;
        if found.status.success() {
            before = Some((file, String::from_utf8_lossy(&found.stdout).into_owned()));
            break;
        }
    }
    if before.is_none() && known == Path::new("/dev/null") {
        return Err("ssh has UserKnownHostsFile /dev/null for it: no key can be recorded".into());
    }
    let mut scan = Command::new("ssh-keyscan");
    let scanned = output(scan.args(["-T", PATIENCE, "-p", &way.port, "--", &way.hostname]))?;
    let lines = way.lines(&String::from_utf8_lossy(&scanned.stdout));
    if lines.is_empty() {
        return Err(no_key(&String::from_utf8_lossy(&scanned.stderr)));
    }
    if let Some((file, recorded)) = before {
        return if agree(&recorded, &lines) { Ok(None) } else { Err(other_key(&name, file)) };
    }
    Ok(Some(Fresh { host: host.into(), known, prints: fingerprints(&lines)?, lines }))
}

/// Returns the reason why `ssh-keyscan` printed no key.
fn no_key(errors: &str) -> String {
    let reason = errors.lines().rfind(|line| !line.starts_with('#') && !line.trim().is_empty());
    reason.map_or(format!("no key was received within {PATIENCE} s"), |reason| format!("no key was received: {reason}"))
}

fn other_key(name: &str, file: &Path) -> String {
    let (name, file) = (shell_word(name), shell_word(&file.to_string_lossy()));
    let command = format!("ssh-keygen -R {name} -f {file}");
    format!("it answers with another host key than the recorded one; if it was installed anew: {command}")
}

/// Whether lines of known_hosts and lines of `ssh-keyscan` are of the same host. Each type of key that both have must
/// be the same key, or an authority vouches for the host.
fn agree(recorded: &str, scanned: &str) -> bool {
    fn keys(text: &str) -> impl Iterator<Item = (&str, &str)> + Clone {
        let lines = text.lines().filter(|line| !line.starts_with(['#', '@']));
        lines
            .filter_map(|line| line.split_once(' ')?.1.split_once(' '))
            .map(|(kind, key)| (kind, key.split(' ').next().unwrap_or_default()))
    }
    if recorded.lines().any(|line| line.starts_with("@cert-authority")) {
        return true;
    }
    let known = keys(recorded);
    let mut both = keys(scanned).filter(|(kind, _)| known.clone().any(|(other, _)| other == *kind)).peekable();
    both.peek().is_some() && both.all(|key| known.clone().any(|other| other == key))
}

/// Returns the command `ssh` with the options of HOMING_SSH.
fn ssh() -> Option<Command> {
    let set = std::env::var("HOMING_SSH").ok().filter(|words| !words.trim().is_empty());
    let words = shlex::split(set.as_deref().unwrap_or("ssh"))?;
    let (program, options) = words.split_first()?;
    let mut command = Command::new(OsString::from(program));
    command.args(options);
    Some(command)
}

fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).output().map_err(|e| format!("starting {name}: {e}"))
}

/// Parses the output of `ssh -G`.
fn way(text: &str) -> SshRoute {
    let mut way = SshRoute { port: "22".into(), ..SshRoute::default() };
    for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        match key {
            "hostname" => way.hostname = value.into(),
            "port" => way.port = value.into(),
            "hostkeyalias" => way.alias = Some(value.into()),
            "userknownhostsfile" | "globalknownhostsfile" => {
                let files: Vec<PathBuf> = value.split(' ').filter_map(file_of).collect();
                if key == "userknownhostsfile" {
                    way.known = files.first().cloned();
                }
                way.read.extend(files);
            }
            _ => {}
        }
    }
    way
}

/// Returns a file of `ssh -G`; none for a word that is no path.
fn file_of(word: &str) -> Option<PathBuf> {
    match (word.strip_prefix("~/"), homing_os::names::home()) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(word.into()).filter(|path: &PathBuf| path.is_absolute()),
    }
}

fn fingerprints(lines: &str) -> Result<Vec<String>, String> {
    let mut child = Command::new("ssh-keygen");
    let child =
        child.args(["-l", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|e| format!("starting ssh-keygen: {e}"))?;
    let mut input = child.stdin.take().ok_or("ssh-keygen has no standard input")?;
    input.write_all(lines.as_bytes()).map_err(|e| format!("writing keys to ssh-keygen: {e}"))?;
    drop(input);
    let said = child.wait_with_output().map_err(|e| format!("waiting for ssh-keygen: {e}"))?;
    let prints: Vec<String> = String::from_utf8_lossy(&said.stdout).lines().map(String::from).collect();
    if prints.is_empty() { Err("the host sent no valid key".into()) } else { Ok(prints) }
}

fn add(file: &Path, lines: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.exists()) {
        homing_os::names::make_folder(folder, 0o700)?;
    }
    make_file(file, Existing::Append, 0o600)?.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_host_is_what_ssh_makes_of_it() {
        let text = "user ann\nhostname 10.0.0.7\nport 2222\nuserknownhostsfile /home/ann/.ssh/known /etc/ssh/known2\n\
                    globalknownhostsfile /etc/ssh/ssh_known_hosts none\n";
        let plain = way(text);
        assert_eq!((plain.hostname.as_str(), plain.name().as_str()), ("10.0.0.7", "[10.0.0.7]:2222"));
        assert_eq!(plain.known, Some("/home/ann/.ssh/known".into()));
        let files = ["/home/ann/.ssh/known", "/etc/ssh/known2", "/etc/ssh/ssh_known_hosts"].map(PathBuf::from);
        assert_eq!(plain.read, files);
        let alias = way(&format!("{text}hostkeyalias node7\n"));
        assert_eq!(alias.name(), "node7");
        assert_eq!(
            alias.lines("# 10.0.0.7:2222 SSH-2.0\n[10.0.0.7]:2222 ssh-ed25519 AAAA\n"),
            "node7 ssh-ed25519 AAAA\n"
        );
        assert_eq!(plain.lines("[10.0.0.7]:2222 ssh-ed25519 AAAA\n"), "[10.0.0.7]:2222 ssh-ed25519 AAAA\n");
        assert_eq!(way("hostname n1\n").port, "22");
    }

    #[test]
    fn a_key_has_a_fingerprint_and_other_text_none() {
        let key = "n1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS\n";
        assert!(fingerprints(key).unwrap()[0].contains("SHA256:"));
        assert!(fingerprints("no key\n").is_err());
    }

    #[test]
    fn a_key_that_changed_is_no_key_that_is_recorded() {
        let scanned = "n1 ssh-rsa R1\nn1 ssh-ed25519 E1\n";
        for (recorded, same) in [
            ("# Host n1 found: line 1\nn1 ssh-ed25519 E1 a comment\n", true),
            ("|1|salt=|hash= ssh-ed25519 E1\n", true),
            ("n1 ssh-ed25519 E2\n", false),
            ("n1 ssh-rsa R1\nn1 ssh-ed25519 E2\n", false),
            ("n1 ssh-ed25519 E2\nn1 ssh-ed25519 E1\n", true),
            ("n1 ecdsa-sha2-nistp256 C\n", false),
            ("@cert-authority n1 ssh-ed25519 CA\n", true),
        ] {
            assert_eq!(agree(recorded, scanned), same, "{recorded}");
        }
        assert_eq!(
            no_key("# n1:22 SSH-2.0\ngetaddrinfo n1: Name unknown\n"),
            "no key was received: getaddrinfo n1: Name unknown"
        );
        assert!(no_key("").contains("within 5 s"));
    }

    #[test]
    fn lines_are_added_to_a_file_of_the_users_own() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".ssh/known_hosts");
        add(&file, "n1 key\n").unwrap();
        add(&file, "n2 key\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "n1 key\nn2 key\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
