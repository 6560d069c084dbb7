//! Users of this machine.

use crate::threads::lock;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

/// An entry of the password database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// First group.
    pub group: u32,
    /// Home directory; need not exist.
    pub home: PathBuf,
}

/// Returns the account of a user id. The password file is read first, because nearly every `nsswitch.conf` lists it.
/// So a process is started only for users of a directory service, and only once for each known user.
pub fn account(uid: u32) -> Option<Account> {
    static KNOWN: Mutex<Option<HashMap<u32, Account>>> = Mutex::new(None);
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_default();
    if let Some(account) = known.get(&uid) {
        return Some(account.clone());
    }
    let found = look_up(uid, "/etc/passwd", crate::names::GETENT)?;
    known.insert(uid, found.clone());
    Some(found)
}

/// Returns the home of the user of this name; `None` if there is no such user.
pub fn home_of(name: &str) -> Option<PathBuf> {
    // A name from the mount table never becomes an option.
    let asked = |name| crate::names::printed(crate::names::GETENT, &["passwd", name]);
    let text = std::fs::read("/etc/passwd").unwrap_or_default();
    home_in(&String::from_utf8_lossy(&text), name)
        .or_else(|| home_in(&asked(name).filter(|_| !name.starts_with('-'))?, name))
}

/// Returns the home of the first entry of that name among lines of `passwd(5)`.
fn home_in(text: &str, name: &str) -> Option<PathBuf> {
    entries(text).find(|entry| entry.name == name && !entry.home.is_empty()).map(|entry| entry.home.into())
}

fn look_up(uid: u32, file: &str, getent: &str) -> Option<Account> {
    let text = std::fs::read(file).unwrap_or_default();
    let of_file = parse(&String::from_utf8_lossy(&text), uid);
    of_file.or_else(|| parse(&crate::names::printed(getent, &["passwd", &uid.to_string()])?, uid))
}

/// Returns the account of the first entry of that user among lines of `passwd(5)`.
fn parse(text: &str, uid: u32) -> Option<Account> {
    entries(text).filter(|entry| entry.id.parse() == Ok(uid)).find_map(|entry| {
        Some(Account { name: entry.name.into(), group: entry.group.parse().ok()?, home: entry.home.into() })
    })
}

/// A line of `passwd(5)`.
struct PasswdEntry<'t> {
    name: &'t str,
    id: &'t str,
    group: &'t str,
    home: &'t str,
}

/// Returns the entries that are complete and have a name.
fn entries(text: &str) -> impl Iterator<Item = PasswdEntry<'_>> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, group, _, home, ..] = fields[..] else { return None };
        (!name.is_empty()).then_some(PasswdEntry { name, id, group, home })
    })
}

/// Returns `$HOME`, else the home of this process's user.
pub fn home() -> Option<PathBuf> {
    home_from(std::env::var_os("HOME"), || account(rustix::process::getuid().as_raw()))
}

fn home_from(set: Option<OsString>, own: impl FnOnce() -> Option<Account>) -> Option<PathBuf> {
    set.map(PathBuf::from).or_else(|| Some(own()?.home))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::script;

    const FILE: &str =
        "root:x:0:0:root:/root:/bin/sh\n+::::::\nbroken\nann:x:1000:100:A,B:/home/ann:/bin/sh\nbob:x:1000:7::/:\n";

    fn ann() -> Account {
        Account { name: "ann".into(), group: 100, home: "/home/ann".into() }
    }

    #[test]
    fn the_first_of_two_users_with_one_number_counts() {
        assert_eq!(parse(FILE, 1000), Some(ann()));
        assert_eq!(parse(FILE, 7), None);
        assert_eq!(parse("ann:x:1000", 1000), None, "cut short");
        assert_eq!(home_in(FILE, "ann"), Some("/home/ann".into()));
        assert_eq!(["", "bo", "broken"].map(|name| home_in(FILE, name)), [None, None, None]);
    }

    #[test]
    fn who_is_not_in_the_file_is_asked_of_the_directory_service() {
        let dir = tempfile::tempdir().unwrap();
        let (file, getent) = (dir.path().join("passwd"), dir.path().join("getent"));
        std::fs::write(&file, FILE).unwrap();
        script(&getent, "[ \"$*\" = \"passwd 5000\" ] && echo carl:x:5000:50::/home/carl:/bin/sh");
        let [file, getent] = [file, getent].map(|path| path.to_str().unwrap().to_string());
        assert_eq!(look_up(1000, &file, &getent), Some(ann()));
        assert_eq!(look_up(5000, &file, &getent).unwrap().name, "carl");
        assert_eq!(look_up(5001, &file, &getent), None);
        assert_eq!(look_up(5000, &file, "/nonexistent/getent"), None);
        assert_eq!(look_up(1000, &file, "/nonexistent/getent"), Some(ann()));
    }

    #[test]
    fn home_is_what_the_environment_says_and_else_the_accounts() {
        assert_eq!(home_from(Some("/elsewhere".into()), || Some(ann())), Some("/elsewhere".into()));
        assert_eq!(home_from(None, || Some(ann())), Some("/home/ann".into()));
        assert_eq!(home_from(None, || None), None);
    }
}
