//! The job commands, one after another.

use super::world::World;
use crate::script::script;
use crate::until::until;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_job_runs_and_its_output_is_kept() {
    let w = World::new(2);
    assert_eq!(w.out(&["sub", "-q", "echo out; echo err >&2; pwd"]), "1\n");
    assert_eq!(w.homing(&["wait", "1"]).status.code(), Some(0));
    let real = w.path().canonicalize().unwrap();
    assert_eq!(w.out(&["peek", "1"]), format!("out\n{}\nerr\n", real.display()));
    assert_eq!(w.state("1")["state"], "DONE");
    assert_eq!(w.homing(&["sub", "-K", "-o", "o.%J", "echo x; exit 7"]).status.code(), Some(7));
    assert_eq!(std::fs::read_to_string(w.path().join("o.2")).unwrap(), "x\n");
    // The words are a program and its arguments, which are not quoted twice.
    w.out(&["sub", "-K", "-q", "printf", "%s|", "a b", "c'd"]);
    assert_eq!(w.out(&["peek", "3"]), "a b|c'd|");
}

#[test]
fn arrays_dependencies_and_batches() {
    let w = World::new(2);
    w.out(&["sub", "-J", "a[1-4]%1", "-o", "out", "echo $HOMING_JOB_INDEX"]);
    w.out(&["sub", "--after", "1", "-K", "cat out"]);
    assert_eq!(w.out(&["peek", "2"]), "1\n2\n3\n4\n");
    w.out(&["sub", "-q", "exit 3"]);
    w.out(&["sub", "-q", "--after", "3", "echo never"]);
    assert_eq!(w.homing(&["wait", "4"]).status.code(), Some(130));
    w.out(&["sub", "-q", "-K", "--after", "exit(3,3) && done(2)", "true"]);
    w.out(&["sub", "-q", "-K", "-n1", "--batch", "-k", "echo {}", ":::", "x", "y z"]);
    assert!(w.out(&["peek", "6"]).starts_with("x\ny z\n"));
    // The job is a run, and shown as any other run.
    let shown = w.out(&["top", "--once"]);
    assert!(
        shown.contains("homing run -j1 -k 'echo {}' ::: x 'y z'") && shown.contains("2 done, 0 failed in "),
        "{shown}"
    );
}

#[test]
fn what_can_never_start_is_refused() {
    let w = World::new(2);
    for words in
        [&["sub", "--after", "99", "true"][..], &["sub", "--after", "done(nobody)", "true"], &["sub", "-n0", "true"]]
    {
        let output = w.homing(words);
        assert_eq!(output.status.code(), Some(255), "{words:?}");
    }
    // Nor is an option ignored that only Slurm understands.
    let output = w.homing(&["sub", "--account", "physics", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(255) && said.contains("--account=physics works only on Slurm"), "{said}");
    assert_eq!(w.out(&["jobs", "-a", "--json"]).trim(), "[]");
}

#[test]
fn what_waits_and_what_runs_can_be_killed() {
    let w = World::new(1);
    w.out(&["sub", "-q", "echo > runs; sleep 100"]);
    w.out(&["sub", "-q", "echo no > ran"]);
    until("the first runs", || w.path().join("runs").exists());
    w.out(&["sub", "-q", "--after", "1", "true"]);
    let list = w.out(&["jobs", "--why"]);
    assert!(
        list.contains("PEND: no free slots") && list.contains("PEND: its dependency condition does not hold yet"),
        "{list}"
    );
    w.out(&["kill", "2"]);
    w.out(&["kill", "1"]);
    assert_eq!(w.homing(&["wait", "1", "2"]).status.code(), Some(143));
    assert_eq!(w.state("2")["exit"], 130);
    assert!(!w.path().join("ran").exists());
    assert_eq!(w.homing(&["kill", "99"]).status.code(), Some(255));
}

#[test]
fn a_batch_is_checked_at_once_and_may_come_through_a_pipe() {
    let w = World::new(2);
    let refused = w.homing(&["sub", "--batch", "--no-such-option", "echo"]);
    assert_eq!(refused.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--no-such-option"), "{refused:?}");
    let mut child = w.command(&["sub", "-q", "--batch", "-k", "echo got {}"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo's\n").unwrap();
    assert!(child.wait().unwrap().success());
    w.out(&["wait"]);
    assert!(w.out(&["peek", "1"]).starts_with("got one\ngot two's\n"));
}

#[test]
fn nothing_of_the_submitters_shell_stays_open() {
    let w = World::new(1);
    let homing = env!("CARGO_BIN_EXE_homing");
    let mut shell = std::process::Command::new("sh");
    // The reader of the pipe must reach its end while the job runs.
    w.set_up(&mut shell).args(["-c", &format!("({homing} sub -q 'sleep 86400' 5>&1) | cat")]);
    assert!(shell.status().unwrap().success());
    until("it runs", || w.state("1")["state"] == "RUN");
    w.out(&["kill", "1"]);
}

#[test]
fn a_job_that_cannot_be_started_holds_nobody_up() {
    let w = World::new(1);
    w.out(&["sub", "-q", "until [ -e go ]; do sleep 0.05; done"]);
    w.out(&["sub", "-q", "true"]);
    w.out(&["sub", "-q", "true"]);
    let folder = w.path().join(format!("queue/homing-queue-{}/2", rustix::process::geteuid().as_raw()));
    std::fs::write(folder.join("private.json"), "half a reco").unwrap();
    std::fs::write(w.path().join("go"), "").unwrap();
    w.out(&["wait", "3"]);
    // While a keeper tries to start the job, it counts as running.
    until("it waits for the next attempt", || w.state("2")["state"] == "PEND");
    w.out(&["kill", "2"]);
    until("its end is written, also when a keeper just tries", || w.state("2")["state"] == "EXIT");
}

#[test]
fn jobs_are_ended_by_name_by_user_and_all_at_once() {
    let w = World::new(1);
    let sub = |name: &str, job: &str| w.out(&["sub", "-q", "-J", name, job]);
    sub("first", "echo > runs; sleep 600");
    until("it runs", || w.path().join("runs").exists());
    ["pair", "pair", "other"].iter().for_each(|name| drop(sub(name, "echo ran >> ran")));
    w.out(&["kill", "pair"]);
    let states = || ["1", "2", "3", "4"].map(|id| w.state(id)["state"].as_str().unwrap().to_string());
    assert_eq!(states(), ["RUN", "EXIT", "EXIT", "PEND"]);
    let none = w.homing(&["kill", "pair"]);
    assert_eq!(none.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&none.stderr).contains("none of your unfinished jobs"), "{none:?}");
    w.out(&["kill", "--all"]);
    w.homing(&["wait"]);
    until("all have ended", || states() == ["EXIT"; 4]);
    assert_eq!(w.lines("ran"), Vec::<String>::new(), "no end lets one start that ends next");
    sub("last", "sleep 600");
    w.out(&["kill", "--user", &rustix::process::geteuid().as_raw().to_string()]);
    until("that too", || w.state("5")["state"] == "EXIT");
    assert_eq!(w.homing(&["kill"]).status.code(), Some(255));
}

#[test]
fn one_job_is_shown_in_full() {
    let w = World::new(2);
    w.out(&["sub", "-q", "-K", "-J", "count", "--mem", "1G", "--timeout", "5m", "-o", "o.%J", "echo", "a b"]);
    let shown = w.out(&["jobs", "1"]);
    let here = w.path().canonicalize().unwrap();
    for line in [
        "job 1",
        "  state      DONE",
        "  name       count",
        "  command    echo a b",
        "  queue      normal, 1 slot",
        "  limits     300 s, 1024.0 MiB of memory",
        &format!("  output     {}/o.1", here.display()),
    ] {
        assert!(shown.lines().any(|l| l == line), "{line}: {shown}");
    }
    for part in ["submitted  20", "started    20", "ended      20", "used       "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // homing prints a summary of an array, since it may have too many elements for details.
    w.out(&["sub", "-q", "-J", "a[1-2]", "exit $HOMING_JOB_INDEX"]);
    w.homing(&["wait", "2"]);
    let both = w.out(&["jobs", "2"]);
    assert_eq!((both.lines().count(), both.lines().last()), (4, Some("job 2: 2 elements, 2 EXIT")));
    assert!(w.out(&["jobs", "2[2]"]).contains("state      EXIT 2"));
}

#[test]
fn a_script_on_standard_input_is_a_job_with_options_in_its_lines() {
    let w = World::new(2);
    let sub = |words: &[&str], script: &str| {
        let mut command = w.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let script = "#!/bin/bash\n#HOMING -J from-script -o out -n 2 # both\n#HOMING -K\n\
                  echo \"${BASH_VERSION:+bash} $LSB_JOBNAME $LSB_DJOB_NUMPROC\"; exit 4\n";
    assert_eq!(sub(&["sub"], script).status.code(), Some(4));
    assert_eq!(w.lines("out"), ["bash from-script 2"]);
    sub(&["sub", "-J", "said", "-n1", "-K"], script);
    assert_eq!(w.lines("out")[1], "bash said 1", "the command line wins");
    for (script, why) in [("", "needs a command"), ("#HOMING -n x\n", "#HOMING"), ("#HOMING true\n", "#HOMING")] {
        let output = sub(&["sub"], script);
        assert_eq!(output.status.code(), Some(255), "{script}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
    }
}

#[test]
fn names_of_jobs_are_checked_before_anything_is_waited_for() {
    let w = World::new(1);
    w.out(&["sub", "-q", "until [ -e go ]; do sleep 0.05; done"]);
    for (missing, why) in [("nosuch", "no job of yours is named"), ("999", "no job 999")] {
        let mut wait = w.command(&["wait", "1", missing]).stderr(Stdio::piped()).spawn().unwrap();
        until("it is refused", || wait.try_wait().unwrap().is_some());
        let refused = wait.wait_with_output().unwrap();
        assert_eq!(refused.status.code(), Some(255));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(why) && !said.contains('<'), "{said}");
    }
    std::fs::write(w.path().join("go"), "").unwrap();
    assert_eq!(w.homing(&["wait", "1"]).status.code(), Some(0));
}

#[test]
fn a_long_command_is_shown_in_part_and_its_failure_with_its_reason() {
    let w = World::new(2);
    let names: Vec<String> = (0..500).map(|n| format!("sample{n}.fastq.gz")).collect();
    let batch = ["sub", "-q", "-K", "--batch", "true {}", ":::"].into_iter().chain(names.iter().map(String::as_str));
    w.out(&batch.collect::<Vec<_>>());
    let shown = w.out(&["jobs", "1"]);
    assert!(shown.contains("sample0.fastq.gz") && !shown.contains("sample499"), "{shown}");
    assert!(w.out(&["jobs", "--json", "1"]).contains("sample499"));
    w.homing(&["sub", "-q", "-K", "-i", "gone", "--after", "1", "cat"]);
    let why = w.out(&["jobs", "-a", "--why"]);
    assert!(why.contains("EXIT 255: cannot read ") && why.contains("gone: No such file"), "{why}");
}

#[test]
fn a_job_for_a_host_that_is_none_is_refused_at_once() {
    let w = World::new(2);
    let ssh = w.path().join("ssh");
    script(
        &ssh,
        "for word; do [ \"$word\" != down.invalid ] || { echo 'Connection refused' >&2; exit 255; }; done\n\
                  echo 'ssh: Could not resolve hostname far.invalid: Name or service not known' >&2; exit 255",
    );
    let sub = |host: &str| w.command(&["sub", "-q", "-w", host, "true"]).env("HOMING_SSH", &ssh).output().unwrap();
    for (host, status, why) in [
        ("n[1-", 255, "\"n[1-\" is no node set"),
        ("@nogroup", 255, "is no node set"),
        ("n[1-3]", 255, "takes one host, but \"n[1-3]\" names 3"),
        ("n1,n2", 255, "takes one host"),
        ("n1!n1", 255, "names 0"),
        ("far.invalid", 254, "host far.invalid is unknown"),
    ] {
        let refused = sub(host);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(status) && said.contains(why), "{host}: {said}");
    }
    assert_eq!(w.out(&["jobs", "-a", "--json"]).trim(), "[]");
    assert!(sub("down.invalid").status.success(), "a host that is down may come back");
    w.out(&["kill", "--all"]);
}

#[test]
fn words_and_files_that_stop_a_job_are_refused_at_once() {
    let w = World::new(2);
    let words: &[(&[&str], &str)] = &[
        (&["-o", "gone/out", "true"], "cannot write the output of the job to"),
        (&["-o", "out", "-e", "gone/err.%J", "true"], "gone/err.%J: No such file"),
        (&["-i", "gone", "cat"], "gone: No such file"),
        (&["--batch", "echo {}", "::::", "gone"], "gone"),
        (&["--batch", "echo {}", "::::", "/dev/fd/63"], "through a pipe"),
        (&["--batch", "--hosts", "n[1-", "echo", ":::", "a"], "is no node set"),
        (&["--batch", "--halt", "sometimes", "echo", ":::", "a"], "sometimes"),
        (&["--batch", "--results", "out.csv", "echo", ":::", "a"], "--results writes a folder"),
        (&["--batch", "-J", "b1", "echo", ":::", "a"], "homing sub -J b1 --batch"),
    ];
    for (words, why) in words {
        let refused = w.command(&["sub"]).args(*words).env("PARALLEL_HOME", w.path()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        let status = if why.starts_with("cannot write") || words[0] == "-o" { 254 } else { 255 };
        assert!(refused.status.code() == Some(status) && said.contains(why), "{words:?}: {said}");
    }
    assert_eq!(w.out(&["jobs", "-a", "--json"]).trim(), "[]");
    // The files of a job that waits for another may be that one's.
    w.out(&["sub", "-q", "until [ -e go ]; do sleep 0.05; done; mkdir made; echo x > list"]);
    w.out(&["sub", "-q", "--after", "1", "-o", "made/out", "--batch", "-k", "-q", "echo got {}", "::::", "list"]);
    std::fs::write(w.path().join("go"), "").unwrap();
    assert_eq!(w.homing(&["wait", "2"]).status.code(), Some(0));
    assert_eq!(w.lines("made/out"), ["got x"]);
}

#[test]
fn a_batch_and_its_run_have_one_name() {
    let w = World::new(2);
    w.out(&["sub", "-q", "-K", "-J", "both", "--batch", "true", ":::", "a"]);
    w.out(&["sub", "-q", "--batch", "--name", "mine", "true", ":::", "a"]);
    assert_eq!(w.homing(&["wait", "mine"]).status.code(), Some(0));
    // A report of a run that cannot be found is an error.
    ["both", "mine"].iter().for_each(|name| drop(w.out(&["report", name])));
    let shown = w.out(&["jobs", "mine"]);
    assert!(shown.lines().any(|line| line == "  name       mine"), "{shown}");
    // A batch without a name is found by the name of its run.
    w.out(&["sub", "-q", "-K", "--batch", "true", ":::", "b"]);
    let shown = w.out(&["jobs", "3"]);
    let run = shown.lines().find_map(|line| line.strip_prefix("  run        ")).unwrap_or_else(|| panic!("{shown}"));
    w.out(&["report", run]);
}

#[test]
fn a_job_that_waits_for_the_slots_of_a_run_names_it() {
    let w = World::new(1);
    let task = "echo > busy; until [ -e go ]; do sleep 0.05; done #";
    let mut run = w.command(&["run", "-q", "--name", "long10", task, ":::", "a"]).spawn().unwrap();
    until("its task runs", || w.path().join("busy").exists());
    w.out(&["sub", "-q", "true"]);
    let why = w.out(&["jobs", "--why"]);
    assert!(why.contains("PEND: no free slots: run long10 of ") && why.contains(" holds 1 of 1"), "{why}");
    std::fs::write(w.path().join("go"), "").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(w.homing(&["wait", "1"]).status.code(), Some(0));
}

#[test]
fn a_name_that_a_run_has_already_is_noted() {
    let w = World::new(1);
    let named = |words: &[&str]| {
        let output = w.command(&["run", "--name", "first"]).args(words).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(!named(&["true", ":::", "a"]).contains("the name"));
    assert!(named(&["true", ":::", "b"]).contains(" also has the name \"first\"; from now on "));
    assert!(!named(&["-q", "true", ":::", "c"]).contains("the name"));
}
