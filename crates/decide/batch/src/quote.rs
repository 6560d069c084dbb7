//! Quotes values as single words of a shell command line.

use homing_model::{Command, RawText};

/// The quoting rules of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Posix,
    /// csh and tcsh: `!` and newline are special even between single quotes.
    Csh,
}

impl Dialect {
    /// Returns the dialect for a shell's file name.
    pub(crate) fn of(shell: &RawText) -> Self {
        let name = shell.0.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if name.ends_with(b"csh") { Dialect::Csh } else { Dialect::Posix }
    }
}

/// Whether a byte is plain to every shell. The set is as small as GNU parallel's: joblogs and dry runs of both then
/// look the same.
fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_/.+-".contains(&byte)
}

/// Quotes `value` as one word for a POSIX shell. It preserves every byte but zero.
pub fn quote(value: &[u8]) -> Vec<u8> {
    quote_for(Dialect::Posix, value)
}

pub(crate) fn quote_for(dialect: Dialect, value: &[u8]) -> Vec<u8> {
    if !value.is_empty() && value.iter().all(|&b| plain(b)) {
        return value.to_vec();
    }
    let mut out = Vec::with_capacity(value.len() + 2);
    out.push(b'\'');
    for &byte in value {
        match byte {
            b'\'' => out.extend_from_slice(b"'\"'\"'"),
            b'!' | b'\n' if dialect == Dialect::Csh => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    out
}

/// Returns the command as one line that a POSIX shell would run the same way: for `--dry-run`, `--joblog` and
/// messages.
pub fn command_line(command: &Command) -> Vec<u8> {
    match command {
        Command::Shell(line) => line.0.clone(),
        Command::Argv(words) => {
            // The token of a slot that is not yet known becomes plain digits later.
            let one = |w: &RawText| {
                if w.0 == crate::slot::SLOT_TOKEN.as_bytes() { w.0.clone() } else { quote(&w.0) }
            };
            words.iter().map(one).collect::<Vec<_>>().join(&b' ')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_gnu_parallel_writes_them() {
        for (value, word) in [
            ("a/b-c_d.e+1", "a/b-c_d.e+1"),
            ("", "''"),
            ("b c", "'b c'"),
            ("d'e", "'d'\"'\"'e'"),
            ("~x", "'~x'"),
            ("x\ny", "'x\ny'"),
            ("ü", "'ü'"),
        ] {
            assert_eq!(quote(value.as_bytes()), word.as_bytes(), "{value:?}");
        }
    }

    #[test]
    fn csh_gets_its_own() {
        assert_eq!(Dialect::of(&"/bin/tcsh".into()), Dialect::Csh);
        assert_eq!(quote_for(Dialect::Csh, b"a!\n"), b"'a\\!\\\n'");
    }
}
