//! The lines of POSIX shell that a member runs.

use crate::Program;
use homing_model::text::quoted;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Functions that the scripts begin with. In a folder that all users can write, another user may have made homing's
/// folder.
const OWN: &str = concat!(homing_model::sh_own!(), homing_model::sh_digits!());

/// The folders where hosts keep the programs that were carried to them. The bootstrap of workers has the same.
const FOLDERS: &str = r#""${XDG_CACHE_HOME:-$HOME/.cache}/homing" "${TMPDIR:-/tmp}/homing-$(id -u)""#;

/// Writes the number of the process to `$r`, and becomes `$f` with the words.
const NOTED: &[u8] = br#"sh -c 'echo $$ > "$0"; exec "$@"' "$r" "$f" "#;

/// Returns the script that starts the program with its words in a folder. Its status is 254 if the program cannot be
/// started.
pub(crate) fn start(program: &Program, folder: &[u8], words: &[OsString], running: &str) -> Vec<u8> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word.as_bytes())).collect();
    let (enter, words) = (quoted(folder), words.join(&b' '));
    let (before, after) = match program {
        Program::Carried(name) => (
            format!(
                "{OWN}for d in {FOLDERS}; do f=$d/{name}; r=$d/{running}; own \"$d\" && [ -x \"$f\" ] || continue; "
            ),
            "; s=$?; rm -f \"$r\"; exit $s; done; exit 254",
        ),
        // Without a folder for the number, no signal reaches the program.
        Program::Installed => (
            format!(
                "{OWN}f=$(command -v homing) || {{ echo \"homing: $(uname -n): homing is not in the PATH of a command over \
                 ssh there\" >&2; exit 254; }}; r=/dev/null; for d in {FOLDERS}; do case $d in \"$HOME\"/*) [ -d \"$HOME\" ] || \
                 continue;; esac; mkdir -p -m 700 \"$d\" 2>/dev/null; own \"$d\" && {{ r=$d/{running}; break; }}; done; "
            ),
            "; s=$?; [ \"$r\" = /dev/null ] || rm -f \"$r\"; exit $s",
        ),
    };
    [b"cd ", &*enter, b" || exit 254; ", before.as_bytes(), NOTED, &words, after.as_bytes()].concat()
}

/// Returns the script that sends a signal to the noted process, if there is one.
pub(crate) fn signal(signal: i32, running: &str) -> Vec<u8> {
    format!(
        "{OWN}for d in {FOLDERS}; do r=$d/{running}; [ -L \"$r\" ] && continue; own \"$d\" && [ -f \"$r\" ] && \
         [ -O \"$r\" ] && read -r n < \"$r\" && digits \"$n\" && case $n in 0*|1) ;; *) kill -{signal} \"$n\";; esac; \
         done; :"
    )
    .into_bytes()
}

/// Returns a script as one word for the user's login shell, which need not be a POSIX shell.
pub(crate) fn word(script: &[u8]) -> Vec<u8> {
    [b"exec /bin/sh -c ".to_vec(), quoted(script)].concat()
}

#[cfg(test)]
#[path = "../../../../tests/script.rs"]
mod made;

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGTERM;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// Runs a script by `/bin/sh` and by a bash in its place. No signal is sent: `kill` writes its words to a file.
    fn shells(script: &[u8], cache: &Path) {
        let kill = b"kill() { echo \"$*\" >> \"$XDG_CACHE_HOME/killed\"; }; ";
        let script = String::from_utf8([kill, script].concat()).unwrap();
        for shell in [&["/bin/sh"][..], &["bash", "--posix"]] {
            let mut run = Command::new(shell[0]);
            run.args(&shell[1..]).args(["-c", &script]).current_dir(cache).stderr(Stdio::null());
            assert!(run.env("XDG_CACHE_HOME", cache).env("TMPDIR", cache).status().is_ok(), "{shell:?}");
        }
    }

    #[test]
    fn a_number_that_another_has_planted_gets_no_signal_and_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("homing");
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        fs::create_dir(&folder).unwrap();
        let killed = |noted: &str| {
            shells(&signal(SIGTERM, noted), dir.path());
            assert!(!dir.path().join("pwned").exists());
            fs::read_to_string(dir.path().join("killed")).unwrap_or_default()
        };
        for text in ["-1", "", "0", "01", "1", "a[$(id>pwned)]", "$(id>pwned)", "`id>pwned`", "4 4"] {
            fs::write(folder.join("noted"), format!("{text}\n")).unwrap();
            assert_eq!(killed("noted"), "", "{text:?}");
        }
        fs::write(folder.join("noted"), "4242\n").unwrap();
        symlink("noted", folder.join("link")).unwrap();
        assert_eq!(killed("link"), "");
        // A folder that others may write.
        mode(0o777);
        assert_eq!(killed("noted"), "");
        mode(0o700);
        assert_eq!(killed("noted"), "-15 4242\n-15 4242\n", "its own number gets the signal");
    }

    #[test]
    fn a_program_in_a_folder_that_others_may_write_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("homing");
        fs::create_dir(&folder).unwrap();
        made::script(&folder.join("carried"), "echo x >> \"$XDG_CACHE_HOME/ran\"");
        let script = start(&Program::Carried("carried".into()), b"/", &[], "r");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        shells(&script, dir.path());
        assert!(!dir.path().join("ran").exists());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        shells(&script, dir.path());
        assert_eq!(fs::read_to_string(dir.path().join("ran")).unwrap(), "x\nx\n");
        assert!(!folder.join("r").exists());
    }
}
