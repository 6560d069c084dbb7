//! `bsub -env`: the variables of the submitter that a job gets.

use homing_model::RawText;

/// A parsed `-env`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvRule {
    all: bool,
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    Keep(String),
    Drop(String),
    Set(String, String),
}

impl Default for EnvRule {
    fn default() -> Self {
        EnvRule { all: true, items: Vec::new() }
    }
}

impl EnvRule {
    /// Parses `all`, `none`, `all, ~A, B=1` or `A, B`.
    pub fn parse(text: &str) -> Result<EnvRule, String> {
        let mut rule = EnvRule { all: false, items: Vec::new() };
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "all" => rule.all = true,
                "none" => {}
                _ => rule.items.push(match (word.strip_prefix('~'), word.split_once('=')) {
                    (Some(name), _) => Item::Drop(name.into()),
                    (None, Some((name, value))) => Item::Set(name.into(), value.trim_matches(['\'', '"']).into()),
                    (None, None) => Item::Keep(word.into()),
                }),
            }
        }
        match rule.all || !rule.items.is_empty() || text.trim() == "none" {
            true => Ok(rule),
            false => Err(format!("{text}: Bad argument for option -env")),
        }
    }

    /// Returns the environment of the job.
    pub fn apply(&self, env: Vec<(RawText, RawText)>) -> Vec<(RawText, RawText)> {
        let named = |name: &RawText, want: &str| name.0 == want.as_bytes();
        let keep = |name: &RawText| {
            let base = ["PATH", "HOME", "USER", "LOGNAME", "SHELL"].iter().any(|n| named(name, n));
            self.items.iter().fold(self.all || base, |keep, item| match item {
                Item::Keep(n) if named(name, n) => true,
                Item::Drop(n) | Item::Set(n, _) if named(name, n) => false,
                _ => keep,
            })
        };
        let set = self.items.iter().filter_map(|item| match item {
            Item::Set(name, value) => Some((RawText::from(name.clone()), RawText::from(value.clone()))),
            _ => None,
        });
        env.into_iter().filter(|(name, _)| keep(name)).chain(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_kept_dropped_and_set() {
        let env =
            || [("PATH", "/bin"), ("A", "1"), ("B", "2")].map(|(n, v)| (RawText::from(n), RawText::from(v))).to_vec();
        let of = |text: &str| {
            let kept = EnvRule::parse(text).unwrap().apply(env());
            kept.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("all"), "PATH=/bin A=1 B=2");
        assert_eq!(of("none"), "PATH=/bin");
        assert_eq!(of("all, ~A, C='3'"), "PATH=/bin B=2 C=3");
        assert_eq!(of("B, A=9"), "PATH=/bin B=2 A=9");
        assert!(EnvRule::parse(" ").is_err());
    }
}
