use super::*;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, lchown, symlink};

const STRANGER: u32 = 61184;

fn pipe(at: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, at, FileType::Fifo, 0o666.into(), 0).unwrap();
}

/// Makes a folder open to all, with files that strangers have put there. Returns whether this user could give them
/// away.
fn planted() -> (tempfile::TempDir, bool) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    fs::write(at("kept"), "kept").unwrap();
    symlink(at("kept"), at("link")).unwrap();
    symlink(at("elsewhere/made"), at("dangling")).unwrap();
    symlink(at("elsewhere"), at("way")).unwrap();
    pipe(&at("pipe"));
    fs::create_dir(at("folder")).unwrap();
    fs::hard_link(at("kept"), at("second")).unwrap();
    let given = ["link", "dangling", "way", "pipe"].iter().all(|name| lchown(at(name), Some(STRANGER), None).is_ok());
    (dir, given)
}

const ALL: [Existing; 4] = [Existing::Refuse, Existing::Replace, Existing::Append, Existing::Empty];

#[test]
fn what_a_stranger_has_planted_is_neither_followed_nor_waited_for() {
    for existing in ALL {
        let (dir, given) = planted();
        for name in ["link", "dangling", "pipe", "folder", "second", "way/made"] {
            // An ordinary user cannot give files away, so its own links are followed.
            if !given && !["pipe", "folder", "second"].contains(&name) {
                continue;
            }
            let made = make_file(&dir.path().join(name), existing, 0o600);
            let replaced = existing == Existing::Replace && !["folder", "way/made"].contains(&name);
            assert_eq!(made.is_ok(), replaced, "{existing:?} {name}: {made:?}");
            if let Ok(mut file) = made {
                file.write_all(b"new").unwrap();
                assert!(fs::symlink_metadata(dir.path().join(name)).unwrap().is_file());
            }
        }
        assert_eq!(fs::read(dir.path().join("kept")).unwrap(), b"kept", "{existing:?}");
        assert_eq!(fs::read_dir(dir.path().join("elsewhere")).unwrap().count(), 0, "{existing:?}");
    }
}

#[test]
fn folders_are_not_made_behind_a_strangers_link() {
    let (dir, given) = planted();
    let made = OpenFolder::make(&dir.path().join("way/a/b"), 0o777);
    assert_eq!(made.is_err(), given);
    if given {
        assert!(made.unwrap_err().to_string().contains("way on the way is a symbolic link of another user"));
        assert_eq!(fs::read_dir(dir.path().join("elsewhere")).unwrap().count(), 0);
    }
    let made = OpenFolder::make(&dir.path().join("folder/../new/b"), 0o777).unwrap();
    made.file("f".as_ref(), Existing::Refuse, 0o600).unwrap();
    assert!(dir.path().join("new/b/f").is_file());
}

#[test]
fn what_users_name_themselves_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let write = |name: &str, existing, text: &str| {
        make_file(&at(name), existing, 0o644).unwrap().write_all(text.as_bytes()).unwrap();
    };
    write("log", Existing::Append, "one");
    write("log", Existing::Append, "two");
    symlink("log", at("own")).unwrap();
    write("own", Existing::Append, "three");
    assert_eq!(fs::read_to_string(at("log")).unwrap(), "onetwothree");
    write("own", Existing::Empty, "four");
    assert_eq!(fs::read_to_string(at("log")).unwrap(), "four");
    fs::create_dir(at("sub")).unwrap();
    symlink("sub/../new", at("to-new")).unwrap();
    write("to-new", Existing::Append, "made");
    assert_eq!(fs::read_to_string(at("new")).unwrap(), "made");
    make_file(Path::new("/dev/null"), Existing::Append, 0o644).unwrap().write_all(b"x").unwrap();
    let (mut reader, writer) = io::pipe().unwrap();
    let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    make_file(Path::new(&name), Existing::Empty, 0o644).unwrap().write_all(b"through").unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn an_own_pipe_without_a_reader_is_an_error_at_once_and_one_with_a_reader_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    pipe(&path);
    let failed = make_file(&path, Existing::Append, 0o600).unwrap_err();
    assert_eq!(failed.to_string(), "it is a pipe or socket that no process reads");
    let mut reader = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    make_file(&path, Existing::Append, 0o600).unwrap().write_all(b"line").unwrap();
    let mut text = [0; 4];
    reader.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"line");
}

#[test]
fn a_circle_of_links_ends() {
    let dir = tempfile::tempdir().unwrap();
    symlink("b", dir.path().join("a")).unwrap();
    symlink("a", dir.path().join("b")).unwrap();
    assert!(make_file(&dir.path().join("a"), Existing::Append, 0o600).is_err());
    assert!(OpenFolder::make(&dir.path().join("a/b"), 0o700).is_err());
}
