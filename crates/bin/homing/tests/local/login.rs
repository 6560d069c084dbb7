//! The environment of a task on another host: the parts from this machine, and those of the login there. A fake ssh
//! takes the place of a host.

use crate::script::script;
use crate::support::EXE;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

struct World(tempfile::TempDir);

impl World {
    /// Makes a host where the login is ann's, with a umask of its own.
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("ann/bin")).unwrap();
        std::fs::create_dir_all(dir.path().join("here")).unwrap();
        let at = dir.path().display();
        let login = format!(
            "for c in \"$@\"; do :; done\n\
             exec env -i HOME={at}/ann USER=ann LOGNAME=ann SHELL=/bin/sh PATH={at}/ann/bin:/usr/bin:/bin TMPDIR={at} \
             XDG_RUNTIME_DIR={at}/run SSH_CLIENT=1.2.3.4 sh -c \"umask 077; $c\""
        );
        script(&dir.path().join("ssh"), &login);
        World(dir)
    }

    fn homing(&self, mask: &str, words: &str) -> Output {
        let at = self.0.path();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {mask}; exec {EXE} {words}")]).current_dir(at.join("here"));
        command.env("HOMING_SSH", at.join("ssh")).env("HOMING_RUNS", at.join("runs")).env("HOME", at.join("here"));
        command.env("XDG_CONFIG_HOME", at.join("config")).env("SSH_AUTH_SOCK", "/here/agent").env("USER", "here");
        command.env("FOO", "bar").env("HOMING_SHELL", "/bin/sh").env("HOMING_CLUSTER", "").output().unwrap()
    }

    fn out(&self, mask: &str, words: &str) -> String {
        let output = self.homing(mask, words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().replace(&self.0.path().display().to_string(), "")
    }
}

#[test]
fn a_task_on_another_host_has_the_umask_of_the_shell_here() {
    let world = World::new();
    for (mask, file, folder) in [("0022", 0o644, 0o755), ("0002", 0o664, 0o775), ("0077", 0o600, 0o700)] {
        let here = world.0.path().join("here");
        let words = format!("run -q -S ann@far 'umask; cd {} && mkdir d{{}} && echo > f{{}}' ::: ", here.display());
        assert_eq!(world.out(mask, &format!("{words}{mask}")), format!("{mask}\n"));
        let mode = |name: String| std::fs::metadata(here.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(format!("f{mask}")), mode(format!("d{mask}"))), (file, folder));
        assert_eq!(world.out(mask, "run -q 'umask; : {}' ::: 1"), format!("{mask}\n"), "and on this machine");
    }
}

#[test]
fn a_task_on_another_host_is_at_home_there() {
    let world = World::new();
    let show = "'echo $HOME ~ $USER $PATH $XDG_RUNTIME_DIR $XDG_CONFIG_HOME $SSH_CLIENT $SSH_AUTH_SOCK $FOO {}' ::: 1";
    let there = world.out("0022", &format!("run -q -S ann@far {show}"));
    assert_eq!(there, "/ann /ann ann /ann/bin:/usr/bin:/bin /run 1.2.3.4 bar 1\n");
    let named = world.out("0022", "run -q -S ann@far --env USER --env HOME 'echo $HOME $USER $FOO {}' ::: 1");
    assert_eq!(named, "/here here 1\n", "what is named goes along, and nothing else");
    let here = world.out("0022", "run -q 'echo $HOME $USER $SSH_AUTH_SOCK $FOO {}' ::: 1");
    assert_eq!(here, "/here here /here/agent bar 1\n");
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    let world = World::new();
    let at = world.0.path();
    let mut run = Command::new(EXE);
    run.args(["run", "true", ":::", "1"]).env_remove("XDG_STATE_HOME").env_remove("HOMING_RUNS");
    let run = run.env_remove("XDG_CACHE_HOME").env("HOME", at.join("none")).env("TMPDIR", at).output().unwrap();
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success() && told.contains("does not exist, and homing does not make it"), "{told}");
    assert!(!at.join("none").exists());
    let mute = ["check", "--mute", "HC-NAME-01", "--because", "test"];
    let mute = Command::new(EXE).args(mute).env_remove("XDG_STATE_HOME").env("HOME", at.join("none")).output().unwrap();
    let told = String::from_utf8_lossy(&mute.stderr).into_owned();
    assert!(!mute.status.success() && told.contains("set HOME"), "{told}");
    assert!(!at.join("none").exists());
}
