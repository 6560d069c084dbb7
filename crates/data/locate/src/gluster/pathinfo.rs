//! Reads a `glusterfs.pathinfo` value with the help of the volume's definition.
//!
//! The value contains the file's real path unescaped, so it cannot be parsed from left to right. Two things are
//! certain. Its head, before any path, names the subvolume. Every entry is `<POSIX(DIR):HOST:DIR` + the path below +
//! `>`. DIR is a brick of the definition, and the path below is the same in each entry. A name may imitate entries,
//! so all ways to cut the value are tried, and the requested path of the file decides between them.

use crate::volfile::{Brick, BrickSet, Definition, Sharing};

const MARK: &[u8] = b"<POSIX(";

/// A brick that answered, as the value names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathinfoBrick<'d> {
    dir: &'d str,
    /// `gethostname()` of the brick's server.
    host: String,
}

/// The bricks of the definition that hold the file, including arbiters.
pub(super) struct Holders<'d> {
    /// `None` if the volume only distributes.
    pub group: Option<&'d BrickSet>,
    pub bricks: Vec<&'d Brick>,
    /// False if only the first brick is certain, as for a file with several names.
    pub all: bool,
}

/// Finds the bricks that a value names. `below` returns the file's path from the volume's root, with a leading slash.
/// It is called only if the value can be cut in several ways. `pick` chooses one of several defined hosts for a name
/// in the value.
pub(super) fn holders<'d>(
    definition: &'d Definition,
    value: &[u8],
    below: &dyn Fn() -> Option<Vec<u8>>,
    pick: &dyn Fn(&str, &[&str]) -> Option<usize>,
) -> Result<Holders<'d>, String> {
    let group = group_of(definition, value);
    let pool: Vec<&Brick> = match group {
        Some(group) => group.bricks.iter().collect(),
        None => definition.groups.iter().filter(|g| g.sharing == Sharing::Alone).flat_map(|g| &g.bricks).collect(),
    };
    if pool.is_empty() {
        return Err("its subvolume is not in the volume's definition".into());
    }
    let most = if group.is_some() { pool.len() } else { 1 };
    let (named, all) = entries(value, &pool, most, below)?;
    let bricks = join(&named, &pool, pick);
    if bricks.is_empty() {
        let hosts: Vec<String> = named.iter().map(|t| t.host.escape_debug().to_string()).collect();
        return Err(format!(
            "the server of its brick calls itself {}, which the volume's definition does not have as a name or an address",
            hosts.join(", ")
        ));
    }
    Ok(Holders { group, bricks, all })
}

fn join<'d>(
    named: &[PathinfoBrick],
    pool: &[&'d Brick],
    pick: &dyn Fn(&str, &[&str]) -> Option<usize>,
) -> Vec<&'d Brick> {
    // All bricks answered, so it does not matter which entry belongs to which brick.
    if named.len() == pool.len() {
        return pool.to_vec();
    }
    let mut found: Vec<&Brick> = Vec::new();
    for entry in named {
        let fits: Vec<&Brick> = pool.iter().copied().filter(|b| b.dir == entry.dir).collect();
        let hosts: Vec<&str> = fits.iter().map(|b| b.host.as_str()).collect();
        let at = if fits.len() == 1 { Some(0) } else { pick(&entry.host, &hosts) };
        let Some(brick) = at.and_then(|at| fits.get(at)) else { continue };
        if !found.contains(brick) {
            found.push(brick);
        }
    }
    found
}

/// Returns the part of the value before the first entry: it cannot contain a file name.
fn head(value: &[u8]) -> &[u8] {
    let at = value.windows(MARK.len()).position(|w| w == MARK).unwrap_or(value.len());
    &value[..at]
}

fn group_of<'d>(definition: &'d Definition, value: &[u8]) -> Option<&'d BrickSet> {
    let head = String::from_utf8_lossy(head(value)).into_owned();
    definition.groups.iter().find(|g| head.contains(&format!(":{}>", g.name)))
}

fn entries<'d>(
    value: &[u8],
    pool: &[&'d Brick],
    most: usize,
    below: &dyn Fn() -> Option<Vec<u8>>,
) -> Result<(Vec<PathinfoBrick<'d>>, bool), String> {
    let rest = &value[head(value).len()..];
    let (first, path) = first(rest, pool).ok_or("GlusterFS names a brick that is not in the volume's definition")?;
    let ways: Vec<(&[u8], Vec<PathinfoBrick>)> = (0..path.len())
        .filter(|at| path[*at] == b'>')
        .filter_map(|at| cut(rest, pool, &path[..at]).map(|named| (&path[..at], named)))
        .filter(|(_, named)| named.len() <= most)
        .collect();
    if let [(_, named), more @ ..] = &ways[..]
        && more.iter().all(|(_, other)| other == named)
    {
        return Ok((named.clone(), true));
    }
    // The value may contain another name of a hard link. The first entry is before any name, so it is certain.
    let real = below();
    let way = ways.into_iter().find(|(path, _)| real.as_deref() == Some(*path));
    Ok(way.map_or_else(|| (vec![first], false), |(_, named)| (named, true)))
}

/// Returns the first entry, and the text after its brick directory.
fn first<'v, 'd>(rest: &'v [u8], pool: &[&'d Brick]) -> Option<(PathinfoBrick<'d>, &'v [u8])> {
    pool.iter().find_map(|brick| {
        let at = rest.strip_prefix(MARK)?.strip_prefix(brick.dir.as_bytes())?.strip_prefix(b"):")?;
        let end = at.iter().position(|b| *b == b':')?;
        let host = std::str::from_utf8(&at[..end]).ok().filter(|h| !h.is_empty())?;
        let path = at[end + 1..].strip_prefix(brick.dir.as_bytes())?;
        Some((PathinfoBrick { dir: &brick.dir, host: host.to_string() }, path))
    })
}

/// Returns the entries if each one's path below its brick is `below`, to the very end.
fn cut<'d>(mut rest: &[u8], pool: &[&'d Brick], below: &[u8]) -> Option<Vec<PathinfoBrick<'d>>> {
    let mut named = Vec::new();
    loop {
        let (entry, path) = first(rest, pool)?;
        named.push(entry);
        let after = path.strip_prefix(below)?.strip_prefix(b">")?;
        if after.iter().all(|b| matches!(b, b')' | b' ' | 0)) {
            return Some(named);
        }
        rest = after.strip_prefix(b" ")?;
    }
}

#[cfg(test)]
mod tests;
