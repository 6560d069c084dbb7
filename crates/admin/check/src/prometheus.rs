//! Formats findings for Prometheus, which reads them from a text file.

use crate::mute::Mute;
use crate::report::is_wanted;
use crate::{Answers, Area, HostCheck, HostFinding, all_codes};
use homing_model::metrics::{MetricKind, Metrics};
use std::collections::{BTreeMap, BTreeSet};

/// The faults that a call has looked for, by the names of their codes.
pub type Sought = BTreeSet<&'static str>;

/// Returns the codes of checks that at least one host has answered, in these areas (none: all).
pub fn sought(checks: &[&HostCheck], only: &[Area], answers: &Answers) -> Sought {
    let is_known =
        |check: &HostCheck| answers.hosts.iter().any(|h| check.script.is_empty() || h.unknown(check.key).is_none());
    let codes = checks.iter().filter(|check| is_known(check)).flat_map(|check| check.codes);
    codes.filter(|code| is_wanted(only, code.area())).map(|code| code.name).collect()
}

/// Returns the whole file. Every code that was looked for has a line: an alert can distinguish 0 from a check that did
/// not run.
pub fn text(
    findings: &[HostFinding],
    quiet: &[(HostFinding, Mute)],
    sought: &Sought,
    (answered, silent): (usize, usize),
    now: u64,
) -> String {
    let mut metrics = Metrics::default();
    let name = "homing_check_findings";
    metrics.family(name, MetricKind::Gauge, "Number of hosts with a fault, by code.");
    let hosts = |code: &str| findings.iter().filter(|f| f.code.name == code).map(|f| f.hosts.len()).sum::<usize>();
    let seen: BTreeSet<&str> = findings.iter().chain(quiet.iter().map(|(f, _)| f)).map(|f| f.code.name).collect();
    let known = all_codes().filter(|code| sought.contains(code.name) || seen.contains(code.name));
    let rows: BTreeMap<&str, &str> = known.map(|c| (c.name, c.severity.word())).collect();
    for (code, severity) in rows {
        metrics.sample(name, &[("code", code), ("severity", severity)], hosts(code));
    }
    let mut of_hosts = |name: &str, help: &str, found: &mut dyn Iterator<Item = &HostFinding>| {
        metrics.family(name, MetricKind::Gauge, help);
        for finding in found {
            for host in finding.hosts.iter() {
                metrics.sample(name, &[("code", finding.code.name), ("host", host)], 1);
            }
        }
    };
    of_hosts("homing_check_host_finding", "1 for each fault of a host.", &mut findings.iter());
    of_hosts("homing_check_host_muted", "1 for each muted fault of a host.", &mut quiet.iter().map(|(f, _)| f));
    for (name, help, value) in [
        ("homing_check_hosts_answered", "Hosts that answered.", answered as u64),
        ("homing_check_hosts_silent", "Hosts that did not answer.", silent as u64),
        ("homing_check_last_run_timestamp_seconds", "Time at which this file was written.", now),
    ] {
        metrics.only(name, MetricKind::Gauge, help, value);
    }
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_was_not_looked_for_has_no_line_and_names_cannot_break_out() {
        let code = all_codes().next().unwrap();
        let other = crate::code("HC-VOL-03").unwrap();
        let text = text(&[code.at("a\"b", "", "")], &[], &[other.name].into(), (3, 1), 17);
        assert!(text.contains(&format!("homing_check_findings{{code=\"{}\",severity=\"error\"}} 1\n", code.name)));
        assert!(text.contains("host=\"a\\\"b\"} 1\n") && text.ends_with("_seconds 17\n"));
        assert!(text.contains("{code=\"HC-VOL-03\",severity=\"error\"} 0\n"));
        assert_eq!(text.lines().filter(|l| l.starts_with("homing_check_findings{")).count(), 2);
    }

    #[test]
    fn a_code_is_looked_for_where_a_host_has_answered_its_check() {
        let said = "=who\t0\n=end\twho\t0\n=end\tmounted\t0\n=end\tfstab\t0\n";
        let mut answers = Answers::default();
        let quick = crate::chosen(&[], true);
        assert_eq!(sought(&quick, &[], &answers), Sought::new());
        answers.hosts.push(crate::HostAnswers::read("n1", &[(0.0, said.as_bytes().to_vec())]));
        let codes = sought(&quick, &[], &answers);
        let memory = crate::chosen(&[Area::Memory], true).into_iter().filter(|check| !check.script.is_empty());
        let mut memory = memory.flat_map(|check| check.codes).filter(|code| code.area() == Area::Memory).peekable();
        assert!(memory.peek().is_some() && memory.all(|code| !codes.contains(code.name)), "not known: {codes:?}");
        assert!(codes.iter().any(|code| code.starts_with("HC-MOUNT")), "{codes:?}");
        let volumes = |code: &&str| code.starts_with("HC-VOL-0") && !["HC-VOL-05", "HC-VOL-06"].contains(code);
        assert!(!codes.iter().any(volumes), "a quick check looks at no volume: {codes:?}");
        assert!(sought(&quick, &[Area::Names], &answers).iter().all(|code| code.starts_with("HC-NAME")));
    }
}
