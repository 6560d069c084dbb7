//! Shows tasks the files under the names that they have on the other hosts of a run.
//!
//! The server of an NFS export has its files under a path of its own. A task that runs there sees them at the mount
//! point of the clients. It gets a private mount namespace or, if that is not permitted, its words are rewritten.

mod enter;
mod stand;

pub use enter::enter_view;
pub(crate) use stand::{VolumeQuestion, stand};

use homing_model::RawText;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// This program, which runs a task in a view.
const SELF: &str = "/proc/self/exe";

/// Characters, besides letters and digits, that a shell takes literally, quoted or not.
const PLAIN: &[u8] = b"/._-+,@%";

/// One mount point of other hosts, and its directory on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountAlias {
    pub point: PathBuf,
    pub local: PathBuf,
}

/// All current places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountView {
    /// Outer mount points before those within them.
    places: Vec<MountAlias>,
    /// Whether tasks get a mount namespace; otherwise their words are rewritten.
    private: bool,
}

impl MountView {
    /// Returns the view with one more place.
    pub fn with(&self, place: MountAlias, private: bool) -> MountView {
        let mut places = self.places.clone();
        places.retain(|known| known.point != place.point);
        places.push(place);
        places.sort_by_key(|p| p.point.components().count());
        MountView { private: private && (self.private || self.places.is_empty()), places }
    }

    fn place_of(&self, path: &Path) -> Option<&MountAlias> {
        self.places.iter().rev().find(|place| path.starts_with(&place.point))
    }

    /// Returns the path on this host of a file of the view.
    pub fn real(&self, path: &Path) -> PathBuf {
        let mapped = self.place_of(path).and_then(|p| Some(p.local.join(path.strip_prefix(&p.point).ok()?)));
        mapped.unwrap_or_else(|| path.to_path_buf())
    }

    /// Whether all names are the same on this host.
    pub fn is_plain(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the directory to start in, the program, and the words that show a task its view. `program` is a path
    /// of the view.
    pub fn wrap(&self, program: &Path, words: &[RawText], cwd: &Path) -> (PathBuf, PathBuf, Vec<RawText>) {
        if self.places.is_empty() {
            return (cwd.to_path_buf(), program.to_path_buf(), words.to_vec());
        }
        if !self.private {
            let words = words.iter().map(|word| self.rewrite(word)).collect();
            return (self.real(cwd), self.real(program), words);
        }
        let mut all: Vec<RawText> = vec!["homing".into(), "in-view".into()];
        all.extend(enter::arguments(&self.places, cwd, program));
        all.extend(words.iter().cloned());
        ("/".into(), SELF.into(), all)
    }

    /// Returns the value of a task's `PWD`.
    pub fn shown(&self, path: &Path) -> PathBuf {
        if self.private { path.to_path_buf() } else { self.real(path) }
    }

    fn rewrite(&self, text: &RawText) -> RawText {
        // Inner places first: their names begin with those of the outer ones.
        self.places.iter().rev().fold(text.clone(), |text, place| {
            let (point, local) = (place.point.as_os_str().as_bytes(), place.local.as_os_str().as_bytes());
            RawText(replace(&text.0, point, local))
        })
    }
}

/// Whether a directory's name can replace another in a command line.
fn is_plain(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || PLAIN.contains(b))
}

/// Replaces a path that is a whole word, or begins one.
fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let begins = at == 0 || b" \t\n'\"=:;|&<>(`".contains(&text[at - 1]);
        let after = text.get(at + from.len());
        let ends = after.is_none_or(|b| b"/ \t\n'\":;|&<>)`".contains(b));
        if begins && ends && text[at..].starts_with(from) {
            out.extend_from_slice(to);
            at += from.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

/// Returns the words of a command that looks for `file` in a view: a test whether a namespace is permitted.
fn probe_command(view: &MountView, file: &Path) -> (PathBuf, Vec<RawText>) {
    let words = [RawText::from("/bin/sh"), "-c".into(), "test -f \"$0\"".into(), RawText::from(file)];
    let (_, program, words) = view.wrap(Path::new("/bin/sh"), &words, Path::new("/"));
    (program, words)
}

fn os(text: &RawText) -> std::ffi::OsString {
    std::ffi::OsString::from_vec(text.0.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(private: bool) -> MountView {
        let place = |point: &str, local: &str| MountAlias { point: point.into(), local: local.into() };
        MountView::default().with(place("/data/in", "/srv/in"), private).with(place("/data", "/export"), private)
    }

    #[test]
    fn the_innermost_place_has_a_file() {
        let real = |path: &str| view(true).real(Path::new(path));
        assert_eq!(real("/data/a/b"), Path::new("/export/a/b"));
        assert_eq!(real("/data/in/b"), Path::new("/srv/in/b"));
        assert_eq!(real("/data"), Path::new("/export"));
        assert_eq!(real("/database"), Path::new("/database"));
    }

    #[test]
    fn words_are_rewritten_where_a_path_stands() {
        let shown = |text: &str| view(false).rewrite(&text.into()).display();
        assert_eq!(shown("cat /data/f >'/data/in/a b'; ls /data"), "cat /export/f >'/srv/in/a b'; ls /export");
        assert_eq!(shown("--out=/data/f /database /x/data/f a/data"), "--out=/export/f /database /x/data/f a/data");
        assert_eq!(shown("PATH=/data/bin:/data"), "PATH=/export/bin:/export");
        let (cwd, program, _) = view(false).wrap(Path::new("/data/bin/x"), &[], Path::new("/data"));
        assert_eq!((cwd, program), ("/export".into(), "/export/bin/x".into()));
    }

    #[test]
    fn without_a_place_nothing_changes() {
        let words = vec![RawText::from("a")];
        let plain = MountView::default().wrap(Path::new("/bin/a"), &words, Path::new("/w"));
        assert_eq!(plain, ("/w".into(), "/bin/a".into(), words));
    }
}
