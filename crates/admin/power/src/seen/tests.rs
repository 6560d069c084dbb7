use super::*;

/// The output of a host: for each process its number, name, parent, terminal and user. Number 90 is the script, below
/// an sshd.
fn host_output(load: &str, processes: &[(u32, &str, u32, u32, u32)]) -> String {
    let usual = [(1, "systemd", 0, 0, 0), (2, "kthreadd", 0, 0, 0), (50, "sshd", 1, 0, 0), (60, "cron", 1, 0, 0)];
    let asks = [(88, "sshd-session", 50, 0, 0), (90, "sh", 88, 0, 0), (91, "cat", 90, 0, 0)];
    let all: Vec<_> = usual.iter().chain(&asks).chain(processes).collect();
    let uids = all.iter().map(|(pid, _, _, _, uid)| format!("uid {uid} /proc/{pid}\n"));
    let stats =
        all.iter().map(|(pid, name, parent, tty, _)| format!("{pid} ({name}) S {parent} 1 1 {tty} -1 4194560\n"));
    format!("self 90\nload {load} 0.00 1/99 91\ncores 4\n") + &uids.chain(stats).collect::<String>()
}

fn work(processes: &[(u32, &str, u32, u32, u32)]) -> Option<Work> {
    HostActivity::read(&host_output("0.02 0.05", processes)).unwrap().work
}

#[test]
fn a_host_on_which_only_the_system_and_the_question_run_is_at_no_work() {
    let seen = HostActivity::read(&host_output("0.02 0.05", &[])).unwrap();
    assert_eq!(seen, HostActivity { load: 0.05, cores: 4, work: None });
    // An open connection, an unused terminal, and systemd's processes for a lingering user.
    assert_eq!(work(&[(95, "sshd", 50, 0, 0), (96, "sshd", 95, 0, 1000)]), None);
    assert_eq!(work(&[(97, "agetty", 1, 1025, 0), (98, "systemd", 1, 0, 1000), (99, "(sd-pam)", 98, 0, 1000)]), None);
    assert_eq!(work(&[(97, "chronyd", 1, 0, 101), (98, "x", 1, 0, 65534), (99, "y", 1, 0, 61200)]), None);
}

#[test]
fn what_keeps_a_host_on_is_named_and_services_come_first() {
    let brick = (70, "glusterfsd", 1, 0, 0);
    let worker = (80, "homing-worker", 79, 0, 1000);
    let cases: [(&[_], Work); 7] = [
        (&[worker, brick, (71, "slurmd", 1, 0, 0)], Work::Slurm),
        (&[worker, brick], Work::Serves("glusterfsd".into())),
        (&[worker], Work::Homing),
        (&[(81, "vim (a) b", 1, 34816, 1000)], Work::Login(1000)),
        (&[(82, "sshd", 50, 0, 1001), (83, "rsync", 82, 0, 1001)], Work::Login(1001)),
        (&[(84, "python3", 1, 0, 1002)], Work::User(1002, "python3".into())),
        (&[(85, "nfsd", 2, 0, 0)], Work::Serves("nfsd".into())),
    ];
    cases.into_iter().for_each(|(processes, expected)| assert_eq!(work(processes), Some(expected)));
}

#[test]
fn what_somebody_left_behind_who_had_logged_in_keeps_a_host_on() {
    let left = host_output("0.0 0.0", &[(99, "sleep", 1, 0, 0)]);
    let work = |group: &str| HostActivity::read(&format!("{left}/proc/99/cgroup:0::{group}\n")).unwrap().work;
    for group in ["/user.slice/user-0.slice/session-3.scope", "/system.slice/ssh.service", "/system.slice/sshd.service"]
    {
        assert_eq!(work(group), Some(Work::Login(0)), "{group}");
    }
    assert_eq!(work("/system.slice/cron.service"), None);
}

#[test]
fn an_answer_that_lacks_something_is_none() {
    assert_eq!(HostActivity::read(""), None);
    let whole = host_output("0.1 0.2", &[]);
    for lacks in ["1 (systemd)", "self 90", "load ", "cores 4", "90 (sh)"] {
        let cut: String = whole.lines().filter(|line| !line.starts_with(lacks)).map(|l| format!("{l}\n")).collect();
        assert_eq!(HostActivity::read(&cut), None, "{lacks}");
    }
}

#[test]
fn this_machine_answers_so() {
    let asked = std::process::Command::new("sh").args(["-c", SCRIPT]).output().unwrap();
    let seen = HostActivity::read(&String::from_utf8_lossy(&asked.stdout)).unwrap();
    assert!(seen.cores > 0);
}
