//! Finds the host of a volume's definition that a brick server's own name means.

use homing_model::hostname::is_called;
use homing_os::names::addresses;
use homing_os::threads::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

type Resolve = fn(&str) -> Vec<String>;

/// Names with their addresses. Each name is looked up once.
pub(super) struct AddressCache {
    resolve: Resolve,
    known: Mutex<HashMap<String, Arc<Vec<String>>>>,
}

impl AddressCache {
    /// Resolves names by the host's own rules.
    pub fn system() -> AddressCache {
        AddressCache::by(addresses)
    }

    pub fn by(resolve: Resolve) -> AddressCache {
        AddressCache { resolve, known: Mutex::default() }
    }

    /// Returns the index in `defined` of the host that a brick server's name means: by name, by address, or by short
    /// name. `None` if no host or several hosts match.
    pub fn pick(&self, told: &str, defined: &[&str]) -> Option<usize> {
        let one = |fits: &dyn Fn(&str) -> bool| {
            let mut all = defined.iter().enumerate().filter(|(_, d)| fits(d)).map(|(i, _)| i);
            all.next().filter(|_| all.next().is_none())
        };
        let by_address = || {
            let mine = self.addresses(told);
            one(&|d| self.addresses(d).iter().any(|a| mine.contains(a)))
        };
        one(&|d| d.eq_ignore_ascii_case(told)).or_else(by_address).or_else(|| one(&|d| is_called([d], told)))
    }

    fn addresses(&self, name: &str) -> Arc<Vec<String>> {
        let mut known = lock(&self.known);
        known.entry(name.to_string()).or_insert_with(|| Arc::new((self.resolve)(name))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Vec<String> {
        let found = match name {
            "gx" | "10.0.0.1" => "10.0.0.1",
            "both" | "a" | "b" => "10.0.0.2",
            _ => return Vec::new(),
        };
        vec![found.into()]
    }

    #[test]
    fn by_name_then_address_then_short_name_and_never_between_two() {
        let names = AddressCache::by(table);
        assert_eq!(names.pick("N2", &["n1", "n2"]), Some(1));
        assert_eq!(names.pick("gx", &["n1", "10.0.0.1"]), Some(1));
        assert_eq!(names.pick("n1", &["n2.lab", "n1.lab"]), Some(1));
        assert_eq!(names.pick("n1.here", &["n1.there"]), None);
        assert_eq!(names.pick("n1", &["n1.here", "n1.there"]), None);
        assert_eq!(names.pick("both", &["a", "b"]), None);
        assert_eq!(names.pick("10", &["10.0.0.9"]), None);
    }
}
