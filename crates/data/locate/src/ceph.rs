//! CephFS: a file is cut into objects by its layout, and the OSD map shows which OSDs hold each. The kernel's client
//! itself reports the primary of each object. With ceph-fuse the map is queried once, and the rest is computed.

mod hash;
mod map;
mod object;
mod primary;

use crate::{FileSystem, LocateRequest};
use homing_model::{FileLayout, Replica};
use homing_mounts::ceph::{self, Client, ReadFrom};
use homing_mounts::{FS_TIMEOUT, MountLine};
use homing_os::threads::lock;
use homing_os::threads::within;
use map::OsdMap;
use object::Striping;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a map is used. An OSD that stops leaves the map at once, and other OSDs serve its groups. A task that was
/// placed by the old map then fetches its input, as it would without a map.
const FRESH: Duration = Duration::from_secs(20);

/// Inode numbers below `.snap` contain the snapshot's number above these bits. Objects are named by the file's own
/// number.
const OWN_INO: u64 = (1 << 48) - 1;

/// The map or the error of the last query, and its time.
type CachedMap = (Instant, Result<Arc<OsdMap>, String>);

pub(crate) struct Ceph {
    point: PathBuf,
    kernel: bool,
    client: Client,
    map: Mutex<Option<CachedMap>>,
    /// When the kernel's client last contacted an OSD for this.
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

    /// Returns the map. Other threads wait while one queries it.
    fn map(&self) -> Result<Arc<OsdMap>, String> {
        let mut map = lock(&self.map);
        if let Some((_, known)) = map.as_ref().filter(|(since, _)| since.elapsed() < FRESH) {
            return known.clone();
        }
        let asked = map::query_map(&self.client.options).and_then(|map| self.of_this_cluster(map)).map(Arc::new);
        *map = Some((Instant::now(), asked.clone()));
        asked
    }

    /// Without options `ceph` queries the cluster of /etc/ceph, which may differ from that of the mount.
    fn of_this_cluster(&self, map: OsdMap) -> Result<OsdMap, String> {
        match ceph::cluster(&self.point) {
            Some(own) if own != map.cluster => Err(format!(
                "the program ceph queries the cluster {}, but {} belongs to {own}: mount it with the option conf=FILE",
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
            .map_err(|e| format!("opening the file, which Ceph needs to report its place: {e}"))?;
        self.speak(path);
        object::place(striping, layout, &mut |_, offset| {
            let replica = |host: String| Replica { host, share: 1.0 };
            primary::address(&file, offset).map(|host| host.into_iter().map(replica).collect())
        });
        Ok(())
    }

    /// Makes the kernel's client contact an OSD, so that it has a recent map. The client receives a new map from OSDs
    /// that it contacts, before their answer, or when one of them leaves the map. A client that reads nothing keeps
    /// its old map for ever, so this reads a page past the cache. Other threads wait while one reads.
    fn speak(&self, path: &Path) {
        let mut spoken = lock(&self.spoken);
        if spoken.is_none_or(|since| since.elapsed() >= FRESH) {
            let path = path.to_path_buf();
            // If an OSD's host is dead, the read blocks until other OSDs have reported that. Then the old map is
            // used.
            within(FS_TIMEOUT, move || primary::speak(&path));
            *spoken = Some(Instant::now());
        }
    }
}

impl FileSystem for Ceph {
    fn fill(&self, LocateRequest { path, meta, layout }: &mut LocateRequest) {
        if layout.size == 0 {
            return;
        }
        let told = Striping::of(path).and_then(|striping| {
            let by_map = |layout: &mut FileLayout| self.by_map(&striping, meta.ino(), layout);
            match (self.kernel, self.client.read_from) {
                (true, ReadFrom::Primary) => self.by_kernel(path, &striping, layout),
                // The kernel reports no other copies. Without the map only the primary is known, which is one of the
                // copies.
                (true, _) => by_map(layout).or_else(|_| self.by_kernel(path, &striping, layout)),
                (false, _) => by_map(layout),
            }
        });
        if let Err(why) = told {
            layout.reason = Some(why);
        }
    }
}
