//! dirvish's configuration files and summaries: `key: value`, lists of indented lines, `SET` and `UNSET`.

use std::collections::BTreeMap;

/// The content of such files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    values: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    /// The file that set a key last.
    origins: BTreeMap<String, String>,
    /// Lines that are neither a key nor a part of a list, with their file.
    odd: Vec<(String, String)>,
}

impl Conf {
    /// Reads an image's summary, in which `#` is part of a name.
    pub fn of_summary(text: &str) -> Conf {
        let mut conf = Conf::default();
        conf.add(text.lines().map(str::trim_end), "", &mut |_| Ok(None)).unwrap_or_default();
        conf
    }

    /// Adds a configuration file. `client`: the file of a client, which is read when it is first named.
    ///
    /// # Errors
    /// That of `client`.
    pub fn add_file(&mut self, text: &str, origin: &str, client: ClientFile) -> Result<(), String> {
        self.add(text.lines().map(|line| line.split('#').next().unwrap_or("").trim_end()), origin, client)
    }

    fn add<'l>(
        &mut self,
        lines: impl Iterator<Item = &'l str>,
        origin: &str,
        client: ClientFile,
    ) -> Result<(), String> {
        let mut list: Option<String> = None;
        for line in lines.filter(|line| !line.is_empty()) {
            if line.starts_with(char::is_whitespace) {
                match &list {
                    Some(key) => self.lists.entry(key.clone()).or_default().push(line.trim_start().into()),
                    None => self.odd.push((line.trim_start().into(), origin.into())),
                }
                continue;
            }
            let is_client = line.starts_with("client:") && !self.values.contains_key("client");
            list = self.line(line, origin);
            let name = self.value("client").filter(|_| is_client).map(String::from);
            if let Some((text, origin)) = name.map_or(Ok(None), |name| client(&name))? {
                self.add_file(&text, &origin, &mut |_| Ok(None))?;
            }
        }
        Ok(())
    }

    /// Takes a line that is not indented; returns the key of the list that it begins.
    fn line(&mut self, line: &str, origin: &str) -> Option<String> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match first {
            "SET" | "UNSET" => {
                let value = if first == "SET" { "1" } else { "" };
                for key in rest.split_whitespace() {
                    self.set(key, value, origin);
                }
                None
            }
            "RESET" => {
                self.lists.remove(rest.trim());
                Some(rest.trim().into())
            }
            _ => {
                let Some((key, value)) = line.split_once(':').filter(|(key, _)| !key.contains(char::is_whitespace))
                else {
                    self.odd.push((line.into(), origin.into()));
                    return None;
                };
                if value.trim().is_empty() {
                    self.origins.insert(key.into(), origin.into());
                    return Some(key.into());
                }
                self.set(key, value.trim_start(), origin);
                None
            }
        }
    }

    fn set(&mut self, key: &str, value: &str, origin: &str) {
        self.values.insert(key.into(), value.into());
        self.origins.insert(key.into(), origin.into());
    }

    /// Returns a value that is set and not empty.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a list; a single value is a list of one.
    pub fn list(&self, key: &str) -> Vec<String> {
        let one = self.value(key).map(String::from);
        one.into_iter().chain(self.lists.get(key).into_iter().flatten().cloned()).collect()
    }

    /// Returns whether a key is switched on; `None`: it is not set.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.values.get(key).map(|value| !["", "0"].contains(&value.as_str()))
    }

    /// Returns all keys that have a value or a list, with the file that set each last.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let has = |key: &str| self.values.contains_key(key) || self.lists.contains_key(key);
        self.origins.iter().map(|(key, origin)| (key.as_str(), origin.as_str())).filter(move |(key, _)| has(key))
    }

    /// Returns the lines that are neither a key nor a part of a list, with their file.
    pub fn odd(&self) -> &[(String, String)] {
        &self.odd
    }
}

/// Reads the file of a client: its text and its name.
pub type ClientFile<'a> = &'a mut dyn FnMut(&str) -> Result<Option<(String, String)>, String>;
