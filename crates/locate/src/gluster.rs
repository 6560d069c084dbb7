//! GlusterFS: the `glusterfs.pathinfo` attribute, joined with the volume's
//! own definition.
//!
//! The attribute holds the file's real path unescaped, and the host name is
//! what the brick server calls itself. So it is never parsed as a grammar:
//! its head, before any path, names the subvolume; then only bricks that the
//! definition lists for that subvolume are looked for.

use crate::FileSystem;
use crate::volfile::{self, Brick, Definition, Group, Sharing};
use homing_model::{Extent, FileLayout, Mount, Replica};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// `glusterfs.pathinfo` of a file in a wide volume; one call instead of a second round trip.
const PATHINFO_MOST: usize = 64 << 10;

pub(crate) struct Gluster {
    definition: Result<Definition, String>,
    same: Mutex<HashMap<(String, String), bool>>,
}

impl Gluster {
    pub fn read(mount: &Mount) -> Gluster {
        let file = mount.point.as_path().join(".meta/graphs/active/volfile");
        let definition = match std::fs::read_to_string(&file) {
            Err(e) => Err(format!("cannot read the volume's definition {}: {e}", file.display())),
            Ok(text) => volfile::parse(&text).ok_or_else(|| format!("{} names no bricks", file.display())),
        };
        Gluster { definition, same: Mutex::default() }
    }

    /// Do two names mean one host? Asked once a pair; `getent` follows the
    /// host's own rules (files, DNS, LDAP).
    fn same_host(&self, told: &str, defined: &str) -> bool {
        if told.eq_ignore_ascii_case(defined) {
            return true;
        }
        let key = (told.to_string(), defined.to_string());
        let mut same = self.same.lock().unwrap_or_else(PoisonError::into_inner);
        *same.entry(key).or_insert_with(|| {
            let (a, b) = (addresses(told), addresses(defined));
            a.iter().any(|x| b.contains(x)) || (b.is_empty() && short(told) == short(defined))
        })
    }

    /// The bricks of `group` that answered.
    fn holders<'g>(&self, value: &[u8], group: &'g Group) -> Vec<&'g Brick> {
        let told = |brick: &Brick| hosts_at(value, &brick.dir);
        let alone = |brick: &Brick| group.bricks.iter().filter(|b| b.dir == brick.dir).count() == 1;
        let answered = |brick: &&Brick| {
            let hosts = told(brick);
            (alone(brick) && !hosts.is_empty()) || hosts.iter().any(|h| self.same_host(h, &brick.host))
        };
        group.bricks.iter().filter(answered).collect()
    }

    fn place(&self, definition: &Definition, value: &[u8], length: u64) -> Result<Extent, String> {
        let group = group_of(definition, value)
            .or_else(|| self.lone_brick(definition, value))
            .ok_or("its subvolume is not in the volume's definition")?;
        let holders = self.holders(value, group);
        let replicas: Vec<Replica> =
            holders.iter().filter(|b| !b.arbiter).map(|b| Replica { host: b.host.clone(), share: 1.0 }).collect();
        if replicas.is_empty() {
            return Err(match holders.len() {
                0 => format!("the bricks of {} that answered cannot be matched with its definition", group.name),
                _ => format!("only an arbiter of {} answered", group.name),
            });
        }
        Ok(Extent { offset: 0, length, replicas })
    }

    /// Distribute without replicas: exactly one brick is named, and it comes
    /// first, before any byte of the file's name.
    fn lone_brick<'d>(&self, definition: &'d Definition, value: &[u8]) -> Option<&'d Group> {
        let fits = |group: &&Group| {
            let brick = &group.bricks[0];
            let told = first_host(value, &brick.dir);
            group.sharing == Sharing::Alone && told.is_some_and(|h| self.same_host(&h, &brick.host))
        };
        let mut by_dir = definition.groups.iter().filter(|g| first_host(value, &g.bricks[0].dir).is_some());
        match (by_dir.next(), by_dir.next()) {
            (Some(only), None) if only.sharing == Sharing::Alone => Some(only),
            _ => definition.groups.iter().find(fits),
        }
    }
}

/// The part of the value before the first brick: no file name can be in it.
fn head(value: &[u8]) -> &[u8] {
    let at = value.windows(7).position(|w| w == b"<POSIX(").unwrap_or(value.len());
    &value[..at]
}

fn group_of<'d>(definition: &'d Definition, value: &[u8]) -> Option<&'d Group> {
    let head = String::from_utf8_lossy(head(value)).into_owned();
    definition.groups.iter().find(|g| head.contains(&format!(":{}>", g.name)))
}

/// What follows `<POSIX(DIR):` up to the next colon, at every place where that stands.
fn hosts_at(value: &[u8], dir: &str) -> Vec<String> {
    let mark = format!("<POSIX({dir}):").into_bytes();
    let starts = (0..value.len()).filter(|at| value[*at..].starts_with(&mark)).map(|at| at + mark.len());
    starts.filter_map(|at| until_colon(&value[at..])).collect()
}

fn first_host(value: &[u8], dir: &str) -> Option<String> {
    let mark = format!("<POSIX({dir}):").into_bytes();
    let rest = &value[head(value).len()..];
    rest.starts_with(&mark).then(|| until_colon(&rest[mark.len()..])).flatten()
}

fn until_colon(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|b| *b == b':')?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn addresses(name: &str) -> Vec<String> {
    // A host name from the network never becomes an option.
    if name.starts_with('-') {
        return Vec::new();
    }
    let asked = Command::new("getent").args(["ahosts", name]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = asked.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let mut found: Vec<String> =
        text.lines().filter_map(|l| l.split_ascii_whitespace().next()).map(String::from).collect();
    found.retain(|a| !a.starts_with("127.") && a != "::1");
    found.dedup();
    found
}

/// Every brick of a dispersed subvolume holds 1/(bricks - redundancy) of a file.
fn dispersed(definition: &Definition, length: u64) -> Result<Extent, String> {
    let [Group { sharing: Sharing::Disperse { redundancy }, bricks, .. }] = &definition.groups[..] else {
        return Err("GlusterFS does not tell which dispersed subvolume holds a file".into());
    };
    let share = 1.0 / (bricks.len().saturating_sub(*redundancy).max(1)) as f64;
    let replicas = bricks.iter().map(|b| Replica { host: b.host.clone(), share }).collect();
    Ok(Extent { offset: 0, length, replicas })
}

fn explain(error: rustix::io::Errno) -> String {
    match error {
        rustix::io::Errno::ACCESS => "no permission to read it, which GlusterFS wants for telling its place".into(),
        rustix::io::Errno::NOTCONN => "the bricks that hold it are down".into(),
        other => format!("GlusterFS did not tell its place: {}", std::io::Error::from(other)),
    }
}

impl FileSystem for Gluster {
    fn fill(&self, path: &Path, layout: &mut FileLayout) {
        if layout.size == 0 {
            return;
        }
        let definition = match &self.definition {
            Ok(definition) => definition,
            Err(reason) => return layout.reason = Some(reason.clone()),
        };
        let length = definition.shard.unwrap_or(u64::MAX).min(layout.size);
        let mut value = vec![0; PATHINFO_MOST];
        let asked = rustix::fs::getxattr(path, c"glusterfs.pathinfo", &mut value[..]);
        let placed = match asked {
            Ok(n) => self.place(definition, value[..n].trim_ascii_end(), length),
            // Since GlusterFS 9 dispersed volumes answer so, to everybody.
            Err(rustix::io::Errno::NOMEM) => dispersed(definition, length),
            Err(error) => Err(explain(error)),
        };
        match placed {
            Ok(extent) => layout.extents.push(extent),
            Err(reason) => return layout.reason = Some(reason),
        }
        if length < layout.size {
            layout.reason = Some(format!(
                "it is cut into shards of {length} bytes, and a mount tells the place of the first one only"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
