//! The library that is loaded into GNU make, so that each recipe goes to homing and no makefile can see it.
//!
//! `hook/` beside `src` is the library: the dynamic linker loads it into make (`LD_PRELOAD`), before the functions by
//! which make starts programs. It is separate code without a standard library; `build.rs` compiles it, and this
//! module contains its bytes. It starts nothing: `homing make` writes the bytes and sets the variables.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The library for this machine; empty if there is none: no Linux, or not 64 bits.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hook.so"));

/// Variable that names the socket of the build's coordinator.
pub const SOCKET: &str = "HOMING_MAKE";
/// Variable that names homing's program.
pub const SELF: &str = "HOMING_SELF";
/// Variable with the path of the library, which also is the first in `LD_PRELOAD`.
pub const HOOK: &str = "HOMING_MAKE_HOOK";
/// Variable with the place of the recipe that starts a make, as JSON.
pub const OUTER: &str = "HOMING_MAKE_OUTER";
/// Variable that names a file which the library creates in a make that it can serve.
pub const PROBE: &str = "HOMING_MAKE_PROBE";
/// The dynamic linker's variable.
pub const PRELOAD: &str = "LD_PRELOAD";
/// Variables that make must not pass on to its programs.
pub const OURS: [&str; 5] = [SOCKET, SELF, HOOK, OUTER, PROBE];

/// Returns `LD_PRELOAD` with the library first, then the entries of `before` without the library of an outer build.
pub fn preload(hook: &OsStr, before: Option<&OsStr>, outer: Option<&OsStr>) -> OsString {
    let others = before.and_then(|before| others(before, outer.unwrap_or_default()));
    let all = [Some(hook.to_os_string()), others].into_iter().flatten();
    all.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Returns `LD_PRELOAD` without this library; `None` if it has no other entries.
pub fn others(preload: &OsStr, hook: &OsStr) -> Option<OsString> {
    let entries = preload.as_bytes().split(|byte| *byte == b':' || *byte == b' ');
    let others: Vec<&[u8]> = entries.filter(|entry| !entry.is_empty() && *entry != hook.as_bytes()).collect();
    (!others.is_empty()).then(|| OsString::from_vec(others.join(&b':')))
}

#[cfg(test)]
#[path = "../hook/text.rs"]
mod text;

#[cfg(test)]
mod tests;
