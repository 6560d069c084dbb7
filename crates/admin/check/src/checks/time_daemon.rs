//! Does exactly one time daemon keep the clock right?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static NONE: Code = Code {
    name: "HC-CLOCK-04",
    severity: Severity::Warning,
    what: "no time daemon runs",
    means: "the clock drifts by seconds a week",
    seen: "`systemctl show chrony ntpd systemd-timesyncd ...`",
    mend: "`systemctl enable --now chrony`",
};
static TWO: Code = Code {
    name: "HC-CLOCK-05",
    severity: Severity::Error,
    what: "two time daemons run at the same time",
    means: "each treats the other's corrections as drift, and the clock oscillates",
    seen: "`systemctl show chrony ntpd systemd-timesyncd ...`",
    mend: "stop all but one of them",
};
static UNSYNCED: Code = Code {
    name: "HC-CLOCK-06",
    severity: Severity::Warning,
    what: "the time daemon has no source of time",
    means: "the clock drifts by seconds a week, although the daemon runs",
    seen: "`chronyc -c tracking`; /run/systemd/timesync/synchronized",
    mend: "name a server that answers: `chronyc sources -v` shows them",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "time_daemon",
    script: r#"systemd-detect-virt -cq && printf 'container\tyes\n'
all=$(systemctl show -p Id -p ActiveState chrony chronyd ntp ntpd ntpsec openntpd systemd-timesyncd |
  awk -F= '$1 == "Id" {i = $2} $1 == "ActiveState" {s = $2} i != "" && s != "" {if (s == "active") print i; i = s = ""}' | sort -u)
for d in $all; do printf 'daemon\t%s\n' "${d%.service}"; done
case $all in
*chrony*) printf 'source\t%s\n' "$(timeout 2 chronyc -c tracking | awk -F, '{print $1 " " $14}')" ;;
*timesyncd*) [ -e /run/systemd/timesync/synchronized ] || printf 'source\tnone\n' ;;
esac
printf 'asked\tyes\n'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&TWO, &UNSYNCED, &NONE],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.of(CHECK.key).filter_map(|(host, rows)| of_host(host, rows)).collect()
}

fn of_host(host: &HostAnswers, rows: &[Vec<String>]) -> Option<HostFinding> {
    let all =
        |name: &str| rows.iter().filter(|r| r[0] == name).filter_map(|r| Some(r.get(1)?.as_str())).collect::<Vec<_>>();
    let daemons = all("daemon");
    let source = all("source").first().copied().unwrap_or_default();
    match daemons.as_slice() {
        [] if all("container").is_empty() && !all("asked").is_empty() => {
            let found = NONE.on(host, "no time daemon runs", "systemctl show chrony ntpd systemd-timesyncd: inactive");
            Some(found.mend("systemctl enable --now chrony || systemctl enable --now chronyd || systemctl enable --now systemd-timesyncd"))
        }
        [first, others @ ..] if !others.is_empty() => {
            let others: Vec<String> = others.iter().map(|d| word(d)).collect();
            let found =
                TWO.on(host, format!("{} run at the same time", daemons.join(" and ")), "systemctl show: both active");
            let others = others.join(" ");
            Some(found.mend(format!(
                "systemctl stop {others}; systemctl disable {others}; systemctl restart {}",
                word(first)
            )))
        }
        // chrony without any source reports that its own clock is well, but with the number 127.127.1.1 in
        // hexadecimal digits.
        [daemon] if source == "none" || source.starts_with("7F7F0101") || source.ends_with("Not synchronised") => {
            let found = UNSYNCED.on(host, format!("{daemon} has no source of time"), format!("{daemon}: {source}"));
            Some(found.look("chronyc sources -v || timedatectl timesync-status"))
        }
        _ => None,
    }
}
