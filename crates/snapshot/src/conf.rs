//! dirvish's configuration files and summaries: `key: value`, lists of indented lines, `SET` and `UNSET`.

use std::collections::BTreeMap;

/// What such a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    values: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
}

impl Conf {
    /// Reads a text; `summary`: an image's own, in which `#` is part of a name.
    pub fn parse(text: &str, summary: bool) -> Conf {
        let mut conf = Conf::default();
        let mut list: Option<String> = None;
        for line in text.lines() {
            let line = if summary { line } else { line.split('#').next().unwrap_or("") }.trim_end();
            if line.is_empty() {
                continue;
            }
            if line.starts_with(char::is_whitespace) {
                if let Some(key) = &list {
                    conf.lists.entry(key.clone()).or_default().push(line.trim_start().into());
                }
                continue;
            }
            list = conf.line(line);
        }
        conf
    }

    /// Takes a line that is not indented; returns the key of the list that it begins.
    fn line(&mut self, line: &str) -> Option<String> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match first {
            "SET" | "UNSET" => {
                let value = if first == "SET" { "1" } else { "" };
                self.values.extend(rest.split_whitespace().map(|key| (key.into(), value.into())));
                None
            }
            "RESET" => {
                self.lists.remove(rest.trim());
                Some(rest.trim().into())
            }
            _ => {
                let (key, value) = line.split_once(':')?;
                if value.trim().is_empty() {
                    return Some(key.into());
                }
                self.values.insert(key.into(), value.trim_start().into());
                None
            }
        }
    }

    /// A value that is there and not empty.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A list; a single value is a list of one.
    pub fn list(&self, key: &str) -> Vec<String> {
        let one = self.value(key).map(String::from);
        one.into_iter().chain(self.lists.get(key).into_iter().flatten().cloned()).collect()
    }

    /// Whether something is switched on; `None`: nothing is said of it.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.values.get(key).map(|value| !["", "0"].contains(&value.as_str()))
    }
}
