//! Hosts as the user's configuration of ssh names them.

/// The name or address that ssh connects to for a name, which may be one of the user's own making (`Host nas`, `HostName
/// 10.0.0.5`); `None` where there is no ssh to ask. Connects to nothing.
pub fn ssh_host(name: &str) -> Option<String> {
    // A name from the mount table never becomes an option.
    if name.starts_with('-') {
        return None;
    }
    host_of(&crate::printed("ssh", &["-G", "--", name])?)
}

/// Of what `ssh -G` prints: a keyword and its value a line.
fn host_of(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("hostname ")).map(|host| host.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_what_ssh_prints() {
        // As OpenSSH 9.2 prints it.
        let text = "host nas\nuser ann\nhostname 10.0.0.5\nport 22\nhostkeyalias nas\n";
        assert_eq!(host_of(text).as_deref(), Some("10.0.0.5"));
        assert_eq!(host_of("Bad configuration option: x\n"), None);
        assert_eq!(ssh_host("-oProxyCommand=x"), None);
    }
}
