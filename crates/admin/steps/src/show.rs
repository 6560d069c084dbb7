//! Shows changes of files to people.

use crate::change::{Change, FileState};
use similar::TextDiff;

/// Returns the change of a file's text as a unified diff; `None` for other changes. The text of a file that neither
/// group nor others may read is not shown.
pub fn diff(change: &Change) -> Option<String> {
    let Change::File { path, from, to, .. } = change else { return None };
    let is_secret = |state: &Option<FileState>| state.as_ref().is_some_and(|s| s.mode & 0o044 == 0);
    if is_secret(from) || is_secret(to) {
        return Some(format!("{path}: its bytes are not shown\n"));
    }
    let text = |state: &Option<FileState>| state.as_ref().map_or(Some(""), |s| s.content.text()).map(String::from);
    let (Some(old), Some(new)) = (text(from), text(to)) else { return Some(format!("{path}: it is no text\n")) };
    let name = |state: &Option<FileState>| if state.is_some() { path.as_str() } else { "/dev/null" };
    let diff = TextDiff::from_lines(&old, &new);
    Some(diff.unified_diff().context_radius(1).header(name(from), name(to)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_both_texts_and_no_secret() {
        let state = |text: &str, mode| Some(FileState { content: text.into(), mode, uid: 0, gid: 0 });
        let change = |mode| Change::File {
            path: "/etc/f".into(),
            from: state("a\nb\n", mode),
            to: state("a\nc\n", mode),
            block: None,
        };
        let shown = diff(&change(0o644)).unwrap();
        assert!(shown.contains("-b\n+c\n") && shown.starts_with("--- /etc/f\n"), "{shown}");
        assert!(!diff(&change(0o400)).unwrap().contains("c\n+"));
        assert_eq!(diff(&change(0o600)).unwrap(), "/etc/f: its bytes are not shown\n");
    }
}
