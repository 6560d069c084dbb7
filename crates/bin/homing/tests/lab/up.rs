//! Bare hosts of a lab become a cluster and go back. Needs root; otherwise prints a note and is skipped.

use crate::setup::{Up, failed};
use crate::support::{EXE, Lab, err, missing};
use serde_json::Value;
use std::process::Command;

const CLUSTER: &str = r#"
hosts = "n[1-3]"
[up]
hostname = true
ssh = "host-based"
packages = ["homing-greeting"]
[up.group.crew]
gid = 3900
[up.user.carla]
uid = 3901
groups = ["crew"]
[up.sysctl]
"net.core.somaxconn" = "4321"
[up.limits]
nofile = "321:4321"
"#;

/// Gives a host the name that Debian's installer gives it, and a package source of its own. Updates the index of
/// libraries as any installation or removal of a package does.
const BARE: &str = r#"set -e
ldconfig
h=$(hostname); sed -i "1i 127.0.1.1 $h.lab $h" /etc/hosts
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/*docker*
mkdir -p /srv/repo/p/DEBIAN /srv/repo/p/usr/share/homing-greeting && cd /srv/repo
printf 'Package: homing-greeting\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.invalid>\nDescription: hello\n' > p/DEBIAN/control
echo hello > p/usr/share/homing-greeting/text
dpkg-deb --build p g.deb > /dev/null
{ cat p/DEBIAN/control; echo Filename: ./g.deb; echo Size: $(stat -c %s g.deb); echo SHA256: $(sha256sum g.deb | cut -d' ' -f1); } > Packages
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
"#;

/// Lists all of /etc. The copies that useradd keeps of earlier files, and its lock, are left out.
const TREE: &str = r#"cd /etc; find . ! -name '*-' ! -name .pwd.lock -printf '%p %m %U %G %y\n' | sort
find . -type f ! -name '*-' ! -name .pwd.lock -print0 | sort -z | xargs -0 sha256sum; sysctl -n net.core.somaxconn; ls /home"#;

/// Uses this machine as the host, so that no lab is needed.
#[test]
fn a_template_has_the_values_of_its_host_and_equal_bytes_are_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let cluster = |address: &str| {
        format!(
            "hosts = \"localhost\"\n[groups]\nio = \"localhost\"\n[host.localhost]\naddresses = {{ storage = \"{address}\" }}\n"
        )
    };
    std::fs::write(at("c.toml"), cluster("10.9.0.1")).unwrap();
    std::fs::write(at("t"), "name {host} {index}\naddress {addr.storage} ${x}\n").unwrap();
    let homing = |words: &[&str]| Command::new(EXE).args(words).env_remove("HOMING_CLUSTER").output().unwrap();
    let push = || {
        let done = homing(&[
            "push",
            "--cluster",
            &at("c.toml"),
            "-w",
            "localhost",
            "--template",
            &at("t"),
            "--dest",
            &at("f"),
            "--json",
        ]);
        let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", err(&done)));
        assert_eq!(done.status.code(), Some(0), "{told}");
        told["hosts"][0]["changed"].as_u64().unwrap()
    };
    assert_eq!(push(), 1);
    assert_eq!(std::fs::read_to_string(at("f")).unwrap(), "name localhost 1\naddress 10.9.0.1 ${x}\n");
    assert_eq!(push(), 0);
    std::fs::write(at("c.toml"), cluster("10.9.0.2")).unwrap();
    assert_eq!(push(), 1, "as long and as old as before, with another address");
    std::fs::write(at("t"), "{addr.none}").unwrap();
    let refused =
        homing(&["push", "--cluster", &at("c.toml"), "-w", "localhost", "--template", &at("t"), "--dest", &at("f")]);
    assert!(refused.status.code() == Some(255) && err(&refused).contains("no address none"), "{}", err(&refused));

    let told = homing(&["hosts", "--cluster", &at("c.toml"), "--ansible"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["io"]["hosts"][0], "localhost");
    assert_eq!(told["_meta"]["hostvars"]["localhost"]["ansible_host"], "10.9.0.2");
}

#[test]
fn bare_hosts_become_a_cluster_and_go_back() {
    if missing(&["systemd-nspawn", "dpkg-deb", "apt-get"]) {
        return;
    }
    let up = Up { lab: Lab::up("up", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let lab = &up.lab;
    std::fs::write(up.state.path().join("c.toml"), CLUSTER).unwrap();
    ["n1", "n2", "n3"].iter().for_each(|host| drop(lab.ok(host, BARE)));
    lab.ok("n3", "useradd -u 3901 eve; rm /etc/apt/sources.list");
    let before = ["n1", "n2"].map(|host| lab.ok(host, TREE));

    let plan = up.json(&["--dry-run"]);
    assert_eq!(failed(&plan, "n3"), ["users: number 3901, wanted for user carla, belongs to user eve there"]);
    let text = plan.to_string();
    assert!(text.contains("-127.0.1.1 n1.lab n1") && text.contains("+#homing: 127.0.1.1 n1.lab n1"), "{text}");
    assert!(["n1", "n2"].map(|host| lab.ok(host, TREE)) == before, "a plan changes nothing");

    ["names", "users", "ssh"].iter().for_each(|area| up.killed_at(area));
    let done = up.json(&["--no-check"]);
    assert_eq!((failed(&done, "n1"), failed(&done, "n2")), (vec![], vec![]), "{done}");
    let of_n3 = failed(&done, "n3").join("\n");
    assert!(of_n3.contains("package homing-greeting is not available"), "{of_n3}");
    for (from, to) in [("n1", "n2"), ("n2", "n1.lab"), ("n1", "n1")] {
        let said = lab.ok(from, &format!("su - carla -c 'ssh -o BatchMode=yes {to} id'"));
        assert!(said.contains("uid=3901(carla)") && said.contains("3900(crew)"), "{from} to {to}: {said}");
    }
    lab.ok("n2", "test -f /usr/share/homing-greeting/text && test $(sysctl -n net.core.somaxconn) = 4321");
    // Uses lower limits: in a container root may not raise them.
    assert_eq!(lab.ok("n2", "su - carla -c 'ulimit -Sn; ulimit -Hn'"), "321\n4321\n");

    a_host_is_mended_and_no_other_is_touched(&up);
    edits_by_hand(&up);
    edits_between_the_look_and_the_act(&up);
    up_is_undone(&up, &before);
    slurm_comes_and_goes(&up);
}

/// When sshd reads homing's file, this host refuses root from then on. Without that file it accepts root again.
const TRAP: &str = r#"mkdir -p /etc/systemd/system/ssh.service.d; cat > /etc/systemd/system/ssh.service.d/trap.conf <<'END'
[Service]
ExecReload=
ExecReload=/bin/sh -c 'if [ -e /etc/ssh/sshd_config.d/60-homing.conf ]; then echo DenyUsers root > /etc/ssh/sshd_config.d/10-trap.conf; else rm -f /etc/ssh/sshd_config.d/10-trap.conf; fi; kill -HUP $MAINPID'
END
systemctl daemon-reload"#;

#[test]
fn a_host_that_locks_us_out_is_let_back_and_what_was_not_confirmed_is_later() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let up = Up { lab: Lab::up("lock", &["--hosts", "2"]), state: tempfile::tempdir().unwrap() };
    std::fs::write(up.state.path().join("c.toml"), "hosts = \"n[1-2]\"\n[up]\nssh = \"host-based\"\n").unwrap();
    up.lab.ok("n2", TRAP);
    let done = up.json(&["--no-check"]);
    let of_n2 = failed(&done, "n2").join("\n");
    assert!(of_n2.contains("a new connection fails, and they were undone"), "{of_n2}");
    up.lab.ok("n2", "! ls /etc/ssh/sshd_config.d/60-homing.conf /run/homing-up.* 2>/dev/null");
    up.lab.ok("n1", "test -e /etc/ssh/sshd_config.d/60-homing.conf && ! ls /run/homing-up.* 2>/dev/null");
    // A killed call leaves n2 guarded. The next call, which has no other work there, is locked out as well and
    // reports it.
    up.killed_at("ssh");
    let of_n2 = failed(&up.json(&["--no-check"]), "n2").join("\n");
    assert!(of_n2.contains("a new connection fails, and they were undone"), "{of_n2}");
    // A killed call leaves hosts guarded, until the next call has a new connection to them.
    up.lab.ok("n2", "rm -r /etc/systemd/system/ssh.service.d; systemctl daemon-reload");
    up.killed_at("ssh");
    let done = up.json(&["--no-check"]);
    assert_eq!((failed(&done, "n1"), failed(&done, "n2")), (vec![], vec![]), "{done}");
    up.lab.ok("n2", "test -e /etc/ssh/sshd_config.d/60-homing.conf && ! ls /run/homing-up.* 2>/dev/null");
}

fn a_host_is_mended_and_no_other_is_touched(up: &Up) {
    let lab = &up.lab;
    let started = || {
        lab.ok(
            "n1",
            "systemctl show -P ActiveEnterTimestampMonotonic ssh; ls /var/lib/homing/up; stat -c %y /etc/hosts",
        )
    };
    let before = started();
    lab.ok("n3", "userdel eve; echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list");
    let resumed = up.as_called(Command::new(EXE).args(["up", "--resume", "--json", "--yes"])).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", err(&resumed));
    assert_eq!(lab.ok("n3", "id -u carla; cat /usr/share/homing-greeting/text"), "3901\nhello\n");
    assert_eq!(started(), before, "n1 was as wanted");
    let again = up.json(&["--no-check"]);
    assert_eq!((again["steps"].as_u64(), again["exit"].as_i64()), (Some(0), Some(0)), "{again}");
}

fn edits_by_hand(up: &Up) {
    let lab = &up.lab;
    assert_eq!(up.json(&["--diff"])["exit"], 0);
    lab.ok("n2", "sed -i '1i # mine' /etc/hosts; sed -i 's/^\\(10[0-9.]*\\) n3.lab/\\1 n33.lab/' /etc/hosts");
    let told = up.json(&["--diff"]);
    assert!(told["exit"] == 1 && told.to_string().contains("/etc/hosts: block names was changed since"), "{told}");
    let again = up.json(&["--no-check"]);
    assert_eq!(again["steps"].as_u64(), Some(1), "{again}");
    assert_eq!(lab.ok("n2", "head -n 1 /etc/hosts; grep -c n33 /etc/hosts; true"), "# mine\n0\n");
}

/// Writes into the file just before homing does, when homing has the host's lock. /root/edits is the number of times.
const EDITOR: &str = r#"cat > /usr/local/bin/flock <<'END'
#!/bin/sh
n=$(cat /root/edits)
case "$1" in -w) [ $n = 0 ] || { echo $((n - 1)) > /root/edits; echo '# theirs' $n >> /etc/hosts; };; esac
exec /usr/bin/flock "$@"
END
chmod 755 /usr/local/bin/flock
"#;

/// homing looks at the host again twice. Then it reports that the other writer has to stop.
fn edits_between_the_look_and_the_act(up: &Up) {
    let lab = &up.lab;
    lab.ok("n2", EDITOR);
    let edited = |times: u32| {
        lab.ok("n2", &format!("sed -i 's/ n3.lab/ n33.lab/' /etc/hosts; echo {times} > /root/edits"));
        up.json(&["--no-check"])
    };
    let done = edited(2);
    assert_eq!((&done["exit"], &done["steps"]), (&0.into(), &1.into()), "{done}");
    let lines = lab.ok("n2", "grep '^# theirs' /etc/hosts; grep -c n33 /etc/hosts; true");
    assert_eq!(lines, "# theirs 2\n# theirs 1\n0\n");
    let of_n2 = failed(&edited(3), "n2").join("\n");
    assert!(
        of_n2.contains("names: /etc/hosts was changed after homing examined it, 3 times; stop the other program"),
        "{of_n2}"
    );
    assert_eq!(up.json(&["--no-check"])["exit"], 0);
    // Leaves one more edit for the undo.
    lab.ok("n2", "echo 1 > /root/edits");
}

fn up_is_undone(up: &Up, before: &[String; 2]) {
    let lab = &up.lab;
    lab.ok("n3", "echo 'carla was here' > /home/carla/file; echo '# theirs' >> /etc/ssh/ssh_config.d/60-homing.conf");
    let undone = up.json(&["--undo"]);
    assert_eq!((failed(&undone, "n1"), failed(&undone, "n2")), (vec![], vec![]), "{undone}");
    let kept = "/etc/ssh/ssh_config.d/60-homing.conf: it was changed since; it stays as it is";
    assert_eq!(failed(&undone, "n3"), [kept]);
    assert_eq!(lab.ok("n3", "! getent passwd carla; cat /home/carla/file"), "carla was here\n");
    assert!(undone["notes"].to_string().contains("package homing-greeting stays"), "{undone}");
    assert_eq!(lab.ok("n2", "cat /root/edits; rm /usr/local/bin/flock"), "0\n");
    lab.ok("n2", "sed -i '1d; /^# theirs/d' /etc/hosts");
    for (host, before) in [("n1", &before[0]), ("n2", &before[1])] {
        let after = lab.ok(host, TREE);
        let gone: Vec<&str> = before.lines().filter(|line| !after.lines().any(|l| l == *line)).collect();
        assert_eq!((gone, after.lines().count()), (vec![], before.lines().count()), "{host}");
    }
    lab.ok("n1", "! test -e /var/lib/homing/up");
}

/// The state of Slurm on a host.
const SLURM: &str =
    "cat /etc/munge/munge.key | sha256sum; ls /etc/slurm; systemctl is-active munge slurmd slurmctld; true";

fn slurm_comes_and_goes(up: &Up) {
    let lab = &up.lab;
    let hosts = ["n1", "n2", "n3"];
    std::fs::write(up.state.path().join("c.toml"), "hosts = \"n[1-3]\"\n[up.slurm]\npartition = \"crew\"\n").unwrap();
    // A change by somebody else stays there and in the journal, and would be named again.
    lab.ok("n3", "rm -r /etc/ssh/ssh_config.d/60-homing.conf /var/lib/homing/up");
    let before = hosts.map(|host| lab.ok(host, SLURM));
    let plan = up.json(&["--dry-run"]);
    assert!(
        plan.to_string().contains("its content is secret and not shown"),
        "the key is no text for a screen: {plan}"
    );
    let done = up.json(&["--no-check"]);
    assert_eq!(done["exit"], 0, "{done}");
    let idle = "n1 crew* idle\nn2 crew* idle\nn3 crew* idle\n";
    assert_eq!(lab.ok("n2", "sinfo -h -N -o '%N %P %t'"), idle);
    assert_eq!(lab.ok("n3", "srun -N3 hostname | sort"), "n1\nn2\nn3\n");
    assert_eq!(up.json(&["--no-check"])["steps"], 0);

    a_host_leaves_slurm(up, &before[2]);
    lab.ok("n3", "systemctl disable --now --quiet slurmd");
    let mended = up.json(&["--no-check"]);
    assert_eq!((&mended["exit"], &mended["steps"]), (&0.into(), &1.into()), "{mended}");
    let undone = up.json(&["--undo"]);
    assert_eq!((failed(&undone, "n1"), failed(&undone, "n2")), (vec![], vec![]), "{undone}");
    assert_eq!(hosts.map(|host| lab.ok(host, SLURM)), before);
}

/// homing waits for the jobs of the leaving host. No job is lost, and the jobs of other hosts go on. Then the host
/// joins again.
fn a_host_leaves_slurm(up: &Up, before: &str) {
    let lab = &up.lab;
    let cluster = up.state.path().join("c.toml").display().to_string();
    let down = |host: &str, words: &[&str]| {
        let words = [&["down", host, "--yes", "--cluster", &cluster], words].concat();
        let done = up.as_called(Command::new(EXE).args(words)).output().unwrap();
        (done.status.code().unwrap(), err(&done))
    };
    let (status, why) = down("n1", &[]);
    assert!(status == 255 && why.contains("it is Slurm's controller"), "{why}");
    let submit = |host: &str, file: &str| {
        let wait = format!("until [ -e /tmp/{file} ]; do sleep 0.2; done; echo ended > /tmp/{file}.end");
        lab.ok("n1", &format!("cd /tmp; sbatch --parsable -o /dev/null -w {host} --wrap '{wait}'")).trim().to_string()
    };
    let (stays, goes) = (submit("n2", "two"), submit("n3", "three"));
    lab.ok("n1", "until [ $(squeue -h -t R | wc -l) = 2 ]; do sleep 0.2; done");
    let waits = lab.ok("n1", "cd /tmp; sbatch --parsable -o /dev/null -w n[2-3] --exclusive --wrap true");
    let (status, why) = down("n3", &["--wait", "0"]);
    let lost = format!("jobs {} are queued for n3 by name", waits.trim());
    assert!(status == 254 && why.contains(&lost), "Slurm ends a job that names a node it does not know: {why}");
    lab.ok("n1", &format!("scancel {waits}"));
    let (status, why) = down("n3", &["--wait", "0"]);
    assert!(status == 254 && why.contains(&format!("jobs {goes} still run on n3")), "{why}");
    lab.ok("n3", "touch /tmp/three");
    let started = || lab.ok("n2", "systemctl show -P ActiveEnterTimestampMonotonic slurmd munge ssh");
    let since = started();
    let (status, why) = down("n3", &[]);
    assert_eq!(status, 0, "{why}");
    lab.ok("n3", "test $(cat /tmp/three.end) = ended && ! test -e /var/lib/homing/up");
    assert_eq!(lab.ok("n3", SLURM), before);
    assert_eq!(lab.ok("n2", "sinfo -h -N -o %N | sort -u"), "n1\nn2\n");
    assert_eq!(lab.ok("n2", "squeue -h -o '%i %t'"), format!("{stays} R\n"));
    assert_eq!(up.json(&["--no-check"])["exit"], 0, "the file names it still: it is taken in again");
    assert_eq!(lab.ok("n3", "srun -w n3 hostname"), "n3\n");
    assert_eq!(started(), since, "no daemon of n2 was restarted");

    // n3 has lost its journal. homing removes it from the other hosts, and reports that Slurm's file is left there.
    lab.ok("n3", "mv /var/lib/homing/up /root/journal");
    let (status, why) = down("n3", &[]);
    assert!(status == 254 && why.contains("/etc/slurm/slurm.conf of homing up is still there"), "{why}");
    lab.ok("n3", "mv /root/journal /var/lib/homing/up");
    // n3 does not answer, and is removed from the other hosts. When it answers again, the same command undoes it
    // there.
    assert_eq!(up.json(&["--no-check"])["exit"], 0);
    lab.ok("n3", "systemctl stop ssh; ! pkill -x sshd || sleep 0.5");
    let (status, why) = down("n3", &[]);
    assert!(status == 0 && why.contains("n3 does not answer"), "{why}");
    assert_eq!(lab.ok("n2", "sinfo -h -N -o %N | sort -u; sed -n '/homing names: begin/,/homing names: end/p' /etc/hosts | grep -c n3; true"), "n1\nn2\n0\n");
    lab.ok("n3", "systemctl is-active --quiet slurmd && systemctl start ssh");
    let (status, why) = down("n3", &[]);
    assert_eq!((status, lab.ok("n3", SLURM).as_str()), (0, before), "{why}");
    assert_eq!(up.json(&["--no-check"])["exit"], 0);
    assert_eq!(lab.ok("n2", "srun -N3 hostname | sort"), "n1\nn2\nn3\n");
    lab.ok("n2", "touch /tmp/two; until [ -e /tmp/two.end ]; do sleep 0.2; done");
}

/// Kills the program fifty times (`KILLS`) at any moment, forward and back. Each time the same command ends right.
#[test]
#[ignore = "a quarter of an hour: tests/night/up_kills"]
fn kills_at_random() {
    if missing(&["systemd-nspawn", "dpkg-deb", "apt-get"]) {
        return;
    }
    let up = Up { lab: Lab::up("kills", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let hosts = ["n1", "n2", "n3"];
    std::fs::write(up.state.path().join("c.toml"), CLUSTER).unwrap();
    hosts.iter().for_each(|host| drop(up.lab.ok(host, BARE)));
    let trees = || hosts.map(|host| up.lab.ok(host, TREE));
    let told = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let (seed, most) = (told("SEED").unwrap_or_else(std::process::id), told("KILLS").unwrap_or(50));
    eprintln!("SEED={seed}");
    // Numerical Recipes' generator: its upper bits serve to choose moments.
    let state = std::cell::Cell::new(u64::from(seed));
    let random = |below: u64| {
        state.set(state.get().wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
        (state.get() >> 33) % below
    };
    let bare = trees();
    assert_eq!(up.json(&["--no-check"])["exit"], 0);
    let made = trees();
    let (mut kills, mut forward) = (0, false);
    while kills < most {
        let words: &[&str] = if forward { &["--no-check"] } else { &["--undo"] };
        for _ in 0..=random(4) {
            let mut child = up.command(words).stdout(std::process::Stdio::null()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(random(4000)));
            kills += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let done = up.json(words);
        assert_eq!(done["exit"], 0, "after {kills} kills: {done}");
        let now = trees();
        let wanted = if forward { &made } else { &bare };
        assert!(now == *wanted, "after {kills} kills: {now:?}, and not {wanted:?}");
        forward = !forward;
    }
    eprintln!("{kills} kills");
}
