//! The report that LSF writes at the end of a job's output file. Programs parse it: the line two above `Resource
//! usage summary:` reports how the job ended.

use crate::job::{JobEnd, JobSpec, Private, Share, Start};

/// The parts of the report that differ between jobs, as printed.
pub(crate) struct ReportParts<'a> {
    /// Home directory of the job.
    pub home: &'a str,
    /// `7`, `7[2]`.
    pub id: &'a str,
    pub host: &'a str,
    pub submitted: &'a str,
    pub started: &'a str,
    pub ended: &'a str,
    /// `Done` or `Exited`.
    pub how: &'a str,
    /// `Successfully completed.`, or the status and its reason.
    pub result: &'a str,
    /// With its unit, or `-`.
    pub cpu: &'a str,
    /// With its unit, or `-`.
    pub memory: &'a str,
    /// Seconds.
    pub wall: &'a str,
}

pub(crate) fn time(ns: i64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

/// Returns LSF's words for why a job was ended; homing's own if LSF has none.
pub fn term(reason: &str) -> String {
    match reason {
        "time limit" => "TERM_RUNLIMIT: job killed after reaching LSF run time limit".into(),
        "cpu limit" => "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit".into(),
        "memory limit" => "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit".into(),
        r if r.starts_with("killed by") && !r.ends_with("before it started") => {
            "TERM_OWNER: job killed by owner".into()
        }
        r => r.into(),
    }
}

/// Returns the home directory of a job: that of its environment, else that of the user of this process.
pub(crate) fn home(private: &Private) -> String {
    let set = private.env.iter().find(|(name, _)| name.0 == b"HOME").map(|(_, home)| home.display());
    set.or_else(|| Some(homing_os::names::account(crate::uid())?.home.display().to_string())).unwrap_or_default()
}

/// Returns the report of one job or element.
pub fn text(id: u64, index: u32, spec: &JobSpec, private: &Private, start: &Start, end: &JobEnd) -> String {
    let script = private.script.as_ref().map(|s| String::from_utf8_lossy(&s.0).into_owned());
    let shown = if index == 0 { id.to_string() } else { format!("{id}[{index}]") };
    let reason = end.reason.as_deref().map(|reason| match term(reason) {
        text if text.starts_with("TERM_") => format!("{text}.\n"),
        text => format!("{text}\n"),
    });
    let result = match end.exit {
        0 => "Successfully completed.".to_string(),
        code => format!("{}Exited with exit code {code}.", reason.unwrap_or_default()),
    };
    let parts = ReportParts {
        home: &home(private),
        id: &shown,
        host: &start.host,
        submitted: &time(spec.submit_ns),
        started: &time(start.at_ns),
        ended: &time(end.at_ns),
        how: if end.exit == 0 { "Done" } else { "Exited" },
        result: &result,
        cpu: &format!("{:.2} sec.", end.cpu_ms as f64 / 1000.0),
        memory: &format!("{:.0} MB", (end.max_rss_kib as f64 / 1024.0).ceil()),
        wall: &((end.at_ns - start.at_ns).max(0) / 1_000_000_000).to_string(),
    };
    layout(spec, script.as_deref(), &parts)
}

/// Returns the hosts in LSF's format: slots and first host, and a line for each other host.
fn hosts(spec: &JobSpec, host: &str) -> (String, String) {
    let on = |slots: u32, host: &str| if slots > 1 { format!("{slots}*{host}") } else { host.to_string() };
    let Some([first, others @ ..]) = spec.over_several() else { return (on(spec.slots, host), String::new()) };
    let line = |share: &Share| format!("{:28}<{}*{}>\n", "", share.slots, share.host);
    (format!("{}*{}", first.slots, first.host), others.iter().map(line).collect())
}

/// Fills in the lines of the report.
pub(crate) fn layout(spec: &JobSpec, script: Option<&str>, parts: &ReportParts) -> String {
    let command = spec.command.display();
    let name = if spec.name.is_empty() { &command } else { &spec.name };
    let (user, cwd) = (&spec.user, spec.cwd.display());
    let ReportParts { home, id, host, submitted, started, ended, how, result, cpu, memory, wall } = parts;
    let (first, others) = hosts(spec, host);
    format!(
        "\n------------------------------------------------------------\n\
         Sender: LSF System <homing@{host}>\n\
         Subject: Job {id}: <{name}> in cluster <homing> {how}\n\n\
         Job <{name}> was submitted from host <{from}> by user <{user}> in cluster <homing> at {submitted}\n\
         Job was executed on host(s) <{first}>, in queue <{queue}>, as user <{user}> in cluster <homing> at {started}\n\
         {others}\
         <{home}> was used as the home directory.\n\
         <{cwd}> was used as the working directory.\n\
         Started at {started}\n\
         Terminated at {ended}\n\
         Results reported at {ended}\n\n\
         Your job looked like:\n\n\
         ------------------------------------------------------------\n\
         # LSBATCH: User input\n\
         {input}\n\
         ------------------------------------------------------------\n\n\
         {result}\n\n\
         Resource usage summary:\n\n    \
         CPU time :                                   {cpu}\n    \
         Max Memory :                                 {memory}\n    \
         Run time :                                   {wall} sec.\n\n\
         The output (if any) is above this job summary.\n\n",
        from = spec.from,
        queue = spec.queue,
        input = script.unwrap_or(&command).trim_end(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_home_and_working_directory() {
        let spec = JobSpec { cwd: "/home/ann/w".into(), ..JobSpec::default() };
        let private = Private { env: vec![("HOME".into(), "/home/ann".into())], ..Private::default() };
        let start = Start { at_ns: 0, host: "n1".into(), process: Default::default() };
        let text = text(7, 0, &spec, &private, &start, &JobEnd::default());
        let lines = "\n</home/ann> was used as the home directory.\n</home/ann/w> was used as the working directory.\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn each_host_has_its_slots() {
        let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"c"},"name":"","queue":"","slots":4}"#;
        let mut spec: JobSpec = serde_json::from_str(text).unwrap();
        assert_eq!(hosts(&spec, "n1"), ("4*n1".into(), String::new()));
        spec.hosts = [("n1", 1), ("n3", 3)].map(|(host, slots)| Share { host: host.into(), slots }).into();
        assert_eq!(hosts(&spec, "n1"), ("1*n1".into(), format!("{}<3*n3>\n", " ".repeat(28))));
        (spec.hosts, spec.slots) = (Vec::new(), 1);
        assert_eq!(hosts(&spec, "n1"), ("n1".into(), String::new()));
    }
}
