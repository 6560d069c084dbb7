//! Images in a repository of restic on another host, over sftp. Needs root and restic; otherwise prints a note and is
//! skipped.

use crate::support::{EXE, Lab, missing};
use serde_json::Value;

const SECTION: &str = "[snapshot.src]\nsource = \"n1:/scratch/src\"\nbank = \"n2:/scratch/bank\"\nengine = \"restic\"
password_file = \"/root/key\"\n";

#[test]
fn a_repository_over_sftp_gets_what_is_new_and_gives_back_where_the_source_is_lost() {
    if missing(&["restic"]) {
        return;
    }
    let lab = Lab::up("restic", &["--hosts", "3", "--disk", "400M"]);
    lab.ok("n2", "mkdir -m 755 /scratch/bank");
    lab.ok("n1", "echo secret >/root/key; chmod 600 /root/key");
    lab.ok("n1", "mkdir -p /scratch/src/d; cd /scratch/src; head -c 20M /dev/urandom >big; echo small >d/small");
    for host in ["n1", "n3"] {
        lab.ok(host, &format!("cat >/root/c.toml <<'END'\n{SECTION}END"));
    }
    let verb = |words: &str| format!("{EXE} snapshot {words} --cluster /root/c.toml");
    let received = || lab.ok("n2", "cat /sys/class/net/host0/statistics/rx_bytes").trim().parse::<u64>().unwrap();
    let make = || {
        let (before, told) = (received(), lab.ok("n1", &verb("src --json")));
        let made = serde_json::from_str::<Value>(&told).unwrap()["made"].clone();
        (made, received() - before)
    };
    let (first, sent) = make();
    assert!(sent > 20_000_000 && first["local"] == false, "{sent}: {first}");

    // One byte changes in the middle of a large file: only a part of the file is sent.
    lab.ok("n1", "cd /scratch/src; echo changed | dd of=big bs=1M seek=7 conv=notrunc status=none; sleep 1.1");
    let (second, sent) = make();
    assert_eq!(second["reference"], first["image"], "{second}");
    assert!(sent < 12_000_000, "of 20 MB one byte has changed, and {sent} crossed the link: {second}");

    // An image is killed in the middle. The next one is whole, and only good ones are listed.
    lab.ok("n1", "head -c 60M /dev/urandom >/scratch/src/more; sleep 1.1");
    let killed = format!(
        "{} & for i in $(seq 6000); do pkill -STOP -f '[r]estic.* backup' && break; sleep 0.01; done
         kill -9 $!; pkill -CONT -x restic
         for i in $(seq 1200); do pgrep -x restic || exit 0; sleep 0.1; done; exit 1",
        verb("src")
    );
    lab.ok("n1", &killed);
    let (third, _) = make();
    assert_eq!(third["reference"], second["image"], "{third}");
    let listed: Value = serde_json::from_str(&lab.ok("n3", &verb("list src --json"))).unwrap();
    let images = listed["vaults"][0]["holds"]["images"].as_array().unwrap().clone();
    let good: Vec<&Value> = images.iter().filter(|i| i["status"] == "success").map(|i| &i["name"]).collect();
    assert_eq!(good, [&first["image"], &second["image"], &third["image"]], "{listed}");
    assert!(lab.ok("n1", &verb("verify src")).contains("all identical"));

    // The source's host is lost. A host with the password can restore all of it, another host cannot.
    lab.ok("n1", "ip link set host0 down");
    let back = verb("restore src --into n3:/scratch/back");
    let (status, out, err) = lab.told("n3", &back);
    assert!(status == Some(254) && err.contains("n3: the password file /root/key"), "{status:?} {out}{err}");
    lab.ok("n3", "echo secret >/root/key; chmod 600 /root/key");
    lab.ok("n3", &back);
    lab.ok("n1", "ip link set host0 up");
    let sums = "cd /scratch/{}; find . -type f -exec sha256sum {} + | sort";
    let of = |host: &str, folder: &str| lab.ok(host, &sums.replacen("{}", folder, 1));
    assert_eq!(of("n1", "src"), of("n3", "back"));
    assert_eq!(lab.ok("n3", "find /var/tmp /scratch/back -name '.homing-restic-*'"), "");
}
