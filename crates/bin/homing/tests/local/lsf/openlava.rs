//! Command lines on which homing's words of LSF and a real OpenLava once differed.

use super::{World, user};
use crate::until::until;

#[test]
fn an_answer_names_what_is_not_there() {
    let w = World::new();
    for (line, code, out, err) in [
        ("bjobs", 255, "", "No unfinished job found\n"),
        ("bjobs -noheader -u all -w", 255, "", "No unfinished job found\n"),
        ("bjobs -q noq", 255, "", "noq: No such queue\n"),
        ("bjobs -a -q 'storage noq'", 255, "", "noq: No such queue\n"),
        ("bjobs -m n99", 255, "", "n99: Bad host name, host group name or cluster name\n"),
        ("bjobs -m elsewhere", 255, "", "No unfinished job found on host/group <elsewhere>\n"),
        ("bjobs -A", 255, "", "Job array is not found\n"),
        ("bjobs 98 99", 255, "", "Job <98> is not found\nJob <99> is not found\n"),
        ("bkill -J nosuch", 255, "", "Job <nosuch> is not found\n"),
        ("bkill -u nobodyx 0", 255, "", "No unfinished job found\n"),
        ("bkill 0", 255, "", "No unfinished job found\n"),
        ("bresume -q storage 0", 255, "", "No unfinished job found in queue <storage>\n"),
        (
            "bsub -R 'select[foo]' true",
            255,
            "",
            "Bad resource requirement syntax: \"foo\" is not a resource. Job not submitted.\n",
        ),
        (
            "bgadd /night/",
            0,
            "Job group </night> is added.\n",
            "bgadd: a job group exists with its first job, bsub -g /night; there is nothing to make\n",
        ),
        ("bgadd night", 255, "", "night: Invalid job group name: it is a path such as /mine/first\n"),
    ] {
        let got = w.sh(line);
        assert_eq!((got.0, got.1.as_str(), got.2.as_str()), (code, out, err), "{line}");
    }
    for line in ["lsid -V", "bsub -V", "bjobs -V", "bparams -V", "lsclusters -V"] {
        let (code, out, err) = w.sh(line);
        assert!(
            code == 0 && out.is_empty() && err.lines().count() == 1 && err.starts_with("homing "),
            "{line}: {out}{err}"
        );
    }
}

#[test]
fn options_that_harm_nobody_are_taken_with_a_note() {
    let w = World::new();
    let (code, out, err) = w.sh("bsub -H -We 5 -G grp -c 10 true");
    assert_eq!((code, out.as_str()), (0, "Job <1> is submitted to default queue <normal>.\n"));
    let options: Vec<&str> = err.lines().filter_map(|line| line.strip_prefix("bsub: ")?.split(':').next()).collect();
    assert_eq!(options, ["-We", "-G", "-c"], "{err}");
}

#[test]
fn bkill_r_ends_a_job_that_heeds_no_other_signal() {
    let w = World::new();
    w.out("bsub \"trap '' TERM INT; touch runs; while :; do sleep 0.1; done\"; bsub -H true");
    until("its trap is set", || w.path().join("runs").exists());
    let (code, out, err) = w.sh("bkill -r 1 2");
    assert_eq!((code, out.as_str()), (0, "Job <1> is being terminated\nJob <2> is being terminated\n"));
    assert!(err.starts_with("bkill: -r: ends the jobs as -s KILL does"), "{err}");
    until("both are gone", || w.stat("1") == "EXIT" && w.stat("2") == "EXIT");
    assert_eq!(w.sh("bstop -r 1").0, 255, "it is bkill's alone");
}

#[test]
fn arrays_are_listed_without_their_ids() {
    let w = World::new();
    w.out("bsub -K -J 'done[1-2]' true; bsub -H -J 'held[1-3]' true; bsub -H -J single true");
    let rows = |line: &str| {
        let text = w.out(line);
        let row = |line: &str| line.split_whitespace().take(6).map(String::from).collect::<Vec<_>>().join(" ");
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    let own = user();
    let [done, held] = [format!("1 done[1-2] {own} 2 0 2"), format!("2 held[1-3] {own} 3 0 0")];
    assert_eq!(rows("bjobs -A"), [done, held.clone()]);
    assert_eq!(rows("bjobs -A 2"), [held]);
    let (code, _, err) = w.sh("bjobs -A 3");
    assert_eq!((code, err.as_str()), (255, "Job array <3> is not found\n"));
}

#[test]
fn the_long_forms_have_what_parsers_look_for() {
    let w = World::new();
    w.write("[queue.storage]\nload = { mem = \"1\" }\n");
    let line = "bsub -q storage -J one -n 2 -m \"$(hostname)\" -R 'span[hosts=1]' 'touch runs; until [ -e go ]; do sleep 0.05; done'";
    w.out(line);
    let start = || w.sh("cat queue/*/1/start.0.json").1;
    until("it runs", || w.path().join("runs").exists() && !start().is_empty());
    let start: serde_json::Value = serde_json::from_str(&start()).unwrap();
    let (pid, host) = (&start["pid"], &w.host);
    let text = w.out("bjobs -UF 1");
    for part in [
        "2 Processors Requested, Requested Resources <span[hosts=1]>, Specified Hosts <HOST>;\n",
        "Started on 2 Hosts/Processors <HOST> <HOST>, Execution Home </",
        ": Resource usage collected.\n                     MEM: ",
        "\n SCHEDULING PARAMETERS:\n",
    ] {
        assert!(text.contains(&part.replace("HOST", host)), "{part}: {text}");
    }
    let words: Vec<&str> = text.lines().rev().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((words[0], words[11]), ("loadSched", "1"), "{text}");
    assert!(w.out("bjobs -l 1").lines().any(|line| line.starts_with(&" ".repeat(21))), "the other form is folded");
    assert_eq!(w.out("bjobs -noheader -o ask_hosts 1").trim(), host);
    w.out("touch go; bwait -w 'done(1)'");
    assert!(w.out("bjobs -l 1").contains("\n MEMORY USAGE:\n MAX MEM: "), "{}", w.out("bjobs -l 1"));
    let history = w.out("bhist -UF 1");
    for part in [
        "Submitted from host <HOST>, to Queue <storage>, CWD <",
        ": Dispatched to 2 Hosts/Processors <HOST> <HOST>;\n",
        &format!(": Starting (Pid {pid});\n"),
        &format!(", Execution Pid <{pid}>;\n"),
        ": Done successfully. The CPU time used is ",
    ] {
        assert!(history.contains(&part.replace("HOST", host)), "{part}: {history}");
    }
    let ended = history.lines().find_map(|line| line.split_once(": Done successfully")).unwrap().0;
    assert!(history.contains(&format!("in various states by  {ended}\n")), "{history}");
    let full = w.out(
        "bsub -n 2 'sleep 600' >/dev/null; until bjobs -r >/dev/null 2>&1; do sleep 0.1; done; bhosts -w; bkill 0",
    );
    let row = full.lines().find(|l| l.starts_with(host.as_str())).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("closed_Full"), "{full}");
}

#[test]
fn a_job_has_lsfs_variables_of_its_own_and_none_of_the_job_around_it() {
    let w = World::new();
    let tells = "echo $LSB_MAX_NUM_PROCESSORS $LSFUSER ${LSB_INTERACTIVE:-no} ${LSB_JOBFILENAME:-none}";
    let (code, out, err) = w.sh(&format!("BSUB_STDERR=1 bsub -I -n 1,2 '{tells}'"));
    assert_eq!((code, out), (0, format!("2 {} Y none\n", user())), "{err}");
    let script = format!("{tells} > told; grep -c MARK $LSB_JOBFILENAME >> told\n");
    let (code, _, err) = w.fed("LSB_INTERACTIVE=Y LSB_JOBFILENAME=/theirs bsub -K", &script);
    assert_eq!(code, 0, "{err}");
    let told = w.file("told");
    let lines: Vec<&str> = told.lines().collect();
    let (head, file) = lines[0].rsplit_once(' ').unwrap();
    assert_eq!((head, lines[1]), (format!("1 {} no", user()).as_str(), "1"), "{told}");
    assert!(file.ends_with("/2/script"), "{told}");
    w.sh("LSB_INTERACTIVE=Y LSB_JOBFILENAME=/theirs bsub -K 'env > env'");
    assert!(!w.file("env").contains("LSB_INTERACTIVE") && !w.file("env").contains("/theirs"));
    w.out("bsub -K -o out true");
    assert!(w.file("out").contains("> was used as the home directory.\n<"), "{}", w.file("out"));
}
