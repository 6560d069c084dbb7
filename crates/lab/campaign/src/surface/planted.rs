//! Makes files of each kind under a name, and looks at them. Also makes the victims, which must not be harmed by
//! links to them.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;

/// A kind of thing under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedKind {
    /// A regular file.
    File,
    /// A symbolic link to a file elsewhere.
    Link,
    /// A symbolic link to a folder elsewhere.
    LinkToFolder,
    /// A named pipe.
    Pipe,
    /// A folder with a file in it.
    Folder,
    /// A folder with nothing in it.
    Empty,
}

impl PlantedKind {
    /// All kinds.
    pub const ALL: [PlantedKind; 6] = [
        PlantedKind::File,
        PlantedKind::Link,
        PlantedKind::LinkToFolder,
        PlantedKind::Pipe,
        PlantedKind::Folder,
        PlantedKind::Empty,
    ];

    /// Makes one. Links lead to `file` and `folder` in the folder of victims.
    pub fn make(self, at: &Path, content: &str, victims: &Path) -> io::Result<()> {
        match self {
            PlantedKind::File => fs::write(at, content),
            PlantedKind::Link => symlink(victims.join("file"), at),
            PlantedKind::LinkToFolder => symlink(victims.join("folder"), at),
            PlantedKind::Pipe => pipe(at),
            PlantedKind::Folder => fs::create_dir(at).and_then(|()| fs::write(at.join("within"), content)),
            PlantedKind::Empty => fs::create_dir(at),
        }
    }
}

/// Makes a named pipe that all may open.
pub fn pipe(at: &Path) -> io::Result<()> {
    Ok(mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o666), 0)?)
}

/// Returns the result of lstat and a read of a name: kind, inode, and content or target. `None` if there is no such
/// file.
pub fn look(at: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(at).ok()?;
    let kind = meta.file_type();
    let text = if kind.is_symlink() {
        format!("link to {}", fs::read_link(at).ok()?.display())
    } else if kind.is_file() {
        format!("file {:?}", fs::read_to_string(at).ok()?)
    } else if kind.is_fifo() {
        "pipe".to_string()
    } else {
        "folder".to_string()
    };
    Some(format!("{text}, inode {}", meta.ino()))
}

/// Removes the inode from a look: the kind and content of the file remain, not its identity.
pub fn sort(look: &str) -> &str {
    look.rsplit_once(", inode ").map_or(look, |(sort, _)| sort)
}

/// Makes a folder of victims: a file, and a folder with nothing in it.
pub fn make_victims(at: &Path) -> io::Result<()> {
    fs::create_dir_all(at.join("folder"))?;
    fs::write(at.join("file"), "kept")
}

/// Returns the harm that was done to the victims.
pub fn harm(at: &Path) -> Option<String> {
    let text = fs::read_to_string(at.join("file")).unwrap_or_default();
    let names = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    let (within, beside): (Vec<_>, Vec<_>) = (names(&at.join("folder")), names(at));
    let unharmed = text == "kept" && within.is_empty() && beside.len() == 2;
    (!unharmed).then(|| format!("behind links: the file has {text:?}, the folders {within:?} and {beside:?}"))
}
