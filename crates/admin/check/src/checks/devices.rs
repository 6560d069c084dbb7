//! Do the folders and devices that every program uses have the right kind and mode?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static TEMPORARY: Code = Code {
    name: "HC-DISK-06",
    severity: Severity::Error,
    what: "not all users can write to /tmp, /var/tmp or /dev/shm",
    means: "compilers, sort, MPI and homing's jobs fail for all users except root",
    seen: "`stat -c %a /tmp /var/tmp /dev/shm`",
    mend: "chmod 1777",
};
static NULL: Code = Code {
    name: "HC-DISK-07",
    severity: Severity::Error,
    what: "/dev/null, /dev/zero or a similar device has the wrong type or mode",
    means: "scripts fail for users, or a file grows without limit instead of discarding output",
    seen: "`stat -c '%F %a' /dev/null /dev/zero /dev/urandom`",
    mend: "chmod 666; if it is a plain file: rm, mknod -m 666 /dev/null c 1 3",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "devices",
    script: r#"stat -L -c "%a$T%F$T%n" /tmp /var/tmp /dev/shm /dev/null /dev/zero /dev/urandom; true"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&TEMPORARY, &NULL],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.each(CHECK.key).filter_map(|(host, row)| of_path(host, row)).collect()
}

fn of_path(host: &HostAnswers, row: &[String]) -> Option<HostFinding> {
    let [mode, kind, path] = row else { return None };
    let folder = path.ends_with("tmp") || path.ends_with("shm");
    let (code, right) = if folder { (&TEMPORARY, "1777") } else { (&NULL, "666") };
    let seen = format!("stat {path}: {kind}, {mode}");
    if !folder && kind != "character special file" {
        let minor = [("/dev/null", 3), ("/dev/zero", 5), ("/dev/urandom", 9)].into_iter().find(|(p, _)| p == path)?.1;
        let line = format!("[ -c {0} ] || {{ rm -f {0} && mknod -m 666 {0} c 1 {minor}; }}", word(path));
        return Some(code.on(host, format!("{path} is a {kind}"), seen).mend(line));
    }
    (mode != right).then(|| {
        code.on(host, format!("{path} has the mode {mode}"), seen).mend(format!("chmod {right} {}", word(path)))
    })
}
