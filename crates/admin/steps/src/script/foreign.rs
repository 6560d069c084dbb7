//! Tests scripts with hostile text of other users, run by `/bin/sh` and by bash: no shell evaluates or follows it.

use super::tests::here;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// Would run a command if a shell used it in arithmetic, as the index of an array.
const HOSTILE: &str = "a[$(id>pwned)]";
const IN_USE: &str = include_str!("../in_use.sh");
const DISK: &str = include_str!("../disk.sh");
const ACT: &str = include_str!("../act.sh");

fn each_shell(test: impl Fn(&Path, &dyn Fn(&str) -> Output)) {
    for shell in [&["/bin/sh"][..], &["bash", "--posix"]] {
        let dir = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let mut command = Command::new(shell[0]);
            let script = here(dir.path(), script);
            command.args(&shell[1..]).args(["-c", &script]).current_dir(dir.path()).output().unwrap()
        };
        test(dir.path(), &run);
        assert!(!dir.path().join("pwned").exists(), "{shell:?}");
    }
}

#[test]
fn words_of_a_disk_that_anybody_has_made_are_read_as_numbers_or_not_at_all() {
    each_shell(|_, run| {
        let empty = |kind: &str, count: &str| {
            let answers = format!(
                "{DISK}\ndisk_dev() {{ echo /dev/null; }}; disk_use() {{ :; }}; blkid() {{ echo {kind}; }}
                 xfs_logprint() {{ echo '<CLEAN>'; }}
                 dumpe2fs() {{ printf '%s\\n' 'Last mounted on: /x' 'Inode count:   {count}' 'Free inodes:  1'; }}
                 xfs_db() {{ printf '%s\\n' 'icount = {count}' 'ifree = 1'; }}
                 disk_empty sdx"
            );
            run(&answers).status.success()
        };
        assert!(empty("ext4", "12") && empty("xfs", "4"));
        assert!(!empty("ext4", "13") && !empty("xfs", HOSTILE) && !empty("ext4", HOSTILE));
    });
}

#[test]
fn names_of_folders_of_others_are_printed_and_not_run() {
    each_shell(|dir, run| {
        let homes = dir.join("homes");
        for name in [HOSTILE, "$(id>pwned)", "`id>pwned`", "x y\n;id>pwned"] {
            std::fs::create_dir_all(homes.join(name.replace('/', "_"))).unwrap();
        }
        let probe = include_str!("../probe.sh");
        let done = run(&format!("{IN_USE}\n{DISK}\n{probe}\nhomes homes none; point homes"));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(text.contains("homes\tholds\ta??"), "{text} {}", String::from_utf8_lossy(&done.stderr));
    });
}

#[test]
fn what_is_beside_a_copy_of_homes_is_replaced_and_not_written_through() {
    each_shell(|dir, run| {
        std::fs::write(dir.join("kept"), "kept").unwrap();
        symlink(dir.join("kept"), dir.join("copy.homing-new")).unwrap();
        let done = run(&format!("{ACT}\nmark copy 'copied n1'"));
        assert!(done.status.success(), "{done:?}");
        assert_eq!(std::fs::read_to_string(dir.join("copy.homing")).unwrap(), "copied n1\n");
        // A folder and its mark are links to another place.
        std::fs::create_dir_all(dir.join("elsewhere")).unwrap();
        std::fs::create_dir_all(dir.join("homes/ann")).unwrap();
        symlink(dir.join("elsewhere"), dir.join("link")).unwrap();
        symlink(dir.join("copy.homing"), dir.join("link.homing")).unwrap();
        let done = run(&format!("{ACT}\ncopy_tree homes link n1"));
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && why.contains("is a link or another user's"), "{why}");
        assert_eq!(std::fs::read_dir(dir.join("elsewhere")).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(dir.join("kept")).unwrap(), "kept");
    });
}
