//! Looks up users and hosts by the machine's own rules: files, DNS, LDAP, SSSD.
//!
//! A statically linked program cannot load the C library's modules for those rules. So this module runs `getent`,
//! which belongs to every glibc and is also in Alpine. If it is missing, only the password file and the resolver of
//! homing's own C library are used.

mod accounts;
mod groups;
mod here;
mod homes;
mod hosts;
mod login;
mod ssh;

pub use accounts::{Account, account, home, home_of};
pub use groups::{groups, own_groups};
pub use here::{boot_id, is_here, own_name};
pub use homes::{NO_HOME, make_folder, missing_home, no_home};
pub use hosts::{addresses, addresses_and_loopback, addresses_of, first_name};
pub use login::{VariableOrigin, origin, origin_of_work};
pub use ssh::{OWN_COMMAND, SSH_PLAIN, is_ssh_target, ssh_config, ssh_host, ssh_words};

use std::process::{Command, Stdio};

/// Returns the output of a program, usually `getent`; `None` if there is no such program.
fn printed(program: &str, words: &[&str]) -> Option<String> {
    let asked = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
    asked.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

const GETENT: &str = "getent";
