//! How long does a new login take, and which part of it takes long?

use crate::compare::middle;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

/// Milliseconds. A login over a local network takes 200 to 300.
const SLOW_MS: u64 = 1500;
/// A login that takes this many times the usual time is slow. So are start-up files that take this many times as long
/// as a shell without them.
const TIMES: u64 = 3;
/// The script waits no longer for one login.
const LONGEST_MS: u64 = 2000;

static SLOW: Code = Code {
    name: "HC-SSH-07",
    severity: Severity::Warning,
    what: "a new login is slow",
    means: "each first connection, every scp, rsync and MPI start waits for it",
    seen: "the time of `. ~/.bashrc`, and of `ssh 127.0.0.1 true` on the host itself",
    mend: "start-up files: remove the slow commands; sshd: UseDNS no, a name server that answers, fewer PAM modules",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "logins",
    // All of it has to fit into the time limit of a part. A slow result is measured again, more often if there is
    // time: all checks of a host begin at once, and other users work there. If twice as many processes as processors
    // want to run, sshd is not measured. It does not matter whether the host permits the login.
    script: r#"took() { a=$(date +%s%3N); timeout -s KILL "${most:-2}" "$@" >/dev/null </dev/null; echo $(($(date +%s%3N) - a)); }
again() {
  for _ in 1 2 3 4 5; do
    s=$(most=0.8; "$1"); [ "$s" -ge 790 ] || { t=$s; break; }
    u=$(most=0.8; bare); [ $((s / 3)) -ge "$u" ] || break
    [ $((n += 2)) -lt "${WAIT%.*}" ] || break
  done
}
bare() { took bash --norc -c :; }
files() { took bash -c '. ~/.bashrc'; }
case $(getent passwd "$(id -u)") in *bash) if [ -r ~/.bashrc ]; then
  u=$(bare); t=$(files)
  [ "$t" -lt 1500 ] || again files
  printf 'files\t%s\t%s\n' "$t" "$u"
fi ;;
esac
[ "${t:-0}" -lt 1500 ] || exit 0
read -r load _ < /proc/loadavg; [ "${load%%.*}" -lt $((2 * $(nproc))) ] || exit 0
login() { took ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=QUIET 127.0.0.1 true; }
t=$(login)
[ "$t" -lt 1500 ] || again login
printf 'sshd\t%s\n' "$t""#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    // Hosts that are all slow are busy; one or two hosts do not show a usual time.
    let usual = middle(answers.hosts.iter().filter_map(|host| took(host, "sshd")), 3).unwrap_or(u64::MAX);
    answers.hosts.iter().filter_map(|host| of_host(host, usual)).collect()
}

fn took(host: &HostAnswers, what: &str) -> Option<u64> {
    number(host, what, 1)
}

fn number(host: &HostAnswers, what: &str, field: usize) -> Option<u64> {
    host.begun(CHECK.key).iter().find(|row| row[0] == what)?.get(field)?.parse().ok()
}

/// A login includes the start-up files: only one of the two is reported.
fn of_host(host: &HostAnswers, usual: u64) -> Option<HostFinding> {
    let seconds = |ms: u64| match ms {
        LONGEST_MS.. => format!("more than {} s", LONGEST_MS / 1000),
        ms => format!("{:.1} s", ms as f64 / 1000.0),
    };
    let bare = number(host, "files", 2).unwrap_or(0);
    if let Some(ms) = took(host, "files").filter(|ms| *ms > SLOW_MS && *ms / TIMES >= bare) {
        let found = SLOW.on(host, "the start-up files of the shell are slow", format!(". ~/.bashrc: {}", seconds(ms)));
        return Some(found.look("PS4='+ $EPOCHREALTIME ' bash -xc '. ~/.bashrc' 2>&1 | tail -50"));
    }
    let ms = took(host, "sshd").filter(|ms| *ms > SLOW_MS && *ms / TIMES >= usual)?;
    let seen = format!("ssh 127.0.0.1 true: {}", seconds(ms));
    let look = "sshd -T | grep -E 'usedns|gssapi|pam'; cat /etc/resolv.conf; journalctl -u ssh -n 20 --no-pager";
    Some(SLOW.on(host, "sshd is slow to accept a login", seen).look(look))
}
