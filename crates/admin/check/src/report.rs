//! Formats findings for users and for programs.

use crate::mute::Mute;
use crate::{Answers, Area, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::text::shown;
use homing_model::units::count;
use homing_model::{alike, document, fit};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A host or a volume, and the facts that are unknown of it, with the reason.
pub type UnknownFacts = (String, String);

/// The answers of a check.
#[derive(Default)]
pub struct CheckAnswers {
    /// Answers of the hosts that answered.
    pub answers: Answers,
    /// Hosts that did not answer, and why.
    pub silent: Vec<(String, String)>,
    /// Hosts that homing has switched off, which were not queried, and for how long.
    pub off: Vec<(String, String)>,
}

/// How the query of a host ended.
pub enum QueryEnd {
    /// The connection failed, or broke.
    Cut(String),
    /// Its command ended with this status.
    Ran(String),
    /// It did not answer within these seconds.
    Late(f64),
}

impl CheckAnswers {
    /// Adds a host. It has answered if it printed homing's user number there; other missing parts are unknown.
    pub fn add(&mut self, host: HostAnswers, ended: QueryEnd) {
        if host.uid().is_some() {
            return self.answers.hosts.push(host);
        }
        let why = match (ended, host.stray.first()) {
            (QueryEnd::Cut(why), _) => why,
            (QueryEnd::Ran(_), Some(said)) => format!("it ran no command and printed: {said}"),
            (QueryEnd::Ran(how), None) => format!("it ran no command: {how}"),
            (QueryEnd::Late(seconds), _) => format!("no answer in {seconds} s"),
        };
        self.silent.push((host.name, why));
    }

    /// Returns the missing parts of hosts that answered: the host, and the area and part with the reason. A look that
    /// did not end is unknown.
    pub fn unknown(&self, checks: &[&HostCheck]) -> Vec<UnknownFacts> {
        let of = |host: &HostAnswers, check: &HostCheck| {
            let areas: Vec<&str> = Area::ALL.iter().filter(|a| check.is_about(**a)).map(|a| a.name()).collect();
            let what = format!("{} ({}): {}", areas.join(", "), check.key, host.unknown(check.key)?);
            Some((host.name.clone(), what))
        };
        let hosts = self.answers.hosts.iter();
        hosts.flat_map(|host| scripted_checks(checks).filter_map(move |check| of(host, check))).collect()
    }

    /// Returns the hosts where homing is not root, and the facts that only root would see.
    pub fn unprivileged(&self, checks: &[&HostCheck]) -> (Vec<String>, Vec<&'static str>) {
        let users = self.answers.hosts.iter().filter(|host| host.uid().is_some_and(|uid| uid != 0));
        (users.map(|host| host.name.clone()).collect(), checks.iter().filter_map(|check| check.root).collect())
    }
}

fn scripted_checks<'c>(checks: &'c [&'c HostCheck]) -> impl Iterator<Item = &'c HostCheck> {
    checks.iter().copied().filter(|check| !check.script.is_empty())
}

/// Returns the number of hosts with an unknown part of an area.
pub fn unknown_in(area: Area, checks: &[&HostCheck], answers: &Answers) -> usize {
    let lacks = |host: &HostAnswers| {
        scripted_checks(checks).any(|check| check.is_about(area) && host.unknown(check.key).is_some())
    };
    answers.hosts.iter().filter(|host| lacks(host)).count()
}

/// Whether an area is among the requested ones; an empty list means all.
pub fn is_wanted(only: &[Area], area: Area) -> bool {
    only.is_empty() || only.contains(&area)
}

/// Returns the areas that were checked, with this number of volumes.
pub fn looked_at(checks: &[&HostCheck], only: &[Area], volumes: usize) -> Vec<Area> {
    let looked = |area: Area| checks.iter().any(|check| check.is_about(area));
    let is_told = |area: &Area| is_wanted(only, *area) && (looked(*area) || (*area == Area::Volumes && volumes > 0));
    Area::ALL.into_iter().filter(is_told).collect()
}

/// The data of a report.
pub struct Report<'a> {
    /// Findings, worst first.
    pub findings: Vec<HostFinding>,
    /// Findings that are muted.
    pub quiet: Vec<(HostFinding, Mute)>,
    /// Areas that were checked.
    pub areas: Vec<Area>,
    /// Their lines that a terminal already showed.
    pub early: &'a BTreeMap<Area, String>,
    /// The facts that are unknown: the host or volume, and the part with the reason.
    pub unknown: Vec<UnknownFacts>,
    /// The number of hosts or volumes on which an area is not known, if any.
    pub lacking: BTreeMap<Area, usize>,
    /// All hosts that were queried.
    pub hosts: &'a [String],
    /// The answers.
    pub gathered: &'a CheckAnswers,
    /// Measured rates in MB/s, by host and by quantity.
    pub measured: &'a BTreeMap<String, BTreeMap<String, f64>>,
    /// Figures of the vaults that were checked.
    pub vaults: Value,
    /// Hosts where homing is not root, and the facts that are not seen there.
    pub unprivileged: (Vec<String>, Vec<&'static str>),
    /// Options of `homing exec` that lead to the same hosts, with a blank after each.
    pub way: String,
}

/// Returns the number of errors and warnings: of an area, or of all.
fn summary(told: &[HostFinding], area: Option<Area>) -> String {
    let of = |severity: Severity| {
        let counts = |f: &&HostFinding| f.code.severity == severity && area.is_none_or(|a| f.code.area() == a);
        match told.iter().filter(counts).count() {
            0 => None,
            n => Some(count(n as u64, severity.word())),
        }
    };
    [of(Severity::Error), of(Severity::Warning)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn finding_lines(finding: &HostFinding, way: &str, color: bool, columns: Option<usize>) -> String {
    let mut text = String::new();
    let (code, hosts) = (finding.code, alike::label(&finding.hosts));
    let name = painted(&format!("{} {}", code.name, code.severity.word()), code.severity, color);
    let _ = writeln!(text, "\n{name} on {hosts}: {}", shown(&finding.what));
    let _ = writeln!(text, "  seen   {}\n  means  {}", shown(&finding.seen), code.means);
    text = fit::wrapped(&text, columns);
    if let (Some(remedy), Some(command)) = (&finding.remedy, finding.command(way)) {
        let label = if remedy.mends { "  mend   " } else { "  look   " };
        text += &(fit::wrapped_command(label, &shown(&command), columns) + "\n");
    }
    text
}

/// Colours a text by the severity that it is about: red or yellow.
fn painted(text: &str, severity: Severity, color: bool) -> String {
    let number = if severity == Severity::Error { 31 } else { 33 };
    if color { format!("\x1b[{number}m{text}\x1b[0m") } else { text.into() }
}

/// Colours the line of an area that has errors or warnings.
pub fn painted_line(line: &str, area: Area, findings: &[HostFinding], color: bool) -> String {
    let has = |severity: &Severity| findings.iter().any(|f| f.code.severity == *severity && f.code.area() == area);
    match [Severity::Error, Severity::Warning].into_iter().find(has) {
        Some(severity) => painted(line, severity, color),
        None => line.into(),
    }
}

/// Returns the line of an area: its findings, or the number of hosts on which it is well. Hosts with an unknown part
/// are counted apart.
pub fn area_line(area: Area, findings: &[HostFinding], hosts: usize, unknown: usize) -> String {
    let summary = summary(findings, Some(area));
    let well = hosts.saturating_sub(unknown);
    let mut parts = Vec::new();
    match () {
        () if !summary.is_empty() => parts.push(summary),
        () if well > 0 || unknown == 0 => parts.push(format!("well on {}", count(well as u64, "host"))),
        () => {}
    }
    if unknown > 0 {
        let what = if area == Area::Volumes { "part" } else { "host" };
        parts.push(format!("unknown on {}", count(unknown as u64, what)));
    }
    format!("{:<9} {}", area.name(), parts.join(", "))
}

impl Report<'_> {
    /// Returns the exit status. 0: all is well; 1: warnings; 2: errors; 3: an answer is missing.
    pub fn status(&self) -> i32 {
        let has = |severity| self.findings.iter().any(|finding| finding.code.severity == severity);
        match () {
            () if !self.gathered.silent.is_empty() || !self.unknown.is_empty() => 3,
            () if has(Severity::Error) => 2,
            () if has(Severity::Warning) => 1,
            () => 0,
        }
    }

    /// Returns a line for each area, then the findings. A line that a terminal already showed is not repeated. With
    /// `color`, the codes of errors are red and those of warnings yellow. Lines have at most `columns` columns.
    pub fn text(&self, color: bool, columns: Option<usize>) -> String {
        let mut text = String::new();
        let answered = self.gathered.answers.hosts.len();
        for area in self.areas.iter().filter(|_| answered > 0) {
            let line = area_line(*area, &self.findings, answered, self.lacking.get(area).copied().unwrap_or(0));
            if self.early.get(area) != Some(&line) {
                let _ = writeln!(text, "{}", painted_line(&line, *area, &self.findings, color));
            }
        }
        self.rates(&mut text);
        self.findings.iter().for_each(|finding| text += &finding_lines(finding, &self.way, color, columns));
        let mut rest = String::new();
        self.rest(text.is_empty(), &mut rest);
        text + &fit::wrapped(&rest, columns)
    }

    fn rates(&self, text: &mut String) {
        let gap = if text.is_empty() { "" } else { "\n" };
        for (at, (host, rates)) in self.measured.iter().filter(|(_, rates)| !rates.is_empty()).enumerate() {
            let all: Vec<String> = rates.iter().map(|(what, rate)| format!("{what} {rate:.0} MB/s")).collect();
            let _ = writeln!(text, "{}{}: {}", if at == 0 { gap } else { "" }, shown(host), shown(&all.join(", ")));
        }
    }

    /// Adds the missing answers, the muted findings, and the sum.
    fn rest(&self, is_first: bool, text: &mut String) {
        let mut lines = Vec::new();
        let silent =
            self.gathered.silent.iter().chain(&self.gathered.off).map(|(host, why)| (host.as_str(), why.as_str()));
        lines.extend(alike::folded(silent).into_iter().map(|line| format!("not checked: {line}")));
        let unknown = self.unknown.iter().map(|(host, what)| (host.as_str(), what.as_str()));
        lines.extend(alike::folded(unknown).into_iter().map(|line| format!("unknown: {line}")));
        let (users, parts) = &self.unprivileged;
        if !users.is_empty() && !parts.is_empty() {
            let hosts = alike::label(&users.iter().cloned().collect());
            lines.push(format!("not checked without root on {hosts}: {}", parts.join(", ")));
        }
        for (finding, mute) in &self.quiet {
            lines.push(format!("muted: {} on {}: {}", mute.code, alike::label(&finding.hosts), mute.because));
        }
        let summary = summary(&self.findings, None);
        if !summary.is_empty() {
            lines.push(format!("{summary}; homing check --explain CODE explains a code"));
        }
        if !(lines.is_empty() || is_first && self.early.is_empty()) {
            text.push('\n');
        }
        for line in lines {
            let _ = writeln!(text, "{}", shown(&line));
        }
    }

    /// Returns the JSON document.
    pub fn json(&self, status: i32) -> String {
        let row = |finding: &HostFinding| -> Value {
            let code = finding.code;
            json!({
                "code": code.name, "area": code.area(), "severity": code.severity,
                "hosts": finding.hosts.iter().collect::<Vec<_>>(), "what": finding.what, "seen": finding.seen,
                "means": code.means, "command": finding.command(&self.way),
                "mends": finding.remedy.as_ref().is_some_and(|r| r.mends),
            })
        };
        let host = |name: &String| {
            let reason = |of: &[(String, String)]| of.iter().find(|(host, _)| host == name).map(|(_, why)| why.clone());
            let off = reason(&self.gathered.off);
            let why = off.clone().or_else(|| reason(&self.gathered.silent));
            let status = if off.is_some() {
                "off"
            } else if why.is_some() {
                "silent"
            } else {
                "answered"
            };
            json!({ "host": name, "status": status, "reason": why })
        };
        let muted = |(finding, mute): &(HostFinding, Mute)| {
            let mut muted = row(finding);
            muted["until"] = mute.until.into();
            muted["because"] = mute.because.as_str().into();
            muted
        };
        let unknown = |(host, what): &(String, String)| json!({ "host": host, "what": what });
        let all = json!({
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(row).collect::<Vec<_>>(),
            "muted": self.quiet.iter().map(muted).collect::<Vec<_>>(),
            "unknown": self.unknown.iter().map(unknown).collect::<Vec<_>>(),
            "measured": self.measured,
            "vaults": self.vaults,
            "exit": status,
        });
        document::line(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, said: &str) -> HostAnswers {
        HostAnswers::read(name, &[(0.0, said.as_bytes().to_vec())])
    }

    #[test]
    fn a_host_that_ran_nothing_is_told_with_what_it_said_in_its_place() {
        let mut all = CheckAnswers::default();
        all.add(host("n1", ""), QueryEnd::Cut("no route".into()));
        all.add(host("n2", "This account is closed.\n"), QueryEnd::Ran("exited with exit code 1".into()));
        all.add(host("n3", ""), QueryEnd::Ran("exited with exit code 127".into()));
        all.add(host("n4", ""), QueryEnd::Late(5.0));
        let whys: Vec<&str> = all.silent.iter().map(|(_, why)| why.as_str()).collect();
        let expected = [
            "no route",
            "it ran no command and printed: This account is closed.",
            "it ran no command: exited with exit code 127",
            "no answer in 5 s",
        ];
        assert_eq!(whys, expected);
        assert!(all.answers.hosts.is_empty() && all.unknown(&crate::chosen(&[], false)).is_empty());
    }

    #[test]
    fn an_area_of_which_a_part_is_not_known_is_not_well() {
        let said = |end: &str| format!("=who\t0\n=end\twho\t0\n=end\tmounted\t0\n=end\tfstab\t0\n{end}");
        let mut all = CheckAnswers::default();
        all.add(host("n1", &said("=end\tanswering\t0\n")), QueryEnd::Ran("".into()));
        all.add(host("n2", &said("=answering\t/d\t0\t\n")), QueryEnd::Ran("".into()));
        let checks: Vec<&HostCheck> = crate::chosen(&[Area::Mounts], true)
            .into_iter()
            .filter(|check| ["mounted", "fstab", "answering"].contains(&check.key))
            .collect();
        let unknown = unknown_in(Area::Mounts, &checks, &all.answers);
        assert_eq!((unknown, unknown_in(Area::Clocks, &checks, &all.answers)), (1, 0));
        assert_eq!(all.unknown(&checks), [("n2".to_string(), "mounts (answering): it ended early".to_string())]);
        assert_eq!(area_line(Area::Mounts, &[], 2, 0), "mounts    well on 2 hosts");
        assert_eq!(area_line(Area::Mounts, &[], 2, unknown), "mounts    well on 1 host, unknown on 1 host");
        assert_eq!(area_line(Area::Mounts, &[], 1, 1), "mounts    unknown on 1 host");
        let ill = crate::code("HC-MOUNT-07").unwrap().at("n1", "", "");
        assert_eq!(area_line(Area::Mounts, &[ill], 2, 1), "mounts    1 error, unknown on 1 host");
    }

    #[test]
    fn volumes_are_an_area_where_there_are_some() {
        let checks = crate::chosen(&[Area::Clocks], false);
        assert_eq!(looked_at(&checks, &[Area::Clocks], 3), [Area::Clocks]);
        assert_eq!(looked_at(&[], &[], 1), [Area::Volumes]);
        assert!(looked_at(&[], &[], 0).is_empty());
    }
}
