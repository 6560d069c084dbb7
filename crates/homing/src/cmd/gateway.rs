//! `--gateway HOST`: from a machine that is no member of the cluster. The same
//! program goes to the member and is started there, in the folder of the same
//! name, with the same words; its output and its exit status are those of here.

use crate::failure::Failure;
use homing_launch::{Carried, Options, Via};
use homing_model::text::quoted;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

/// How often it is looked whether the far program has ended, or a signal came.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `homing WORDS` there; the exit status is that one's.
pub fn run(host: &str, words: &[OsString]) -> Result<i32, Failure> {
    let far = Far::of(host)?;
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("the current folder is not there: {e}")))?;
    let script = far.script(cwd.as_os_str().as_bytes(), words);
    let ends = [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    let status = match ends {
        // A terminal there: it carries Ctrl-C, and shows what is shown on terminals.
        [true, true, true] => far.ssh("-t", &script).status().map_err(far.cannot())?.code(),
        _ => far.attend(&script)?,
    };
    // The member and its hosts see what was made; this machine's caches know nothing of it.
    homing_fence::refresh(&cwd);
    Ok(status.unwrap_or(crate::failure::exit::SYSTEM))
}

/// The words of this command line without the gateway, and the lab that it is in, whose name means nothing there.
/// The last `kept` words are not homing's.
pub fn without_gateway(words: Vec<OsString>, kept: usize) -> Vec<OsString> {
    let own = words.len().saturating_sub(kept);
    let (mut words, mut others) = (words.into_iter().enumerate(), Vec::new());
    while let Some((at, word)) = words.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        // `homing run` knows options that are cut short.
        let ours = at < own && (name == "--lab" || (name.len() > 3 && "--gateway".starts_with(name)));
        match ours {
            true if name.len() == text.len() => drop(words.next()),
            true => {}
            false => others.push(word),
        }
    }
    others
}

/// A member that the program is on.
struct Far {
    host: String,
    ssh: Vec<OsString>,
    /// Name of the program's file in one of the two folders where hosts keep it.
    program: String,
    /// Name of a file there that holds the number of its process while it runs.
    running: String,
}

impl Far {
    /// A worker's start leaves the program there.
    fn of(host: &str) -> Result<Far, Failure> {
        let options = Options { carried: Carried::Program, ..Options::default() };
        let channel =
            homing_launch::open(host, &Via::Ssh { target: host.into() }, &options).map_err(Failure::system)?;
        let arch = channel.facts.arch;
        drop(channel.to);
        channel.keeper.end(Duration::from_secs(2));
        let hash = homing_launch::program_hash(&options.exe, &arch);
        let hash = hash.map_err(|e| Failure::system(format!("own program: {e}")))?;
        let here = rustix::system::uname().nodename().to_string_lossy().replace(|c: char| !c.is_alphanumeric(), "-");
        let running = format!("at-gateway-{here}-{}", std::process::id());
        Ok(Far { host: host.into(), ssh: options.ssh, program: format!("worker-{arch}-{hash}"), running })
    }

    /// The folders are those of the bootstrap.
    fn script(&self, cwd: &[u8], words: &[OsString]) -> Vec<u8> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word.as_bytes())).collect();
        let (program, running) = (self.program.as_bytes(), self.running.as_bytes());
        let parts: [&[u8]; 11] = [
            b"cd ",
            &quoted(cwd),
            b" || exit 254; for d in ",
            FOLDERS,
            b"; do f=$d/",
            program,
            b"; r=$d/",
            running,
            br#"; [ -x "$f" ] || continue; sh -c 'echo $$ > "$0"; exec "$@"' "$r" "$f" "#,
            &words.join(&b' '),
            br#"; s=$?; rm -f "$r"; exit $s; done; exit 254"#,
        ];
        parts.concat()
    }

    /// Runs the script without a terminal. ssh itself is deaf to signals: they are for the program, whose last words and
    /// status are still to come.
    fn attend(&self, script: &[u8]) -> Result<Option<i32>, Failure> {
        let (count, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicI32::new(0)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let (count, last) = (count.clone(), last.clone());
            let note = move || {
                last.store(signal, Ordering::SeqCst);
                count.fetch_add(1, Ordering::SeqCst);
            };
            // SAFETY: it stores two numbers.
            let _ = unsafe { signal_hook::low_level::register(signal, note) };
        }
        let plain = self.ssh("-T", script);
        let mut deaf = Command::new("sh");
        deaf.args(["-c", "trap '' INT TERM HUP; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
        let mut child = deaf.spawn().map_err(self.cannot())?;
        let mut told = 0;
        loop {
            if let Some(status) = child.try_wait().map_err(self.cannot())? {
                return Ok(status.code());
            }
            if count.load(Ordering::SeqCst) > told {
                told += 1;
                self.tell(last.load(Ordering::SeqCst), &mut child);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Sends the program a signal; where that cannot be done, nothing more is waited for.
    fn tell(&self, signal: i32, ssh: &mut Child) {
        let running = self.running.as_bytes();
        let script = [
            &b"for d in "[..],
            FOLDERS,
            b"; do r=$d/",
            running,
            b"; [ -f \"$r\" ] && kill -",
            signal.to_string().as_bytes(),
            b" $(cat \"$r\"); done; :",
        ]
        .concat();
        let told = self.ssh("-T", &script).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = ssh.kill();
        }
    }

    fn ssh(&self, terminal: &str, script: &[u8]) -> Command {
        let mut command = Command::new(self.ssh.first().cloned().unwrap_or_else(|| "ssh".into()));
        command.args(self.ssh.iter().skip(1)).args([terminal, "--", &self.host]);
        command.arg(OsString::from_vec([b"exec /bin/sh -c ".to_vec(), quoted(script)].concat()));
        command
    }

    fn cannot(&self) -> impl Fn(std::io::Error) -> Failure + use<> {
        let host = self.host.clone();
        move |e| Failure::system(format!("host {host}: cannot start ssh: {e}"))
    }
}

const FOLDERS: &[u8] = br#""${XDG_CACHE_HOME:-$HOME/.cache}/homing" "${TMPDIR:-/tmp}/homing-$(id -u)""#;

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
