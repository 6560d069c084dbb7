//! The display of a lab on a terminal. Tests the hosts of commands, equal lines of several hosts, and the question
//! before a first step that needs root.

use crate::support::{EXE, Lab, missing as lab_is_missing};
use crate::terminal::{Terminal, missing};

#[test]
fn a_cluster_on_a_screen() {
    if missing() || lab_is_missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("scr", &["--hosts", "2", "--gluster", "2x1"]);
    tasks_go_to_their_files_and_not_to_the_output_folder(&lab);
    what_hosts_say_alike_is_one_line(&lab);
    a_step_that_needs_root_says_so_first(&lab);
}

/// The place and the size of the output folder do not affect the placement of tasks.
fn tasks_go_to_their_files_and_not_to_the_output_folder(lab: &Lab) {
    lab.ok("n1", "mkdir /data/in /data/out; for i in $(seq 8); do head -c 100000 /dev/zero >/data/in/$i; done");
    let plan = format!("{EXE} plan --hosts 'n[1-2]' 'cp {{}} /data/out/' ::: /data/in/* | sort");
    lab.ok("n1", &format!("echo \"cd /root; {plan}\" >/root/plan"));
    let script = format!("homing lab exec --name {} n1 -- sh plan", lab.name);
    let placed = |lines: Vec<String>| {
        let tasks: Vec<String> = lines.into_iter().filter(|line| line.contains("holds 100 % of 100 kB")).collect();
        assert_eq!(tasks.len(), 8, "{tasks:#?}");
        tasks
    };
    let before = placed(Terminal::new(120, &[], &script).ends());
    for task in &before {
        let words: Vec<&str> = task.split_whitespace().collect();
        let (host, file) = (words[1], words[words.len() - 2]);
        lab.ok(host, &format!("test -s /scratch/brick{}", file.strip_prefix("/data").unwrap()));
    }
    lab.ok("n1", "for i in $(seq 300); do echo $i >/data/out/old$i; done");
    assert_eq!(placed(Terminal::new(120, &[], &script).ends()), before);
}

fn what_hosts_say_alike_is_one_line(lab: &Lab) {
    let script = format!(
        "homing exec --lab {} -w 'n[1-2]' 'echo no such disk >&2; exit 3'; echo status $?; \
                          homing run --lab {} --hosts n[1-2] -j1 'uname -n # {{}}' ::: a b | sort",
        lab.name, lab.name
    );
    let lines = Terminal::new(120, &[], &script).ends();
    let told: Vec<&String> = lines.iter().filter(|line| line.contains("exited with exit code 3")).collect();
    assert!(told.len() == 1 && told[0].contains("n[1-2] (2)"), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "status 1"), "{lines:#?}");
    // Where a host answers late, the other host takes both tasks.
    assert_eq!(lines.iter().filter(|line| ["n1", "n2"].contains(&line.as_str())).count(), 2, "{lines:#?}");
}

fn a_step_that_needs_root_says_so_first(lab: &Lab) {
    lab.ok("n2", "useradd -m -s /bin/bash alice; cp -r /root/.ssh ~alice/; chown -R alice: ~alice/.ssh");
    let create = format!(
        "HOMING_SSH=\"ssh -l alice\" {EXE} volume create small --kind gluster --hosts n2:/brick --allow-system-disk --yes"
    );
    let script = format!("homing lab exec --name {} n1 -- sh -c '{create}; echo status $?'", lab.name);
    let lines = Terminal::new(120, &[], &script).ends();
    assert!(lines.iter().any(|line| line.contains("--sudo")), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "status 254"), "{lines:#?}");
    assert_eq!(
        lab.ok("n2", "ls -d /brick 2>&1 || true").trim(),
        "ls: cannot access '/brick': No such file or directory"
    );
}
