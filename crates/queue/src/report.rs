//! The report that LSF writes at the end of a job's output file. Programs
//! parse it: the line two above `Resource usage summary:` says how it ended.

use crate::job::{End, JobSpec, Start};

/// What differs between one end of a job and another, as it is printed.
pub(crate) struct Told<'a> {
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

/// LSF's words for why a job was ended; homing's own where LSF has none.
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

/// The report of one job or element.
pub fn text(id: u64, index: u32, spec: &JobSpec, script: Option<&str>, start: &Start, end: &End) -> String {
    let shown = if index == 0 { id.to_string() } else { format!("{id}[{index}]") };
    let reason = end.reason.as_deref().map(|reason| match term(reason) {
        told if told.starts_with("TERM_") => format!("{told}.\n"),
        told => format!("{told}\n"),
    });
    let result = match end.exit {
        0 => "Successfully completed.".to_string(),
        code => format!("{}Exited with exit code {code}.", reason.unwrap_or_default()),
    };
    let told = Told {
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
    layout(spec, script, &told)
}

/// Its lines.
pub(crate) fn layout(spec: &JobSpec, script: Option<&str>, told: &Told) -> String {
    let command = spec.command.display();
    let name = if spec.name.is_empty() { &command } else { &spec.name };
    let (user, cwd) = (&spec.user, spec.cwd.display());
    let slots = if spec.slots > 1 { format!("{}*", spec.slots) } else { String::new() };
    let Told { id, host, submitted, started, ended, how, result, cpu, memory, wall } = told;
    format!(
        "\n------------------------------------------------------------\n\
         Sender: LSF System <homing@{host}>\n\
         Subject: Job {id}: <{name}> in cluster <homing> {how}\n\n\
         Job <{name}> was submitted from host <{from}> by user <{user}> in cluster <homing> at {submitted}\n\
         Job was executed on host(s) <{slots}{host}>, in queue <{queue}>, as user <{user}> in cluster <homing> at {started}\n\
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
