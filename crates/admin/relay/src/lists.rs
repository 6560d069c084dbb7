//! Files that a file of the user's names with their hashes: wheels and crates.

use crate::{Came, Fetch, Sent, Wanted, fetch_once, send};
use homing_model::Failure;
use homing_setup::cache::pip::Wheels;
use homing_setup::cache::{PackageFile, cargo};
use homing_steps::{Answer, Call, Executor, SshExecutor};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

/// What stands beside the files on the way to hosts.
const LIST: &str = "homing.list";

/// A script, and what a host lacks that says so to it.
type Asks<'a> = (String, &'a dyn Fn(&str) -> Option<String>);

/// One call.
pub struct Lists<'a> {
    executor: SshExecutor,
    hosts: &'a [String],
    say: &'a dyn Fn(&str),
    folder: TempDir,
    came: Came,
}

impl<'a> Lists<'a> {
    /// For these hosts, of a file of this name.
    pub fn new(
        executor: SshExecutor,
        hosts: &'a [String],
        file: &Path,
        say: &'a dyn Fn(&str),
    ) -> Result<Lists<'a>, Failure> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let came = Came { packages: vec![name], ..Came::default() };
        Ok(Lists { executor, hosts, say, folder: folder()?, came })
    }

    /// Wheels, kind by kind.
    pub fn pip(mut self, wheels: &Wheels) -> Result<Came, Failure> {
        // By kind: hosts that want wheels, and those that have them.
        let mut kinds: BTreeMap<String, [Vec<String>; 2]> = BTreeMap::new();
        for (host, said) in self.ask(&wheels.asked()) {
            let (what, kind) = said.trim().split_once(' ').unwrap_or_default();
            let has = what == "has";
            kinds.entry(kind.into()).or_default()[usize::from(has)].push(host.clone());
            if has {
                self.came.has.insert(host);
            }
        }
        for [want, have] in kinds.into_values().filter(|[want, _]| !want.is_empty()) {
            self.folder = folder()?;
            let fetch = Fetch { script: wheels.fetch(), what: "the wheels".into(), names: Vec::new(), size: None };
            if !self.fetch(&[want.clone(), have].concat(), &fetch) {
                continue;
            }
            let files = files(self.folder.path())?;
            let all: BTreeSet<PackageFile> = files.iter().cloned().collect();
            let wanted: Wanted = want.into_iter().map(|host| (host, all.clone())).collect();
            self.came.fetched.add(&files, &wanted);
            let lacks = |said: &str| (!said.starts_with("has ")).then(|| "it lacks some".to_string());
            self.send(&wanted, &wheels.text, &wheels.came(), &(wheels.asked(), &lacks))?;
        }
        Ok(self.came)
    }

    /// Crates: each host gets those that it lacks in a folder of its own.
    pub fn crates(mut self, crates: &[PackageFile], into: &str) -> Result<Came, Failure> {
        let said = self.ask(&cargo::asked(crates, into));
        let lacks = |said: &str| -> BTreeSet<String> { said.lines().map(String::from).collect() };
        let lack: BTreeMap<String, BTreeSet<String>> =
            said.iter().map(|(host, said)| (host.clone(), lacks(said))).collect();
        let (want, have): (Vec<String>, Vec<String>) = lack.keys().cloned().partition(|host| !lack[host].is_empty());
        self.came.has.extend(have.iter().cloned());
        let any = |file: &&PackageFile| lack.values().any(|names| names.contains(&file.name));
        let mut files: Vec<PackageFile> = crates.iter().filter(any).cloned().collect();
        let names = files.iter().map(|file| file.name.clone()).collect();
        let fetch = Fetch { script: cargo::fetch(&files), what: format!("{} crates", files.len()), names, size: None };
        if files.is_empty() || !self.fetch(&[want.clone(), have].concat(), &fetch) {
            return Ok(self.came);
        }
        for file in &mut files {
            file.size = std::fs::metadata(self.folder.path().join(&file.name)).map_or(0, |meta| meta.len());
        }
        let own = |host: &String| files.iter().filter(|file| lack[host].contains(&file.name)).cloned().collect();
        let wanted: Wanted = want.iter().map(|host| (host.clone(), own(host))).collect();
        self.came.fetched.add(&files, &wanted);
        // Hosts that lack the same have the same list.
        let mut groups: BTreeMap<BTreeSet<PackageFile>, Wanted> = BTreeMap::new();
        wanted.into_iter().for_each(|(host, own)| drop(groups.entry(own.clone()).or_default().insert(host, own)));
        for (own, hosts) in groups {
            let lacks = |said: &str| said.lines().next().map(|name| format!("it lacks {name}"));
            self.send(&hosts, &cargo::list(&own), &cargo::came(into), &(cargo::asked(crates, into), &lacks))?;
        }
        Ok(self.came)
    }

    /// What hosts say to a script; those that cannot are noted.
    fn ask(&mut self, script: &str) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (host, said) in self.said(self.hosts, script) {
            match said {
                Ok(said) => drop(all.insert(host, said)),
                Err(why) => self.came.failed.push((host, why)),
            }
        }
        all
    }

    fn said(&self, hosts: &[String], script: &str) -> Vec<(String, Answer)> {
        let calls: Vec<_> = hosts.iter().map(|host| (host.clone(), Call::Script(script.into()))).collect();
        hosts.iter().cloned().zip(self.executor.run(&calls)).collect()
    }

    /// Into the folder, by the first of these hosts that can; notes who, or why none could.
    fn fetch(&mut self, hosts: &[String], fetch: &Fetch) -> bool {
        match fetch_once(&self.executor, hosts.iter(), fetch, self.folder.path(), self.say) {
            Ok(host) => {
                let before = self.came.fetched.by.take().map(|by| by + ",").unwrap_or_default();
                self.came.fetched.by = Some(before + &host);
                true
            }
            Err(whys) => {
                self.came.failed.extend(whys);
                false
            }
        }
    }

    /// The files of the folder, with a list beside them, to hosts that want them. What tells afterwards whether a host lacks
    /// any comes last.
    fn send(&mut self, wanted: &Wanted, list: &str, script: &str, (ask, lacks): &Asks) -> Result<(), Failure> {
        let path = self.folder.path().join(LIST);
        let wrong = |e: std::io::Error| Failure::system(format!("writing {}: {e}", path.display()));
        // What a host has sent may be a link of that name: it is not followed.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(wrong(e)),
            _ => {}
        }
        let mut file = std::fs::File::create_new(&path).map_err(wrong)?;
        file.write_all(list.as_bytes()).map_err(wrong)?;
        let beside = Sent { folder: self.folder.path(), beside: Some(LIST), script };
        let gone = send(&self.executor, wanted, &beside).map_err(Failure::system)?;
        let lacks = |(host, said): (String, Answer)| Some((host, said.map_or_else(Some, |said| lacks(&said))?));
        let gone = gone.confirmed(|hosts| self.said(hosts, ask).into_iter().filter_map(lacks).collect());
        self.came.take(gone);
        Ok(())
    }
}

fn folder() -> Result<TempDir, Failure> {
    tempfile::tempdir().map_err(|e| Failure::system(format!("making a folder for files: {e}")))
}

/// Wheels of a folder, with their sizes.
fn files(folder: &Path) -> Result<Vec<PackageFile>, Failure> {
    let wrong = |e: std::io::Error| Failure::system(format!("reading {}: {e}", folder.display()));
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let meta = entry.metadata().map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if meta.is_file() && name.ends_with(".whl") {
            all.push(PackageFile { name, size: meta.len(), sha256: String::new(), uri: String::new() });
        }
    }
    all.sort();
    Ok(all)
}
