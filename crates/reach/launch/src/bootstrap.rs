//! The few lines of POSIX shell that find, check, fetch and start the worker on the far side.
//!
//! They arrive as one word of the user's login shell, which may be csh or fish. They are therefore one line, without
//! single quote, backslash or exclamation mark. The script prints lines for the launcher, which start with
//! `homing-boot`.
//!
//! - `arch ARCH`: another kind of machine; send hash and size of its program, as one line.
//! - `need ARCH` or `need ARCH gzip`: send the program now. In the latter case it is packed, after a line with its
//!   packed size.
//! - `fail KIND DETAIL`: the script ends.

use crate::payload::{OWN_ARCH, Payload};

/// The start of every line that the script prints for the launcher.
pub const MARK: &str = "homing-boot ";

/// `$h` is the hash of the program, `$n` its size, `$a` the machines that it is for. `$r` is the argument that it is
/// started with. [`script`] sets all of them. `$1` is the path of the program on this side, for hosts that see the
/// same files; empty over ssh.
///
/// The temporary name holds host name and pid, since hosts that share a home directory may all be filled at this
/// moment. `[ -x ]` is also false on a file system mounted noexec; then the next folder is tried.
const SCRIPT: &[&str] = &[
    // Only the owner may read the copy. The program that is started gets the mask of the login, or sets its own.
    "k=$(umask); umask 077;",
    "t=; tidy() { [ -z \"$t\" ] || rm -f \"$t\"; };",
    "fail() { tidy; echo \"homing-boot fail $*\"; exit 9; };",
    "for w in sha256sum head cat mkdir chmod mv rm ls id uname sync; do",
    "  command -v $w >/dev/null 2>&1 || fail tool $w;",
    "done;",
    "m=$(uname -m); [ \"$m\" = $a ] || { echo \"homing-boot arch $m\"; read -r h n || exit 9; };",
    "u=$(id -u);",
    "b=${HOME:-/nonexistent}; c=${XDG_CACHE_HOME:-$b/.cache}/homing;",
    "p=${TMPDIR:-/tmp}/homing-$u;",
    // A missing home is not made: root could make it.
    "case $c in \"$b\"/*) [ -d \"$b\" ] || c=$p;; esac;",
    "run() { umask $k; exec \"$1\" $r; };",
    // No other user may even look into the folder below /tmp.
    homing_model::sh_own!(),
    "safe() {",
    "  own \"$1\" || return 1; [ \"$1\" = \"$p\" ] || return 0;",
    "  case $(ls -ldn \"$1\" 2>/dev/null) in drwx------*) return 0;; esac;",
    "  return 1;",
    "};",
    // A file was whole, right and on disk before it got its final name.
    "kept() {",
    "  [ -L \"$1\" ] && return 1; [ -f \"$1\" ] && [ -x \"$1\" ] || return 1;",
    "  set -f; set -- $(ls -ldn \"$1\" 2>/dev/null); set +f;",
    "  case \"$1 $3 $5\" in -????-??-*\" $u $n\") return 0;; esac;",
    "  return 1;",
    "};",
    "same() { s=$(sha256sum < \"$1\" 2>/dev/null); [ \"${s%% *}\" = $h ]; };",
    // The path on the launcher's side, if a shared file system shows it here, too.
    "[ -f \"$1\" ] && [ -x \"$1\" ] && same \"$1\" && run \"$1\";",
    "for d in \"$c\" \"$p\"; do",
    "  f=$d/worker-$m-$h;",
    "  safe \"$d\" && kept \"$f\" && run \"$f\";",
    "done;",
    "w=; trap tidy EXIT; trap \"exit 9\" HUP INT TERM;",
    // gzip is optional: a host without it gets the bytes unpacked.
    "z=; command -v gzip >/dev/null 2>&1 && z=gzip;",
    "got() { if [ -n \"$z\" ]; then read -r k && head -c $k | { gzip -dc 2>/dev/null; cat > /dev/null; }; else head -c $n; fi; };",
    "for d in \"$c\" \"$p\"; do",
    "  mkdir -p \"$d\" 2>/dev/null; safe \"$d\" || continue;",
    "  t=$d/.worker-$h.$(uname -n).$$;",
    "  { : > \"$t\"; } 2>/dev/null && chmod 700 \"$t\" && [ -x \"$t\" ] || { tidy; continue; };",
    "  echo \"homing-boot need $m $z\";",
    // Bytes that do not fit are read nevertheless: the next folder gets the program from its start.
    "  e=$(got | { cat 2>&1 > \"$t\" || cat > /dev/null; });",
    "  [ -z \"$e\" ] || { w=\"$d: $e\"; tidy; continue; };",
    "  same \"$t\" || fail copy \"$d\";",
    "  sync \"$t\" 2>/dev/null;",
    "  mv -f \"$t\" \"$d/worker-$m-$h\" || { w=\"$d\"; tidy; continue; };",
    // The previous version stays, since both may be in use by turns; older ones would fill a home.
    "  t=; (cd \"$d\" && ls -t | { k=0; while read -r f; do",
    "    case $f in worker-$m-$h) ;; worker-$m-*) k=$((k + 1)); [ $k = 1 ] || rm -f \"$f\";; esac;",
    "  done; }) 2>/dev/null;",
    "  run \"$d/worker-$m-$h\";",
    "done;",
    "[ -z \"$w\" ] || fail write \"$w\";",
    "fail folder \"$c and $p\"",
];

/// Returns the command for the far login shell.
pub fn remote_command(payload: &Payload, role: &str) -> String {
    format!("exec /bin/sh -c '{}'", script(payload, role))
}

/// Returns the script itself, for a shell that homing starts.
pub fn script(payload: &Payload, role: &str) -> String {
    let script: Vec<&str> = SCRIPT.iter().map(|line| line.trim()).collect();
    format!("h={}; n={}; a={OWN_ARCH}; r={role}; {}", payload.sha256, payload.size, script.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_login_shell_can_carry_it() {
        let script = SCRIPT.concat();
        assert!(!script.contains(['\'', '\\', '!', '\n', '\r']), "{script}");
    }
}
