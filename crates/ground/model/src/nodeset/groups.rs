//! The sources of the names behind `@` and `*`.

/// A source of groups. Errors are one line for the user.
pub trait NodeGroups {
    /// Returns the node set text of a group; `None` if there is none of that name.
    fn group(&self, source: Option<&str>, name: &str) -> Result<Option<String>, String>;

    /// Returns the node set text of all nodes; `None` if the source does not know them.
    fn all(&self, source: Option<&str>) -> Result<Option<String>, String>;

    /// Returns the names of all groups.
    fn list(&self, source: Option<&str>) -> Result<Vec<String>, String>;
}

/// No groups at all.
pub struct NoGroups;

impl NodeGroups for NoGroups {
    fn group(&self, _: Option<&str>, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn all(&self, _: Option<&str>) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn list(&self, _: Option<&str>) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

/// Whether a mask matches a name: `?` is one character, `*` any number of them.
pub(super) fn matches(mask: &str, name: &str) -> bool {
    let (mask, name): (Vec<char>, Vec<char>) = (mask.chars().collect(), name.chars().collect());
    let (mut m, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match mask.get(m) {
            Some('*') => {
                star = Some((m, n));
                m += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                m += 1;
                n += 1;
            }
            _ => {
                // The last star takes one more.
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                m = at + 1;
                n = taken + 1;
            }
        }
    }
    mask[m..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn masks() {
        for (mask, name, fits) in [
            ("n*", "n12", true),
            ("n?", "n12", false),
            ("n?2", "n12", true),
            ("*-ib", "n1-ib", true),
            ("*a*b", "xaabxb", true),
            ("*a*b", "xaabx", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(mask, name), fits, "{mask} {name}");
        }
    }
}
