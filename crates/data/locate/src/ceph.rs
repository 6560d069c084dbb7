//! CephFS: a file is cut into objects by its layout, and the OSD map tells which
//! OSDs hold each. The kernel's client tells the primary of each itself; beside
//! ceph-fuse the map is asked for once, and the rest is computed.

mod hash;
mod map;
mod object;
mod primary;

use crate::{Asked, FileSystem};
use homing_model::{FileLayout, Replica};
use homing_mounts::ceph::{self, Client, ReadFrom};
use homing_mounts::{FS_TIMEOUT, MountLine};
use homing_os::threads::within;
use map::OsdMap;
use object::Striping;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a map is believed. An OSD that stops leaves the map at once, and its groups are served by others then: a
/// task that was placed by the old map fetches, which is what it would have done without any.
const FRESH: Duration = Duration::from_secs(20);

/// Inode numbers below `.snap` have the snapshot's above these bits; objects are named by the file's own.
const OWN_INO: u64 = (1 << 48) - 1;

/// What the cluster said, and when.
type Told = (Instant, Result<Arc<OsdMap>, String>);

pub(crate) struct Ceph {
    point: PathBuf,
    kernel: bool,
    client: Client,
    map: Mutex<Option<Told>>,
    /// When the kernel's client last spoke with an OSD for this.
    spoken: Mutex<Option<Instant>>,
}

impl Ceph {
    pub fn read(line: &MountLine) -> Ceph {
        Ceph {
            point: line.mount.point.to_path(),
            kernel: ceph::is_kernel(&line.mount),
            client: ceph::client(line),
            map: Mutex::default(),
            spoken: Mutex::default(),
        }
    }

    /// Threads that come together wait for the one that asks.
    fn map(&self) -> Result<Arc<OsdMap>, String> {
        let mut told = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = told.as_ref().filter(|(since, _)| since.elapsed() < FRESH) {
            return known.clone();
        }
        let asked = map::ask(&self.client.options).and_then(|map| self.of_this_cluster(map)).map(Arc::new);
        *told = Some((Instant::now(), asked.clone()));
        asked
    }

    /// What `ceph` asks without options is the cluster of /etc/ceph, which need not be that of the mount.
    fn of_this_cluster(&self, map: OsdMap) -> Result<OsdMap, String> {
        match ceph::cluster(&self.point) {
            Some(own) if own != map.cluster => Err(format!(
                "the program ceph asks the cluster {}, and {} is of {own}: name its configuration to the mount",
                map.cluster,
                self.point.display()
            )),
            _ => Ok(map),
        }
    }

    fn by_map(&self, striping: &Striping, ino: u64, layout: &mut FileLayout) -> Result<(), String> {
        let map = self.map()?;
        let pool = map.pool(&striping.pool)?;
        object::place(striping, layout, &mut |number, _| {
            let name = format!("{:x}.{number:08x}", ino & OWN_INO);
            map.replicas(pool, striping.namespace.as_deref(), &name, self.client.read_from)
        });
        Ok(())
    }

    fn by_kernel(&self, path: &Path, striping: &Striping, layout: &mut FileLayout) -> Result<(), String> {
        let file = primary::open(path, 0)
            .map_err(|e| format!("cannot open it, which Ceph wants for telling its place: {e}"))?;
        self.speak(path);
        object::place(striping, layout, &mut |_, offset| {
            let replica = |host: String| Replica { host, share: 1.0 };
            primary::address(&file, offset).map(|host| host.into_iter().map(replica).collect())
        });
        Ok(())
    }

    /// The kernel's client hears of a new map from OSDs that it speaks with, before their answer, or when one of them
    /// leaves it. One that reads nothing tells for ever what was so when it last did: so a page is read past the cache.
    /// Threads that come together wait for the one that reads.
    fn speak(&self, path: &Path) {
        let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        if spoken.is_none_or(|since| since.elapsed() >= FRESH) {
            let path = path.to_path_buf();
            // An OSD whose host is dead keeps the reader until others have told of that; the old map is told then.
            within(FS_TIMEOUT, move || primary::speak(&path));
            *spoken = Some(Instant::now());
        }
    }
}

impl FileSystem for Ceph {
    fn fill(&self, Asked { path, meta, layout }: &mut Asked) {
        if layout.size == 0 {
            return;
        }
        let told = Striping::of(path).and_then(|striping| {
            let by_map = |layout: &mut FileLayout| self.by_map(&striping, meta.ino(), layout);
            match (self.kernel, self.client.read_from) {
                (true, ReadFrom::Primary) => self.by_kernel(path, &striping, layout),
                // The kernel tells of no other copies: without the map the primary's is known, and is one of them.
                (true, _) => by_map(layout).or_else(|_| self.by_kernel(path, &striping, layout)),
                (false, _) => by_map(layout),
            }
        });
        if let Err(why) = told {
            layout.reason = Some(why);
        }
    }
}
