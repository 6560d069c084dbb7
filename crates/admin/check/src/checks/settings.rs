//! Are the settings that affect programs the same everywhere?

use super::alike::{ValueRow, differing};
use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

macro_rules! setting {
    ($id:ident, $name:literal, $noun:literal, $means:literal, $seen:literal, $mend:literal) => {
        static $id: Code = Code {
            name: $name,
            severity: Severity::Warning,
            what: concat!("hosts differ in ", $noun),
            means: $means,
            seen: $seen,
            mend: $mend,
        };
    };
}

setting!(
    ZONE,
    "HC-SET-01",
    "the time zone",
    "logs and file names of one run show different hours",
    "/etc/localtime",
    "ln -sfn /usr/share/zoneinfo/ZONE /etc/localtime"
);
setting!(
    LANG,
    "HC-SET-02",
    "the language",
    "sort, awk and Python order and read text differently",
    "/etc/default/locale, /etc/locale.conf",
    "write the same LANG everywhere"
);
setting!(
    FILES,
    "HC-SET-03",
    "the number of files that a process may open",
    "programs fail on one host only: \"Too many open files\"",
    "`ulimit -n`, `ulimit -Hn` in a session",
    "set it in a file in /etc/security/limits.d; then close the kept connections"
);
setting!(
    LOCKED,
    "HC-SET-04",
    "the memory that a process may lock",
    "RDMA and GPU programs fail on one host only",
    "`ulimit -l` in a session",
    "set it in a file in /etc/security/limits.d; then close the kept connections"
);
setting!(
    CONGESTION,
    "HC-SET-05",
    "TCP's congestion control",
    "transfers from one host take the rate of the others",
    "`sysctl net.ipv4.tcp_congestion_control`",
    "set it with sysctl -w, and in a file in /etc/sysctl.d"
);
setting!(
    HUGE,
    "HC-SET-06",
    "transparent huge pages",
    "memory use and speed of the same program differ",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "write the same value into this file"
);
setting!(
    SWAPPINESS,
    "HC-SET-07",
    "the swappiness of the kernel",
    "one host swaps under a load at which the others do not",
    "`sysctl vm.swappiness`",
    "set it with sysctl -w, and in a file in /etc/sysctl.d"
);
setting!(
    OVERCOMMIT,
    "HC-SET-08",
    "the overcommit of memory",
    "programs that reserve much memory start on one host but not on the next",
    "`sysctl vm.overcommit_memory`",
    "set it with sysctl -w, and in a file in /etc/sysctl.d"
);
setting!(
    BACKLOG,
    "HC-SET-09",
    "the number of connections that may wait",
    "a server refuses clients on one host only",
    "`sysctl net.core.somaxconn`",
    "set it with sysctl -w, and in a file in /etc/sysctl.d"
);

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "settings",
    script: r#"v() { printf '%s\t%s\n' "$1" "$2"; }
z=$(readlink -f /etc/localtime)
v zone "${z##*/zoneinfo/}"
sed -n "s/^LANG=\"\{0,1\}\([^\"]*\).*/lang$T\1/p" /etc/default/locale /etc/locale.conf | head -1
v files "$(ulimit -Sn) $(ulimit -Hn)"
v locked "$(ulimit -l)"
h=; read -r h < /sys/kernel/mm/transparent_hugepage/enabled; h=${h#*[}; v huge "${h%%]*}"
awk '{print name "\t" $0}' name=congestion /proc/sys/net/ipv4/tcp_congestion_control name=swappiness /proc/sys/vm/swappiness \
  name=overcommit /proc/sys/vm/overcommit_memory name=backlog /proc/sys/net/core/somaxconn"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&ZONE, &LANG, &FILES, &LOCKED, &CONGESTION, &HUGE, &SWAPPINESS, &OVERCOMMIT, &BACKLOG],
    judge,
};

const fn row(name: &'static str, code: &'static Code, noun: &'static str, mend: fn(&str) -> String) -> ValueRow {
    ValueRow { name, code, noun, mend: Some(mend), look: "" }
}

static ROWS: [ValueRow; 9] = [
    row("zone", &ZONE, "the time zone", |v| format!("ln -sfn /usr/share/zoneinfo/{} /etc/localtime", word(v))),
    row("lang", &LANG, "the language", |v| {
        format!(
            "f=/etc/default/locale; [ -e $f ] || f=/etc/locale.conf; sed -i '/^LANG=/d' $f; echo LANG={} >> $f",
            word(v)
        )
    }),
    row("files", &FILES, "open files (soft, hard)", |v| {
        let (soft, hard) = v.split_once(' ').unwrap_or((v, v));
        limits(&[("soft nofile", soft), ("hard nofile", hard)])
    }),
    row("locked", &LOCKED, "locked memory (KiB)", |v| limits(&[("soft memlock", v), ("hard memlock", v)])),
    row("congestion", &CONGESTION, "TCP's congestion control", |v| sysctl("net.ipv4.tcp_congestion_control", v)),
    row("huge", &HUGE, "transparent huge pages", |v| {
        format!("echo {} > /sys/kernel/mm/transparent_hugepage/enabled", word(v))
    }),
    row("swappiness", &SWAPPINESS, "vm.swappiness", |v| sysctl("vm.swappiness", v)),
    row("overcommit", &OVERCOMMIT, "vm.overcommit_memory", |v| sysctl("vm.overcommit_memory", v)),
    row("backlog", &BACKLOG, "net.core.somaxconn", |v| sysctl("net.core.somaxconn", v)),
];

fn judge(answers: &Answers) -> Vec<HostFinding> {
    differing(answers, CHECK.key, &ROWS)
}

fn sysctl(name: &str, value: &str) -> String {
    format!("sysctl -w {name}={0} && echo {name}={0} > /etc/sysctl.d/zz-{name}.conf", word(value))
}

/// Returns the command that writes limits. `*` does not include root. The name makes it the last file, which wins.
/// Present sessions keep their limits; the next connection gets the new ones.
fn limits(rows: &[(&str, &str)]) -> String {
    let lines: Vec<String> =
        rows.iter().flat_map(|(what, v)| ["*", "root"].map(|who| word(&format!("{who} {what} {v}")))).collect();
    let file = rows[0].0.rsplit(' ').next().unwrap_or_default();
    format!("printf '%s\\n' {} > /etc/security/limits.d/zz-{file}.conf", lines.join(" "))
}
