//! Findings for people and for programs.

use super::gather::Gathered;
use homing_check::mute::Mute;
use homing_check::{Area, Finding, Severity};
use homing_model::alike;
use homing_model::text::shown;
use homing_model::units::count;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// All that is told.
pub struct Report<'a> {
    /// Findings, worst first.
    pub told: Vec<Finding>,
    /// Those that are muted.
    pub quiet: Vec<(Finding, Mute)>,
    /// Areas that were looked at.
    pub areas: Vec<Area>,
    /// Their lines that a terminal was shown before.
    pub early: &'a BTreeMap<Area, String>,
    /// What hosts did not tell: the host, and what, with why.
    pub unknown: Vec<(String, String)>,
    /// All that were asked.
    pub hosts: &'a [String],
    /// What came back.
    pub gathered: &'a Gathered,
    /// What was measured, in MB/s, by host and by what.
    pub measured: &'a BTreeMap<String, BTreeMap<String, f64>>,
    /// Figures of the vaults that were looked at.
    pub vaults: Value,
    /// Hosts where we are not root, and what is not told there.
    pub unprivileged: (Vec<String>, Vec<&'static str>),
    /// Options of `homing exec` that lead to the same hosts, with a blank behind each.
    pub way: String,
}

/// How many errors and warnings: of an area, or of all.
fn summary(told: &[Finding], area: Option<Area>) -> String {
    let of = |severity: Severity| {
        let counts = |f: &&Finding| f.code.severity == severity && area.is_none_or(|a| f.code.area() == a);
        match told.iter().filter(counts).count() {
            0 => None,
            n => Some(count(n as u64, severity.word())),
        }
    };
    [of(Severity::Error), of(Severity::Warning)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// An area in a line: what was found, or that it is well on so many hosts.
pub fn area_line(area: Area, told: &[Finding], hosts: usize) -> String {
    let summary = summary(told, Some(area));
    let word = if summary.is_empty() { format!("well on {}", count(hosts as u64, "host")) } else { summary };
    format!("{:<9} {word}", area.name())
}

impl Report<'_> {
    /// A line an area, then what is wrong. A line that a terminal was shown before stands there once.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let answered = self.gathered.answers.hosts.len();
        for area in self.areas.iter().filter(|_| answered > 0) {
            let line = area_line(*area, &self.told, answered);
            if self.early.get(area) != Some(&line) {
                let _ = writeln!(text, "{line}");
            }
        }
        self.rates(&mut text);
        self.told.iter().for_each(|finding| self.finding(finding, &mut text));
        self.rest(&mut text);
        text
    }

    fn rates(&self, text: &mut String) {
        let gap = if text.is_empty() { "" } else { "\n" };
        for (at, (host, rates)) in self.measured.iter().filter(|(_, rates)| !rates.is_empty()).enumerate() {
            let all: Vec<String> = rates.iter().map(|(what, rate)| format!("{what} {rate:.0} MB/s")).collect();
            let _ = writeln!(text, "{}{}: {}", if at == 0 { gap } else { "" }, shown(host), shown(&all.join(", ")));
        }
    }

    fn finding(&self, finding: &Finding, text: &mut String) {
        let (code, hosts) = (finding.code, alike::label(&finding.hosts));
        let _ = writeln!(text, "\n{} {} on {hosts}: {}", code.name, code.severity.word(), shown(&finding.what));
        let _ = writeln!(text, "  seen   {}\n  means  {}", shown(&finding.seen), code.means);
        if let (Some(remedy), Some(command)) = (&finding.remedy, finding.command(&self.way)) {
            let _ = writeln!(text, "  {}  {}", if remedy.mends { "mend " } else { "look " }, shown(&command));
        }
    }

    /// What could not be asked, what is muted, and the sum.
    fn rest(&self, text: &mut String) {
        let mut lines = Vec::new();
        let silent = self.gathered.silent.iter().map(|(host, why)| (host.as_str(), why.as_str()));
        lines.extend(alike::folded(silent).into_iter().map(|line| format!("not asked: {line}")));
        let unknown = self.unknown.iter().map(|(host, what)| (host.as_str(), what.as_str()));
        lines.extend(alike::folded(unknown).into_iter().map(|line| format!("not known: {line}")));
        let (users, parts) = &self.unprivileged;
        if !users.is_empty() && !parts.is_empty() {
            let hosts = alike::label(&users.iter().cloned().collect());
            lines.push(format!("not seen, since only root may, on {hosts}: {}", parts.join(", ")));
        }
        for (finding, mute) in &self.quiet {
            lines.push(format!("muted: {} on {}: {}", mute.code, alike::label(&finding.hosts), mute.because));
        }
        let summary = summary(&self.told, None);
        if !summary.is_empty() {
            lines.push(format!("{summary}; homing check --explain CODE tells more"));
        }
        if !(lines.is_empty() || text.is_empty() && self.early.is_empty()) {
            text.push('\n');
        }
        for line in lines {
            let _ = writeln!(text, "{}", shown(&line));
        }
    }

    /// One document.
    pub fn json(&self, status: i32) -> String {
        let row = |finding: &Finding| -> Value {
            let code = finding.code;
            json!({
                "code": code.name, "area": code.area(), "severity": code.severity,
                "hosts": finding.hosts.iter().collect::<Vec<_>>(), "what": finding.what, "seen": finding.seen,
                "means": code.means, "command": finding.command(&self.way),
                "mends": finding.remedy.as_ref().is_some_and(|r| r.mends),
            })
        };
        let host = |name: &String| {
            let why = self.gathered.silent.iter().find(|(host, _)| host == name).map(|(_, why)| why);
            json!({ "host": name, "status": if why.is_some() { "silent" } else { "answered" }, "reason": why })
        };
        let muted = |(finding, mute): &(Finding, Mute)| {
            let mut muted = row(finding);
            muted["until"] = mute.until.into();
            muted["because"] = mute.because.as_str().into();
            muted
        };
        let unknown = |(host, what): &(String, String)| json!({ "host": host, "what": what });
        let all = json!({
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "findings": self.told.iter().map(row).collect::<Vec<_>>(),
            "muted": self.quiet.iter().map(muted).collect::<Vec<_>>(),
            "unknown": self.unknown.iter().map(unknown).collect::<Vec<_>>(),
            "measured": self.measured,
            "vaults": self.vaults,
            "exit": status,
        });
        format!("{all}\n")
    }
}
