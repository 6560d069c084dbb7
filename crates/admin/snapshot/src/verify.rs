//! Compares an image with its manifest, and tries a restore of some files to a folder of their own.

use crate::ask::{Proof, VaultLocation};
use crate::image::When;
use crate::manifest::{self, ImageEntry, ManifestKind, NAME};
use crate::place::ImagePart;
use crate::rsync::{HostFolder, RestoreList, listed, restore_words};
use crate::run::Reins;
use crate::scratch::Scratch;
use crate::vault::{Refused, Vault};
use crate::walk;
use crate::{attributes, flaws, journal};
use homing_model::RawText;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Restores this many files, chosen at random, and records the result.
pub fn verify(
    site: &VaultLocation,
    when: &When,
    files: usize,
    reins: &Reins,
    zone: &TimeZone,
) -> Result<Proof, Refused> {
    let vault = Vault::make(site)?;
    let image = vault.pick(when, zone)?;
    let folder = vault.folder(&image.name);
    let manifest = folder.join(NAME);
    let noted = journal::manifest_of(&vault.own(), &image.name);
    let wrong = match flaws::of_manifest(&manifest, &image, noted.as_deref()) {
        Ok(wrong) => wrong,
        // homing has noted the number of entries: it has made the image.
        Err(e) if e.kind() == io::ErrorKind::NotFound && image.files.is_some() => Some("it is missing".into()),
        Err(e) => {
            let why = "images of dirvish have no manifest and cannot be compared";
            return Err(format!("{}: {e}; {why}", manifest.display()).into());
        }
    };
    if wrong.is_some() {
        let proof = Proof { image: image.name, at: Timestamp::now(), manifest: wrong, ..Proof::default() };
        return vault.prove(proof.clone()).map(|()| proof).map_err(Refused::Failed);
    }
    let sample = sample(&manifest, files, random())?;
    let tree = flaws::of_tree(&folder.join("tree"), &manifest, image.manifest.is_some());
    let compared = tree.map_err(|e| format!("comparing {} with its manifest: {e}", folder.display()))?;
    let doing = |e: io::Error| format!("making a trial restore of {}: {e}", folder.display());
    let scratch = Scratch::new(&vault).map_err(doing)?;
    let (tree, names) = (scratch.tree(), scratch.names());
    let mut list = File::create_new(&names).map_err(doing)?;
    for entry in &sample {
        list.write_all(&listed(&entry.path)).map_err(doing)?;
    }
    let place = ImagePart::of(&vault, &image, &RawText(Vec::new()))?;
    let to = HostFolder { host: None, path: tree.as_path().into() };
    let words = restore_words(RestoreList::Here(&names), &place.name, &to, crate::plan::SSH, false);
    // A file that cannot be restored counts as one that differs.
    let _ = place.run(words, &to, reins, &mut |_, _| Ok(()));
    let bad = sample.iter().filter(|entry| !came_back(&tree, entry)).map(|entry| entry.path.clone());
    let proof = Proof {
        image: image.name,
        at: Timestamp::now(),
        files: sample.len() as u64,
        bytes: sample.iter().map(|entry| entry.size).sum(),
        bad: bad.collect(),
        manifest: None,
        tree: Some(compared),
    };
    vault.prove(proof.clone())?;
    Ok(proof)
}

/// Returns this many of them, each with the same chance.
pub fn chosen<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let mut draw = Draw::new(most, random());
    all.into_iter().for_each(|one| draw.see(one));
    draw.chosen
}

/// Draws this many of the values that it is shown, whatever their number.
struct Draw<T, R> {
    chosen: Vec<T>,
    most: usize,
    seen: u64,
    random: R,
}

impl<T, R: FnMut() -> u64> Draw<T, R> {
    fn new(most: usize, random: R) -> Draw<T, R> {
        Draw { chosen: Vec::new(), most, seen: 0, random }
    }

    fn see(&mut self, one: T) {
        self.seen += 1;
        let at = ((self.random)() % self.seen) as usize;
        if self.chosen.len() < self.most {
            self.chosen.push(one);
        } else if let Some(other) = self.chosen.get_mut(at) {
            *other = one;
        }
    }
}

/// Returns files of a manifest, each with the same chance.
fn sample(manifest: &Path, most: usize, random: impl FnMut() -> u64) -> Result<Vec<ImageEntry>, String> {
    let doing = |e: io::Error| format!("{}: {e}", manifest.display());
    let entries = manifest::read(BufReader::new(File::open(manifest).map_err(doing)?));
    let mut draw = Draw::new(most, random);
    for entry in entries {
        let entry = entry.map_err(doing)?;
        if entry.kind == ManifestKind::File {
            draw.see(entry);
        }
    }
    Ok(draw.chosen)
}

fn random() -> impl FnMut() -> u64 {
    || {
        let mut bytes = [0; 8];
        // If the kernel gives no random bytes, the sample is the first files, with the last file in place of the first.
        let _ = getrandom(&mut bytes, GetRandomFlags::empty());
        u64::from_ne_bytes(bytes)
    }
}

fn came_back(scratch: &Path, entry: &ImageEntry) -> bool {
    let look = || -> io::Result<bool> {
        let root = walk::folder(scratch)?;
        let file = File::from(walk::below(&root, entry.path.as_path(), OFlags::RDONLY)?);
        let meta = file.metadata()?;
        let time = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        // Only root can give files to their owners.
        let owned = !rustix::process::geteuid().is_root() || (meta.uid(), meta.gid()) == (entry.uid, entry.gid);
        let same = (meta.len(), meta.mode() & 0o7777, time) == (entry.size, entry.mode, entry.mtime_ns);
        let attributes = entry.xattrs.is_none() || attributes::hash_of(&file)? == entry.xattrs;
        Ok(owned && same && attributes && Some(walk::hash_of(file)?) == entry.sha256)
    };
    look().unwrap_or(false)
}
