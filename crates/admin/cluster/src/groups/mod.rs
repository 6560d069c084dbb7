//! ClusterShell's node groups, read from its own configuration, because users should not write them twice:
//! `groups.conf`, `*.conf` in its `confdir`, `*.yaml` in its `autodir`.

mod conf;
mod source;

use homing_model::nodeset::NodeGroups;
use saphyr::{LoadableYamlNode, Yaml};
pub use source::GroupSource;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A source and a group.
type GroupQuery = (Option<String>, String);

/// All group sources.
#[derive(Debug, Default)]
pub struct ClusterShell {
    /// The sources in the order of their declaration.
    sources: Vec<(String, GroupSource)>,
    default: Option<String>,
    /// Answers of commands, which may be slow.
    asked: RefCell<HashMap<GroupQuery, Option<String>>>,
}

/// Returns the folders of the configuration, the last one with the highest priority.
fn folders() -> Vec<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = homing_os::names::home();
    let system = var("CLUSTERSHELL_CFGDIR").unwrap_or_else(|| "/etc/clustershell".into());
    let config = var("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|h| h.join(".config")));
    let own = home.map(|h| h.join(".local/etc/clustershell"));
    [Some(system), own, config.map(|c| c.join("clustershell"))].into_iter().flatten().collect()
}

impl ClusterShell {
    /// Reads the configuration; its absence is no error.
    pub fn load() -> Result<ClusterShell, String> {
        let read = |folder: PathBuf| Some((std::fs::read_to_string(folder.join("groups.conf")).ok()?, folder));
        ClusterShell::of(folders().into_iter().filter_map(read).collect(), "groups.conf")
    }

    /// Reads only `file`, which has the format of `groups.conf`.
    pub fn of_file(file: &Path) -> Result<ClusterShell, String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ClusterShell::of(vec![(text, folder.to_path_buf())], &name)
    }

    /// Merges texts of `groups.conf`, each with its folder, the last one with the highest priority.
    fn of(texts: Vec<(String, PathBuf)>, name: &str) -> Result<ClusterShell, String> {
        let mut main: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut order = Vec::new();
        let mut folder = None;
        for (text, candidate) in texts {
            let file = candidate.join(name);
            // Values of a section in a later file are added, and have priority.
            for (name, values) in conf::parse(&text).map_err(|e| format!("{}: {e}", file.display()))? {
                if !main.contains_key(&name) {
                    order.push(name.clone());
                }
                main.entry(name).or_default().extend(values);
            }
            folder = Some(candidate);
        }
        let mut groups = ClusterShell::default();
        let Some(folder) = folder else { return Ok(groups) };
        let settings = main.remove("Main").unwrap_or_default();
        groups.add_folders(&settings, &folder)?;
        for name in order.iter().filter(|n| *n != "Main") {
            groups.add_section(name, &main[name], &folder)?;
        }
        groups.default = settings.get("default").filter(|d| !d.is_empty()).cloned();
        Ok(groups)
    }

    fn add_folders(&mut self, settings: &BTreeMap<String, String>, folder: &Path) -> Result<(), String> {
        let listed = |key: &str| -> Vec<PathBuf> {
            let text = settings.get(key).map(|t| conf::substitute(t, &[("CFGDIR", &folder.display().to_string())]));
            let mut found: Vec<PathBuf> = Vec::new();
            for dir in text.and_then(|t| shlex::split(&t)).unwrap_or_default() {
                let dir = PathBuf::from(dir);
                if !found.contains(&dir) {
                    found.push(dir);
                }
            }
            found
        };
        let confdir = if settings.contains_key("groupsdir") { "groupsdir" } else { "confdir" };
        for dir in listed(confdir) {
            for file in files_in(&dir, "conf") {
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                for (name, values) in conf::parse(&text).map_err(|e| format!("{}: {e}", file.display()))? {
                    self.add_section(&name, &values, &dir)?;
                }
            }
        }
        for dir in listed("autodir") {
            for file in files_in(&dir, "yaml") {
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                self.sources.extend(tables(&text).map_err(|e| format!("{}: {e}", file.display()))?);
            }
        }
        Ok(())
    }

    fn add_section(&mut self, names: &str, values: &BTreeMap<String, String>, folder: &Path) -> Result<(), String> {
        for name in names.split(',').map(str::trim).filter(|n| *n != "Main") {
            if !values.contains_key("map") {
                return Err(format!("group source {name:?} has no map"));
            }
            let source = GroupSource::Upcalls { commands: values.clone(), folder: folder.to_path_buf() };
            self.sources.push((name.to_string(), source));
        }
        Ok(())
    }

    /// Returns the names of the sources, the default one first.
    pub fn sources(&self) -> Vec<&str> {
        let default = self.default_name();
        let others = self.sources.iter().map(|(name, _)| name.as_str()).filter(|n| Some(*n) != default);
        default.into_iter().chain(others).collect()
    }

    fn default_name(&self) -> Option<&str> {
        self.default.as_deref().or(self.sources.first().map(|(name, _)| name.as_str()))
    }

    /// Returns a source by name, or the default one.
    pub fn source(&self, name: Option<&str>) -> Result<Option<(&str, &GroupSource)>, String> {
        let Some(wanted) = name.or_else(|| self.default_name()) else { return Ok(None) };
        match self.sources.iter().find(|(n, _)| n == wanted) {
            Some((name, source)) => Ok(Some((name, source))),
            None => Err(format!("no group source {wanted:?}; there are: {}", self.sources().join(", "))),
        }
    }
}

impl NodeGroups for ClusterShell {
    fn group(&self, source: Option<&str>, name: &str) -> Result<Option<String>, String> {
        let key = (source.map(String::from), name.to_string());
        if let Some(known) = self.asked.borrow().get(&key) {
            return Ok(known.clone());
        }
        let Some((own, found)) = self.source(source)? else { return Ok(None) };
        let answer = found.group(own, name)?;
        self.asked.borrow_mut().insert(key, answer.clone());
        Ok(answer)
    }

    fn all(&self, source: Option<&str>) -> Result<Option<String>, String> {
        let Some((own, found)) = self.source(source)? else { return Ok(None) };
        if let Some(all) = found.all(own)? {
            return Ok(Some(all));
        }
        // Without `all`, all groups together are all nodes.
        let Some(names) = found.list(own)? else { return Ok(None) };
        let sets = names.iter().map(|name| found.group(own, name).map(Option::unwrap_or_default));
        let sets: Vec<String> = sets.collect::<Result<_, _>>()?;
        Ok(Some(sets.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(",")))
    }

    fn list(&self, source: Option<&str>) -> Result<Vec<String>, String> {
        let Some((own, found)) = self.source(source)? else { return Ok(Vec::new()) };
        found.list(own)?.ok_or_else(|| format!("group source {own:?} has no list"))
    }
}

fn files_in(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    files
}

/// Reads `source: {group: node set}`; a node set may be a list.
fn tables(text: &str) -> Result<Vec<(String, GroupSource)>, String> {
    let documents = Yaml::load_from_str(text).map_err(|e| e.to_string())?;
    let Some(document) = documents.first() else { return Ok(Vec::new()) };
    let sources = document.as_mapping().ok_or("the file is not a table of group sources")?;
    let mut found = Vec::new();
    for (name, groups) in sources {
        let name = name.as_str().ok_or("the name of a group source is not a text (put it into quotes)")?;
        let groups = groups.as_mapping().ok_or_else(|| format!("group source {name:?} is not a table of groups"))?;
        let mut table = BTreeMap::new();
        for (group, nodes) in groups {
            let group = group.as_str().ok_or_else(|| {
                format!("group source {name}: the name of a group is not a text (put it into quotes)")
            })?;
            let nodes = node_text(nodes).ok_or_else(|| {
                format!("group source {name}: the nodes of {group} are neither a text nor a list of texts")
            })?;
            table.insert(group.to_string(), nodes);
        }
        found.push((name.to_string(), GroupSource::Table(table)));
    }
    Ok(found)
}

fn node_text(value: &Yaml) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_string());
    }
    let texts: Option<Vec<&str>> = value.as_sequence()?.iter().map(|v| v.as_str()).collect();
    Some(texts?.join(","))
}
