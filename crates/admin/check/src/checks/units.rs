//! Do services run?

use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeSet;

static FAILED: Code = Code {
    name: "HC-SVC-01",
    severity: Severity::Error,
    what: "a service has failed",
    means: "its work is not done, and no supervisor restarts it",
    seen: "`systemctl list-units --failed`",
    mend: "`journalctl -u UNIT` has the reason; then systemctl restart UNIT",
};
static STOPPED: Code = Code {
    name: "HC-SVC-02",
    severity: Severity::Warning,
    what: "a service that runs on most hosts does not run on some",
    means: "the host cannot do its part: serve bricks, take jobs, authenticate",
    seen: "`systemctl show UNIT`",
    mend: "systemctl start UNIT",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "units",
    script: r#"systemctl list-units --failed --plain --no-legend --no-pager | awk '{print "failed\t" $1}'
systemctl show -p Id -p ActiveState -p LoadState slurmd munge glusterd moosefs-chunkserver nfs-server autofs rpcbind sssd nscd nslcd \
  cron crond rsyslog irqbalance smartd mdmonitor lldpd node_exporter prometheus-node-exporter telegraf opensm firewalld nftables |
awk -F= '$1 == "Id" {i = $2} $1 == "ActiveState" {s = $2} $1 == "LoadState" {l = $2}
  i != "" && s != "" && l != "" {if (l == "loaded") print "unit\t" i "\t" s; i = s = l = ""}'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&FAILED, &STOPPED],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = || answers.each(CHECK.key);
    let failed = rows().filter(|(_, row)| row[0] == "failed" && row.len() > 1);
    let mut found: Vec<HostFinding> = failed
        .map(|(host, row)| {
            let finding = FAILED.on(host, format!("{} has failed", row[1]), "systemctl list-units --failed");
            finding.look(format!("systemctl --no-pager status {}", word(&row[1])))
        })
        .collect();
    let names: BTreeSet<&str> =
        rows().filter(|(_, row)| row[0] == "unit" && row.len() > 2).map(|(_, row)| row[1].as_str()).collect();
    found.extend(names.into_iter().flat_map(|name| stopped(answers, name)));
    found
}

fn stopped(answers: &Answers, name: &str) -> Vec<HostFinding> {
    // A host without the unit does not miss it: not every host has the same part to do.
    let of = |rows: &[Vec<String>]| rows.iter().find(|r| r.len() > 2 && r[1] == name).map(|r| r[2].clone());
    let known = answers.of(CHECK.key).filter_map(|(host, rows)| Some((host, of(rows)?)));
    let known = known.filter(|(_, state)| state != "failed").map(|(host, state)| (host, state == "active"));
    let Some(split) = split(known).filter(|s| s.most && s.like.len() > s.others.len()) else { return Vec::new() };
    let like = split.most_of();
    let tell = |(host, _): &(&HostAnswers, bool)| {
        let found =
            STOPPED.on(host, format!("{name} does not run, but runs on {like}"), format!("systemctl is-active {name}"));
        found.mend(format!("systemctl start {}", word(name)))
    };
    split.others.iter().map(tell).collect()
}
