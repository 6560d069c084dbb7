//! Do clocks agree?

use crate::compare::{middle, split};
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

/// Seconds. make and Kerberos compare whole seconds, and munge refuses at 300. Less than half a second may come from
/// a busy host.
const ILL: f64 = 1.0;
const ODD: f64 = 0.5;

static FAR: Code = Code {
    name: "HC-CLOCK-01",
    severity: Severity::Error,
    what: "a clock differs from those of other hosts by more than a second",
    means: "make builds too much or too little, munge and Kerberos refuse requests, and logs are out of order",
    seen: "`date` on every host at the same time",
    mend: "start a time daemon; `chronyc makestep` sets the clock at once",
};
static NEAR: Code = Code {
    name: "HC-CLOCK-02",
    severity: Severity::Warning,
    what: "a clock differs from those of other hosts by more than half a second",
    means: "make may take a new file for an old one",
    seen: "`date` on every host at the same time",
    mend: "start a time daemon; `chronyc makestep` sets the clock at once",
};
static HERE: Code = Code {
    name: "HC-CLOCK-03",
    severity: Severity::Warning,
    what: "this machine's clock differs from the clocks of its hosts",
    means: "files written by this machine look newer, or older, than they are",
    seen: "`date` here and on the hosts",
    mend: "start a time daemon here",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "clock",
    // The script itself prints the time, several times.
    script: "",
    waits: false,
    slow: false,
    root: None,
    codes: &[&FAR, &NEAR, &HERE],
    judge,
};

/// The lead of a host's clock over this machine's, in seconds: between `least` and `most`.
#[derive(Clone, Copy)]
struct Ahead {
    least: f64,
    most: f64,
}

/// Returns the lead of a host's clock. A host reads its clock after the script was sent and before the answer
/// arrived. The lead is between the two differences; each further answer can only narrow it.
fn ahead(host: &HostAnswers) -> Option<Ahead> {
    let least = host.clock.iter().map(|c| c.shown_s - c.received_s).max_by(f64::total_cmp)?;
    let most = host.clock.iter().filter_map(|c| Some(c.shown_s - c.sent_s?)).min_by(f64::total_cmp);
    Some(Ahead { least, most: most.unwrap_or(least) })
}

fn all_ahead(answers: &Answers) -> Vec<(&HostAnswers, Ahead)> {
    answers.hosts.iter().filter_map(|host| Some((host, ahead(host)?))).collect()
}

/// Returns hosts that look behind another host or this machine: their answers may have come late.
pub fn doubtful(answers: &Answers) -> Vec<String> {
    let all = all_ahead(answers);
    let first = all.iter().map(|(_, ahead)| ahead.least).fold(0.0, f64::max);
    all.iter().filter(|(_, ahead)| ahead.least < first - ODD).map(|(host, _)| host.name.clone()).collect()
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let all = all_ahead(answers);
    let usual = Ahead {
        least: middle(all.iter().map(|(_, ahead)| ahead.least), 1).unwrap_or(0.0),
        most: middle(all.iter().map(|(_, ahead)| ahead.most), 1).unwrap_or(0.0),
    };
    let mut found: Vec<HostFinding> =
        all.iter().filter_map(|(host, at)| of_host(host, apart(*at, usual.least))).collect();
    let here = -apart(usual, 0.0);
    if here.abs() > ILL && split(all.iter().map(|(h, at)| (*h, apart(*at, usual.least).abs() > ILL))).is_none() {
        let what = format!("this machine's clock is {} its hosts'", by(here));
        let hosts = all.iter().map(|(h, _)| h.name.clone()).collect();
        let finding = HERE.at("", what, "date: here and there".to_string());
        found.push(HostFinding { hosts, ..finding }.look("date; timedatectl"));
    }
    found
}

/// Returns the seconds from `usual` that are certain; 0 if the clocks may agree.
fn apart(ahead: Ahead, usual: f64) -> f64 {
    (ahead.least - usual).max(0.0) + (ahead.most - usual).min(0.0)
}

fn of_host(host: &HostAnswers, apart: f64) -> Option<HostFinding> {
    let code = if apart.abs() > ILL { &FAR } else { &NEAR };
    let found = code.on(host, format!("its clock is {} most hosts'", by(apart)), format!("date: {apart:+.1} s"));
    let line = "chronyc -a makestep || systemctl restart chronyd || systemctl restart systemd-timesyncd";
    (apart.abs() > ODD).then(|| found.mend(line))
}

fn by(apart: f64) -> String {
    format!("{:.1} s {}", apart.abs(), if apart < 0.0 { "behind" } else { "ahead of" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a host whose clock is `ahead_s` ahead, queried at 100 s, with its answer at `received_s`.
    fn host(name: &str, ahead_s: f64, read_s: f64, received_s: f64) -> HostAnswers {
        let text = format!("=now\t{}\n", ahead_s + read_s);
        HostAnswers::read(name, &[(received_s, text.into_bytes())]).asked_at(100.0)
    }

    fn seen(hosts: Vec<HostAnswers>) -> (Vec<String>, Vec<String>) {
        let answers = Answers { hosts };
        let found: Vec<HostFinding> = judge(&answers);
        assert!(found.iter().all(|f| f.remedy.as_ref().is_some_and(|remedy| remedy.mends)));
        let found = found.iter().map(|f| format!("{} {}", f.code.name, f.hosts)).collect();
        (doubtful(&answers), found)
    }

    #[test]
    fn an_answer_that_arrives_late_is_no_wrong_clock() {
        let quick = |name| host(name, 0.0, 100.1, 100.2);
        let late = |name| host(name, 0.0, 100.1, 103.0);
        assert_eq!(seen(vec![quick("n1"), quick("n2"), late("n3")]), (vec!["n3".into()], vec![]));
        let behind = host("n3", -0.8, 100.1, 100.2);
        assert_eq!(seen(vec![quick("n1"), quick("n2"), behind]).1, ["HC-CLOCK-02 n3"]);
        let far = host("n3", -60.0, 102.9, 103.0);
        assert_eq!(seen(vec![quick("n1"), quick("n2"), far]).1, ["HC-CLOCK-01 n3"]);
        // All are late: nothing is certain about this machine's clock either.
        assert_eq!(seen(vec![late("n1"), late("n2")]), (vec!["n1".into(), "n2".into()], vec![]));
    }

    /// If most answers are late, an answer in time looks ahead. The others are queried again.
    #[test]
    fn hosts_are_asked_again_where_one_looks_ahead() {
        let ahead = host("n1", 30.0, 100.1, 100.2);
        let rest = |name| host(name, 0.0, 100.1, 100.2);
        assert_eq!(seen(vec![ahead, rest("n2"), rest("n3")]).0, ["n2", "n3"]);
    }
}
