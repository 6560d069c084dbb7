//! Jobs over several hosts: this machine, and the same under another name with a queue of its own.

use crate::far::Cluster;
use crate::until::until;

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
    // The slots of both hosts are in use: whoever wants one of them waits, and so does another such job.
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
    // One in a session of its own, as a daemon of an MPI is, and one that does not hear.
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
