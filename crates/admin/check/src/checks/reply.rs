//! Does one host answer slower than its twins?

use crate::compare::middle;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use std::collections::BTreeMap;

/// The delay beyond the others' from which a host is slow, in microseconds: a busy one takes some milliseconds.
const MORE_US: u64 = 5000;
/// The multiple of the others' delay from which a host is slow.
const TIMES: u64 = 5;

static SLOW: Code = Code {
    name: "HC-NET-10",
    severity: Severity::Warning,
    what: "a host answers more slowly than the others",
    means: "MPI, file servers there and each program that waits for small answers are slower by as much",
    seen: "the best of five connections to its port 22, from every other host",
    mend: "check the power saving of the interface, the route, the load of the switch and of the host",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "reply",
    // A refusal is an answer, too: no process has to listen there. The connections are a tenth of a second apart,
    // because a host that is busy for a moment would answer five in a row late.
    script: r#"command -v bash >/dev/null || exit 0
for h; do
  [ $((n += 1)) -le 32 ] || break
  timeout -s KILL 2 bash -c 'a=$(getent ahostsv4 -- "$1"); a=${a%% *}; [ -n "$a" ] && [ -n "$EPOCHREALTIME" ] || exit 0
    for _ in 1 2 3 4 5; do
      s=${EPOCHREALTIME/./}; { : 9<> "/dev/tcp/$a/22"; } 2>/dev/null; e=${EPOCHREALTIME/./}; t=$((e - s))
      printf "%s\t%s\n" "$1" "$t"; sleep 0.1
    done' sh "$h" &
done; wait"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    // A slow host is slow for all hosts: its best answer counts.
    let mut best: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, row) in answers.each(CHECK.key).filter(|(host, row)| row[0] != host.name) {
        if let Some(took) = row.get(1).and_then(|us| us.parse().ok()) {
            let known = best.entry(&row[0]).or_insert(took);
            *known = took.min(*known);
        }
    }
    best.iter().filter_map(|(host, took)| slower(host, *took, &best)).collect()
}

fn slower(host: &str, took: u64, best: &BTreeMap<&str, u64>) -> Option<HostFinding> {
    let usual = middle(best.iter().filter(|(other, _)| **other != host).map(|(_, us)| *us), 2)?;
    let ms = |us: u64| us as f64 / 1000.0;
    let ill = took > usual.saturating_mul(TIMES) && took - usual > MORE_US;
    let what = format!("it answers after {:.0} ms, other hosts after {:.1} ms", ms(took), ms(usual));
    let found = SLOW.at(host, what, format!("the best of five connections to port 22: {:.1} ms", ms(took)));
    ill.then(|| found.look("uptime; ip -s link; ip route; tc qdisc"))
}
