//! `[snapshot.NAME]` of a cluster file.

use crate::expiry;
use crate::image::{EXPIRED, PARTIAL};
use crate::instant::InstantPolicy;
use crate::split;
use crate::timer::Schedule;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program that keeps the images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// rsync, in plain trees that share files by hard links.
    #[default]
    Rsync,
    /// restic, in a repository of its own.
    Restic,
}

/// A source, its bank, and how long images are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// A folder as this machine sees it, or `HOST:/PATH`.
    pub source: Option<String>,
    /// `HOST:/PATH` of the bank.
    pub bank: String,
    /// The vault in the bank; by default the section's name.
    pub vault: Option<String>,
    /// Plain trees, or a repository of restic.
    #[serde(default)]
    pub engine: Engine,
    /// The file with the repository's password, on the source's host.
    pub password_file: Option<PathBuf>,
    /// Patterns of rsync to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Whether to leave out other file systems below the source.
    pub xdev: Option<bool>,
    /// The form of an image's name, in the format of strftime.
    pub image: Option<String>,
    /// When images expire if no rule matches.
    pub expire: Option<String>,
    /// Rules in dirvish's form; the last one that matches counts.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The maximum age of the last good image: `26 hours`.
    pub window: Option<String>,
    /// When a timer makes images: `02:00`, `Sun 02:00`, `hourly`.
    pub schedule: Option<String>,
    /// The kinds of instant copies that are read in the place of the source.
    #[serde(default)]
    pub instant: InstantPolicy,
    /// Whether several hosts read a volume.
    #[serde(default)]
    pub split: split::When,
    /// ssh and its options, from the bank's host to the source's.
    pub ssh: Option<String>,
}

impl Section {
    /// Refuses settings that would only fail at night.
    ///
    /// # Errors
    /// The setting, and its valid values.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let told = |why: String| format!("[snapshot.{name}]: {why}");
        vault_name(self.vault.as_deref().unwrap_or(name)).map_err(told)?;
        place(&self.bank).ok_or_else(|| told(format!("bank = {:?} is not HOST:/PATH", self.bank)))?;
        if let Some(source) = self.source.as_deref().filter(|s| !s.starts_with('/') && place(s).is_none()) {
            return Err(told(format!("source = {source:?} is neither /PATH nor HOST:/PATH")));
        }
        if self.engine == Engine::Restic && self.password_file.as_ref().is_none_or(|file| !file.is_absolute()) {
            let why = "engine = \"restic\" needs password_file = \"/PATH\", a file on the source's host";
            return Err(told(why.into()));
        }
        if let Some(form) = &self.image {
            // A day and an hour of two digits.
            let some =
                jiff::civil::date(2026, 11, 27).at(12, 34, 56, 0).in_tz("UTC").map_err(|e| told(e.to_string()))?;
            let made = jiff::fmt::strtime::format(form, &some);
            let made = made.map_err(|e| told(format!("image = {form:?} is not a name of images: {e}")))?;
            image_name(&made).map_err(|why| told(format!("image = {form:?}: {why}")))?;
            if self.engine == Engine::Restic {
                return Err(told("image = is not available with restic, which names its snapshots itself".into()));
            }
        }
        if self.engine == Engine::Restic && self.split == split::When::Always {
            return Err(told("split = \"always\" is not available with restic: only the source's host reads".into()));
        }
        self.schedule.as_deref().map_or(Ok(()), |text| Schedule::of(text).map(drop)).map_err(told)?;
        expiry::check(&[], self.window.as_deref().unwrap_or("")).map_err(told)?;
        expiry::check(&self.rules, self.expire.as_deref().unwrap_or("")).map_err(told)
    }
}

/// Splits `HOST:/PATH`.
pub fn place(text: &str) -> Option<(&str, &str)> {
    let at = text.find(":/")?;
    let (host, path) = (&text[..at], &text[at + 1..]);
    let sound = !host.is_empty() && !host.starts_with('-') && !host.contains(|c: char| c.is_whitespace() || c == '/');
    sound
        .then(|| (host, path.trim_end_matches('/')))
        .map(|(host, path)| (host, if path.is_empty() { "/" } else { path }))
}

/// Checks a vault's name, which is the name of a folder.
///
/// # Errors
/// Why it cannot be one.
pub fn vault_name(name: &str) -> Result<&str, String> {
    let odd = |c: char| c == '/' || c.is_control();
    let sound = !name.is_empty() && !name.starts_with('.') && !name.starts_with('-') && !name.contains(odd);
    if sound && name.len() <= 200 { Ok(name) } else { Err(format!("{name:?} cannot be the name of a vault")) }
}

/// Refuses names that have another meaning in a vault.
///
/// # Errors
/// Why it cannot be one.
pub fn image_name(name: &str) -> Result<(), String> {
    vault_name(name).map_err(|_| format!("{name:?} cannot be the name of a folder"))?;
    let means = [(PARTIAL, "an incomplete image"), (EXPIRED, "an image that is being removed")];
    if let Some((end, what)) = means.iter().find(|(end, _)| name.ends_with(end)) {
        return Err(format!("{name:?} ends with {end}, which means {what}"));
    }
    if name == "dirvish" { Err(format!("{name:?} is the name of the vault's own folder")) } else { Ok(()) }
}

/// Returns the host of a source, if it names one, and its folder.
pub fn source_place(source: &str) -> (Option<&str>, PathBuf) {
    match place(source) {
        Some((host, path)) => (Some(host), path.into()),
        None => (None, source.into()),
    }
}

/// Returns the section that a path belongs to, and the path below its source: the deepest source of all.
pub fn holding<'s>(all: &'s BTreeMap<String, Section>, path: &Path) -> Option<(&'s str, &'s Section, PathBuf)> {
    let fits = |(name, section): (&'s String, &'s Section)| {
        let root = source_place(section.source.as_deref()?).1;
        let below = path.strip_prefix(&root).ok()?.to_path_buf();
        Some((root.components().count(), name.as_str(), section, below))
    };
    let deepest = all.iter().filter_map(fits).max_by_key(|(depth, ..)| *depth)?;
    Some((deepest.1, deepest.2, deepest.3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_hosts_with_a_path() {
        assert_eq!(place("b1:/bank/"), Some(("b1", "/bank")));
        assert_eq!(place("root@b1:/"), Some(("root@b1", "/")));
        for odd in ["/bank", "b1:bank", "-oProxyCommand=x:/bank", ":/bank", "a b:/x", "/a:/b"] {
            assert_eq!(place(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_path_belongs_to_the_deepest_source() {
        let section =
            |source: &str| Section { source: Some(source.into()), bank: "b:/bank".into(), ..Section::default() };
        let all = [("all", "/"), ("home", "n1:/home"), ("ann", "/home/ann")].map(|(n, s)| (n.to_string(), section(s)));
        let all = BTreeMap::from(all);
        let of = |path: &str| holding(&all, Path::new(path)).map(|(name, _, below)| (name, below));
        assert_eq!(of("/home/ann/x"), Some(("ann", "x".into())));
        assert_eq!(of("/home/anna"), Some(("home", "anna".into())));
        assert_eq!(of("/etc/passwd"), Some(("all", "etc/passwd".into())));
    }

    #[test]
    fn what_would_fail_at_night_is_refused() {
        let good = Section { bank: "b:/bank".into(), rules: vec!["* * * * 1 +3 months".into()], ..Section::default() };
        assert_eq!(good.check("home"), Ok(()));
        for (why, bad) in [
            ("rule", Section { rules: vec!["* * * 1 +3 months".into()], ..good.clone() }),
            ("date", Section { rules: vec!["* * * * 1 +3 moons".into()], ..good.clone() }),
            ("date", Section { expire: Some("+1 month 3 days".into()), ..good.clone() }),
            ("date", Section { window: Some("a day".into()), ..good.clone() }),
            ("schedule", Section { schedule: Some("at night".into()), ..good.clone() }),
            ("bank", Section { bank: "/bank".into(), ..good.clone() }),
            ("vault", Section { vault: Some("../x".into()), ..good.clone() }),
            ("%Y.expired", Section { image: Some("%Y.expired".into()), ..good.clone() }),
            (".partial", Section { image: Some("%Y.partial".into()), ..good.clone() }),
            ("dirvish", Section { image: Some("dirvish".into()), ..good.clone() }),
            ("name of a folder", Section { image: Some("%Y/%m".into()), ..good.clone() }),
            ("password_file", Section { engine: Engine::Restic, ..good.clone() }),
            ("source", Section { source: Some("home".into()), ..good.clone() }),
        ] {
            assert!(bad.check("home").unwrap_err().contains(why), "{bad:?}");
        }
    }
}
