//! Packages of which one host fetches each file. Needs root; says so and does nothing without it.

mod support;
#[path = "support/up.rs"]
#[allow(dead_code)]
mod up;

use serde_json::Value;
use std::process::Command;
use support::{EXE, Lab, missing};
use up::{Up, failed};

/// A package and one that it needs, and who may fetch them: n1 serves its folder, and tells who asked for what.
const REPO: &str = r#"set -e; mkdir -p /srv/repo; cd /srv/repo
for p in one two; do
mkdir -p $p/DEBIAN $p/usr/share/homing-$p
printf "Package: homing-$p\nVersion: 1:2\nArchitecture: all\nMaintainer: nobody <n@example.invalid>\nDescription: $p\n" > $p/DEBIAN/control
[ $p = two ] || echo 'Depends: homing-two' >> $p/DEBIAN/control
head -c 300000 /dev/urandom > $p/usr/share/homing-$p/data
dpkg-deb --build $p $p.deb > /dev/null
{ cat $p/DEBIAN/control; echo Filename: ./$p.deb; echo Size: $(stat -c %s $p.deb); echo SHA256: $(sha256sum $p.deb | cut -d' ' -f1); echo; } >> Packages
done
systemd-run --quiet --unit repo sh -c 'cd /srv/repo; exec python3 -u -m http.server 8000 2>> /srv/asked'"#;

#[test]
fn one_host_fetches_and_none_installs_what_its_index_does_not_name() {
    if missing(&["systemd-nspawn", "dpkg-deb", "apt-get", "python3"]) {
        return;
    }
    let up = Up { lab: Lab::up("cache", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    lab.ok("n1", REPO);
    for host in hosts {
        // By address: a lab has no name server, and apt waits for one.
        let source = "echo \"deb [trusted=yes] http://$(getent ahostsv4 n1 | awk 'NR == 1 { print $1 }'):8000/ ./\" > /etc/apt/sources.list";
        lab.ok(
            host,
            &format!("rm -rf /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/*docker* /var/lib/apt/lists/*; {source}"),
        );
        lab.ok(host, "for i in $(seq 50); do apt-get -q update >/dev/null 2>&1 && apt-cache show homing-one >/dev/null && exit; sleep 0.2; done; exit 1");
    }
    // From now on one host alone has a way out.
    ["n1", "n3"].iter().for_each(|host| {
        drop(lab.ok(host, "echo 'Acquire::http::Proxy \"http://127.0.0.1:9/\";' > /etc/apt/apt.conf.d/nowhere"))
    });
    let asked = || lab.ok("n1", "grep -o 'GET /[./a-z]*deb' /srv/asked | sort; true");
    let install = |words: &[&str]| -> Value {
        let words = [&["cache", "install", "-w", "n[1-3]", "--json"], words].concat();
        let output = up.as_called(Command::new(EXE).args(words)).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", support::err(&output)))
    };

    let plan = install(&["--dry-run", "homing-one"]);
    assert_eq!(
        (plan["exit"].as_i64(), plan["fetched"]["files"].as_array().unwrap().len(), asked()),
        (Some(0), 2, String::new())
    );
    assert_eq!(plan["wanted_bytes"].as_u64().unwrap(), 3 * plan["fetched"]["bytes"].as_u64().unwrap());

    // The host that fetches is not to be trusted: its tool says all is well and gives another file of equal size.
    let evil = "mv /usr/lib/apt/apt-helper /usr/lib/apt/helper; printf '#!/bin/sh\n/usr/lib/apt/helper \"$@\" || exit; for f; do case $f in */homing-two*) printf X | dd of=$f bs=1 seek=1000 conv=notrunc 2>/dev/null;; esac; done\n' > /usr/lib/apt/apt-helper; chmod 755 /usr/lib/apt/apt-helper";
    lab.ok("n2", evil);
    let told = install(&["homing-one"]);
    for host in hosts {
        let why = failed(&told, host).join(" ");
        assert!(why.contains("homing-two_1%3a2_all.deb is not the one that the signed index names"), "{told}");
        lab.ok(host, "! dpkg -s homing-one homing-two >/dev/null 2>&1");
    }
    lab.ok("n2", "mv /usr/lib/apt/helper /usr/lib/apt/apt-helper");

    // Where apt keeps its downloads lies an evil one of equal size, too: apt alone would install it.
    lab.ok("n3", "head -c $(apt-cache show homing-two | sed -n 's/^Size: //p') /dev/zero > /var/cache/apt/archives/homing-two_1%3a2_all.deb");
    lab.ok("n1", ": > /srv/asked");
    let done = install(&["homing-one"]);
    assert_eq!((done["exit"].as_i64(), done["fetched"]["host"].as_str()), (Some(0), Some("n2")), "{done}");
    assert_eq!(asked(), "GET /./one.deb\nGET /./two.deb\n", "each file is fetched once");
    let sums = hosts.map(|host| lab.ok(host, "sha256sum /usr/share/homing-*/data"));
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    assert_eq!(install(&["homing-one"])["wanted_bytes"], 0, "there is nothing left to do");
    let none = install(&["homing-none"]);
    assert!(
        none["exit"] == 254 && failed(&none, "n2").join(" ").contains("Unable to locate package homing-none"),
        "{none}"
    );
    lab.ok("n1", "systemctl stop repo; ls /var/lib/homing/cache");
}
