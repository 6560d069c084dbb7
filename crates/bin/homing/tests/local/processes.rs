//! Checks that no process of a task outlives the worker or the keeper that started it, whichever process is killed. A
//! chain of forks ends too.

use crate::script::script;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn homing(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.args(args).current_dir(dir).env("HOMING_RUNS", dir.join("runs")).env("SHELL", "/bin/sh");
    command.env_remove("HOMING_CLUSTER").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for an event, however slow the machine is.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(began.elapsed() < Duration::from_secs(120), "not within 120 s: {what}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

const KILL: rustix::process::Signal = rustix::process::Signal::KILL;

fn children_of(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

fn child_of(pid: u32) -> Option<u32> {
    children_of(pid).first().copied()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Returns the process ids that tasks wrote, one a line.
fn pids(dir: &Path, wanted: usize) -> Vec<u32> {
    until("the tasks have begun", || {
        let text = std::fs::read_to_string(dir.join("pids")).unwrap_or_default();
        let pids: Vec<u32> = text.lines().filter_map(|l| l.parse().ok()).collect();
        (pids.len() == wanted && text.ends_with('\n')).then_some(pids)
    })
}

/// Two tasks, each with a process in a session of its own, which all ignore SIGTERM and SIGHUP.
struct Running {
    dir: tempfile::TempDir,
    run: Child,
    guard: u32,
    worker: u32,
    pids: Vec<u32>,
}

fn running() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let task = ": {}; trap '' TERM HUP; setsid sh -c 'echo $$ >> pids; while :; do sleep 1; done' & \
                echo $$ >> pids; while :; do sleep 1; done";
    let run = homing(dir.path(), &["run", "-j2", task, ":::", "1", "2"]).spawn().unwrap();
    let pids = pids(dir.path(), 4);
    let guard = child_of(run.id()).unwrap();
    let worker = child_of(guard).unwrap();
    Running { dir, run, guard, worker, pids }
}

impl Running {
    fn all_end(self) -> Output {
        for pid in self.pids {
            until("a process of a task has ended", || (!lives(pid)).then_some(()));
        }
        until("the worker has ended", || (!lives(self.worker)).then_some(()));
        let output = self.run.wait_with_output().unwrap();
        drop(self.dir);
        output
    }
}

#[test]
fn tasks_end_with_a_killed_worker_and_the_user_is_told() {
    let running = running();
    kill(running.worker, KILL);
    let output = running.all_end();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(254), "{said}");
    assert!(said.contains("the worker was killed by signal 9; its tasks are ended"), "{said}");
}

#[test]
fn tasks_end_with_coordinator_and_worker_killed_together() {
    let mut running = running();
    running.run.kill().unwrap();
    kill(running.worker, KILL);
    running.all_end();
}

#[test]
fn a_worker_whose_guard_is_killed_ends_its_tasks_itself() {
    let running = running();
    kill(running.guard, KILL);
    running.all_end();
}

#[test]
fn a_worker_that_stands_still_is_ended_with_its_tasks_when_its_lease_is_over() {
    let running = running();
    kill(running.worker, rustix::process::Signal::STOP);
    let output = running.all_end();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the worker made no progress for 26 s and was ended with its tasks"), "{said}");
}

/// Stops them as Ctrl-Z does. The pause is longer than the silence that a worker elsewhere, or a coordinator,
/// accepts.
#[test]
fn a_run_and_a_build_that_were_stopped_go_on_where_they_were() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("Makefile"),
        "all: a b\na b:\n\t@until [ -e go ]; do sleep 0.1; done; echo $@ > $@\n",
    )
    .unwrap();
    let task = "echo $$ >> pids; until [ -e go ]; do sleep 0.1; done; echo {}";
    let run = homing(dir.path(), &["run", "-j1", task, ":::", "1", "2"]).spawn().unwrap();
    let build = homing(dir.path(), &["make", "--assume-shared", "--hosts", "localhost", "-j2", "all"]).spawn().unwrap();
    pids(dir.path(), 1);
    let is_guard =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|w| w.contains("worker"));
    let guard_of = |pid| children_of(pid).into_iter().find(is_guard);
    let worker_of = |pid| until("a worker", || guard_of(pid).and_then(child_of));
    let workers = [worker_of(run.id()), worker_of(build.id())];
    [run.id(), build.id()].into_iter().for_each(|pid| kill(pid, rustix::process::Signal::STOP));
    std::thread::sleep(Duration::from_secs(homing_launch::wire::HOST_LOST_S + 2));
    assert!(workers.into_iter().all(lives), "a worker ended");
    std::fs::write(dir.path().join("go"), "").unwrap();
    for process in [run, build] {
        kill(process.id(), rustix::process::Signal::CONT);
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("lost") && !said.contains("ended"), "{said}");
    }
    assert_eq!(pids(dir.path(), 2).len(), 2, "no task ran twice");
}

/// Stops a run or a build whose one host is behind a fake ssh. Waits until the task there has ended with its worker's
/// lease, and continues the run. Returns its output after the task has begun again.
fn stopped(dir: &Path, args: &[&str]) -> Output {
    let ssh = dir.join("ssh");
    script(&ssh, "for last; do :; done; exec sh -c \"$last\"");
    let mut run = homing(dir, args);
    run.env("HOMING_SSH", &ssh).env("XDG_CACHE_HOME", dir.join("cache"));
    let run = run.spawn().unwrap();
    let first = pids(dir, 1)[0];
    kill(run.id(), rustix::process::Signal::STOP);
    until("the lease is over", || (!lives(first)).then_some(()));
    kill(run.id(), rustix::process::Signal::CONT);
    let begun_anew = |text: String| text.lines().count() == 2;
    until("the task runs again", || begun_anew(std::fs::read_to_string(dir.join("pids")).ok()?).then_some(()));
    std::fs::write(dir.join("go"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("far is reconnected: this run had been suspended"), "{said}");
    output
}

#[test]
fn a_host_behind_ssh_comes_back_to_a_run_that_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let task = "echo $$ >> pids; until [ -e go ]; do sleep 0.1; done; echo {}";
    let output = stopped(dir.path(), &["run", "--on", "ssh", "--hosts", "far", "-j1", task, ":::", "1", "2"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n");
}

#[test]
fn a_host_behind_ssh_comes_back_to_a_build_that_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = "echo $$$$ >> pids; until [ -e go ]; do sleep 0.1; done; echo $@ > $@";
    std::fs::write(dir.path().join("Makefile"), format!("a:\n\t@{recipe}\n")).unwrap();
    let output = stopped(dir.path(), &["make", "--assume-shared", "--hosts", "far", "a"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("far is lost: ") && said.contains("1 recipe in"), "{said}");
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "a\n");
}

/// Each process of the chain starts the next, in a session of its own, and ends. The chain ends by itself if `stop`
/// exists.
const CHAIN: &str = "[ -e stop ] || { : > beat; setsid \"$0\" & }";

fn chain(dir: &Path) {
    script(&dir.join("chain"), CHAIN);
}

/// Whether the chain has ended: no process of it makes the file again.
fn is_broken(dir: &Path) -> bool {
    std::fs::remove_file(dir.join("beat")).expect("the chain has begun");
    std::thread::sleep(Duration::from_millis(300));
    let broken = !dir.join("beat").exists();
    std::fs::write(dir.join("stop"), "").unwrap();
    broken
}

#[test]
fn a_chain_of_forks_ends_with_its_run() {
    for nth in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        chain(dir.path());
        let task = ": {}; ./chain; until [ -e beat ]; do sleep 0.01; done";
        assert!(homing(dir.path(), &["run", "-q", task, ":::", "1"]).status().unwrap().success());
        assert!(is_broken(dir.path()), "the chain lives after run {nth}");
    }
}

#[test]
fn a_chain_of_forks_ends_with_its_job_in_the_queue() {
    for nth in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        chain(dir.path());
        let task = "./chain; until [ -e beat ]; do sleep 0.01; done";
        let mut sub = homing(dir.path(), &["sub", "-q", "-K", task]);
        assert!(
            sub.env("HOMING_QUEUE", dir.path().join("queue")).env("HOMING_ENGINE", "local").status().unwrap().success()
        );
        assert!(is_broken(dir.path()), "the chain lives after job {nth}");
    }
}

#[test]
fn a_task_that_no_system_can_start_is_refused_and_the_others_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks: Vec<serde_json::Value> =
        (1..=6).map(|n| serde_json::json!({ "argv": ["echo", n.to_string()] })).collect();
    tasks[2]["argv"] = vec!["x".repeat(1_000_000); 17].into();
    let lines: Vec<String> = tasks.iter().map(|task| format!("{task}\n")).collect();
    std::fs::write(dir.path().join("tasks"), lines.concat()).unwrap();
    let output = homing(dir.path(), &["run", "-k", "--tasks", "tasks"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n4\n5\n6\n", "{said}");
    assert!(said.contains("the command of task 3 has 17.0 MB; the limit of this system is"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

/// Runs `homing` below a shell with limits.
fn limited(dir: &Path, limits: &str, args: &[&str]) -> Output {
    let mut command = homing(dir, &[]);
    let envs: Vec<_> = command.get_envs().filter_map(|(n, v)| Some((n.to_owned(), v?.to_owned()))).collect();
    command = Command::new("bash");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_homing")]).args(args);
    command.envs(envs).env_remove("HOMING_CLUSTER").current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn numbers(most: u32) -> Vec<String> {
    (1..=most).map(|n| n.to_string()).collect()
}

/// Returns the arguments of a run of so many tasks.
fn run_of<'a>(jobs: &'a str, task: &'a str, tasks: &'a [String]) -> Vec<&'a str> {
    ["run", "-k", jobs, task, ":::"].into_iter().chain(tasks.iter().map(String::as_str)).collect()
}

#[test]
fn more_tasks_run_at_once_than_the_soft_limit_on_descriptors_allows_and_have_that_limit() {
    let dir = tempfile::tempdir().unwrap();
    // Each task waits for all the others.
    let task = ": {}; echo >> began; until [ $(wc -l < began) -ge 60 ]; do sleep 0.1; done; ulimit -Sn";
    let output = limited(dir.path(), "ulimit -Sn 100", &run_of("-j60", task, &numbers(60)));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "100\n".repeat(60), "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn no_more_tasks_run_at_once_than_the_hard_limit_on_descriptors_allows() {
    let dir = tempfile::tempdir().unwrap();
    let output = limited(dir.path(), "ulimit -n 128", &run_of("-j60", "echo", &numbers(60)));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 60, "{said}");
    assert_eq!(said.matches("only 9 tasks at once instead of 60").count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_thread_that_cannot_be_begun_is_no_fault_whichever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let library = crate::preload::preload(dir.path(), "few_threads.c");
    std::fs::write(dir.path().join("Makefile"), "all: a b\na b: ; @touch $@\n").unwrap();
    let commands: [&[&str]; 6] = [
        &["run", "-j2", "echo {} >> ran", ":::", "1", "2", "Makefile"],
        &["exec", "-w", "localhost", "echo > ran"],
        &["where", "Makefile"],
        &["hosts"],
        &["make", "-B"],
        &["sub", "-K", "echo > ran"],
    ];
    for words in commands {
        let statuses = (0..12).map(|most: u32| {
            let mut command = homing(dir.path(), words);
            command.env("LD_PRELOAD", &library).env("THREADS_MOST", most.to_string());
            command.env("HOMING_QUEUE", dir.path().join(format!("queue{most}"))).env("HOMING_ENGINE", "local");
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!said.contains("internal error"), "{words:?} with {most} threads: {said}");
            let told = said.contains("cannot start a thread");
            assert!(output.status.success() || told, "{words:?} with {most} threads: {output:?}");
            output.status.code()
        });
        let statuses: Vec<_> = statuses.collect();
        assert_eq!(statuses.last(), Some(&Some(0)), "{words:?}: {statuses:?}");
    }
}

/// Opens many descriptors before the worker begins; the worker's count does not include them.
const TAKEN: &str = "ulimit -n 128; for ((i = 20; i < 100; i++)); do eval \"exec $i</dev/null\"; done";

#[test]
fn a_task_for_which_there_are_too_few_descriptors_waits_until_another_one_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let output = limited(dir.path(), TAKEN, &run_of("-j12", "sleep 2; echo {}", &numbers(16)));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), numbers(16).join("\n") + "\n", "{said}");
    assert_eq!(said.matches("too few descriptors (ulimit -n) for all tasks at once").count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}
