//! Brings indexes of packages to hosts that lack some.

use crate::{Fetch, PackageReport, PackagesByHost, Sent, fetch_once, send};
use homing_setup::cache::PackageFile;
use homing_setup::cache::indexes::{self, Index, NONE, QueryStage};
use homing_steps::{Call, Executor, SshExecutor};
use std::collections::BTreeMap;
use std::path::Path;

/// How often hosts are queried for missing files. First comes the signature, in two forms. Then comes each file, by
/// two addresses and in up to three forms where the signature names it. Else it comes in all six forms that apt 2.6
/// unpacks, and uncompressed. Files that are still missing then stay missing.
const TURNS: usize = 10;

/// Brings indexes to hosts; one of the others fetches them, or else one of these. A host that has received some may
/// have failed too, if its apt reported an error about the rest.
pub fn bring(
    executor: &SshExecutor,
    hosts: &[String],
    others: &[String],
    say: &dyn Fn(&str),
) -> Result<PackageReport, String> {
    let came = PackageReport { packages: vec!["indexes".into()], ..PackageReport::default() };
    let mut all = Bringing { executor, say, left: hosts.to_vec(), came };
    let fetchers = [others, hosts].concat();
    let mut lacks = all.update_indexes(QueryStage::Anew);
    for _ in 0..TURNS {
        if lacks.is_empty() || !all.fetch(&fetchers, &lacks)? {
            break;
        }
        lacks = all.update_indexes(QueryStage::More);
    }
    if !lacks.is_empty() {
        all.update_indexes(QueryStage::Last);
    }
    Ok(all.came)
}

struct Bringing<'a> {
    executor: &'a SshExecutor,
    say: &'a dyn Fn(&str),
    /// Hosts that still lack something.
    left: Vec<String>,
    came: PackageReport,
}

impl Bringing<'_> {
    /// Lets apt take the received files, and returns the files that hosts lack.
    fn update_indexes(&mut self, turn: QueryStage) -> BTreeMap<String, Vec<Index>> {
        let hosts = std::mem::take(&mut self.left);
        let calls: Vec<_> =
            hosts.iter().map(|host| (host.clone(), Call::Script(indexes::update_script(turn)))).collect();
        let mut lacks = BTreeMap::new();
        for (host, said) in hosts.into_iter().zip(self.executor.run(&calls)) {
            match said.and_then(|said| indexes::parse_report(&said)) {
                Err(why) => self.came.failed.push((host, why)),
                Ok(said) if said.lacks.is_empty() => {
                    self.came.failed.extend(said.words.into_iter().map(|words| (host.clone(), words)));
                    if turn != QueryStage::Last {
                        self.came.installed.insert(host);
                    }
                }
                Ok(said) => {
                    self.left.push(host.clone());
                    lacks.insert(host, said.lacks);
                }
            }
        }
        lacks
    }

    /// Fetches missing files and sends them to their hosts. Returns whether any could be fetched.
    fn fetch(&mut self, fetchers: &[String], lacks: &BTreeMap<String, Vec<Index>>) -> Result<bool, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("making a temporary folder for package indexes: {e}"))?;
        let all = indexes::union(lacks.values().flatten());
        let fetch = Fetch {
            script: indexes::fetch(&all),
            what: format!("indexes ({} files)", all.len()),
            names: Vec::new(),
            size: None,
        };
        // The host that could fetch before comes first.
        let by = self.came.fetched.by.clone();
        let order = by.iter().chain(fetchers.iter().filter(|host| Some(*host) != by.as_ref()));
        match fetch_once(self.executor, order, &fetch, folder.path(), self.say) {
            Ok(host) => self.came.fetched.by = Some(host),
            Err(whys) => {
                self.came.failed.extend(whys);
                return Ok(false);
            }
        }
        let came = |index: &Index| [false, true].into_iter().find_map(|none| arrived(folder.path(), index, none));
        let wanted: PackagesByHost =
            lacks.iter().map(|(host, lacks)| (host.clone(), lacks.iter().filter_map(came).collect())).collect();
        let files: Vec<PackageFile> = all.iter().filter_map(came).filter(|file| file.size > 0).collect();
        self.came.fetched.add(&files, &wanted);
        let sent = Sent { folder: folder.path(), beside: None, script: &indexes::came() };
        let gone = send(self.executor, &wanted, &sent)?;
        self.came.fetched.sent += gone.bytes;
        for (host, said) in gone.came {
            if let Err(why) = said {
                self.left.retain(|left| *left != host);
                self.came.failed.push((host, why));
            }
        }
        Ok(true)
    }
}

/// Returns a file that has arrived, or the mark that it cannot be fetched.
fn arrived(folder: &Path, index: &Index, none: bool) -> Option<PackageFile> {
    let name = format!("{}{}", index.name, if none { NONE } else { "" });
    let meta = folder.join(&name).symlink_metadata().ok().filter(|meta| meta.is_file())?;
    Some(PackageFile { name, size: meta.len(), sha256: String::new(), uri: index.uri.clone() })
}
