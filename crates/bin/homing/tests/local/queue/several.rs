//! Jobs over several hosts: this machine, and the same machine under another name with a queue of its own.

use super::far::Cluster;
use crate::until::until;
use std::process::Stdio;

fn submit(c: &Cluster, line: &str) -> String {
    c.out(0, &["sub", "-q", "-n", "2", "--ptile", "1", line]).trim().to_string()
}

#[test]
fn it_has_its_slots_on_all_hosts_and_starts_its_ranks_there() {
    let c = Cluster::new(1, 1);
    let go = c.host.path().join("go");
    let line = format!(
        "cat $HOMING_HOSTFILE; echo $LSB_MCPU_HOSTS; for h in $LSB_HOSTS; do $HYDRA_LAUNCHER_EXEC -x $h echo at $h; done; \
         $HYDRA_LAUNCHER_EXEC nowhere true; $HYDRA_LAUNCHER_EXEC far 'exit 7'; echo $?; until [ -e {} ]; do sleep 0.05; done",
        go.display()
    );
    let wide = submit(&c, &line);
    until("it runs and has said all", || c.out(0, &["peek", &wide]).contains("\n7\n"));
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let told = c.out(0, &["peek", &wide]);
    assert!(told.starts_with(&format!("{own}\nfar\n{own} 1 far 1\nat {own}\nat far\n")), "{told}");
    assert!(told.contains("nowhere is none of the hosts of this job"), "{told}");
    // The slots of both hosts are in use. A job for one of them waits, and so does another job for both.
    let here = c.out(0, &["sub", "-q", "true"]).trim().to_string();
    let there = c.out(0, &["sub", "-q", "--host", "far", "true"]).trim().to_string();
    let second = submit(&c, "true");
    until("the host has said why", || c.state(0, &there)["why"] == "far: no free slots");
    assert_eq!((&c.state(0, &here)["state"], &c.state(0, &second)["state"]), (&"PEND".into(), &"PEND".into()));
    std::fs::write(go, "").unwrap();
    for id in [&wide, &here, &there, &second] {
        assert_eq!(c.at(0, &["wait", id]).status.code(), Some(0), "{id}");
    }
    let rows = c.out(0, &["jobs", "-a"]);
    assert_eq!(rows.lines().count(), 5, "each job once: {rows}");
}

#[test]
fn many_such_jobs_end_and_what_never_fits_is_refused() {
    let c = Cluster::new(1, 2);
    let lines = (0..8).map(|n| (n % 2, c.out(n % 2, &["sub", "-q", "-n", "2", "--ptile", "1", "true"])));
    let ids: Vec<(usize, String)> = lines.map(|(end, id)| (end, id.trim().to_string())).collect();
    for (end, id) in &ids {
        assert_eq!(c.at(*end, &["wait", id]).status.code(), Some(0), "{id}");
    }
    let refused = c.at(0, &["sub", "-n", "3", "--ptile", "1", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(255) && said.contains("3 slots, 1 on each host, never fit: "), "{said}");
    assert!(said.contains("the largest number that would is 2"), "{said}");
}

#[test]
fn nothing_of_it_is_left_on_any_host_when_it_is_killed() {
    let c = Cluster::new(1, 1);
    let pids = c.host.path().join("pids");
    // One process is in a session of its own, as a daemon of an MPI is, and one ignores SIGTERM.
    let rank = format!(
        "setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & trap '' TERM; echo $$ >> {0}; sleep 1000",
        pids.display()
    );
    let id = submit(&c, &format!("$HYDRA_LAUNCHER_EXEC far \"{rank}\""));
    let started = || std::fs::read_to_string(&pids).unwrap_or_default();
    until("both run", || started().lines().count() == 2);
    c.out(0, &["kill", &id]);
    assert_ne!(c.at(0, &["wait", &id]).status.code(), Some(0));
    let alive = |pid: &str| std::path::Path::new(&format!("/proc/{}", pid.trim())).exists();
    until("they are gone", || !started().lines().any(alive));
    // The slots of both are free again.
    let next = submit(&c, "true");
    assert_eq!(c.at(0, &["wait", &next]).status.code(), Some(0));
}

#[test]
fn a_rank_that_dies_ends_the_job_with_its_host_and_status() {
    let c = Cluster::new(1, 1);
    let line = "$HYDRA_LAUNCHER_EXEC far 'kill -9 $$' & sleep 1000";
    let id = submit(&c, line);
    assert_eq!(c.at(0, &["wait", &id]).status.code(), Some(137));
    let told = c.state(0, &id);
    assert_eq!((&told["exit"], &told["reason"]), (&137.into(), &"a rank on far ended by signal 9".into()), "{told}");
    assert_eq!(told["received"].as_object().map(serde_json::Map::len), Some(2), "{told}");
    let id = submit(&c, "LSB_DJOB_RTASK_GONE_ACTION=IGNORE_TASKCRASH $HYDRA_LAUNCHER_EXEC far 'kill -9 $$'; exit 3");
    assert_eq!(c.at(0, &["wait", &id]).status.code(), Some(3));
}

#[test]
fn a_run_has_its_tasks_on_several_hosts_at_once() {
    let c = Cluster::new(1, 1);
    // A job of the same user, which does not belong to the run. It outlives the run that finds its runner at work.
    let go = c.host.path().join("go");
    let beside =
        c.out(0, &["sub", "-q", "--host", "far", &format!("until [ -e {} ]; do sleep 0.05; done", go.display())]);
    let line =
        "cat $HOMING_HOSTFILE; for h in $LSB_HOSTS; do $HYDRA_LAUNCHER_EXEC $h echo {} at $h; done; cat; exit {}";
    let words = ["run", "--nodes", "2", "--ppn", "1", "-k", "-v", "--joblog", "log", line, ":::", "0", "3"];
    let mut run = c.command(0, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("one task waits for the host, the other behind it", || {
        let jobs: Vec<serde_json::Value> = serde_json::from_str(&c.out(0, &["jobs", "--json"])).unwrap();
        jobs.iter().filter(|job| job["state"] == "PEND").count() == 2
    });
    assert!(run.try_wait().unwrap().is_none());
    std::fs::write(go, "").unwrap();
    let run = run.wait_with_output().unwrap();
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let of = |n: u32| format!("{}\n{own}\nfar\n{n} at {own}\n{n} at far\n", line.replace("{}", &n.to_string()));
    assert_eq!(String::from_utf8_lossy(&run.stdout), of(0) + &of(3));
    assert_eq!(run.status.code(), Some(1), "as many failed");
    // The record has the user's commands, and their ends.
    let log = c.ends[0].lines("log");
    assert!(log[1..].iter().all(|line| line.contains("\tcat $HOMING_HOSTFILE;")), "{log:?}");
    let mut exits: Vec<&str> = log[1..].iter().filter_map(|line| line.split('\t').nth(6)).collect();
    exits.sort_unstable();
    assert_eq!(exits, ["0", "3"], "{log:?}");
    assert_eq!(c.at(0, &["wait", beside.trim()]).status.code(), Some(0));
}

#[test]
fn nothing_of_a_run_over_several_hosts_is_left_when_it_is_killed() {
    let c = Cluster::new(1, 1);
    let pids = c.host.path().join("pids");
    let rank = format!("$HYDRA_LAUNCHER_EXEC far 'echo $$ >> {0}; sleep 1000'", pids.display());
    let mut run = c.command(0, &["run", "--nodes", "1-9", "--ppn", "1", &rank, ":::", "a", "b"]).spawn().unwrap();
    let started = || std::fs::read_to_string(&pids).unwrap_or_default();
    until("one runs, and one waits for its slots", || started().lines().count() == 1);
    run.kill().unwrap();
    run.wait().unwrap();
    let alive = |pid: &str| std::path::Path::new(&format!("/proc/{}", pid.trim())).exists();
    until("it is gone", || !started().lines().any(alive));
    // The slots of both are free again, and the other one never starts.
    let next = submit(&c, "true");
    assert_eq!(c.at(0, &["wait", &next]).status.code(), Some(0));
    assert_eq!(started().lines().count(), 1);
}

#[test]
fn what_a_run_over_several_hosts_cannot_have_is_told() {
    let c = Cluster::new(1, 1);
    let run = |words: &[&str]| {
        let run = c.at(0, &[&["run"], words, &["true", ":::", "1"]].concat());
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (status, said) = run(&["--nodes", "3", "--ppn", "1"]);
    assert!(status == Some(1) && said.contains("3 slots, 1 on each host, never fit: "), "{said}");
    // A host with fewer slots cannot be one of the two.
    let (status, said) = run(&["--nodes", "2", "--ppn", "2"]);
    assert!(status == Some(1) && said.contains("2 on each host, never fit"), "{said}");
    for (words, why) in [
        (&["--nodes", "2-4"][..], "--ppn for tasks over several hosts"),
        (&["--ppn", "2"], "--nodes"),
        (&["--nodes", "4-2", "--ppn", "1"], "2-4"),
        (&["--nodes", "2", "--ppn", "1", "--on", "slurm"], "homing sub --nodes 2 --ppn 1"),
        (&["--nodes", "2", "--ppn", "1", "-S", "2/far"], "--hosts NODESET"),
    ] {
        let (status, said) = run(words);
        assert!(status == Some(255) && said.contains(why), "{words:?}: {status:?} {said}");
    }
}

#[test]
fn a_job_is_told_the_network_that_was_asked_for() {
    let c = Cluster::new(1, 1);
    let no_such = c.at(0, &["sub", "-n", "2", "--ptile", "1", "--net", "storage", "true"]);
    let said = String::from_utf8_lossy(&no_such.stderr).into_owned();
    assert!(
        no_such.status.code() == Some(255) && said.contains("has an address in this network; known networks: none"),
        "{said}"
    );
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let file = c.ends[0].path().join("cluster.toml");
    let with = |own_net: &str, far_net: &str| {
        let text = format!(
            "hosts = \"{own},far\"\n[host.\"{own}\"]\nslots = 1\naddresses = {{ {own_net} }}\n\
             [host.far]\naddresses = {{ {far_net} }}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    // The addresses are on the loopback, whose interface this machine has.
    with("storage = '127.0.0.1', manage = '10.1.0.1'", "storage = '127.0.0.2', manage = '10.1.0.2'");
    let line = "echo $HOMING_NET $OMPI_MCA_btl_tcp_if_include $HYDRA_IFACE $UCX_NET_DEVICES";
    let run = ["run", "-q", "--nodes", "2", "--ppn", "1", "--net", "storage", line, ":::", "1"];
    assert_eq!(c.out(0, &run).trim(), "storage 127.0.0.0/30 lo lo 1");
    let job = c.out(0, &["sub", "-q", "-n", "2", "--ptile", "1", "--net", "storage", line]).trim().to_string();
    assert_eq!(c.at(0, &["wait", &job]).status.code(), Some(0));
    assert_eq!(c.out(0, &["peek", &job]).trim(), "storage 127.0.0.0/30 lo lo");
    // Addresses that are ambiguous, or not known of a host of the job.
    for (own_net, far_net, why) in [
        ("storage = '10.1.0.1', manage = '10.1.0.2'", "storage = '10.1.0.3'", "10.1.0.2 of manage: "),
        ("storage = '10.1.0.1'", "manage = '10.2.0.3'", "far is a host of the job and has no address"),
        ("storage = '10.1.0.1'", "storage = 'fd00::1'", "IPv4 and IPv6"),
    ] {
        with(own_net, far_net);
        let refused = c.at(0, &["sub", "-n", "2", "--ptile", "1", "--net", "storage", "true"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(255) && said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_task_over_one_host_runs_there_with_its_input_and_its_time_limit() {
    let c = Cluster::new(1, 1);
    let run = ["run", "-q", "--hosts", "far", "--nodes", "1", "--ppn", "1"];
    let mut piped = c.command(0, &[&run[..], &["--pipe", "cat; exit 4"]].concat());
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut piped.stdin.take().unwrap(), b"of its input\n").unwrap();
    let piped = piped.wait_with_output().unwrap();
    assert_eq!((String::from_utf8_lossy(&piped.stdout).as_ref(), piped.status.code()), ("of its input\n", Some(1)));
    // The task waits longer for the host's slot than its time limit. The run ends the task, and with it the job.
    let log = ["--joblog", "log", "--timeout", "2", "sleep 1000", ":::", "1"];
    assert_eq!(c.at(0, &[&run[..], &log].concat()).status.code(), Some(1));
    until("the job has ended", || {
        let jobs: Vec<serde_json::Value> = serde_json::from_str(&c.out(0, &["jobs", "-a", "--json"])).unwrap();
        assert!(jobs.iter().all(|job| job["host"].is_null() || job["host"] == "far"), "{jobs:?}");
        jobs.iter().all(|job| job["state"] == "EXIT")
    });
    let next = c.out(0, &["sub", "-q", "--host", "far", "true"]).trim().to_string();
    assert_eq!(c.at(0, &["wait", &next]).status.code(), Some(0), "the slot is free again");
}
