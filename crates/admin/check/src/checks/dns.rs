//! Does a look-up of a name that does not exist end soon?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

/// Milliseconds from which each login, mount or prompt that looks a name up seems to hang.
const SLOW_MS: u64 = 1000;
/// If the same program takes a third of that to look up an entry of a file, the host itself is slow.
const TIMES: u64 = 3;

static SLOW: Code = Code {
    name: "HC-NAME-04",
    severity: Severity::Warning,
    what: "looking up a name that does not exist takes more than a second",
    means: "logins, mounts and sudo wait for a name server that is gone, up to 20 s each time",
    seen: "the time of `getent hosts` with a name that does not exist, and /etc/resolv.conf",
    mend: "remove the dead server from /etc/resolv.conf, or shorten the wait: options timeout:1 attempts:1",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "dns",
    // The shortest of three counts: a busy host is slow now and then, a dead server each time.
    script: r#"awk '$1 == "nameserver" {print "server\t" $2}' /etc/resolv.conf
for _ in 1 2 3; do
  o=$(date +%s%3N); getent protocols tcp; a=$(date +%s%3N); getent hosts homing-check-nobody; b=$(date +%s%3N)
  [ $((b - a)) -lt ${t:=99999} ] && t=$((b - a)) && u=$((a - o))
  [ "$t" -lt 1000 ] && break
done
printf 'took\t%s\t%s\n' "$t" "$u""#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let finding = |host: &crate::HostAnswers| {
        let rows = host.begun(CHECK.key);
        let took = rows.iter().find(|r| r[0] == "took");
        let field = |at: usize| took.and_then(|r| r.get(at)?.parse::<u64>().ok());
        let (took, of_a_file) = (field(1), field(2).unwrap_or(0));
        let servers: Vec<&str> =
            rows.iter().filter(|r| r[0] == "server").filter_map(|r| Some(r.get(1)?.as_str())).collect();
        let cut = host.unknown(CHECK.key).is_some() && !servers.is_empty();
        let how_long = match took {
            Some(ms) if ms > SLOW_MS && ms / TIMES >= of_a_file => format!("{:.1} s", ms as f64 / 1000.0),
            None if cut => "longer than the check waits".into(),
            _ => return None,
        };
        let what = format!("a name that does not exist takes {how_long} to look up");
        let found = SLOW.on(host, what, format!("/etc/resolv.conf: nameserver {}", servers.join(", ")));
        Some(match servers.as_slice() {
            [only] => found.mend(comment_out(only)),
            _ => found.look("cat /etc/resolv.conf; ls -l /etc/resolv.conf"),
        })
    };
    answers.hosts.iter().filter_map(finding).collect()
}

/// Comments a server out. With several servers homing cannot know which one is dead; a single one is.
fn comment_out(server: &str) -> String {
    let edit = format!("s/^nameserver[[:space:]]+{}/# &/", server.replace('.', "[.]"));
    // It may be back when this is pasted. A link to another program's file stays a link.
    format!(
        "timeout 1 getent hosts homing-check-nobody; [ $? != 124 ] || sed -E -i --follow-symlinks {} /etc/resolv.conf",
        word(&edit)
    )
}
