//! The limit on open descriptors. A process of homing needs some for each task and each host, so it raises its soft
//! limit to the hard one. Programs that it starts get the user's limit back: select(2) does not work above 1023, and
//! some programs close all possible descriptors one by one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

static USERS: OnceLock<libc::rlimit> = OnceLock::new();

fn now() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain data that the call fills in.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit
}

/// Returns the limit with which this process was started, and which its children get.
pub fn users_files() -> libc::rlimit {
    *USERS.get_or_init(now)
}

/// Raises the soft limit of this process to the hard one.
pub fn raise_files() {
    let users = users_files();
    let raised = libc::rlimit { rlim_cur: users.rlim_max, ..users };
    // SAFETY: plain data. A system that refuses it leaves the limit as it was.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) };
}

/// Gives `command` the user's limit. If the limit was not raised it does nothing, because a hook makes the library
/// fork.
pub fn give_back_files(command: &mut Command) -> &mut Command {
    let users = users_files();
    if now().rlim_cur == users.rlim_cur {
        return command;
    }
    // SAFETY: the hook makes one system call with data of its own.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &users) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_with_a_raised_limit_starts_has_the_users() {
        let users = users_files();
        // The test's soft limit may already equal the hard one.
        let low = libc::rlimit { rlim_cur: 512, ..users };
        // SAFETY: plain data.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &low) }, 0);
        let told = |command: &mut Command| {
            let output = command.args(["-c", "ulimit -n"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_string()
        };
        raise_files();
        assert_eq!(now().rlim_cur, users.rlim_max);
        if users.rlim_cur != users.rlim_max {
            assert_eq!(told(&mut Command::new("sh")), users.rlim_max.to_string());
        }
        assert_eq!(told(give_back_files(&mut Command::new("sh"))), users.rlim_cur.to_string());
    }
}
