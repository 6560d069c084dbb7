//! Packages of which one host fetches each file. Needs root; otherwise prints a note and is skipped.

use crate::setup::{Up, failed};
use crate::support::{EXE, Lab, err, missing};
use serde_json::Value;
use std::process::Command;

/// Makes a package and one that it needs. n1 serves the folder of both, and logs each request.
const REPO: &str = r#"set -e; mkdir -p /srv/repo; cd /srv/repo
for p in one two; do
mkdir -p $p/DEBIAN $p/usr/share/homing-$p
printf "Package: homing-$p\nVersion: 1:2\nArchitecture: all\nMaintainer: nobody <n@example.invalid>\nDescription: $p\n" > $p/DEBIAN/control
[ $p = two ] || echo 'Depends: homing-two' >> $p/DEBIAN/control
head -c 300000 /dev/urandom > $p/usr/share/homing-$p/data
dpkg-deb --build $p $p.deb > /dev/null
{ cat $p/DEBIAN/control; echo Filename: ./$p.deb; echo Size: $(stat -c %s $p.deb); echo SHA256: $(sha256sum $p.deb | cut -d' ' -f1); echo; } >> Packages
done
gpg() { command gpg --homedir /srv/gnupg --batch --quiet --passphrase '' "$@"; }
mkdir -m 700 /srv/gnupg; gpg --quick-gen-key homing-test default default never; gpg --export > /srv/repo/key.gpg
{ printf "Origin: homing\nSuite: test\nDate: $(date -Ru)\nSHA256:\n $(sha256sum Packages | cut -d' ' -f1) $(stat -c %s Packages) Packages\n"; } > Release
gpg --clearsign -o InRelease Release
systemd-run --quiet --unit repo sh -c 'cd /srv/repo; exec python3 -u -m http.server 8000 2>> /srv/asked'"#;

/// A source that has only the compressed list of its packages.
const PLAIN: &str =
    "mkdir /srv/repo/plain; cd /srv/repo/plain; sed 's/homing-one/homing-plain/' ../Packages | gzip > Packages.gz";
const PLAIN_SOURCE: &str = "sed 's/signed-by=[^]]*/trusted=yes/; s#8000/#8000/plain/#' /etc/apt/sources.list > /etc/apt/sources.list.d/plain.list";

/// A proxy without a listener: the host cannot fetch anything.
const NOWHERE: &str = "echo 'Acquire::http::Proxy \"http://127.0.0.1:9/\";' > /etc/apt/apt.conf.d/nowhere";
/// A tool that reports success and gives another file of equal size; and the true tool again.
const EVIL: &str = "mv /usr/lib/apt/apt-helper /usr/lib/apt/helper; printf '#!/bin/sh\n/usr/lib/apt/helper \"$@\" || exit; for f; do case $f in */homing-two*) printf 8-spoilt | dd of=$f bs=1 seek=1000 conv=notrunc 2>/dev/null;; esac; done\n' > /usr/lib/apt/apt-helper; chmod 755 /usr/lib/apt/apt-helper";
const GOOD: &str = "mv /usr/lib/apt/helper /usr/lib/apt/apt-helper";
/// A tool that damages an index while it fetches it.
const SPOILS_INDEXES: &str = "mv /usr/lib/apt/apt-helper /usr/lib/apt/helper; printf '#!/bin/sh\n/usr/lib/apt/helper \"$@\" || exit; u=; for f; do case $u in */SPOILT) printf 8-spoilt | dd of=$f bs=1 seek=90 conv=notrunc 2>/dev/null;; esac; u=$f; done\n' > /usr/lib/apt/apt-helper; chmod 755 /usr/lib/apt/apt-helper";

/// Checks that a host refuses a file that differs from its index, and names it. The host has installed nothing.
fn evil_is_refused(lab: &Lab, host: &str, told: &Value) {
    let why = failed(told, host).join(" ");
    assert!(why.contains("homing-two_1%3a2_all.deb has another hash than the signed index"), "{told}");
    lab.ok(host, "! dpkg -s homing-one homing-two >/dev/null 2>&1");
}

#[test]
fn one_host_fetches_and_none_installs_what_its_index_does_not_name() {
    if missing(&["systemd-nspawn", "dpkg-deb", "apt-get", "python3"]) {
        return;
    }
    let up = Up { lab: Lab::up("cache", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    lab.ok("n1", REPO);
    let key = lab.ok("n1", "base64 -w0 /srv/repo/key.gpg");
    for host in hosts {
        // The source has an address: a lab has no name server, and apt would wait for one.
        let source = "echo \"deb [signed-by=/srv/key.gpg] http://$(getent ahostsv4 n1 | awk 'NR == 1 { print $1 }'):8000/ ./\" > /etc/apt/sources.list";
        lab.ok(
            host,
            &format!(
                "rm -rf /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/*docker* /var/lib/apt/lists/*; \
                 mkdir -p /srv; echo {key} | base64 -d > /srv/key.gpg; {source}"
            ),
        );
    }
    // Only n2 can fetch, and at first no host has an index.
    ["n1", "n3"].iter().for_each(|host| drop(lab.ok(host, NOWHERE)));
    lab.ok("n2", "until curl -sf $(sed 's/.*\\(http[^ ]*\\).*/\\1/' /etc/apt/sources.list)InRelease >/dev/null; do sleep 0.2; done");
    let asked = || lab.ok("n1", "grep -o 'GET /[./a-z]*deb' /srv/asked | sort; true");
    let install = |words: &[&str]| -> Value {
        let words = [&["cache", "install", "-w", "n[1-3]", "--json", "--yes"], words].concat();
        let output = up.as_called(Command::new(EXE).args(words)).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    };

    indexes_come_with_their_signature(&up, &install);
    let plan = install(&["--dry-run", "homing-one"]);
    assert_eq!(
        (plan["exit"].as_i64(), plan["fetched"]["files"].as_array().unwrap().len(), asked()),
        (Some(0), 2, String::new())
    );
    assert_eq!(plan["wanted_bytes"].as_u64().unwrap(), 3 * plan["fetched"]["bytes"].as_u64().unwrap());

    // The other hosts must not trust the host that fetches.
    lab.ok("n2", EVIL);
    let told = install(&["homing-one"]);
    hosts.iter().for_each(|host| evil_is_refused(lab, host, &told));
    lab.ok("n2", GOOD);

    // apt's folder of downloads has a false file of equal size, which apt alone would install.
    lab.ok("n3", "head -c $(apt-cache show homing-two | sed -n 's/^Size: //p') /dev/zero > /var/cache/apt/archives/homing-two_1%3a2_all.deb");
    lab.ok("n1", ": > /srv/asked");
    let done = install(&["homing-one"]);
    assert_eq!((done["exit"].as_i64(), done["fetched"]["host"].as_str()), (Some(0), Some("n2")), "{done}");
    assert_eq!(asked(), "GET /./one.deb\nGET /./two.deb\n", "each file is fetched once");
    let sums = hosts.map(|host| lab.ok(host, "sha256sum /usr/share/homing-*/data"));
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    assert_eq!(done["sent_bytes"].as_u64().unwrap() / done["fetched"]["bytes"].as_u64().unwrap(), 3, "{done}");
    assert_eq!(install(&["homing-one"])["wanted_bytes"], 0, "there is nothing left to do");
    // Along a tree n2 passes them on to n3.
    hosts.iter().for_each(|host| drop(lab.ok(host, "dpkg -P homing-one homing-two")));
    let done = install(&["--tree", "2", "homing-one"]);
    assert_eq!(done["exit"], 0, "{done}");
    assert_eq!(done["sent_bytes"].as_u64().unwrap() / done["fetched"]["bytes"].as_u64().unwrap(), 2, "{done}");
    assert!(hosts.iter().all(|host| lab.ok(host, "sha256sum /usr/share/homing-*/data") == sums[0]));
    a_leader_that_lies_about_its_branch(lab, &install);
    lab.ok("n1", ": > /srv/asked");
    let none = install(&["homing-none"]);
    assert!(
        none["exit"] == 254 && failed(&none, "n2").join(" ").contains("Unable to locate package homing-none"),
        "{none}"
    );
    up_takes_them_from_the_host_that_fetched(&up, &asked);
    lab.ok("n1", "systemctl stop repo");
    hosts.iter().for_each(|host| drop(lab.ok(host, "! test -e /var/lib/homing/cache && ! test -e /var/lib/homing/up")));
}

/// n2 reports that n3, which fails, has installed all. homing must compare that report with the packages that n3
/// lacks.
fn a_leader_that_lies_about_its_branch(lab: &Lab, install: &dyn Fn(&[&str]) -> Value) {
    let fails = r#"#!/bin/sh\ncase $*" " in *--no-download*) exit 9;; esac\nexec /usr/bin/apt-get "$@"\n"#;
    lab.ok(
        "n3",
        &format!(
            "dpkg -P homing-one homing-two; printf '{fails}' > /usr/local/bin/apt-get; chmod 755 /usr/local/bin/apt-get"
        ),
    );
    crate::setup::lies(lab, "n2", r#"s/"done":\[1,\{"exited":[0-9]+\}/"done":[1,{"exited":0}/g"#);
    // homing uses a leader only when three hosts need the package.
    ["n1", "n2"].iter().for_each(|host| drop(lab.ok(host, "dpkg -P homing-one homing-two")));
    let told = install(&["--tree", "2", "homing-one"]);
    let lie = "n2 reports that it sent all files, but a query from here finds: it lacks homing-one_1%3a2_all.deb";
    assert_eq!((&told["exit"], failed(&told, "n3")), (&254.into(), vec![lie]), "{told}");
    assert_eq!((failed(&told, "n1"), failed(&told, "n2")), (vec![], vec![]), "{told}");
    lab.ok("n2", "cd /root/.cache/homing; mv /root/true $(ls | grep 'worker-.*-[0-9a-f]*$')");
    lab.ok("n3", "rm /usr/local/bin/apt-get");
    assert_eq!(install(&["--tree", "2", "homing-one"])["exit"], 0);
}

/// One host fetches the indexes, which it damages first. Later a host that lacks them gets them when it needs them.
fn indexes_come_with_their_signature(up: &Up, install: &dyn Fn(&[&str]) -> Value) {
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    let update = || -> Value {
        let words = ["cache", "update", "-w", "n[1-3]", "--json", "--tree", "2"];
        let output = up.as_called(Command::new(EXE).args(words)).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    };
    let none = install(&["--dry-run", "homing-one"]);
    assert!(hosts.iter().all(|host| failed(&none, host).join(" ").contains("Unable to locate package")), "{none}");
    for (spoilt, why) in [("InRelease", "BADSIG"), ("Packages", "Hash Sum mismatch")] {
        lab.ok("n2", &SPOILS_INDEXES.replace("SPOILT", spoilt));
        let told = update();
        assert_eq!(told["exit"], 254, "{told}");
        for host in hosts {
            assert!(failed(&told, host).join(" ").contains(why), "{spoilt}: {told}");
            lab.ok(host, "! apt-cache show homing-one 2>/dev/null");
        }
        lab.ok("n2", GOOD);
    }
    lab.ok("n1", ": > /srv/asked");
    let told = update();
    assert_eq!((&told["exit"], &told["fetched"]["host"]), (&0.into(), &"n2".into()), "{told}");
    assert_eq!(lab.ok("n1", "grep -o 'GET [^ ]*' /srv/asked"), "GET /./InRelease\nGET /./Packages\n");
    // A source without a signature, which the hosts trust. apt queries it also for files that it does not have.
    lab.ok("n1", PLAIN);
    hosts.iter().for_each(|host| drop(lab.ok(host, PLAIN_SOURCE)));
    let told = update();
    assert_eq!(told["exit"], 0, "{told}");
    let known = "apt-cache show homing-plain >/dev/null && rm /etc/apt/sources.list.d/plain.list";
    hosts.iter().for_each(|host| drop(lab.ok(host, known)));
    lab.ok("n3", "rm -r /var/lib/apt/lists/*");
    assert_eq!(install(&["homing-two"])["exit"], 0);
    hosts.iter().for_each(|host| drop(lab.ok(host, "dpkg -P homing-two; ! test -e /var/lib/homing/cache")));
    lab.ok("n1", ": > /srv/asked");
}

/// Installs the package on these hosts by `homing cache install`.
fn install_on(up: &Up, hosts: &str) -> Value {
    let words = ["cache", "install", "-w", hosts, "--json", "--yes", "homing-one"];
    let output = up.as_called(Command::new(EXE).args(words)).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
}

/// `homing up` installs the same packages. Two hosts cannot fetch, and the third gives false files first.
fn up_takes_them_from_the_host_that_fetched(up: &Up, asked: &dyn Fn() -> String) {
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    std::fs::write(up.state.path().join("c.toml"), "hosts = \"n[1-3]\"\n[up]\npackages = [\"homing-one\"]\n").unwrap();
    hosts.iter().for_each(|host| drop(lab.ok(host, "dpkg -P homing-one homing-two")));
    lab.ok("n2", EVIL);
    let told = up.json(&["--no-check", "--only", "packages"]);
    for host in hosts {
        evil_is_refused(lab, host, &told);
        lab.ok(host, "! test -e /var/lib/homing/cache/up");
    }
    lab.ok("n2", GOOD);
    lab.ok("n3", "rm -r /var/lib/apt/lists/*");
    lab.ok("n1", ": > /srv/asked");
    let done = up.up(&["--no-check", "--only", "packages"]);
    let said = err(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        said.contains("packages: fetched by n2: 2 files, 60")
            && said.contains("; if each host fetched its own: 1.8 MB"),
        "{said}"
    );
    assert_eq!(asked(), "GET /./one.deb\nGET /./two.deb\n", "each file is fetched once");
    let sums = hosts.map(|host| lab.ok(host, "sha256sum /usr/share/homing-*/data"));
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");

    // Where no host has a way out, the plan names that, and each reports so in its own words.
    assert_eq!(up.json(&["--undo"])["exit"], 0);
    lab.ok("n3", "dpkg -P homing-one homing-two");
    lab.ok("n2", NOWHERE);
    let plan = failed(&up.json(&["--only", "packages", "--dry-run"]), "n3").join(" ");
    assert!(plan.contains("packages: no mirror can be reached: http://") && plan.contains("127.0.0.1"), "{plan}");
    let told = up.json(&["--no-check", "--only", "packages"]);
    let why = failed(&told, "n3").join(" ");
    assert!(why.contains("package homing-one: E: Failed to fetch"), "its own words: {told}");
    // Where no host can go on, nothing is begun.
    lab.ok("n1", "dpkg -P homing-one homing-two");
    lab.ok("n2", "dpkg -P homing-one homing-two");
    let refused = up.up(&["--no-check", "--only", "packages"]);
    assert_eq!(refused.status.code(), Some(254), "{}", err(&refused));
    assert!(err(&refused).contains("nothing was changed"), "{}", err(&refused));
    assert!(err(&refused).matches("no mirror can be reached").count() == 1, "one line: {}", err(&refused));
    lab.ok("n2", "rm /etc/apt/apt.conf.d/nowhere");
    assert_eq!(install_on(up, "n[1-2]")["exit"], 0);
    let done = up.json(&["--no-check", "--only", "packages"]);
    let fetched = &done["fetched"][0];
    assert_eq!(
        (&done["exit"], &fetched["host"], &fetched["area"]),
        (&0.into(), &"n2".into(), &"packages".into()),
        "{done}"
    );
    assert_eq!(fetched["bytes"], fetched["wanted_bytes"], "n3 alone wanted it, and has no way out: {done}");
    assert_eq!(up.json(&["--undo"])["exit"], 0);
}
