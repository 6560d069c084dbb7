//! File systems that show the files of others: overlays, mergerfs, and file systems on an image that is on a network
//! volume. The bytes lie where those files lie.

use crate::{FileSystem, LocateRequest, Locator, OwnLocators};
use homing_model::{Extent, FileLayout};
use homing_mounts::{self as mounts, FileSystemKind, MountLine, unescape};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most stacked file systems that are followed. The kernel stacks two (`FILESYSTEM_MAX_STACK_DEPTH`); a FUSE file
/// system may claim anything.
const DEEPEST: u8 = 4;

/// The attribute with the path of the file on one branch of a mergerfs.
const BRANCH: &str = "user.mergerfs.fullpath";

/// The source of the shown files.
enum Below {
    /// Folders, of which the first that has a file shows it, and the mounts of the overlay.
    Layers { folders: Vec<PathBuf>, lines: Vec<MountLine>, metacopy: bool },
    /// One of several branches, which each file's attribute names.
    Branches,
    /// Layers that are not visible.
    Untold,
    /// One file that contains everything shown.
    Image(PathBuf),
}

/// A file system that shows the files of others.
pub(crate) struct Stacked {
    below: Below,
    locator: Locator,
}

impl Stacked {
    /// Returns `None` for a file system that shows no others. `depth` is the number of file systems above it.
    pub fn read(first: &MountLine, lines: &[MountLine], depth: u8, own: &OwnLocators) -> Option<Stacked> {
        let below = match first.mount.fstype.as_str() {
            "overlay" => Below::Layers {
                folders: layers(&first.of_super),
                lines: lines.to_vec(),
                metacopy: first.of_super.iter().any(|word| word == "metacopy=on"),
            },
            "fuse.mergerfs" => Below::Branches,
            "fuse.fuse-overlayfs" => Below::Untold,
            _ => Below::Image(image(first.mount.source.as_path())?),
        };
        Some(Stacked { below, locator: Locator::at_depth(depth + 1).with_own(own.clone()) })
    }

    /// Returns the file below that holds the bytes of this one.
    fn file(&self, asked: &LocateRequest) -> Result<PathBuf, String> {
        if self.locator.depth() > DEEPEST {
            return Err(format!("more than {DEEPEST} file systems are stacked"));
        }
        match &self.below {
            Below::Layers { folders, lines, metacopy } => layer(asked, folders, lines, *metacopy),
            Below::Branches => branch(asked),
            Below::Untold => Err("the mount table does not show the layers of this fuse-overlayfs".into()),
            Below::Image(file) => Ok(file.clone()),
        }
    }
}

impl FileSystem for Stacked {
    fn fill(&self, asked: &mut LocateRequest) {
        if asked.layout.size == 0 {
            return;
        }
        let found = match self.file(asked) {
            Ok(file) => self.locator.locate(&file),
            Err(reason) => return asked.layout.reason = Some(reason),
        };
        let layout = &mut asked.layout;
        match &self.below {
            Below::Image(file) => match everywhere(&found) {
                Some(extent) => layout.extents.push(Extent { offset: 0, length: layout.size, ..extent }),
                None => {
                    let image = file.display();
                    layout.reason = Some(format!("it is in the image {image}, at an unknown offset"));
                }
            },
            _ => (layout.extents, layout.reason, layout.server_path) = (found.extents, found.reason, found.server_path),
        }
        layout.volume = found.volume;
    }
}

/// Returns the place of each byte of a file, if it is the same for all.
fn everywhere(layout: &FileLayout) -> Option<Extent> {
    let first = layout.extents.first().filter(|_| layout.reason.is_none())?;
    layout.extents.iter().all(|extent| extent.replicas == first.replicas).then(|| first.clone())
}

/// Returns the folders of an overlay, the upper one first. Colons in their names are escaped by a backslash;
/// `lowerdir+` and `datadir+` name one folder each.
fn layers(options: &[String]) -> Vec<PathBuf> {
    let values = |wanted: &'static str| {
        options.iter().filter_map(move |word| word.split_once('=').filter(|(key, _)| *key == wanted))
    };
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let single = |(_, value): (&str, &str)| path(&unescape(value.as_bytes()));
    let upper = values("upperdir").map(single);
    let lower = values("lowerdir").flat_map(|(_, value)| split(&unescape(value.as_bytes())));
    upper
        .chain(lower.map(|folder| path(&folder)))
        .chain(values("lowerdir+").chain(values("datadir+")).map(single))
        .collect()
}

fn split(folders: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut bytes) = (vec![Vec::new()], folders.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => all.push(Vec::new()),
            b'\\' => all.last_mut().into_iter().for_each(|folder| folder.extend(bytes.next())),
            other => all.last_mut().into_iter().for_each(|folder| folder.push(*other)),
        }
    }
    // Two colons precede data-only layers.
    all.retain(|folder| !folder.is_empty());
    all
}

/// Returns the file in the first layer that has it. The path of a layer may lead to another file here, because a
/// container sees the paths of its own mount namespace.
fn layer(asked: &LocateRequest, folders: &[PathBuf], lines: &[MountLine], metacopy: bool) -> Result<PathBuf, String> {
    let unseen = || "the layers of this overlay are not visible here, as in a container".to_string();
    let real = asked.path.canonicalize().map_err(|e| e.to_string())?;
    let line = mounts::holding(lines, &real).ok_or_else(unseen)?;
    let beneath = real.strip_prefix(line.mount.point.as_path()).map_err(|_| unseen())?;
    let root = line.root.as_path();
    let within = root.strip_prefix("/").unwrap_or(root).join(beneath);
    let shown = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(&within));
    // A file of the upper layer may have attributes only, with its content below.
    let has = |file: &PathBuf| {
        let Ok(meta) = file.symlink_metadata() else { return false };
        !(metacopy && meta.blocks() == 0) && same(&meta, &asked.meta)
    };
    shown.into_iter().find(has).ok_or_else(unseen)
}

/// Whether it is the same file on another file system, as far as `stat` shows. An overlay shows the inode number of
/// the file's layer. A file that was just written to GlusterFS may have the time of another server at the next query.
fn same(below: &Metadata, above: &Metadata) -> bool {
    let mark = |meta: &Metadata| (meta.len(), meta.mode());
    let time = |meta: &Metadata| (meta.mtime(), meta.mtime_nsec());
    below.dev() != above.dev()
        && mark(below) == mark(above)
        && (time(below) == time(above) || below.ino() == above.ino())
}

fn branch(asked: &LocateRequest) -> Result<PathBuf, String> {
    let mut text = vec![0; libc::PATH_MAX as usize];
    let length = rustix::fs::getxattr(&asked.path, BRANCH, &mut text[..])
        .map_err(|e| format!("this mergerfs does not report the branch of the file ({BRANCH}: {e})"))?;
    let file = PathBuf::from(OsStr::from_bytes(&text[..length]));
    let seen = file.symlink_metadata().is_ok_and(|meta| same(&meta, &asked.meta));
    if seen { Ok(file) } else { Err("the branches of this mergerfs are not visible here".into()) }
}

/// Returns the image behind a loop device, if a network volume holds it. An image on a disk of this host counts as
/// that disk.
fn image(source: &Path) -> Option<PathBuf> {
    let device = source.strip_prefix("/dev").ok().filter(|d| d.as_os_str().as_bytes().starts_with(b"loop"))?;
    let class = Path::new("/sys/class/block").join(device);
    // A partition's device is below the device that has the file.
    let told =
        ["loop/backing_file", "../loop/backing_file"].iter().find_map(|file| std::fs::read(class.join(file)).ok())?;
    let file = PathBuf::from(OsStr::from_bytes(told.strip_suffix(b"\n").unwrap_or(&told)));
    let lines = mounts::read().ok()?;
    mounts::holding(&lines, &file).is_some_and(|line| FileSystemKind::of(&line.mount).is_network()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_of_an_overlay_are_read_as_the_kernel_writes_them() {
        let of = |text: &str| {
            let options: Vec<String> = text.split(',').map(String::from).collect();
            layers(&options).iter().map(|p| p.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("rw,lowerdir=/a:/b,upperdir=/u,workdir=/w"), ["/u", "/a", "/b"]);
        assert_eq!(of("ro,lowerdir=/with\\040blank:/a\\134:b::/data"), ["/with blank", "/a:b", "/data"]);
        assert_eq!(of("ro,lowerdir+=/a:b,lowerdir+=/c,datadir+=/d"), ["/a:b", "/c", "/d"]);
        assert!(of("rw,relatime").is_empty());
    }
}
