//! Shows changes of files to people.

use crate::change::{FileState, HostChange};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest, Sha256};
use similar::TextDiff;

/// As [`diff`], for people: a public key of ssh is its fingerprint, as `ssh-keygen -l` prints it.
pub fn diff_for_people(change: &HostChange) -> Option<String> {
    diff(change).map(|diff| diff.split_inclusive('\n').map(fingerprinted).collect())
}

/// Returns a line with the fingerprint in place of a key.
fn fingerprinted(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_kind = |word: &str| {
        let word = word.trim_start_matches(['+', '-']);
        ["ssh-", "ecdsa-sha2-", "sk-"].iter().any(|start| word.starts_with(start))
    };
    let print = |key: &str| {
        let (key, end) = key.strip_suffix('\n').map_or((key, ""), |key| (key, "\n"));
        // The bytes of a key begin with the length of its type's name.
        let bytes = STANDARD.decode(key).ok().filter(|bytes| bytes.starts_with(&[0, 0, 0]))?;
        Some(format!("SHA256:{}{end}", STANDARD_NO_PAD.encode(Sha256::digest(bytes))))
    };
    let word = |at: usize| {
        let print = (at > 0 && is_kind(words[at - 1])).then(|| print(words[at])).flatten();
        print.unwrap_or_else(|| words[at].into())
    };
    (0..words.len()).map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the change of a file's text as a unified diff; `None` for other changes. The text of a file that neither
/// group nor others may read is not shown.
pub fn diff(change: &HostChange) -> Option<String> {
    let HostChange::File { path, from, to, .. } = change else { return None };
    let is_secret = |state: &Option<FileState>| state.as_ref().is_some_and(|s| s.mode & 0o044 == 0);
    if is_secret(from) || is_secret(to) {
        return Some(format!("{path}: its content is secret and not shown\n"));
    }
    let text = |state: &Option<FileState>| state.as_ref().map_or(Some(""), |s| s.content.text()).map(String::from);
    let (Some(old), Some(new)) = (text(from), text(to)) else {
        return Some(format!("{path}: it is not a text file\n"));
    };
    let name = |state: &Option<FileState>| if state.is_some() { path.as_str() } else { "/dev/null" };
    let diff = TextDiff::from_lines(&old, &new);
    Some(diff.unified_diff().context_radius(1).header(name(from), name(to)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_the_fingerprint_of_a_host_key_and_programs_the_key() {
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS";
        let state = |text: String| Some(FileState { content: text.as_str().into(), mode: 0o644, uid: 0, gid: 0 });
        let to = state(format!("n1,10.0.0.1 ssh-ed25519 {key}\nssh-ed25519 {key} ann@n1\n# ssh-rsa keys\n"));
        let change =
            HostChange::File { path: "/etc/ssh/ssh_known_hosts".into(), from: state(String::new()), to, block: None };
        assert_eq!(diff(&change).unwrap().matches(key).count(), 2);
        let shown = diff_for_people(&change).unwrap();
        // By `ssh-keygen -l`.
        let print = "ssh-ed25519 SHA256:qH8baHrA5X0qCBovKCZyM02Q7TFtK4GMqVgOo4TZJAE";
        assert!(shown.contains(&format!("+n1,10.0.0.1 {print}\n+{print} ann@n1\n+# ssh-rsa keys\n")), "{shown}");
    }

    #[test]
    fn a_diff_has_both_texts_and_no_secret() {
        let state = |text: &str, mode| Some(FileState { content: text.into(), mode, uid: 0, gid: 0 });
        let change = |mode| HostChange::File {
            path: "/etc/f".into(),
            from: state("a\nb\n", mode),
            to: state("a\nc\n", mode),
            block: None,
        };
        let shown = diff(&change(0o644)).unwrap();
        assert!(shown.contains("-b\n+c\n") && shown.starts_with("--- /etc/f\n"), "{shown}");
        assert!(!diff(&change(0o400)).unwrap().contains("c\n+"));
        assert_eq!(diff(&change(0o600)).unwrap(), "/etc/f: its content is secret and not shown\n");
    }
}
