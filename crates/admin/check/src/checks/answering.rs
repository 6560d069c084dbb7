//! Do network mounts answer?

use super::mounted::{again, mounts, on_top};
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::Mount;
use homing_mounts::{MountLine, server, unescape};
use std::collections::BTreeSet;

static HUNG: Code = Code {
    name: "HC-MOUNT-07",
    severity: Severity::Error,
    what: "a mount does not answer",
    means: "every program that uses it hangs, and cannot be interrupted",
    seen: "`stat POINT/NAME` with a name that cannot be cached, for 2 s, and once more for 6 s",
    mend: "restart its server or daemon; if that is not possible, umount -fl and mount again",
};
static LATE: Code = Code {
    name: "HC-MOUNT-11",
    severity: Severity::Warning,
    what: "a mount answers slowly",
    means: "each access waits that long; the host, its link or the server is overloaded",
    seen: "`stat POINT/NAME`: no answer in 2 s, an answer at the second try",
    mend: "homing top -a shows the busy disk or link; run fewer tasks at once (homing run --io), or use another server",
};
static DEAD: Code = Code {
    name: "HC-MOUNT-08",
    severity: Severity::Error,
    what: "the daemon of a mount has died, or its folder is gone from the server",
    means: "every access fails: \"Transport endpoint is not connected\", \"Stale file handle\"; the mount table shows nothing",
    seen: "`stat POINT/NAME`",
    mend: "umount -l POINT; mount POINT",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "answering",
    // In a name only the kernel's own escapes are undone. A request that FUSE's daemon has taken cannot be killed,
    // and `timeout` waits for the process that it has killed. It therefore kills a shell, whose child holds no pipe
    // of the script.
    script: r#"awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") t = $(i + 1)
  if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"]) print $5}' /proc/self/mountinfo | head -40 |
{ while read -r p; do
  q=$(printf '%b' "$(printf '%s' "$p" | sed 's/\\/\\0/g')")
  { timeout -s KILL "$WAIT" sh -c 'e=$(stat -- "$2/.homing-check-$$" 2>&1 >/dev/null); s=$?
    case $e in *"No such file"*|*"Permission denied"*) s=0 ;; esac
    printf "%s\t%s\t%s\n" "$1" "$s" "${e##*: }"' sh "$p" "$q"
    s=$?; [ "$s" -lt 128 ] || printf '%s\t%s\t\n' "$p" "$s"; } &
done; wait; }"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&HUNG, &DEAD, &LATE],
    judge,
};

/// The status of a mount that has not answered in time.
const SILENT: &str = "137";
/// The status of a mount that has answered only the second time.
const AT_LAST: &str = "late";

/// Returns hosts with mounts that did not answer in time, and hosts whose look at them did not end. A busy server or
/// host looks the same, and the remedy kills the programs that work there: a second request is worth it.
pub fn silent(answers: &Answers) -> Vec<String> {
    let is_silent = |row: &Vec<String>| row.get(1).is_some_and(|status| status == SILENT);
    let is_doubtful = |host: &&HostAnswers| match host.rows(CHECK.key) {
        Some(rows) => rows.iter().any(is_silent),
        None => true,
    };
    answers.hosts.iter().filter(is_doubtful).map(|host| host.name.clone()).collect()
}

/// Joins two answers of a host about its mounts.
pub(crate) fn with_second(first: &[Vec<String>], second: &[Vec<String>]) -> Vec<Vec<String>> {
    let both = |row: &Vec<String>| match second.iter().find(|again| again[0] == row[0] && again.len() == 3) {
        Some(again) if row.get(1).is_some_and(|status| status == SILENT) => match again[1].as_str() {
            "0" => vec![row[0].clone(), AT_LAST.into(), String::new()],
            _ => again.clone(),
        },
        _ => row.clone(),
    };
    first.iter().map(both).collect()
}

/// A host's answer about a mount: its point, and the line of the mount table.
struct MountAnswer<'a> {
    host: &'a HostAnswers,
    point: String,
    mount: Option<Mount>,
    /// The command that mounts it again.
    again: Option<String>,
    status: &'a str,
    words: &'a str,
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let said: Vec<MountAnswer> = answers.of(CHECK.key).flat_map(|(host, rows)| of_host(host, rows)).collect();
    said.iter().filter_map(|one| of_mount(one, &said)).collect()
}

fn of_host<'a>(host: &'a HostAnswers, rows: &'a [Vec<String>]) -> Vec<MountAnswer<'a>> {
    let table = mounts(host).unwrap_or_default();
    rows.iter().filter_map(|row| mount_answer(host, row, &table)).collect()
}

fn mount_answer<'a>(host: &'a HostAnswers, row: &'a [String], table: &[MountLine]) -> Option<MountAnswer<'a>> {
    let [point, status, words] = row else { return None };
    let line = on_top(table, point);
    let (mount, again) = (line.map(|line| line.mount.clone()), line.map(|line| again(line, table)));
    let point = String::from_utf8_lossy(&unescape(point.as_bytes())).into_owned();
    Some(MountAnswer { host, point, mount, again, status, words })
}

impl MountAnswer<'_> {
    fn hangs(&self) -> bool {
        self.status == SILENT
    }

    /// Returns the server, if several hosts mount the same source and it answers none of them.
    fn silent_server(&self, all: &[MountAnswer]) -> Option<String> {
        let own = self.mount.as_ref()?;
        let like = || all.iter().filter(|other| other.mount.as_ref().is_some_and(|mount| mount.source == own.source));
        let hosts: BTreeSet<&str> = like().map(|said| said.host.name.as_str()).collect();
        server(own).filter(|_| hosts.len() > 1 && like().all(MountAnswer::hangs))
    }

    /// Returns the command that mounts it again, unless it answers when the command is pasted: programs there would
    /// be cut off. A request that FUSE's daemon has taken cannot be killed. A shell is killed instead, and no process
    /// waits for it.
    fn again(&self) -> String {
        let point = word(&self.point);
        let mount = self.again.clone().unwrap_or_else(|| format!("mount {point}"));
        let answers = "timeout -s KILL 10 sh -c 'stat -f -- \"$1\" >/dev/null 2>&1; exit $?' sh";
        format!("{answers} {point} || {{ umount -fl {point}; {mount}; }}")
    }
}

fn of_mount(said: &MountAnswer, all: &[MountAnswer]) -> Option<HostFinding> {
    let MountAnswer { host, point, status, words, .. } = said;
    if *status == "0" {
        return None;
    }
    if *status == AT_LAST {
        let seen = format!("stat {point}/NAME: no answer in time, an answer later");
        return Some(LATE.on(host, format!("{point} answers slowly"), seen).look("uptime; cat /proc/pressure/io"));
    }
    if !said.hangs() {
        let found = DEAD.on(host, format!("{point}: {words}"), format!("stat {point}/NAME: {words}"));
        return Some(found.mend(said.again()));
    }
    let found = HUNG.on(host, format!("{point} does not answer"), format!("stat {point}/NAME: no answer in time"));
    // A new mount would hang as well.
    Some(match said.silent_server(all) {
        Some(server) => found.look("systemctl --failed; uptime; dmesg | tail").from_host(&server),
        None => found.mend(said.again()),
    })
}
