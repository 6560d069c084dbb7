//! Do clocks go together?

use crate::compare::{middle, split};
use crate::{Answers, Check, Code, Finding, Host, Severity};

/// Seconds. make and Kerberos go by whole seconds, munge refuses at 300; less than half a second may be a busy host.
const ILL: f64 = 1.0;
const ODD: f64 = 0.5;

static FAR: Code = Code {
    name: "HC-CLOCK-01",
    severity: Severity::Error,
    what: "a clock differs from the others' by more than a second",
    means: "make builds too much or too little, munge and Kerberos refuse, logs cannot be put in order",
    seen: "`date` on every host at the same time",
    mend: "start a time daemon; `chronyc makestep` sets the clock at once",
};
static NEAR: Code = Code {
    name: "HC-CLOCK-02",
    severity: Severity::Warning,
    what: "a clock differs from the others' by more than half a second",
    means: "make may take a new file for an old one",
    seen: "`date` on every host at the same time",
    mend: "start a time daemon; `chronyc makestep` sets the clock at once",
};
static HERE: Code = Code {
    name: "HC-CLOCK-03",
    severity: Severity::Warning,
    what: "this machine's clock is not that of its hosts",
    means: "files that are written from here look newer, or older, than they are",
    seen: "`date` here and on the hosts",
    mend: "start a time daemon here",
};

pub(crate) static CHECK: Check = Check {
    key: "clock",
    // The script tells the time by itself, several times.
    ask: "",
    waits: false,
    slow: false,
    root: None,
    codes: &[&FAR, &NEAR, &HERE],
    judge,
};

/// A host's clock against ours, in seconds. What was said has taken some time to get here, so that each answer is too
/// small and the largest is the best.
fn ahead(host: &Host) -> Option<f64> {
    host.clock.iter().map(|(said, heard)| said - heard).max_by(f64::total_cmp)
}

/// Each host's clock against ours, and the middle of all, in seconds.
fn told(answers: &Answers) -> (Vec<(&Host, f64)>, f64) {
    let told: Vec<(&Host, f64)> = answers.hosts.iter().filter_map(|h| Some((h, ahead(h)?))).collect();
    let middle = middle(told.iter().map(|(_, at)| *at), 1).unwrap_or(0.0);
    (told, middle)
}

/// Hosts whose clocks look behind the others': what they said may have come late, so that it is worth asking again.
pub fn doubtful(answers: &Answers) -> Vec<String> {
    let (told, middle) = told(answers);
    told.iter().filter(|(_, at)| at - middle < -ODD).map(|(host, _)| host.name.clone()).collect()
}

fn judge(answers: &Answers) -> Vec<Finding> {
    let (told, middle) = told(answers);
    let mut found: Vec<Finding> = told.iter().filter_map(|(host, at)| of_host(host, at - middle)).collect();
    let apart = -middle;
    if apart.abs() > ILL && split(told.iter().map(|(h, at)| (*h, (at - middle).abs() > ILL))).is_none() {
        let what = format!("this machine's clock is {} its hosts'", by(apart));
        let hosts = told.iter().map(|(h, _)| h.name.clone()).collect();
        let finding = HERE.at("", what, "date: here and there".to_string());
        found.push(Finding { hosts, ..finding }.look("date; timedatectl"));
    }
    found
}

fn of_host(host: &Host, apart: f64) -> Option<Finding> {
    let code = if apart.abs() > ILL { &FAR } else { &NEAR };
    let found = code.on(host, format!("its clock is {} most hosts'", by(apart)), format!("date: {apart:+.1} s"));
    let line = "chronyc -a makestep || systemctl restart chronyd || systemctl restart systemd-timesyncd";
    (apart.abs() > ODD).then(|| found.look(format!("{line}; date")))
}

fn by(apart: f64) -> String {
    format!("{:.1} s {}", apart.abs(), if apart < 0.0 { "behind" } else { "ahead of" })
}
