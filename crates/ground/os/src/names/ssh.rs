//! The ssh command in use, and hosts as the user's ssh configuration names them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns `ssh`, or the words of `HOMING_SSH` (quoted as in a shell) if it is set.
pub fn ssh_words() -> Vec<OsString> {
    let ssh = std::env::var("HOMING_SSH").ok().and_then(|words| shlex::split(&words)).filter(|w| !w.is_empty());
    ssh.unwrap_or_else(|| vec!["ssh".into()]).into_iter().map(OsString::from).collect()
}

/// Returns the configuration file that `HOMING_SSH` names by `-F`: it decides which machine a host's name means.
/// `None` if ssh uses the user's own configuration.
pub fn ssh_config() -> Option<PathBuf> {
    config_of(&ssh_words(), crate::names::home().as_deref())
}

fn config_of(words: &[OsString], home: Option<&Path>) -> Option<PathBuf> {
    let mut named = None;
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "-F" {
            named = words.next().map(PathBuf::from);
        } else if let Some(file) = word.to_str().and_then(|word| word.strip_prefix("-F")) {
            named = Some(file.into());
        }
    }
    let is_usual = |file: &PathBuf| {
        file == Path::new("none")
            || file == Path::new("/dev/null")
            || home.is_some_and(|home| *file == home.join(".ssh/config"))
    };
    named.filter(|file| !is_usual(file)).map(|file| std::path::absolute(&file).unwrap_or(file))
}

/// Disables a command that the user's ssh configuration would run instead of homing's.
pub const OWN_COMMAND: &str = "-oRemoteCommand=none";
/// Switches off settings for interactive sessions that a user's ssh configuration may contain. These are a terminal
/// (`RequestTTY`), a command, and forwarded keys, screens and ports; only one of many connections can open a
/// forwarded port. Every ssh that homing starts for a program has these words.
pub const SSH_PLAIN: [&str; 5] =
    ["-T", OWN_COMMAND, "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes"];

/// Whether ssh would take the text for a host. A leading dash would make it an option, in the worst case
/// `-oProxyCommand=...`.
pub fn is_ssh_target(target: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    !target.is_empty() && !target.starts_with('-') && !target.contains(odd)
}

/// Returns the name or address that ssh connects to for a name, which the user's configuration may define (`Host
/// nas`, `HostName 10.0.0.5`). Returns `None` if there is no ssh. Makes no connection.
pub fn ssh_host(name: &str) -> Option<String> {
    // A name from the mount table never becomes an option.
    if name.starts_with('-') {
        return None;
    }
    host_of(&crate::names::printed("ssh", &["-G", "--", name])?)
}

/// Finds the host in the output of `ssh -G`, which has a keyword and its value per line.
fn host_of(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("hostname ")).map(|host| host.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_tells_which_hosts_are_meant_is_known() {
        let of = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            config_of(&words, Some(Path::new("/home/ann"))).map(|file| file.display().to_string())
        };
        assert_eq!(of("ssh -F /labs/a/ssh_config -v").as_deref(), Some("/labs/a/ssh_config"));
        assert_eq!(of("ssh -F/labs/b").as_deref(), Some("/labs/b"));
        for usual in ["ssh", "ssh -l root", "ssh -F none", "ssh -F /dev/null", "ssh -F /home/ann/.ssh/config"] {
            assert_eq!(of(usual), None, "{usual}");
        }
    }

    #[test]
    fn the_host_is_read_from_what_ssh_prints() {
        // The output of OpenSSH 9.2.
        let text = "host nas\nuser ann\nhostname 10.0.0.5\nport 22\nhostkeyalias nas\n";
        assert_eq!(host_of(text).as_deref(), Some("10.0.0.5"));
        assert_eq!(host_of("Bad configuration option: x\n"), None);
        assert_eq!(ssh_host("-oProxyCommand=x"), None);
    }
}
