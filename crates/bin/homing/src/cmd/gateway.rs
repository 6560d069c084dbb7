//! `--gateway HOST`: runs a command from a machine that is no member of the cluster.
//!
//! The same program is copied to the member and started there, in the folder of the same name, with the same words.
//! Its output and its exit status become those of this process.

use homing_gateway::{ClusterMember, Program};
use homing_launch::{Carried, Options, Via};
use homing_model::Failure;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Runs `homing WORDS` on the host; returns its exit status.
pub fn run(host: &str, words: &[OsString]) -> Result<i32, Failure> {
    let options = Options { carried: Carried::Program, ..Options::default() };
    let program = Program::Carried(carried(host, &options)?);
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("cannot read the current folder: {e}")))?;
    let member = ClusterMember { host: host.into(), ssh: options.ssh };
    let status = member.run(&program, cwd.as_os_str().as_bytes(), words);
    let status = status.map_err(|e| Failure::system(format!("host {host}: cannot start ssh: {e}")))?;
    // The member and its hosts see the new files, but the caches of this machine do not.
    homing_fence::refresh(&cwd);
    Ok(status.unwrap_or(homing_model::exit::SYSTEM))
}

/// Returns the name of the program's file on the host. Starting a worker leaves the program there.
fn carried(host: &str, options: &Options) -> Result<String, Failure> {
    let channel = homing_launch::open(host, &Via::Ssh { target: host.into() }, options).map_err(Failure::system)?;
    let arch = channel.facts.arch;
    drop(channel.to);
    channel.keeper.end(Duration::from_secs(2));
    let hash = homing_launch::program_hash(&options.exe, &arch);
    Ok(format!(
        "worker-{arch}-{}",
        hash.map_err(|e| Failure::system(format!("cannot read homing's own program: {e}")))?
    ))
}

/// Returns the words of this command line without the gateway and without the lab, whose name means nothing there.
/// The last `kept` words are not homing's.
pub fn without_gateway(words: Vec<OsString>, kept: usize) -> Vec<OsString> {
    let own = words.len().saturating_sub(kept);
    let (mut words, mut others) = (words.into_iter().enumerate(), Vec::new());
    while let Some((at, word)) = words.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        // `homing run` accepts abbreviated options.
        let ours = at < own && (name == "--lab" || (name.len() > 3 && "--gateway".starts_with(name)));
        match ours {
            true if name.len() == text.len() => drop(words.next()),
            true => {}
            false => others.push(word),
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_is_asked_once_and_the_command_stays_as_it_is() {
        let kept = |words: &[&str], last| without_gateway(words.iter().map(OsString::from).collect(), last);
        let make = ["make", "-j8", "--gateway", "n1", "all", "--gateway=n2", "--lab", "l"];
        assert_eq!(kept(&make, 0), ["make", "-j8", "all"]);
        let run = ["run", "--gatew=n1", "-j2", "--gateway", "n1", "--", "f", "--gateway", "x"];
        assert_eq!(kept(&run, 3), ["run", "-j2", "--", "f", "--gateway", "x"]);
    }
}
