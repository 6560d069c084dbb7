use super::*;
use crate::until::until;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

fn place(dir: &Path, limit: Option<u32>) -> LeaseFolder {
    LeaseFolder { folder: dir.join(FOLDER), server: "nas".into(), limit, unfit: None }
}

fn open(dir: &Path) -> Leases {
    Leases::open(place(dir, None)).unwrap().0
}

/// Runs a test with two runs that publish by locks, then with two that publish by names.
fn both(test: impl Fn(&Path, Leases, Leases)) {
    for by in [PublishMethod::Locks, PublishMethod::Names] {
        let dir = tempfile::tempdir().unwrap();
        let run = || {
            let (folder, made, _) = folder(&dir.path().join(FOLDER)).unwrap();
            Leases::begin(LeaseFolder { folder, ..place(dir.path(), None) }, made, by, None).unwrap()
        };
        test(dir.path(), run(), run());
    }
}

fn wants(wanted: u32, used: u32) -> LeaseDemand {
    LeaseDemand { wanted, used, limit: Some(4) }
}

#[test]
fn all_together_have_no_more_than_the_limit_and_what_is_not_needed_goes_back() {
    both(|dir, mut a, mut b| {
        let now = Instant::now();
        assert_eq!(a.turn(wants(3, 0), true, now).unwrap().may_use, 3);
        let seen = b.turn(wants(3, 0), true, now).unwrap();
        assert_eq!((seen.may_use, seen.total, seen.limit, seen.others), (1, 4, Some(4), true));
        assert_eq!(look(&place(dir, None)).unwrap().total, 4);
        // The first waits for nothing more, but its tasks go on: it keeps their leases.
        assert_eq!(a.turn(wants(2, 2), false, now).unwrap().may_use, 2);
        assert_eq!(b.turn(wants(3, 1), true, now).unwrap().may_use, 1, "it was not said that none has begun meanwhile");
        a.turn(wants(2, 2), true, now).unwrap();
        assert_eq!(b.turn(wants(3, 1), true, now).unwrap().may_use, 2);
        drop(b);
        assert_eq!(a.turn(wants(4, 2), true, now).unwrap().may_use, 4);
        drop(a);
        assert!(!dir.join(FOLDER).exists(), "nothing is left");
    });
}

#[test]
fn where_nobody_says_a_limit_no_task_waits_and_what_is_in_use_is_seen() {
    both(|_, mut a, mut b| {
        let now = Instant::now();
        let found = |wanted, used| LeaseDemand { wanted, used, limit: None };
        assert_eq!(a.turn(found(0, 0), true, now).unwrap().may_use, u32::MAX);
        a.turn(found(3, 3), true, now).unwrap();
        let limited = b.turn(wants(4, 0), true, now).unwrap();
        assert_eq!((limited.may_use, limited.total), (1, 4), "three of four are in use");
        assert_eq!(a.turn(found(5, 3), true, now).unwrap().may_use, 2, "an equal part of what the other has said");
    });
}

#[test]
fn a_folder_that_another_run_is_just_making_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(FOLDER);
    let mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::create_dir(&folder).unwrap();
    mode(0o1755);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            mode(0o1777);
        });
        let (leases, said) = Leases::open(place(dir.path(), None)).unwrap();
        assert_eq!((&leases.place.folder, said), (&folder, None), "all find the same");
    });
}

#[test]
fn a_run_that_waits_gets_its_part_as_tasks_end() {
    both(|_, mut a, mut b| {
        let now = Instant::now();
        a.turn(wants(4, 0), true, now).unwrap();
        assert_eq!(b.turn(wants(4, 0), true, now).unwrap().may_use, 0);
        assert_eq!(a.turn(wants(4, 4), true, now).unwrap().may_use, 2, "two are asked back");
        assert_eq!(b.turn(wants(4, 0), true, now).unwrap().may_use, 0, "its tasks still run");
        a.turn(wants(4, 3), true, now).unwrap();
        assert_eq!(b.turn(wants(4, 0), true, now).unwrap().may_use, 1);
        a.turn(wants(4, 2), true, now).unwrap();
        assert_eq!(b.turn(wants(4, 1), true, now).unwrap().may_use, 2);
    });
}

#[test]
fn one_that_only_pretends_to_wait_is_passed_over() {
    both(|_, mut a, mut b| {
        let now = Instant::now();
        b.show(LeaseDemand { wanted: 4, ..LeaseDemand::default() }).unwrap();
        a.turn(wants(4, 0), true, now).unwrap();
        for n in 0..20 {
            a.turn(wants(4, 4u32.saturating_sub(n)), true, now).unwrap();
        }
        let later = a.turn(wants(4, 2), true, now + 2 * STUCK).unwrap();
        let last = a.turn(wants(4, later.may_use), true, now + 4 * STUCK).unwrap();
        assert_eq!(last.may_use, 4);
    });
}

#[test]
fn a_run_whose_host_died_counts_for_nothing_though_what_it_said_is_still_there() {
    both(|_, mut a, mut b| {
        let (now, beat) = (Instant::now(), a.by.beat());
        for n in 0..20 {
            a.turn(wants(4, 4), true, now + n * beat).unwrap();
            assert_eq!(b.turn(wants(4, 0), true, now + n * beat).unwrap().may_use, 0, "it lives");
        }
        let mut after = |time: Duration| b.turn(wants(4, 0), true, now + 20 * beat + time).unwrap();
        let gone = b_gone(a.by, beat);
        for n in 0..gone {
            assert_eq!(after(n * beat).may_use, 0, "it may only be slow");
        }
        let last = after(gone * beat + beat);
        assert_eq!((last.may_use, last.total), (4, 4));
    });
}

/// Returns the beats from the last observed one until a run counts as gone, less one.
fn b_gone(by: PublishMethod, beat: Duration) -> u32 {
    (by.gone().as_secs() / beat.as_secs()) as u32 - 1
}

#[test]
fn a_run_is_not_gone_because_nobody_could_look() {
    both(|_, mut a, mut b| {
        let (now, gone) = (Instant::now(), a.by.gone());
        a.turn(wants(4, 4), true, now).unwrap();
        assert_eq!(b.turn(wants(4, 0), true, now).unwrap().may_use, 0);
        assert_eq!(b.turn(wants(4, 0), true, now + 3 * gone).unwrap().may_use, 0, "the file server stood still");
    });
}

#[test]
fn nobody_is_held_back_for_ever() {
    both(|_, mut a, mut b| {
        let now = Instant::now();
        a.turn(wants(4, 0), true, now).unwrap();
        assert!(!b.turn(wants(4, 0), true, now).unwrap().gave_up);
        a.turn(wants(4, 4), true, now + 2 * PATIENCE).unwrap();
        assert!(b.turn(wants(4, 0), true, now + 2 * PATIENCE).unwrap().gave_up);
    });
}

#[test]
fn what_somebody_else_has_put_there_is_passed_over_and_said() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/", dir.path().join(FOLDER)).unwrap();
    std::fs::create_dir(dir.path().join(format!("{FOLDER}.1"))).unwrap();
    let (leases, told) = Leases::open(place(dir.path(), None)).unwrap();
    assert!(told.unwrap().contains("is a symbolic link, and was skipped"));
    assert_eq!(leases.place.folder, dir.path().join(format!("{FOLDER}.2")));
    let (again, _) = Leases::open(place(dir.path(), None)).unwrap();
    assert_eq!(again.place.folder, leases.place.folder, "all find the same");
}

#[test]
fn others_may_ask_whatever_the_umask_is() {
    let dir = tempfile::tempdir().unwrap();
    // The umask is that of the whole process: a child has its own.
    let run = |umask: &str| {
        let own = format!("umask {umask}; exec {:?} --exact tests::a_beginner", std::env::current_exe().unwrap());
        std::process::Command::new("sh").args(["-c", &own]).env("LEASES", dir.path()).output().unwrap()
    };
    assert!(run("077").status.success());
}

/// Runs in a separate process.
#[test]
fn a_beginner() {
    let Some(dir) = std::env::var_os("LEASES") else { return };
    let leases = open(Path::new(&dir));
    assert_eq!(leases.own.file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn odd_files_hold_nothing_and_stop_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let mut a = open(dir.path());
    let folder = dir.path().join(FOLDER);
    rustix::fs::mknodat(rustix::fs::CWD, folder.join("nas@pipe"), rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    symlink("/dev/zero", folder.join("nas@link")).unwrap();
    std::fs::create_dir(folder.join("nas@folder")).unwrap();
    std::fs::write(folder.join("nas@left"), "").unwrap();
    std::fs::write(folder.join("other@here.1.0"), "").unwrap();
    let seen = a.turn(wants(4, 0), true, Instant::now()).unwrap();
    assert_eq!((seen.may_use, seen.others), (4, false));
}

/// A process that may read a file may lock it for reading.
#[test]
fn a_stranger_who_locks_the_bytes_of_leases_leaves_what_is_said_of_wishes_true() {
    let dir = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let (mut a, mut b) = (open(dir.path()), open(dir.path()));
    let stranger = std::fs::File::open(a.own.path()).unwrap();
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_len) = (libc::F_RDLCK as libc::c_short, 4);
    // SAFETY: the descriptor is open and the structure outlives the call.
    assert_eq!(unsafe { libc::fcntl(stranger.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
    assert_eq!(a.turn(wants(3, 0), true, now).unwrap().may_use, 0);
    a.turn(LeaseDemand { limit: Some(9), ..LeaseDemand::default() }, true, now).unwrap();
    assert_eq!(
        b.turn(LeaseDemand::default(), true, now).unwrap().limit,
        Some(9),
        "what it said before is not said any more"
    );
}

#[test]
fn a_file_that_was_removed_is_made_again() {
    both(|_, mut a, mut b| {
        let now = Instant::now();
        a.turn(wants(3, 0), true, now).unwrap();
        std::fs::remove_file(a.own.path()).unwrap();
        a.turn(wants(3, 3), true, now).unwrap();
        assert_eq!(b.turn(wants(3, 0), true, now).unwrap().may_use, 1);
    });
}

#[test]
fn what_a_killed_run_has_left_is_removed_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let (left, new) = (first.place.folder.join("nas@h.1.0"), first.place.folder.join("nas@h.2.0"));
    let old = std::fs::File::create(&left).unwrap();
    old.set_modified(SystemTime::now() - 2 * LEFT_BEHIND).unwrap();
    std::fs::write(&new, "").unwrap();
    let _second = open(dir.path());
    assert_eq!((left.exists(), new.exists()), (false, true));
}

#[test]
fn a_place_that_cannot_be_had_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |folder: PathBuf| Leases::open(LeaseFolder { folder, ..place(dir.path(), None) }).unwrap_err();
    assert!(refused(dir.path().join("none").join(FOLDER)).contains("cannot make"));
    assert!(refused("/".into()).contains("cannot be a folder"));
    let file = dir.path().join("file");
    homing_os::folder::names(dir.path(), "file").for_each(|name| std::fs::write(name, "").unwrap());
    assert!(refused(file).contains("is not a folder"));
    let narrow = dir.path().join("narrow");
    homing_os::folder::names(dir.path(), "narrow").for_each(|name| {
        std::fs::create_dir(&name).unwrap();
        std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o777)).unwrap();
    });
    assert!(refused(narrow).contains("chmod 1777"));
}

/// Makes the leases of a process in a line; the next process leaves a file that shows that it was started.
fn in_line(dir: &Path, by: PublishMethod) -> Leases {
    let (folder, made, _) = folder(&dir.join(FOLDER)).unwrap();
    let next = Successor { line: "queue-1".into(), program: "touch".into(), word: dir.join("started").into() };
    Leases::begin(LeaseFolder { folder, ..place(dir, None) }, made, by, Some(&next)).unwrap()
}

#[test]
fn leases_of_one_who_is_killed_are_the_next_ones_and_nobody_elses() {
    for by in [PublishMethod::Locks, PublishMethod::Names] {
        let dir = tempfile::tempdir().unwrap();
        let mut killed = std::process::Command::new(std::env::current_exe().unwrap());
        killed.args(["--exact", "tests::one_who_is_killed"]).env("LEASES", dir.path());
        killed.env("LEASES_BY", format!("{by:?}")).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut killed = killed.spawn().unwrap();
        let is_there = |path: &str| until(path, || dir.path().join(path).exists());
        is_there("holds");
        let mut other = open(dir.path());
        killed.kill().unwrap();
        killed.wait().unwrap();
        let mut others_may = || other.turn(wants(4, 0), true, Instant::now()).unwrap().may_use;
        assert_eq!(others_may(), 1, "{by:?}");
        is_there("started");
        assert_eq!(others_may(), 1, "{by:?}");
        let mut next = in_line(dir.path(), by);
        assert_eq!((next.held, others_may()), (3, 1), "{by:?}");
        assert_eq!(next.turn(wants(3, 2), true, Instant::now()).unwrap().may_use, 2, "one of its jobs has ended");
        assert_eq!(others_may(), 2, "{by:?}");
        drop(next);
        assert_eq!(others_may(), 4, "nothing else is left, {by:?}");
    }
}

/// Runs in a separate process.
#[test]
fn one_who_is_killed() {
    let Some(by) = std::env::var_os("LEASES_BY") else { return };
    let dir = PathBuf::from(std::env::var_os("LEASES").unwrap());
    let mut leases = in_line(&dir, if by == "Names" { PublishMethod::Names } else { PublishMethod::Locks });
    assert_eq!(leases.turn(wants(3, 0), true, Instant::now()).unwrap().may_use, 3);
    std::fs::write(dir.join("holds"), "").unwrap();
    std::io::read_to_string(std::io::stdin()).unwrap();
}

/// Runs the successor's shell, as `/bin/sh` and as a bash of that name, beside names that a stranger has planted
/// before the lease. These are a command in an index, a link to another file of this user, a pipe and a folder.
#[test]
fn a_strangers_name_is_neither_run_nor_followed_nor_renamed_by_any_shell() {
    for shell in [&["/bin/sh"][..], &["bash", "--posix"]] {
        let dir = tempfile::tempdir().unwrap();
        let (file, pwned) = (dir.path().join("nas@h.queue-1.1.0"), dir.path().join("pwned"));
        let named = |rest: &str| PathBuf::from(format!("{}{rest}", file.display()));
        let (lease, kept) = (named("+3+0+5"), dir.path().join("kept"));
        let planted = ["+0+0+a[$(id>pwned;echo 1)]", "+1+0+1", "+1+0+2", "+1+0+3"].map(named);
        [&lease, &kept, &planted[0]].into_iter().for_each(|path| std::fs::write(path, "x").unwrap());
        symlink(&kept, &planted[1]).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &planted[2], pipe, 0o666.into(), 0).unwrap();
        std::fs::create_dir(&planted[3]).unwrap();
        // An ordinary user cannot give a file away. The name is then the user's own, and is still not run.
        let given = std::os::unix::fs::lchown(&planted[0], Some(61184), None).is_ok();
        let before = std::fs::symlink_metadata(&kept).unwrap().modified().unwrap();

        let mut run = std::process::Command::new(shell[0]);
        run.args(&shell[1..]).args(["-c", after::SUCCEED, "homing-leases"]).arg(&file).current_dir(dir.path());
        run.env("HOMING_NEXT", "touch").env("HOMING_NEXT_WORD", dir.path().join("started"));
        assert!(run.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
        let names = || std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        until("the first beat of the shell", || pwned.exists() || names().any(|name| name.contains("+4294967")));
        assert!(!pwned.exists(), "{shell:?}");
        assert_eq!(std::fs::symlink_metadata(&kept).unwrap().modified().unwrap(), before);
        assert_eq!(std::fs::read_dir(&planted[3]).unwrap().count(), 0);
        if given {
            assert!(planted.iter().all(|path| path.symlink_metadata().is_ok()), "{shell:?}: those are not its own");
            assert!(!lease.exists(), "{shell:?}: the lease has got another name");
        }
    }
}
