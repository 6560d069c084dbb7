//! The lines of POSIX shell that a member is given.

use crate::Program;
use homing_model::text::quoted;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The folders where hosts keep what was carried to them; the bootstrap of workers has the same.
const FOLDERS: &str = r#""${XDG_CACHE_HOME:-$HOME/.cache}/homing" "${TMPDIR:-/tmp}/homing-$(id -u)""#;

/// Notes the number of the process in `$r`, becomes `$f` with the words, and forgets the number.
const NOTED: &[u8] = br#"sh -c 'echo $$ > "$0"; exec "$@"' "$r" "$f" "#;

/// Starts the program with its words in a folder. 254 where it cannot be started, as of a system that failed.
pub(crate) fn start(program: &Program, folder: &[u8], words: &[OsString], running: &str) -> Vec<u8> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word.as_bytes())).collect();
    let (enter, words) = (quoted(folder), words.join(&b' '));
    let (before, after) = match program {
        Program::Carried(name) => (
            format!("for d in {FOLDERS}; do f=$d/{name}; r=$d/{running}; [ -x \"$f\" ] || continue; "),
            "; s=$?; rm -f \"$r\"; exit $s; done; exit 254",
        ),
        // Without a folder for the number, a signal here ends ssh alone.
        Program::Installed => (
            format!(
                "f=$(command -v homing) || {{ echo \"homing: $(uname -n): homing is not in the PATH of a command over \
                 ssh there\" >&2; exit 254; }}; r=/dev/null; for d in {FOLDERS}; do mkdir -p -m 700 \"$d\" \
                 2>/dev/null && [ -O \"$d\" ] && {{ r=$d/{running}; break; }}; done; "
            ),
            "; s=$?; [ \"$r\" = /dev/null ] || rm -f \"$r\"; exit $s",
        ),
    };
    [b"cd ", &*enter, b" || exit 254; ", before.as_bytes(), NOTED, &words, after.as_bytes()].concat()
}

/// Sends the process that is noted a signal, if there is one.
pub(crate) fn tell(signal: i32, running: &str) -> Vec<u8> {
    format!("for d in {FOLDERS}; do r=$d/{running}; [ -f \"$r\" ] && kill -{signal} $(cat \"$r\"); done; :")
        .into_bytes()
}

/// A script as one word for the user's login shell, which need not be a POSIX one.
pub(crate) fn word(script: &[u8]) -> Vec<u8> {
    [b"exec /bin/sh -c ".to_vec(), quoted(script)].concat()
}
