//! Locates files and folders, including paths whose file system does not answer.

use crate::{HostNames, Locator};
use homing_model::FileLayout;
use homing_mounts::{Bounded, Looking, silence};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns each path and whether it is a directory. Paths whose file system is silent are errors.
fn answering(paths: Vec<PathBuf>, patience: Duration) -> Bounded<PathBuf, (), (PathBuf, bool)> {
    Bounded::new(paths.into_iter(), patience, || {
        Box::new(|path: PathBuf, looking: &Looking<()>| {
            looking.begins((), &path);
            let is_dir = path.is_dir();
            (path, is_dir)
        })
    })
}

fn unanswered(path: &Path, patience: Duration) -> FileLayout {
    FileLayout {
        path: path.into(),
        size: 0,
        volume: String::new(),
        extents: Vec::new(),
        reason: Some(silence(path, patience)),
        missing: false,
        server_path: None,
    }
}

/// Locates files, and up to `limit` files below each directory, in this order. Calls `cut` for a directory that has
/// more.
pub fn locate_everything(
    locator: &Locator,
    paths: Vec<PathBuf>,
    limit: usize,
    patience: Duration,
    cut: &mut dyn FnMut(&Path),
) -> Vec<FileLayout> {
    let (mut found, mut pending) = (Vec::new(), Vec::new());
    for path in answering(paths, patience) {
        let path = match path {
            Ok((path, false)) => {
                pending.push(path);
                continue;
            }
            Ok((path, true)) => path,
            Err(silent) => {
                found.extend(locator.locate_all(&std::mem::take(&mut pending)));
                found.push(unanswered(&silent.path, patience));
                continue;
            }
        };
        found.extend(locator.locate_all(&std::mem::take(&mut pending)));
        let tree = locator.locate_tree(&path, limit);
        if tree.truncated {
            cut(&path);
        }
        found.extend(tree.files);
    }
    found.extend(locator.locate_all(&pending));
    found
}

/// Locates the given paths that are no directories and answer.
pub fn answering_files(locator: &Locator, paths: Vec<PathBuf>, patience: Duration) -> Vec<FileLayout> {
    let files = answering(paths, patience).filter_map(Result::ok).filter(|(_, is_dir)| !is_dir).map(|(path, _)| path);
    locator.locate_all(&files.collect::<Vec<_>>())
}

/// Replaces addresses by the names of their hosts.
pub fn name_hosts(files: &mut [FileLayout]) {
    let names = HostNames::default();
    let replicas = files.iter().flat_map(|f| &f.extents).flat_map(|e| &e.replicas);
    names.learn(&replicas.map(|r| r.host.clone()).collect());
    for replica in files.iter_mut().flat_map(|f| &mut f.extents).flat_map(|e| &mut e.replicas) {
        replica.host = names.of(&replica.host);
    }
}
