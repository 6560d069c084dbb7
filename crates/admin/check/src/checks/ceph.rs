//! Which faults does Ceph itself report, and which one causes the others?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use std::collections::{BTreeMap, BTreeSet};

static ILL: Code = Code {
    name: "HC-VOL-05",
    severity: Severity::Error,
    what: "Ceph has lost a daemon or copies, or no monitor answers",
    means: "files cannot be read or written, or the next fault destroys them",
    seen: "`ceph health detail`",
    mend: "systemctl start ceph-osd@N on its host, or the action that the message names",
};
static ADVICE: Code = Code {
    name: "HC-VOL-06",
    severity: Severity::Warning,
    what: "Ceph reports a warning",
    means: "the message describes it",
    seen: "`ceph health detail`",
    mend: "follow the message; docs.ceph.com describes each code",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "ceph",
    // Only monitors, or the first host, run it: the same query from all would burden Ceph. A user without permission
    // prints nothing.
    script: r#"command -v ceph >/dev/null && [ -r /etc/ceph/ceph.conf ] || exit 0
[ "$(hostname)" = "${1%%.*}" ] || [ "$#" -lt 2 ] || systemctl -q is-active 'ceph-mon@*' || exit 0
said=$(timeout "$WAIT" ceph --connect-timeout 3 health detail 2>&1)
case $? in 0) ;; 124) said='[ERR] NO_MONITOR: no monitor answers' ;; *)
  case $said in *imed\ out*) said='[ERR] NO_MONITOR: no monitor answers' ;; *) exit 0 ;; esac ;; esac
printf '%s\n' "$said" | awk -v OFS='\t' '/^\[(ERR|WRN)\] [A-Z_]+: / {
    code = $2; sub(/:$/, "", code); level = substr($1, 2, 3); sub(/^[^:]*: /, ""); print level, code, $0; n = 0; next }
  /^ / && code && n++ < 20 { sub(/^ */, ""); print "each", code, $0; next } { code = "" }'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&ILL, &ADVICE],
    judge,
};

/// Codes that follow from an OSD that is down; they end when it is up again.
const BY_OSDS: [&str; 8] = [
    "OSD_HOST_DOWN",
    "OSD_CHASSIS_DOWN",
    "OSD_RACK_DOWN",
    "OSD_ROOT_DOWN",
    "PG_AVAILABILITY",
    "PG_DEGRADED",
    "SLOW_OPS",
    "MDS_SLOW_METADATA_IO",
];
/// Warnings of lost daemons and copies; Ceph's other warnings are no losses.
const LOSSES: [&str; 5] = ["MON_DOWN", "OSD_DOWN", "PG_AVAILABILITY", "PG_DEGRADED", "OBJECT_UNFOUND"];

/// One of Ceph's codes.
#[derive(Default)]
struct Fault<'a> {
    speaker: &'a str,
    ill: bool,
    text: &'a str,
    each: BTreeSet<&'a str>,
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let mut faults: BTreeMap<&str, Fault> = BTreeMap::new();
    for (host, row) in answers.each(CHECK.key) {
        let [level, code, text] = row else { continue };
        let fault = faults.entry(code).or_default();
        match level.as_str() {
            "each" => drop(fault.each.insert(text)),
            _ => {
                let ill = level == "ERR" || LOSSES.contains(&code.as_str());
                *fault = Fault { speaker: &host.name, ill, text, each: std::mem::take(&mut fault.each) };
            }
        }
    }
    let cause = faults.contains_key("OSD_DOWN");
    let (follows, own): (Vec<_>, Vec<_>) = faults.iter().partition(|(code, _)| cause && BY_OSDS.contains(*code));
    let follows: Vec<&str> = follows.into_iter().map(|(code, _)| *code).collect();
    own.into_iter().flat_map(|(code, fault)| fault.host_findings(code, &follows, answers)).collect()
}

impl Fault<'_> {
    fn host_findings(&self, code: &str, follows: &[&str], answers: &Answers) -> Vec<HostFinding> {
        let kind = if self.ill { &ILL } else { &ADVICE };
        let seen = format!("ceph health detail: {code}: {}", self.text);
        let by_that = if follows.is_empty() { String::new() } else { format!(" (by that {})", follows.join(", ")) };
        let osds: Vec<(&str, &str)> = self.each.iter().filter_map(|line| down(line)).collect();
        if code == "OSD_DOWN" && !osds.is_empty() {
            let known = |host: &str| answers.hosts.iter().any(|one| one.name == host);
            return osds
                .into_iter()
                .map(|(number, host)| {
                    let at = if known(host) { host } else { self.speaker };
                    let finding = kind.at(at, format!("osd.{number} on {host} is down{by_that}"), seen.clone());
                    finding.mend(format!("systemctl start {}", word(&format!("ceph-osd@{number}")))).from_host(host)
                })
                .collect();
        }
        vec![kind.at(self.speaker, format!("{code}: {}", self.text), seen).look("ceph health detail")]
    }
}

/// Returns number and host of `osd.2 (root=default,host=n3) is down`.
fn down(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.strip_prefix("osd.")?.split_once(" (")?;
    let places = rest.strip_suffix(") is down")?;
    Some((number, places.split(',').find_map(|place| place.strip_prefix("host="))?))
}
