//! Reads the configuration of a vault that dirvish has made: its files, and the effect of each key of
//! dirvish.conf(5).
//!
//! A key acts, or homing refuses it by name and names a replacement. homing ignores no key silently.

use crate::conf::Conf;
use homing_model::text::shown;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// The folder of dirvish's own files; `/etc/dirvish.conf` takes precedence over `/etc/dirvish/master.conf`.
pub const ETC: &str = "/etc/dirvish";

/// How homing treats a key.
enum Duty {
    /// It acts.
    Acts,
    /// It may only be switched on, as it always is with homing.
    On,
    /// It may only be switched off.
    Off,
    /// It may only have this value.
    Only(&'static str),
    /// It may not be set; this is its replacement.
    Instead(&'static str),
}

const AROUND: &str = "run it around `homing snapshot`, in the line of cron or in the timer's unit";

/// All keys of dirvish.conf(5) of dirvish 1.2.1, and `fexclude`, its other name for `file-exclude`.
const KEYS: [(&str, Duty); 45] = [
    ("bank", Duty::Acts),
    ("branch", Duty::Instead("branch-default: NAME")),
    ("branch-default", Duty::Acts),
    ("checksum", Duty::Acts),
    ("client", Duty::Acts),
    ("config", Duty::Instead("the lines of that file")),
    ("devices", Duty::On),
    ("exclude", Duty::Acts),
    ("expire", Duty::Acts),
    ("expire-default", Duty::Acts),
    ("expire-rule", Duty::Acts),
    ("fexclude", Duty::Instead("exclude: with the lines of that file")),
    ("file-exclude", Duty::Instead("exclude: with the lines of that file")),
    ("image", Duty::Acts),
    ("image-default", Duty::Acts),
    ("image-perm", Duty::Acts),
    ("image-temp", Duty::Instead("homing snapshot mount NAME DIR, for a path that does not change")),
    ("image-time", Duty::Instead("a timer or cron at that time")),
    ("index", Duty::Acts),
    ("init", Duty::Off),
    ("log", Duty::Instead("`summary`, `excluded` and `rsync_error` of the image")),
    ("meta-perm", Duty::Instead("chmod of `summary`; lists of names are their owner's")),
    ("no-run", Duty::Off),
    ("numeric-ids", Duty::On),
    ("password-file", Duty::Instead("ssh: no rsync daemon is read")),
    ("permissions", Duty::On),
    ("post-client", Duty::Instead(AROUND)),
    ("post-server", Duty::Instead(AROUND)),
    ("pre-client", Duty::Instead(AROUND)),
    ("pre-server", Duty::Instead(AROUND)),
    ("reference", Duty::Instead("nothing: homing uses the last good image of the branch")),
    ("rsh", Duty::Acts),
    ("rsync", Duty::Only("rsync")),
    ("rsync-client", Duty::Only("rsync")),
    ("rsync-option", Duty::Instead("the key of dirvish.conf(5) for it, or xdev, exclude and ssh of the cluster file")),
    ("sparse", Duty::Acts),
    ("speed-limit", Duty::Acts),
    ("stats", Duty::Acts),
    ("summary", Duty::Only("short")),
    ("tree", Duty::Acts),
    ("vault", Duty::Acts),
    ("whole-file", Duty::Acts),
    ("xdev", Duty::Acts),
    ("zxfer", Duty::Acts),
    ("SET", Duty::Instead("SET and UNSET without a colon")),
];

/// Reads the files that dirvish reads: the master file, the client's, and the vault's own. The result is empty if the
/// vault has no file of its own.
///
/// # Errors
/// A file that exists and cannot be read.
pub fn load(etc: &Path, own: &Path) -> Result<Conf, String> {
    let mut conf = Conf::default();
    let Some((text, origin)) = first(&[own.join("default.conf"), own.join("default")])? else { return Ok(conf) };
    let mut client = |name: &str| {
        // Like dirvish, which leaves out the user.
        let name = name.rsplit('@').next().unwrap_or(name);
        let plain = !name.contains('/') && !name.starts_with('.');
        if plain { first(&[etc.join(name), etc.join(format!("{name}.conf"))]) } else { Ok(None) }
    };
    if let Some((text, origin)) = first(&[etc.with_extension("conf"), etc.join("master.conf")])? {
        conf.add_file(&text, &origin, &mut client)?;
    }
    conf.add_file(&text, &origin, &mut client)?;
    Ok(conf)
}

/// Returns the text and the name of the first of these files that exists.
fn first(paths: &[std::path::PathBuf]) -> Result<Option<(String, String)>, String> {
    for path in paths {
        match fs::read(path) {
            Ok(bytes) => return Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), path.display().to_string()))),
            Err(e) if [io::ErrorKind::NotFound, io::ErrorKind::IsADirectory].contains(&e.kind()) => {}
            Err(e) => return Err(format!("{}: {e}", path.display())),
        }
    }
    Ok(None)
}

/// Refuses keys that homing would otherwise ignore. `vault`: the vault's name.
///
/// # Errors
/// The key, its file, and the replacement.
pub fn check(conf: &Conf, vault: &str) -> Result<(), String> {
    if let Some((line, origin)) = conf.odd().first() {
        return Err(format!("{origin}: {:?} is neither KEY: VALUE nor an element of a list", shown(line)));
    }
    for (key, origin) in conf.keys() {
        // Keys of dirvish's helpers, and of the site's own scripts, begin with a capital letter.
        if key.starts_with(|c: char| c.is_ascii_uppercase()) && key != "SET" {
            continue;
        }
        let told = |why: String| format!("{origin}: {why}; `UNSET {key}` in default.conf cancels it");
        let set = conf.list(key);
        let value = || set.first().cloned().unwrap_or_default();
        let known = KEYS.iter().find(|(known, _)| *known == key);
        match known.map(|(_, duty)| duty) {
            None => return Err(format!("{origin}: {} is not a key of dirvish.conf(5)", shown(key))),
            Some(Duty::Acts) => sound(conf, key, vault).map_err(told)?,
            Some(Duty::Instead(_)) if set.is_empty() || conf.switch(key) == Some(false) => {}
            Some(Duty::Instead(instead)) => {
                return Err(told(format!(
                    "homing does not support {key}: {}; use instead: {instead}",
                    shown(&value())
                )));
            }
            Some(Duty::On) if conf.switch(key) == Some(true) => {}
            Some(Duty::Off) if conf.switch(key) == Some(false) => {}
            Some(Duty::Only(word)) if conf.switch(key) == Some(false) || value() == *word => {}
            Some(Duty::On) => return Err(always(key, origin, &value(), "1")),
            Some(Duty::Off) => return Err(always(key, origin, &value(), "0")),
            Some(Duty::Only(word)) => return Err(always(key, origin, &value(), word)),
        }
    }
    Ok(())
}

fn always(key: &str, origin: &str, value: &str, word: &str) -> String {
    format!("{origin}: {key}: {}: homing always uses {word}", shown(value))
}

/// Checks the value of a key that acts.
fn sound(conf: &Conf, key: &str, vault: &str) -> Result<(), String> {
    let Some(value) = conf.value(key) else { return Ok(()) };
    let odd = |what: &str| Err(format!("{key}: {} is {what}", shown(value)));
    match key {
        "vault" if value != vault => odd("another vault than this one"),
        "index" if !["none", "no", "text", "gzip", "bzip2"].contains(&value) => {
            odd("not one of none, text, gzip, bzip2")
        }
        "image-perm" if mode(value).is_none() => {
            odd("a mode that lets other users change the image; use one like 0755")
        }
        "speed-limit" if limit(value).is_none() => odd("not a number of Mbit/s"),
        "tree" if value.starts_with(':') => odd("a module of an rsync daemon, but homing reads images by ssh"),
        _ => Ok(()),
    }
}

/// Returns the mode of an image's folder.
pub fn mode(text: &str) -> Option<u32> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    u32::from_str_radix(text, 8).ok().filter(|mode| digits && mode & 0o7022 == 0 && mode & 0o700 == 0o700)
}

/// Returns rsync's limit in KiB/s for Mbit/s, computed as dirvish does.
fn limit(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    let limit = (number * 100.0).round();
    (1.0..1e9).contains(&limit).then_some(limit as u64)
}

/// Returns rsync's options for the keys that have one.
pub fn options(conf: &Conf) -> Vec<OsString> {
    let switches = [("whole-file", "--whole-file"), ("zxfer", "--compress"), ("checksum", "--checksum")];
    let on = switches.iter().filter(|(key, _)| conf.switch(key) == Some(true)).map(|(_, option)| option.into());
    let limit = conf.value("speed-limit").and_then(limit).map(|limit| format!("--bwlimit={limit}").into());
    on.chain(limit).collect()
}

/// Returns the folder that is copied, and its name in an index. `\ ` is a blank in either.
pub fn tree(conf: &Conf) -> Option<(String, String)> {
    let mut words = vec![String::new()];
    let mut chars = conf.value("tree")?.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => words.last_mut()?.extend(chars.next()),
            c if c.is_whitespace() => words.push(String::new()),
            c => words.last_mut()?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let tree = words.first()?.clone();
    let alias = words.get(1).unwrap_or(&tree).clone();
    Some((tree, alias))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(master: &str, client: &str, own: &str) -> Conf {
        let dir = tempfile::tempdir().unwrap();
        let (etc, vault) = (dir.path().join("etc"), dir.path().join("vault"));
        fs::create_dir(&etc).unwrap();
        fs::create_dir(&vault).unwrap();
        fs::write(etc.join("master.conf"), master).unwrap();
        fs::write(etc.join("n1.conf"), client).unwrap();
        fs::write(vault.join("default.conf"), own).unwrap();
        load(&etc, &vault).unwrap()
    }

    fn refused(line: &str) -> Option<String> {
        check(&loaded("", "", &format!("client: n1\n{line}\n")), "home").err()
    }

    #[test]
    fn files_are_read_in_dirvishs_order_and_lists_add_up() {
        let conf = loaded(
            "bank:\n\t/backup\nexclude:\n\tcore\nRunall:\n\thome 22:00\nexpire-default: +15 days\nexpire-rule:\n\t* * * * 1 +3 months\nxdev: 0\n",
            "xdev: 1\nexclude:\n\t/tmp/\n",
            "client: root@n1\ntree: /home # all of it\nexclude:\n\t*.o\nexpire-rule:\n\t* * 1-7 * 1 +1 year\n",
        );
        assert_eq!(check(&conf, "home"), Ok(()));
        assert_eq!(conf.list("exclude"), ["core", "/tmp/", "*.o"]);
        assert_eq!(conf.list("expire-rule"), ["* * * * 1 +3 months", "* * 1-7 * 1 +1 year"]);
        assert_eq!((conf.value("expire-default"), conf.switch("xdev")), (Some("+15 days"), Some(true)));
        // dirvish's files do not apply to a vault that dirvish has not made.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("master.conf"), "expire-default: +1 day\n").unwrap();
        assert_eq!(load(dir.path(), &dir.path().join("none")), Ok(Conf::default()));
    }

    #[test]
    fn each_key_acts_or_is_refused_by_name() {
        let some = |key: &str| match key {
            "image-perm" => "0750".to_string(),
            "index" => "gzip".into(),
            "vault" => "home".into(),
            "speed-limit" => "100".into(),
            "tree" => "/home /alias".into(),
            "client" => "n1".into(),
            key => format!("some {key}"),
        };
        for (key, duty) in &KEYS {
            let why = refused(&format!("{key}: {}", some(key)));
            match duty {
                Duty::Acts => assert_eq!(why, None, "{key}"),
                Duty::On => assert_eq!((why, refused(&format!("UNSET {key}")).is_some()), (None, true), "{key}"),
                Duty::Off | Duty::Only(_) | Duty::Instead(_) => assert!(why.unwrap().contains(key), "{key}"),
            }
        }
        for line in [
            "pre-client: false",
            "rsync-option:\n\t--fake-super",
            "SET init",
            "devices: 0",
            "UNSET permissions",
            "exlude:\n\tx",
            "no colon",
            "image-perm: 0777",
            "speed-limit: fast",
            "vault: other",
            "log: gzip",
        ] {
            assert!(refused(line).is_some(), "{line}");
        }
        for line in [
            "SET devices stats",
            "UNSET init no-run pre-server",
            "numeric-ids: 1",
            "rsync: rsync",
            "summary: short",
            "Dirvish: /usr/sbin/dirvish",
            "init: 0",
            "Own-key: of the site",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
        let taken_back = loaded("pre-server: /usr/local/sbin/dump\n", "", "client: n1\nUNSET pre-server\n");
        assert_eq!(check(&taken_back, "home"), Ok(()));
        let why = refused("pre-client: dump all").unwrap();
        assert!(
            why.contains("default.conf: homing does not support pre-client: dump all; use instead: run it around"),
            "{why}"
        );
    }

    #[test]
    fn options_of_rsync_and_names_with_blanks_are_passed_on() {
        let conf = loaded(
            "",
            "",
            "client: n1\nchecksum: 1\nSET zxfer\nwhole-file: 0\nspeed-limit: 2.5\ntree: /my\\ data /all\n",
        );
        assert_eq!(options(&conf), ["--compress", "--checksum", "--bwlimit=250"]);
        assert_eq!(tree(&conf), Some(("/my data".into(), "/all".into())));
    }
}
