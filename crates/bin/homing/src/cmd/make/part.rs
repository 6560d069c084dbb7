//! What make tells a stand-in of its recipe's place in the build, and what that hands on to the makes that it starts.

use homing_launch::wire::stub::Part;
use homing_model::RawText;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Environment variable with the place of the recipe whose make this is, as JSON.
pub const OUTER: &str = "HOMING_MAKE_OUTER";
/// In the place of names that are too many.
const MANY: &[u8] = b"*";

/// In make's words what [`Part::told`] reads: the target, and what it needs. Names with a quote lose it, since make takes
/// the words apart. The kernel takes no word of 128 KiB, and names are seldom longer than 400 bytes.
pub const WORDS: &str = "':$(subst ',,$@)' ':$(if $(word 300,$^ $|),*,$(subst ',,$^ $|))'";

/// The place of a recipe with these words of make's, in this folder; within the recipe of another make, if any.
pub fn told(target: &OsStr, needs: &OsStr, folder: &Path, outer: Option<&OsStr>) -> Part {
    let outer: Part = outer.and_then(|json| serde_json::from_slice(json.as_bytes()).ok()).unwrap_or_default();
    let absolute = |name: &[u8]| RawText::from(folder.join(OsStr::from_bytes(name)).as_path());
    let named = |word: &'_ OsStr| word.as_bytes().strip_prefix(b":").unwrap_or_default().to_vec();
    let (target, needs) = (named(target), named(needs));
    let more = needs == MANY;
    let own = needs.split(|b| *b == b' ').filter(|name| !name.is_empty() && !more).map(absolute);
    let needs = own.chain(outer.needs).collect();
    let within = outer.within.into_iter().chain(outer.target).collect();
    let target = (!target.is_empty()).then(|| absolute(&target));
    Part { target, within, needs, more: more || outer.more }
}

/// For the makes that the recipe starts. Of what is more than the kernel takes in one variable (128 KiB), that it is more.
pub fn outer(part: &Part) -> OsString {
    let json = serde_json::to_string(part).unwrap_or_default();
    if json.len() < 100 << 10 {
        return json.into();
    }
    let short = Part { target: part.target.clone(), more: true, ..Part::default() };
    serde_json::to_string(&short).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str, needs: &str, outer: Option<&OsStr>) -> Part {
        told(OsStr::new(target), OsStr::new(needs), Path::new("/p"), outer)
    }

    #[test]
    fn a_recipe_of_an_inner_make_is_within_the_outer_target_and_needs_what_that_needs() {
        let lib = of(":lib", ":conf ", None);
        let (target, needs) = (Some("/p/lib".into()), vec!["/p/conf".into()]);
        assert_eq!(lib, Part { target, needs, ..Part::default() });
        let inner = of(":lib/a.o", ":lib/a.c /usr/include/x.h", Some(&outer(&lib)));
        let needs: Vec<RawText> = ["/p/lib/a.c", "/usr/include/x.h", "/p/conf"].map(Into::into).into();
        assert_eq!((inner.target, inner.within), (Some("/p/lib/a.o".into()), vec!["/p/lib".into()]));
        assert_eq!((inner.needs, inner.more), (needs, false));
    }

    #[test]
    fn what_is_too_much_or_not_told_is_unknown() {
        let many = of(":prog", ":*", None);
        assert!(many.more && many.needs.is_empty());
        assert!(of(":a.o", ":", Some(&outer(&many))).more);
        assert_eq!(of("", "", Some(OsStr::new("no JSON"))), Part::default());
    }
}
