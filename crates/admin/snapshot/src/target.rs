//! Resolves a word of the command line: to a vault, and to one of its images.

use crate::ask::VaultLocation;
use crate::expiry;
use crate::image::When;
use crate::section::{self, Engine, Section};
use homing_model::Failure;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// A vault, and a part of its source.
pub struct Target {
    /// Its name for users.
    pub name: String,
    /// Its settings; for a folder without a section, only its source.
    pub section: Section,
    /// The bank's host.
    pub host: String,
    /// The vault there.
    pub site: VaultLocation,
    /// The part that is meant, below the source.
    pub below: PathBuf,
}

/// The options of a command line for a vault.
#[derive(Default)]
pub struct VaultOptions {
    /// The bank, as HOST:/PATH.
    pub to: Option<String>,
    /// The vault's name.
    pub vault: Option<String>,
    /// The program that makes its images.
    pub engine: Option<Engine>,
    /// A file with the password of a repository.
    pub password_file: Option<PathBuf>,
}

impl Target {
    /// Resolves a word: a section, a folder, a part of either, or a volume. `mount` returns the mount point of a
    /// volume.
    pub fn of(
        sections: &BTreeMap<String, Section>,
        what: &str,
        said: &VaultOptions,
        mount: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Target, Failure> {
        let (name, section, below) = found(sections, what, said, mount)?;
        let bank = said.to.clone().unwrap_or_else(|| section.bank.clone());
        of_section(name, Section { bank, ..section }, below, said)
    }

    /// Returns each vault of a cluster file.
    pub fn all(sections: BTreeMap<String, Section>) -> Result<Vec<Target>, Failure> {
        let each = |(name, section)| of_section(name, section, PathBuf::new(), &VaultOptions::default());
        sections.into_iter().map(each).collect()
    }
}

fn of_section(name: String, section: Section, below: PathBuf, said: &VaultOptions) -> Result<Target, Failure> {
    if section.bank.is_empty() {
        return Err(Failure::usage(format!("the bank of {name} is missing")).hint("--to HOST:/bank"));
    }
    let engine = said.engine.unwrap_or(section.engine);
    let password_file = said.password_file.clone().or(section.password_file.clone());
    let section = Section { engine, password_file, ..section };
    section.check(&name).map_err(Failure::usage)?;
    let (host, bank) = section::place(&section.bank).unwrap_or_default();
    let vault = said.vault.clone().or(section.vault.clone()).unwrap_or_else(|| name.clone());
    section::vault_name(&vault).map_err(Failure::usage)?;
    let site = VaultLocation { bank: bank.into(), vault };
    Ok(Target { name, host: host.into(), site, below, section })
}

fn found(
    sections: &BTreeMap<String, Section>,
    what: &str,
    said: &VaultOptions,
    mount: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, Section, PathBuf), Failure> {
    let whole = |name: &str| sections.get(name).cloned();
    if let Some(section) = whole(what) {
        return Ok((what.into(), section, PathBuf::new()));
    }
    if let Some((_, path)) = section::place(what).filter(|(host, _)| !sections.contains_key(*host)) {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("root");
        return Ok((name.into(), Section { source: Some(what.into()), ..Section::default() }, PathBuf::new()));
    }
    if let Some((name, below)) = what.split_once(':').filter(|(name, _)| !name.contains('/')) {
        let known = whole(name).or_else(|| said.to.as_ref().map(|_| Section::default()));
        let below = below.trim_start_matches('/');
        return known.map(|section| (name.into(), section, below.into())).ok_or_else(|| unknown(name, sections));
    }
    let path = if what.contains('/') || what == "." { std::path::absolute(what).ok() } else { None };
    if let Some(path) = &path {
        let path = path.components().collect::<PathBuf>();
        if let Some((name, section, below)) = section::holding(sections, &path) {
            return Ok((name.into(), section.clone(), below));
        }
        let name = path.file_name().map_or("root".into(), |name| name.to_string_lossy().into_owned());
        let source = Some(path.to_str().ok_or_else(|| Failure::usage(format!("{what:?} is not UTF-8")))?.into());
        return Ok((name, Section { source, ..Section::default() }, PathBuf::new()));
    }
    match mount(what) {
        Some(mount) => Ok((what.into(), Section { source: Some(mount), ..Section::default() }, PathBuf::new())),
        None if said.to.is_some() => Ok((what.into(), Section::default(), PathBuf::new())),
        None => Err(unknown(what, sections)),
    }
}

fn unknown(name: &str, sections: &BTreeMap<String, Section>) -> Failure {
    let known: Vec<&str> = sections.keys().map(String::as_str).collect();
    let failure =
        Failure::usage(format!("{name:?} is neither a [snapshot.NAME] of a cluster file, nor a folder, nor a volume"));
    match known.as_slice() {
        [] => failure.hint("homing snapshot /FOLDER --to HOST:/bank"),
        known => failure.hint(format!("one of {}", known.join(", "))),
    }
}

/// Returns the image that is meant. A day means its end: its last image is the state of that day.
pub fn when(words: Option<&str>) -> When {
    let Some(words) = words else { return When::Newest };
    match moment(words) {
        Some(at) => When::Until(at),
        // Images are named by dates, which `date` may misread, or not understand.
        None => When::Named(words.into()),
    }
}

fn moment(words: &str) -> Option<Timestamp> {
    if words.bytes().all(|b| b.is_ascii_digit()) && words.len() > 4 {
        return None;
    }
    let zone = TimeZone::system();
    let at =
        expiry::moment(words, Timestamp::now(), &zone).filter(|_| words.contains('-')).or_else(|| by_date(words))?;
    let local = zone.to_datetime(at);
    let is_day = local.time() == jiff::civil::Time::midnight();
    let day = || zone.to_timestamp(local.checked_add(1.day()).ok()?).ok()?.checked_sub(1.second()).ok();
    if is_day { day() } else { Some(at) }
}

/// Returns GNU date's reading of words such as `last tuesday`.
fn by_date(words: &str) -> Option<Timestamp> {
    let said = Command::new("date").arg("+%s").arg(format!("--date={words}")).env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8(said.stdout).ok().filter(|_| said.status.success())?;
    Timestamp::from_second(text.trim().parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_section_a_folder_a_part_of_it_or_a_volume() {
        let section =
            |source: &str| Section { source: Some(source.into()), bank: "b:/bank".into(), ..Section::default() };
        let sections = [("home".to_string(), section("/home"))].into();
        let data = |name: &str| (name == "data").then(|| "/data".to_string());
        let of = |what: &str, to: Option<&str>| {
            let said = VaultOptions { to: to.map(String::from), ..VaultOptions::default() };
            let target = Target::of(&sections, what, &said, &data).map_err(|failure| failure.message)?;
            Ok((target.name, target.section.source.unwrap_or_default(), target.below.display().to_string()))
        };
        let told =
            |name: &str, source: &str, below: &str| Ok((name.to_string(), source.to_string(), below.to_string()));
        assert_eq!(of("home", None), told("home", "/home", ""));
        assert_eq!(of("/home/a/b", None), told("home", "/home", "a/b"));
        assert_eq!(of("home:/a", None), told("home", "/home", "a"));
        assert_eq!(of("n1:/srv/x", Some("b:/bank")), told("x", "n1:/srv/x", ""));
        assert_eq!(of("data", Some("b:/bank")), told("data", "/data", ""));
        assert_eq!(of("/srv/y/", Some("b:/bank")), told("y", "/srv/y", ""));
        let lost: Result<(String, String, String), String> = of("other", None);
        assert!(lost.unwrap_err().starts_with("\"other\" is neither a [snapshot.NAME]"));
    }

    #[test]
    fn a_day_stands_for_its_end_and_a_number_for_a_name() {
        let zone = TimeZone::system();
        let local = |words: &str| match when(Some(words)) {
            When::Until(at) => zone.to_datetime(at).strftime("%F %T").to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(local("2026-03-01"), "2026-03-01 23:59:59");
        assert_eq!(local("2026-03-01 10:00"), "2026-03-01 10:00:00");
        assert_eq!(local("2026-03-01 10:00:05"), "2026-03-01 10:00:05");
        assert!(local("last tuesday").ends_with("23:59:59"));
        assert_eq!(when(Some("20260301020000")), When::Named("20260301020000".into()));
        assert_eq!(when(Some("before the flood")), When::Named("before the flood".into()));
    }
}
