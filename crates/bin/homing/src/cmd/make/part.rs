//! The place of a recipe in the build: its target and prerequisites, and the part of them that inner makes receive.

use homing_launch::wire::stub::RecipePosition;
use homing_model::RawText;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most bytes of prerequisite names that are kept. A message to the coordinator has room for 16 MiB.
const MANY: usize = 1 << 20;

/// Reads the data that the library in make wrote: the place of that make, the target and the prerequisites, separated
/// by null bytes. Data that cannot be read count as unknown.
pub fn read(mut known: impl Read + Seek, folder: &Path) -> RecipePosition {
    let mut bytes = Vec::new();
    if known.rewind().and_then(|()| known.read_to_end(&mut bytes)).is_err() {
        return RecipePosition::default();
    }
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (outer, target, needs) = (next(), next(), next());
    within(target, needs, folder, serde_json::from_slice(outer).unwrap_or_default())
}

/// Returns the place of a recipe with this target in this folder. `outer` is the place of the recipe that started
/// this make, if any.
fn within(target: &[u8], needs: &[u8], folder: &Path, outer: RecipePosition) -> RecipePosition {
    let absolute = |name: &[u8]| RawText::from(folder.join(OsStr::from_bytes(name)).as_path());
    let more = needs.len() > MANY;
    let own = needs.split(|byte| *byte == b' ').filter(|name| !name.is_empty() && !more).map(absolute);
    let needs = own.chain(outer.needs).collect();
    let within = outer.within.into_iter().chain(outer.target).collect();
    let target = (!target.is_empty()).then(|| absolute(target));
    RecipePosition { target, within, needs, more: more || outer.more }
}

/// Returns the place for the makes that the recipe starts. If it exceeds the kernel's limit for one variable (128
/// KiB), the result only states that there is more.
pub fn outer(part: &RecipePosition) -> OsString {
    let json = serde_json::to_string(part).unwrap_or_default();
    if json.len() < 100 << 10 {
        return json.into();
    }
    let short = RecipePosition { target: part.target.clone(), more: true, ..RecipePosition::default() };
    serde_json::to_string(&short).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn of(target: &str, needs: &str, outer: Option<&OsStr>) -> RecipePosition {
        let outer = outer.map(OsStr::as_bytes).unwrap_or_default();
        read(Cursor::new([outer, target.as_bytes(), needs.as_bytes()].join(&0)), Path::new("/p"))
    }

    #[test]
    fn a_recipe_of_an_inner_make_is_within_the_outer_target_and_needs_what_that_needs() {
        let lib = of("lib", "conf ", None);
        let (target, needs) = (Some("/p/lib".into()), vec!["/p/conf".into()]);
        assert_eq!(lib, RecipePosition { target, needs, ..RecipePosition::default() });
        let inner = of("lib/a.o", "lib/a.c /usr/include/x.h", Some(&outer(&lib)));
        let needs: Vec<RawText> = ["/p/lib/a.c", "/usr/include/x.h", "/p/conf"].map(Into::into).into();
        assert_eq!((inner.target, inner.within), (Some("/p/lib/a.o".into()), vec!["/p/lib".into()]));
        assert_eq!((inner.needs, inner.more), (needs, false));
    }

    #[test]
    fn what_is_too_much_or_not_known_is_unknown() {
        let many = of("prog", &"a.o ".repeat(MANY / 4 + 1), None);
        assert!(many.more && many.needs.is_empty());
        assert!(of("a.o", "", Some(&outer(&many))).more);
        assert_eq!(of("", "", Some(OsStr::new("no JSON"))), RecipePosition::default());
        assert_eq!(read(Cursor::new(""), Path::new("/p")), RecipePosition::default());
    }
}
