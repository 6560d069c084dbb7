//! Reads hosts in GNU parallel's syntax.

use homing_model::Failure;
use homing_model::nodeset::host_lines;

/// One host of `--sshlogin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// `host`, `user@host`, or `:` for this machine.
    pub target: String,
    /// The number of tasks at once.
    pub slots: Option<u32>,
}

impl Login {
    /// Reads `[N/][user@]host`.
    pub fn parse(text: &str) -> Result<Login, Failure> {
        let (slots, target) = match text.split_once('/') {
            Some((slots, target)) => (slots.parse().ok().filter(|n| *n > 0), target),
            None => (None, text),
        };
        let odd = target.is_empty() || target.starts_with(['-', '@']) || target.contains(char::is_whitespace);
        if odd || (text.contains('/') && slots.is_none()) {
            let hint = "options of ssh go into ~/.ssh/config, or HOMING_SSH='ssh -F FILE'; groups: --hosts @group";
            return Err(Failure::usage(format!("--sshlogin takes [N/][user@]host or ':', not {text:?}")).hint(hint));
        }
        Ok(Login { target: target.to_string(), slots })
    }
}

/// Reads a list of logins, separated by commas.
pub fn logins(list: &str) -> Result<Vec<Login>, Failure> {
    list.split(',').filter(|word| !word.is_empty()).map(Login::parse).collect()
}

/// Reads the logins of a file, one on each line; the text after a `#` is ignored.
pub fn logins_of_file(text: &str) -> Result<Vec<Login>, Failure> {
    host_lines(text).map(Login::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_slots_and_a_user_and_is_no_option() {
        let login = |target: &str, slots| Login { target: target.into(), slots };
        assert_eq!(logins("4/a@n1,:,n2").unwrap(), [login("a@n1", Some(4)), login(":", None), login("n2", None)]);
        assert_eq!(logins_of_file("# all\n2/n1 # old\n\n n2\n").unwrap(), [login("n1", Some(2)), login("n2", None)]);
        for odd in ["-oProxyCommand=x", "0/n1", "x/n1", "4/", "@n1", "n1 n2"] {
            assert!(Login::parse(odd).is_err(), "{odd}");
        }
    }
}
