//! The main job on real hosts: sshd, GlusterFS, shaped links. Needs root; says
//! so and does nothing without it.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Two checkouts may be tested at once.
static LAB: LazyLock<String> = LazyLock::new(|| format!("mainjob{}", std::process::id()));

fn homing(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_homing")).args(args).output().unwrap()
}

/// Takes the lab down however the test ends.
struct Lab;

impl Drop for Lab {
    fn drop(&mut self) {
        homing(&["lab", "down", "--name", &LAB]);
    }
}

fn on(host: &str, script: &str) -> Output {
    homing(&["lab", "exec", "--name", &LAB, host, "--", "sh", "-c", script])
}

fn ok(host: &str, script: &str) -> String {
    let output = on(host, script);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{host}: {script}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Bytes that all hosts received over their links, by the interface counters.
fn received() -> u64 {
    let status = homing(&["lab", "status", "--name", &LAB, "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    status["hosts"].as_array().unwrap().iter().map(|h| h["rx_bytes"].as_u64().unwrap()).sum()
}

#[test]
fn commands_run_where_their_bytes_lie() {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/sbin/glusterd").exists() {
        eprintln!("SKIPPED: the lab needs root and GlusterFS");
        return;
    }
    homing(&["lab", "down", "--name", &LAB]);
    let lab = Lab;
    let up = homing(&["lab", "up", "--name", &LAB, "--hosts", "4", "--link", "200mbit", "--gluster", "2x2"]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let exe = env!("CARGO_BIN_EXE_homing");
    ok("n1", "for i in $(seq 16); do head -c 4000000 /dev/urandom > \"/data/f $i\"; done; printf x > '/data/a>\nb'");

    // The layout, also for an ordinary user, whatever the file is called.
    let text = ok("n1", &format!("setpriv --reuid 65534 --clear-groups {exe} where --json /data"));
    let layout: serde_json::Value = serde_json::from_str(&text).unwrap();
    for file in layout["files"].as_array().unwrap() {
        let hosts: Vec<&str> =
            file["extents"][0]["replicas"].as_array().unwrap().iter().map(|r| r["host"].as_str().unwrap()).collect();
        let mut sorted = hosts.clone();
        sorted.sort_unstable();
        assert!(sorted == ["n1", "n2"] || sorted == ["n3", "n4"], "{file}");
    }

    // A first run carries the program to the hosts: `homing hosts` waits until all have it.
    ok("n1", &format!("{exe} hosts --hosts 'n[1-4]'"));

    // The batch crosses no link; the same batch in turn does.
    let size = 16 * 4_000_000;
    let before = received();
    let run = format!("cd /data && {exe} run -q -k --on ssh --hosts 'n[1-4]' -j2 'cksum {{}}' ::: /data/f*");
    let sums = ok("n1", &run);
    assert_eq!(sums.lines().count(), 16);
    let near = received() - before;
    // A few files of the sixteen may go to an idle host when their own are busy.
    assert!(near < size / 4, "{near} bytes crossed links");
    // All hosts share one kernel, so its caches can be dropped from here.
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let before = received();
    let in_turn = ok("n1", &run.replace("run -q", "run --no-locality -q"));
    assert_eq!(in_turn, sums, "placement changes no result");
    assert!(received() - before > size / 4, "the control: without placement bytes do cross");

    a_lost_host_is_news(exe);
    drop(lab);
    assert!(!Path::new("/sys/class/net").join("n1").exists());
}

/// A host dies in mid-run: its tasks run on the host of the other copy, once each.
/// However slow the machine is: no task ends before that host has begun one,
/// and its first task does not end by itself.
fn a_lost_host_is_news(exe: &str) {
    let script = format!(
        "cd /data; {exe} run -k --on ssh --hosts 'n[1-4]' -j1 \
         'if test $(hostname) = n4 && mkdir /data/begun; then sleep 600; fi; \
         until test -d /data/begun; do sleep 0.1; done; basename {{}}' ::: /data/f* 2>/tmp/err & \
         run=$!; until test -d /data/begun; do sleep 0.1; kill -0 $run || break; done; \
         ssh n4 pkill -9 -f worker; wait $run; \
         s=$?; cat /tmp/err >&2; exit $s"
    );
    let output = on("n1", &script);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 16, "each task once: {err}");
    assert!(err.contains("n4 is lost"), "{err}");
}
