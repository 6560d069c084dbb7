//! Volumes on real hosts with real daemons. Needs root; says so and does nothing without it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Lab {
    name: String,
    state: tempfile::TempDir,
}

impl Lab {
    fn up(hosts: &str) -> Lab {
        let name = format!("vol{}", std::process::id());
        let lab = Lab { name, state: tempfile::tempdir().unwrap() };
        let up = homing(&lab, &["lab", "up", "--name", &lab.name, "--hosts", hosts, "--disk", "1G"]);
        assert!(up.status.success(), "{}", err(&up));
        lab
    }

    fn on(&self, host: &str, script: &str) -> String {
        let output = homing(self, &["lab", "exec", "--name", &self.name, host, "--", "sh", "-c", script]);
        assert!(output.status.success(), "{host}: {script}: {}", err(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn volume(&self, words: &str) -> Output {
        let words: Vec<&str> = words.split(' ').collect();
        homing(self, &[&["volume"], &words[..]].concat())
    }

    fn ok(&self, words: &str) -> String {
        let output = self.volume(words);
        assert!(output.status.success(), "volume {words}: {}", err(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        homing(self, &["lab", "down", "--name", &self.name]);
    }
}

fn homing(lab: &Lab, args: &[&str]) -> Output {
    let config = PathBuf::from("/var/lib/homing/labs").join(&lab.name).join("ssh_config");
    Command::new(env!("CARGO_BIN_EXE_homing"))
        .args(args)
        .env("HOMING_SSH", format!("ssh -F {}", config.display()))
        .env("HOMING_VOLUMES", lab.state.path())
        .env("XDG_RUNTIME_DIR", lab.state.path())
        .output()
        .unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn missing(programs: &[&str]) -> bool {
    let there = |p: &&str| ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(p).exists());
    let left_out = !rustix::process::geteuid().is_root() || !programs.iter().all(there);
    if left_out {
        eprintln!("SKIPPED: volumes need root and {}", programs.join(", "));
    }
    left_out
}

#[test]
fn a_gluster_volume_from_nothing_to_drained_and_gone() {
    if missing(&["systemd-nspawn", "glusterd", "mount.glusterfs"]) {
        return;
    }
    let lab = Lab::up("3");
    let create = "create data --kind gluster --hosts n[1-2]:/scratch --copies 2 --clients n[1-3]";
    refusals(&lab, create);
    interrupted(&lab, create);

    lab.ok(create);
    let list: serde_json::Value = serde_json::from_str(&lab.ok("list --json")).unwrap();
    let row = &list["volumes"][0];
    assert_eq!((row["name"].as_str(), row["mount"].as_str()), (Some("data"), Some("/data")));
    assert_eq!((row["copies"].as_u64(), row["hosts"].to_string().as_str()), (Some(2), r#"["n1","n2"]"#));
    lab.on(
        "n3",
        "for i in $(seq 40); do head -c 100000 /dev/urandom > /data/f$i; done; cd /data; sha256sum * > /tmp/sums",
    );
    lab.on("n1", "test $(ls /data | wc -l) = 40");
    assert!(lab.ok(create).contains("is mounted"), "a second call changes nothing");

    let refused = lab.volume("delete data");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--delete-files"), "{}", err(&refused));
    let refused = lab.volume("drain-host data n2");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--allow-losing-copies"), "{}", err(&refused));

    lab.ok("add-host data n3:/scratch");
    lab.on("n3", "cd /data && sha256sum -c --quiet /tmp/sums");
    // From the hosts alone: the record is lost.
    std::fs::remove_file(lab.state.path().join("data.json")).unwrap();
    lab.ok("drain-host data n1 -w n[1-3]");
    lab.on("n1", "! ls -d /scratch/data* 2>/dev/null");
    lab.on("n3", "cd /data && sha256sum -c --quiet /tmp/sums");
    lab.on("n2", "cd /data && test $(ls | wc -l) = 40");
    let status = lab.volume("status data --json");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["hosts"].to_string(), r#"["n2","n3"]"#, "{status}");
    lab.ok("heal data");
    lab.ok("delete data --delete-files");
    for host in ["n1", "n2", "n3"] {
        lab.on(host, "! ls -d /scratch/data* 2>/dev/null; ! grep -q homing /etc/fstab; ! mountpoint -q /data");
    }
}

fn refusals(lab: &Lab, create: &str) {
    let refused = lab.volume(&create.replace(":/scratch", ":/srv"));
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--allow-system-disk"), "{}", err(&refused));
    let dry = lab.ok(&format!("{create} --dry-run"));
    assert!(dry.contains("n1: gluster '--mode=script' volume create data replica 2 n1:/scratch/data n2:/scratch/data"));
    lab.on("n1", "! systemctl is-active --quiet glusterd; ! test -e /scratch/data");
}

/// The second host cannot mount: what is under way is told, taken back, and leaves nothing.
fn interrupted(lab: &Lab, create: &str) {
    lab.on("n2", "touch /data; chattr +i /data 2>/dev/null || true");
    let stopped = lab.volume(create);
    assert_eq!(stopped.status.code(), Some(254), "{}", err(&stopped));
    assert!(err(&stopped).contains("homing volume resume data"), "{}", err(&stopped));
    lab.on("n2", "chattr -i /data 2>/dev/null; rm /data");
    lab.ok("undo data");
    lab.on("n1", "! systemctl is-active --quiet glusterd; ! test -e /scratch/data; ! grep -q homing /etc/fstab");
}
