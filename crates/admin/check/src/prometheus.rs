//! Formats findings for Prometheus, which reads them from a text file.

use crate::mute::Mute;
use crate::{Finding, all_codes};
use homing_model::metrics::{Kind, Metrics};
use std::collections::BTreeMap;

/// Returns the whole file. Every code has a line: an alert can distinguish 0 from a check that did not run.
pub fn text(told: &[Finding], quiet: &[(Finding, Mute)], answered: usize, silent: usize, now: u64) -> String {
    let mut metrics = Metrics::default();
    let name = "homing_check_findings";
    metrics.family(name, Kind::Gauge, "Hosts on which a fault is seen, by code.");
    let hosts = |code: &str| told.iter().filter(|f| f.code.name == code).map(|f| f.hosts.len()).sum::<usize>();
    let rows: BTreeMap<&str, &str> = all_codes().map(|c| (c.name, c.severity.word())).collect();
    for (code, severity) in rows {
        metrics.sample(name, &[("code", code), ("severity", severity)], hosts(code));
    }
    let mut of_hosts = |name: &str, help: &str, found: &mut dyn Iterator<Item = &Finding>| {
        metrics.family(name, Kind::Gauge, help);
        for finding in found {
            for host in finding.hosts.iter() {
                metrics.sample(name, &[("code", finding.code.name), ("host", host)], 1);
            }
        }
    };
    of_hosts("homing_check_host_finding", "A fault that is seen on a host.", &mut told.iter());
    of_hosts("homing_check_host_muted", "A fault that is muted.", &mut quiet.iter().map(|(f, _)| f));
    for (name, help, value) in [
        ("homing_check_hosts_answered", "Hosts that answered.", answered as u64),
        ("homing_check_hosts_silent", "Hosts that did not answer.", silent as u64),
        ("homing_check_last_run_timestamp_seconds", "When this was written.", now),
    ] {
        metrics.only(name, Kind::Gauge, help, value);
    }
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_line_and_names_cannot_break_out() {
        let code = all_codes().next().unwrap();
        let text = text(&[code.at("a\"b", "", "")], &[], 3, 1, 17);
        assert!(text.contains(&format!("homing_check_findings{{code=\"{}\",severity=\"error\"}} 1\n", code.name)));
        assert!(text.contains("host=\"a\\\"b\"} 1\n") && text.ends_with("_seconds 17\n"));
        let lines = text.lines().filter(|l| l.starts_with("homing_check_findings{")).count();
        assert_eq!(lines, all_codes().map(|c| c.name).collect::<std::collections::BTreeSet<_>>().len());
    }
}
