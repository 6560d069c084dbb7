//! A file's layout: the object of each of its bytes. Pure, except for one attribute.

use homing_model::{Extent, FileLayout, Replica};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The most pieces of a file that are listed one by one, 16 GiB of whole objects of the usual size. In larger files,
/// neighbours are merged, and each host has its share.
const PIECES: u64 = 4096;

/// How a file is cut into objects, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Striping {
    pub unit: u64,
    pub count: u64,
    pub object_size: u64,
    /// The pool's name, or its number if the client does not know the name.
    pub pool: String,
    pub namespace: Option<String>,
}

impl Striping {
    /// Reads the attribute, which clients show to each user who may read the file.
    pub fn of(path: &Path) -> Result<Striping, String> {
        // Names of pools and namespaces are short words.
        let mut value = [0; 1024];
        let length = rustix::fs::getxattr(path, c"ceph.file.layout", &mut value[..]).map_err(|e| {
            format!("cannot read its layout, the attribute ceph.file.layout: {}", std::io::Error::from(e))
        })?;
        let text = String::from_utf8_lossy(&value[..length]).into_owned();
        Striping::parse(text.trim_end_matches('\0'))
            .ok_or_else(|| format!("its layout has an unknown form: {}", text.escape_debug()))
    }

    /// Parses `stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data[ pool_namespace=a]`.
    fn parse(text: &str) -> Option<Striping> {
        let (sizes, pool) = text.split_once(" pool=")?;
        let (pool, namespace) =
            pool.split_once(" pool_namespace=").map_or((pool, None), |(p, n)| (p, Some(n.to_string())));
        let value = |name: &str| sizes.split(' ').find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
        let (unit, count, object_size) = (value("stripe_unit=")?, value("stripe_count=")?, value("object_size=")?);
        let fits = unit > 0 && count > 0 && object_size >= unit && object_size % unit == 0;
        fits.then_some(Striping { unit, count, object_size, pool: pool.into(), namespace })
    }

    /// Returns the length of a run of bytes in one object.
    fn step(&self) -> u64 {
        if self.count == 1 { self.object_size } else { self.unit }
    }

    /// Returns the number of the object that has the byte at `offset`.
    fn number(&self, offset: u64) -> u64 {
        let block = offset / self.unit;
        let (stripe, position) = (block / self.count, block % self.count);
        stripe / (self.object_size / self.unit) * self.count + position
    }
}

/// Returns the hosts of an object, by its number and by an offset in the file that lies in it.
pub(super) type OfObject<'a> = dyn FnMut(u64, u64) -> Result<Vec<Replica>, String> + 'a;

/// Fills in extents and reason.
pub(super) fn place(striping: &Striping, layout: &mut FileLayout, of_object: &mut OfObject) {
    let (size, step) = (layout.size, striping.step());
    let together = step.saturating_mul(size.div_ceil(step).div_ceil(PIECES));
    // Each stripe meets the same objects of a set again.
    let mut known: HashMap<u64, Vec<Replica>> = HashMap::new();
    let (mut lost, mut at) = (0, 0);
    while at < size {
        let end = size.min(at.saturating_add(together));
        let mut sum = BTreeMap::new();
        let mut piece = at;
        while piece < end {
            let number = striping.number(piece);
            if !known.contains_key(&number) {
                if known.len() as u64 > striping.count.max(PIECES) {
                    known.clear();
                }
                match of_object(number, piece) {
                    Ok(replicas) => drop(known.insert(number, replicas)),
                    Err(why) => return refuse(layout, why),
                }
            }
            let next = end.min(piece.saturating_add(step));
            let replicas = &known[&number];
            lost += if replicas.is_empty() { next - piece } else { 0 };
            for replica in replicas {
                *sum.entry(replica.host.clone()).or_insert(0.0) += (next - piece) as f64 * replica.share;
            }
            piece = next;
        }
        if !sum.is_empty() {
            let share = |bytes: f64| (bytes / (end - at) as f64).min(1.0);
            let replicas = sum.into_iter().map(|(host, bytes)| Replica { host, share: share(bytes) }).collect();
            layout.push(Extent { offset: at, length: end - at, replicas });
        }
        at = end;
    }
    if lost > 0 {
        layout.reason =
            Some(format!("no OSD that is up has {lost} bytes of it; ceph health detail shows which are down"));
    }
}

fn refuse(layout: &mut FileLayout, why: String) {
    layout.extents.clear();
    layout.reason = Some(why);
}

#[cfg(test)]
mod tests;
