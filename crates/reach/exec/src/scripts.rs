//! A script for each host, all in one file that contains their common start once.

use crate::command::CommandInput;
use crate::input::InputSpool;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Scripts by host. The bytes travel separately to another host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripts {
    of: BTreeMap<String, Vec<Range<u64>>>,
    #[serde(skip)]
    bytes: Option<Arc<InputSpool>>,
}

impl Scripts {
    /// Makes them from pairs of host and script.
    pub fn of<'s>(scripts: impl Iterator<Item = (&'s str, &'s str)> + Clone) -> io::Result<Scripts> {
        let texts = || scripts.clone().map(|(_, text)| text.as_bytes());
        let first = texts().next().unwrap_or_default();
        let alike = |text: &[u8]| first.iter().zip(text).take_while(|(a, b)| a == b).count();
        let common = texts().map(alike).min().unwrap_or(0);
        let mut bytes = first[..common].to_vec();
        let mut ends: HashMap<&[u8], Range<u64>> = HashMap::new();
        let mut of = BTreeMap::new();
        for (host, text) in scripts {
            let end = &text.as_bytes()[common..];
            let at = ends.entry(end).or_insert_with(|| {
                bytes.extend(end);
                (bytes.len() - end.len()) as u64..bytes.len() as u64
            });
            of.insert(host.to_string(), vec![0..common as u64, at.clone()]);
        }
        Ok(Scripts { of, bytes: Some(InputSpool::of(&bytes)?) })
    }

    /// Returns the scripts of these hosts only, with their bytes. Waits until all of the bytes have come.
    pub fn only(&self, hosts: &[String]) -> io::Result<Scripts> {
        let Some(bytes) = &self.bytes else { return Err(io::Error::other("the scripts did not arrive")) };
        let (spool, mut end) = (InputSpool::empty(&std::env::temp_dir())?, 0);
        let mut kept: HashMap<Range<u64>, Range<u64>> = HashMap::new();
        let mut keep = |part: &Range<u64>| -> io::Result<Range<u64>> {
            if let Some(at) = kept.get(part) {
                return Ok(at.clone());
            }
            let mut piece = Vec::new();
            bytes.copy(part.clone(), &mut piece, &AtomicBool::new(false));
            spool.append(&piece)?;
            let at = end..end + piece.len() as u64;
            end = at.end;
            kept.insert(part.clone(), at.clone());
            Ok(at)
        };
        let own = hosts.iter().filter_map(|host| self.of.get_key_value(host));
        let of = own.map(|(host, parts)| Ok((host.clone(), parts.iter().map(&mut keep).collect::<io::Result<_>>()?)));
        let of = of.collect::<io::Result<_>>()?;
        spool.end();
        Ok(Scripts { of, bytes: Some(spool) })
    }

    /// Returns the bytes of all scripts.
    pub fn spool(&self) -> Option<Arc<InputSpool>> {
        self.bytes.clone()
    }

    /// Returns the same scripts with these bytes.
    pub fn with(&self, bytes: Option<Arc<InputSpool>>) -> Scripts {
        Scripts { of: self.of.clone(), bytes }
    }

    /// Returns the standard input of a host; nothing if it has no script.
    pub fn input(&self, host: &str) -> CommandInput {
        match (self.of.get(host), &self.bytes) {
            (Some(parts), Some(bytes)) => CommandInput::Parts(bytes.clone(), parts.clone()),
            _ => CommandInput::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Options, Remote};

    fn read(scripts: &Scripts, host: &str) -> String {
        let command = Command::argv(["cat"]).input(scripts.input(host));
        let result = Remote::new(Options::default()).run(&["localhost"], &command).next().unwrap();
        String::from_utf8(result.stdout).unwrap()
    }

    #[test]
    fn each_host_reads_its_own_and_what_they_have_in_common_is_kept_once() {
        let all = [("n1", "common\none\n"), ("n2", "common\ntwo\n"), ("n3", "common\none\n"), ("n4", "common\n")];
        let scripts = Scripts::of(all.into_iter()).unwrap();
        assert_eq!(scripts.spool().unwrap().length(), "common\none\ntwo\n".len() as u64);
        let sent: Scripts = serde_json::from_value(serde_json::to_value(&scripts).unwrap()).unwrap();
        assert_eq!(read(&sent, "n1"), "", "its bytes have not come yet");
        let sent = sent.with(scripts.spool());
        all.into_iter().for_each(|(host, text)| assert_eq!(read(&sent, host), text, "{host}"));
        assert_eq!(read(&sent, "n5"), "");
        // A branch is sent only its own scripts.
        let branch = scripts.only(&["n2", "n4", "n9"].map(String::from)).unwrap();
        assert_eq!(branch.spool().unwrap().length(), "common\ntwo\n".len() as u64);
        let told = serde_json::to_string(&branch).unwrap();
        assert!(told.contains("n4") && !told.contains("n1") && !told.contains("n9"), "{told}");
        all[1..].iter().step_by(2).for_each(|(host, text)| assert_eq!(read(&branch, host), *text, "{host}"));
        // Positions from another host are not trusted.
        let odd = r#"{"of":{"n1":[{"start":3,"end":1},{"start":4,"end":99}]}}"#;
        let odd = serde_json::from_str::<Scripts>(odd).unwrap().with(scripts.spool());
        assert_eq!(read(&odd, "n1"), "on\none\ntwo\n");
        assert_eq!(read(&odd.only(&["n1".into()]).unwrap(), "n1"), "on\none\ntwo\n");
        assert_eq!(read(&Scripts::of([].into_iter()).unwrap(), "n1"), "");
    }
}
