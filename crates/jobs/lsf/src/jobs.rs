//! `bjobs`: its tables, its long form and its own columns (`-o`).

use crate::{tables, time};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A job, or an element of an array, as an engine reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReport {
    /// Its number.
    pub id: u64,
    /// Index in its array.
    pub index: Option<u32>,
    /// `[1-50]%8` of an array, for `bjobs -A`.
    pub array: Option<String>,
    /// Login name.
    pub user: String,
    /// LSF's word for its state: PEND, RUN, ...
    pub stat: &'static str,
    /// Queue.
    pub queue: String,
    /// The host where it was submitted.
    pub from_host: String,
    /// The hosts where it runs or ran, one name for each slot.
    pub exec_hosts: Vec<String>,
    /// Its name, without index.
    pub name: String,
    /// Its command or script.
    pub command: String,
    /// Times, ns since the epoch.
    pub submit_ns: i64,
    /// See `submit_ns`.
    pub start_ns: Option<i64>,
    /// See `submit_ns`.
    pub end_ns: Option<i64>,
    /// Exit status.
    pub exit: Option<i32>,
    /// Why it was ended, or why it does not run.
    pub reasons: Vec<String>,
    /// Working directory at submission.
    pub cwd: String,
    /// Files, as in the request.
    pub output: Option<String>,
    /// See `output`.
    pub error: Option<String>,
    /// See `output`.
    pub input: Option<String>,
    /// Project; `default` if none was given.
    pub project: String,
    /// Job group, a path; `/` if none was given.
    pub group: String,
    /// Application profile.
    pub app: Option<String>,
    /// Slots.
    pub slots: u32,
    /// Processor time, ms, once it is known.
    pub cpu_ms: Option<u64>,
    /// Largest resident set, KiB, once it is known.
    pub max_rss_kib: Option<u64>,
    /// `-R`, all of them.
    pub require: String,
    /// `-w`.
    pub after: Option<String>,
    /// Run limit, seconds.
    pub limit_s: Option<u64>,
    /// `-m`, in order of preference.
    pub asked_hosts: Vec<String>,
    /// Number of its first process, once it has one.
    pub pid: Option<u32>,
    /// Home of its user; known for the long forms alone. The fields below are known for `bjobs -l` alone.
    pub home: Option<String>,
    /// Memory of all its processes at this moment, KiB, while it runs on this machine.
    pub mem_kib: Option<u64>,
    /// Load thresholds of its queue by index: loadSched and loadStop.
    pub thresholds: BTreeMap<String, (Option<f64>, Option<f64>)>,
}

impl JobReport {
    /// Formats `12` or `12[3]`.
    pub fn shown_id(&self) -> String {
        self.index.map_or(self.id.to_string(), |i| format!("{}[{i}]", self.id))
    }
    /// Formats `name` or `name[3]`.
    pub fn shown_name(&self) -> String {
        self.index.map_or(self.name.clone(), |i| format!("{}[{i}]", self.name))
    }
    /// Whether it is DONE or EXIT.
    pub fn is_over(&self) -> bool {
        matches!(self.stat, "DONE" | "EXIT")
    }
    /// Whether it is PEND or PSUSP.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stat, "PEND" | "PSUSP")
    }
    fn hosts(&self) -> String {
        self.exec_hosts.join(":")
    }
}

/// Shortens text to a width: `*` replaces its beginning.
pub fn cut_left(text: &str, width: usize) -> String {
    let count = text.chars().count();
    match count > width {
        true => format!("*{}", text.chars().skip(count - width + 1).collect::<String>()),
        false => text.to_string(),
    }
}

const HEAD: [&str; 8] = ["JOBID", "USER", "STAT", "QUEUE", "FROM_HOST", "EXEC_HOST", "JOB_NAME", "SUBMIT_TIME"];

fn cells(job: &JobReport, zone: &TimeZone) -> [String; 8] {
    [
        job.id.to_string(),
        job.user.clone(),
        job.stat.to_string(),
        job.queue.clone(),
        job.from_host.clone(),
        job.hosts(),
        job.shown_name(),
        time::short(job.submit_ns, zone),
    ]
}

/// Returns the table of eighty columns; `reasons` adds the lines of `bjobs -p` and `-s`.
pub fn table(jobs: &[JobReport], zone: &TimeZone, reasons: bool, head: bool) -> String {
    let line = |c: &[String; 8]| {
        let cut: Vec<String> = c
            .iter()
            .zip([0, 7, 5, 10, 11, 11, 10, 0])
            .map(|(t, w)| if w > 0 { cut_left(t, w) } else { t.clone() })
            .collect();
        format!(
            "{:<7} {:<7} {:<5} {:<10} {:<11} {:<11} {:<10} {}\n",
            cut[0], cut[1], cut[2], cut[3], cut[4], cut[5], cut[6], cut[7]
        )
    };
    let mut out = if head { line(&HEAD.map(String::from)) } else { String::new() };
    for job in jobs {
        let mut row = cells(job, zone);
        // Each further host has a line of its own.
        row[5] = job.exec_hosts.first().cloned().unwrap_or_default();
        out += &line(&row);
        for host in job.exec_hosts.iter().skip(1) {
            out += &format!("{:45}{}\n", "", cut_left(host, 11));
        }
        if reasons {
            job.reasons.iter().for_each(|reason| out += &format!(" {reason};\n"));
        }
    }
    out
}

/// Formats `bjobs -w`: no cell is cut, and an empty one is `-`.
pub fn wide(jobs: &[JobReport], zone: &TimeZone, reasons: bool, head: bool) -> String {
    let line = |c: &[String; 8]| {
        let c: Vec<&str> = c.iter().map(|t| if t.is_empty() { "-" } else { t.as_str() }).collect();
        format!("{:<7} {:<7} {:<5} {:<10} {:<11} {:<11} {:<10} {}\n", c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7])
    };
    let mut out = if head { line(&HEAD.map(String::from)) } else { String::new() };
    for job in jobs {
        out += &line(&cells(job, zone));
        if reasons {
            job.reasons.iter().for_each(|reason| out += &format!(" {reason};\n"));
        }
    }
    out
}

/// Formats `bjobs -W`: the wide form with the resources that each job has used. No cell is cut; unknown values are `-`.
pub fn used(jobs: &[JobReport], zone: &TimeZone, head: bool) -> String {
    let mut out = String::new();
    if head {
        let wide = wide(&[], zone, false, true);
        out += &format!("{}  PROJ_NAME  CPU_USED MEM SWAP PIDS START_TIME FINISH_TIME\n", wide.trim_end());
    }
    for job in jobs {
        let mut row = cells(job, zone).map(|cell| if cell.is_empty() { "-".into() } else { cell });
        row[7] = time::dense(job.submit_ns, zone);
        let [id, user, stat, queue, from, to, name, submitted] = row;
        let at = |ns: Option<i64>| ns.map_or("-".into(), |ns| time::dense(ns, zone));
        let ms = job.cpu_ms.unwrap_or(0);
        let cpu = format!("{:03}:{:02}:{:05.2}", ms / 3_600_000, ms / 60_000 % 60, (ms % 60_000) as f64 / 1000.0);
        let memory = job.max_rss_kib.unwrap_or(0);
        out += &format!(
            "{id:<7} {user:<7} {stat:<5} {queue:<10} {from:<11} {to:<11} {name:<10} {submitted} {:<10} {cpu} \
             {memory:<6} 0      -  {} {}\n",
            job.project,
            at(job.start_ns),
            at(job.end_ns)
        );
    }
    out
}

/// Formats `bjobs -A`: a row for each array.
pub fn arrays(jobs: &[JobReport]) -> String {
    let mut out = format!(
        "{:<7} {:<13} {:<7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n",
        "JOBID", "ARRAY_SPEC", "OWNER", "NJOBS", "PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP"
    );
    let mut at = 0;
    while let Some(first) = jobs.get(at) {
        let count = jobs[at..].iter().take_while(|j| j.id == first.id).count();
        let own = &jobs[at..at + count];
        at += count;
        let Some(array) = &first.array else { continue };
        let of = |stat: &str| own.iter().filter(|j| j.stat == stat).count();
        let spec = cut_left(&format!("{}{array}", first.name), 13);
        let _ = write!(out, "{:<7} {spec:<13} {:<7} {count:>6}", first.id, cut_left(&first.user, 7));
        ["PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP"]
            .iter()
            .for_each(|s| out += &format!(" {:>6}", of(s)));
        out.push('\n');
    }
    out
}

/// Formats `bacct -l`: the long form of an ended job with the resources that it took.
pub fn accounted(job: &JobReport, zone: &TimeZone) -> String {
    let seconds = |ns: i64| ns.max(0) / 1_000_000_000;
    let end_ns = job.end_ns.unwrap_or(job.submit_ns);
    let (wait, turnaround) = (job.start_ns.unwrap_or(end_ns) - job.submit_ns, end_ns - job.submit_ns);
    let (wait, turnaround) = (seconds(wait), seconds(turnaround));
    let (status, cpu_s) = (completed(job), job.cpu_ms.unwrap_or(0) as f64 / 1000.0);
    let hog = cpu_s / turnaround.max(1) as f64;
    let memory = job.max_rss_kib.map_or("-".into(), |kib| format!("{}M", kib.div_ceil(1024)));
    format!(
        "{}\nAccounting information about this job:\n     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    \
         MEM    SWAP\n{cpu_s:>10.2} {wait:>8} {turnaround:>14} {status:>8} {hog:>14.4} {memory:>6} {:>7}\n",
        long_with(job, zone, Folding::Lsf, &|job| format!("Completed <{}>", completed(job))),
        "-"
    )
}

fn completed(job: &JobReport) -> &'static str {
    if job.stat == "DONE" { "done" } else { "exit" }
}

/// How the lines of the long forms are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// After 79 columns.
    Lsf,
    /// Not at all: `-UF`.
    Unfolded,
}

/// Formats `bjobs -l`, and `bjobs -UF` without folding.
pub fn long(job: &JobReport, zone: &TimeZone, folding: Folding, now_ns: i64) -> String {
    let mut out = long_with(job, zone, folding, &ended);
    if let Some(kib) = job.mem_kib {
        let _ =
            write!(out, "{}: Resource usage collected.\n{:21}{};\n", time::long(now_ns, zone), "", memory("MEM", kib));
    }
    if let Some(kib) = job.max_rss_kib.filter(|_| job.is_over()) {
        let _ = write!(out, "\n MEMORY USAGE:\n {};\n", memory("MAX MEM", kib));
    }
    let _ = write!(out, "\n SCHEDULING PARAMETERS:\n{}", tables::thresholds(&job.thresholds));
    out
}

fn memory(what: &str, kib: u64) -> String {
    format!("{what}: {} Mbytes", kib.div_ceil(1024))
}

/// Returns how a job ended, and the processor time that it took.
fn ended(job: &JobReport) -> String {
    let cpu = job.cpu_ms.unwrap_or(0) as f64 / 1000.0;
    let how = match job.exit {
        Some(0) => "Done successfully".to_string(),
        Some(code) => format!("Exited with exit code {code}"),
        None => "Exited".into(),
    };
    format!("{how}. The CPU time used is {cpu:.1} seconds")
}

/// Formats the events of a job, as `bhist -l` does.
pub fn events(job: &JobReport, zone: &TimeZone, folding: Folding) -> String {
    let mut out = format!("\n{}", fold(&head(job, ""), folding));
    out += &submission(job, zone, folding, &format!(", to Queue <{}>", job.queue));
    let mut event = |at: i64, text: String| out += &fold(&format!("{}: {text};", time::long(at, zone)), folding);
    if let Some(at) = job.start_ns {
        event(at, format!("Dispatched to {}", started_on(job)));
        let pid = job.pid.map_or(String::new(), |pid| format!(", Execution Pid <{pid}>"));
        if let Some(pid) = job.pid {
            event(at, format!("Starting (Pid {pid})"));
        }
        let home = job.home.as_deref().unwrap_or("/");
        event(at, format!("Running with execution home <{home}>, Execution CWD <{}>{pid}", job.cwd));
    }
    if let Some(at) = job.end_ns {
        event(at, ended(job));
        if job.exit != Some(0) {
            let reasons: String = job.reasons.iter().map(|r| format!("; {r}")).collect();
            event(at, format!("Completed <exit>{reasons}"));
        }
    }
    out
}

/// Returns the line that names the job; `more` follows its project.
fn head(job: &JobReport, more: &str) -> String {
    let name = if job.name == job.command { String::new() } else { format!("Job Name <{}>, ", job.shown_name()) };
    format!(
        "Job <{}>, {name}User <{}>, Project <{}>{more}, Command <{}>",
        job.shown_id(),
        job.user,
        job.project,
        job.command
    )
}

/// Returns the hosts of a started job.
fn started_on(job: &JobReport) -> String {
    match job.exec_hosts.len() {
        0 | 1 => format!("<{}>", job.hosts()),
        slots => format!("{slots} Hosts/Processors <{}>", job.exec_hosts.join("> <")),
    }
}

/// Returns the directory of submission, as LSF writes it: below the home it begins with `$HOME`.
fn shown_cwd(job: &JobReport) -> String {
    let below =
        job.home.as_ref().filter(|home| *home != "/").and_then(|home| Path::new(&job.cwd).strip_prefix(home).ok());
    match below.map(|rest| rest.to_string_lossy()) {
        Some(rest) if rest.is_empty() => "$HOME".into(),
        Some(rest) => format!("$HOME/{rest}"),
        None => job.cwd.clone(),
    }
}

/// Returns the lines of the submission and of the run limit; `more` follows the host.
fn submission(job: &JobReport, zone: &TimeZone, folding: Folding, more: &str) -> String {
    let at = time::long(job.submit_ns, zone);
    let mut submitted = format!("{at}: Submitted from host <{}>{more}, CWD <{}>", job.from_host, shown_cwd(job));
    for (what, file) in [("Input", &job.input), ("Output", &job.output), ("Error", &job.error)] {
        submitted += &file.as_ref().map_or(String::new(), |f| format!(", {what} File <{f}>"));
    }
    if job.slots > 1 {
        submitted += &format!(", {} Processors Requested", job.slots);
    }
    if !job.require.is_empty() {
        submitted += &format!(", Requested Resources <{}>", job.require);
    }
    submitted += &job.after.as_ref().map_or(String::new(), |a| format!(", Dependency Condition <{a}>"));
    if !job.asked_hosts.is_empty() {
        submitted += &format!(", Specified Hosts <{}>", job.asked_hosts.join(">, <"));
    }
    let mut out = fold(&(submitted + ";"), folding);
    if let Some(seconds) = job.limit_s {
        out += &format!(
            "\n RUNLIMIT\n {:.1} min of {}\n",
            seconds as f64 / 60.0,
            job.exec_hosts.first().unwrap_or(&job.from_host)
        );
    }
    out
}

/// Returns the long form without the resources that the job takes; `how` returns the text for the job's end.
fn long_with(job: &JobReport, zone: &TimeZone, folding: Folding, how: &dyn Fn(&JobReport) -> String) -> String {
    let first = head(job, &format!(", Status <{}>, Queue <{}>", job.stat, job.queue));
    let mut out = format!("\n{}{}", fold(&first, folding), submission(job, zone, folding, ""));
    if let Some(at) = job.start_ns {
        let home = job.home.as_ref().map_or(String::new(), |home| format!(", Execution Home <{home}>"));
        let (at, hosts) = (time::long(at, zone), started_on(job));
        out += &fold(&format!("{at}: Started on {hosts}{home}, Execution CWD <{}>;", job.cwd), folding);
    }
    if let Some(at) = job.end_ns {
        let reasons: String = job.reasons.iter().map(|r| format!(" {r};")).collect();
        out += &fold(&format!("{}: {}.{reasons}", time::long(at, zone), how(job)), folding);
    } else if job.is_waiting() && !job.reasons.is_empty() {
        out += " PENDING REASONS:\n";
        job.reasons.iter().for_each(|r| out += &format!(" {r};\n"));
    } else if !job.reasons.is_empty() {
        out += " SUSPENDING REASONS:\n";
        job.reasons.iter().for_each(|r| out += &format!(" {r};\n"));
    }
    out
}

/// Folds lines after 79 columns; the next ones are indented by 21, as in LSF.
fn fold(text: &str, folding: Folding) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars().map(|c| if c == '\n' { ';' } else { c }) {
        if column == 79 && folding == Folding::Lsf {
            out += &format!("\n{:21}", "");
            column = 21;
        }
        out.push(c);
        column += 1;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobReport {
        JobReport {
            id: 3734,
            user: "jcuff".into(),
            stat: "DONE",
            queue: "storage".into(),
            from_host: "iliadaccess03".into(),
            exec_hosts: vec!["rcss1".into()],
            name: "uname -a".into(),
            command: "uname -a".into(),
            submit_ns: 1_332_932_101_000_000_000,
            project: "default".into(),
            cwd: "/n/rcss1".into(),
            slots: 1,
            ..JobReport::default()
        }
    }

    #[test]
    fn the_row_of_the_blog() {
        let text = table(&[job()], &TimeZone::UTC, false, true);
        let want = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n\
                    3734    jcuff   DONE  storage    *adaccess03 rcss1       uname -a   Mar 28 10:55\n";
        assert_eq!(text, want);
        assert!(!table(&[job()], &TimeZone::UTC, false, false).contains("JOBID"));
    }

    #[test]
    fn the_wide_form_cuts_nothing_and_leaves_nothing_empty() {
        let reasons = vec!["Job slot limit reached: 1 host".to_string()];
        let pend = JobReport { exec_hosts: vec![], stat: "PEND", reasons, ..job() };
        let many = JobReport { exec_hosts: vec!["h1".into(), "h1".into(), "h2".into()], index: Some(2), ..job() };
        let want = "3734    jcuff   PEND  storage    iliadaccess03 -           uname -a   Mar 28 10:55\n \
                    Job slot limit reached: 1 host;\n\
                    3734    jcuff   DONE  storage    iliadaccess03 h1:h1:h2    uname -a[2] Mar 28 10:55\n";
        assert_eq!(wide(&[pend, many], &TimeZone::UTC, true, false), want);
    }

    #[test]
    fn the_long_form_folds() {
        let job = JobReport {
            exit: Some(3),
            end_ns: Some(1_332_932_110_000_000_000),
            start_ns: Some(1_332_932_102_000_000_000),
            stat: "EXIT",
            command: "x".repeat(100),
            name: "n".into(),
            ..job()
        };
        let text = long(&job, &TimeZone::UTC, Folding::Lsf, 0);
        assert!(
            text.starts_with("\nJob <3734>, Job Name <n>, User <jcuff>, Project <default>, Status <EXIT>, Queue"),
            "{text}"
        );
        let (own, _) = text.split_once(" SCHEDULING PARAMETERS:").unwrap();
        assert!(own.lines().all(|l| l.chars().count() <= 79), "{text}");
        assert!(text.contains("Exited with exit code 3. The CPU time"), "{text}");
        let text = long(&job, &TimeZone::UTC, Folding::Unfolded, 0);
        assert!(text.contains(&format!("Queue <storage>, Command <{}>\n", "x".repeat(100))), "{text}");
    }

    fn at_work() -> JobReport {
        JobReport {
            stat: "RUN",
            start_ns: Some(1_332_932_102_000_000_000),
            cwd: "/home/jcuff/w".into(),
            home: Some("/home/jcuff".into()),
            asked_hosts: vec!["rcss2".into(), "rcss1".into()],
            slots: 3,
            exec_hosts: vec!["rcss1".into(), "rcss1".into(), "rcss2".into()],
            require: "span[ptile=2]".into(),
            pid: Some(694),
            mem_kib: Some(2100),
            thresholds: BTreeMap::from([("mem".to_string(), (Some(500.0), None))]),
            ..job()
        }
    }

    #[test]
    fn the_long_form_has_what_parsers_look_for() {
        let text = long(&at_work(), &TimeZone::UTC, Folding::Unfolded, 1_332_932_110_000_000_000);
        for part in [
            "from host <iliadaccess03>, CWD <$HOME/w>, 3 Processors Requested, Requested Resources <span[ptile=2]>, \
             Specified Hosts <rcss2>, <rcss1>;\n",
            "Started on 3 Hosts/Processors <rcss1> <rcss1> <rcss2>, Execution Home </home/jcuff>, Execution CWD \
             </home/jcuff/w>;\nWed Mar 28 10:55:10: Resource usage collected.\n                     MEM: 3 Mbytes;\n\n \
             SCHEDULING PARAMETERS:\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(last[0].starts_with(" loadStop ") && last[1].contains(" 500 ") && last[2].contains(" mem "), "{text}");
        let done = JobReport { mem_kib: None, max_rss_kib: Some(5000), stat: "DONE", ..at_work() };
        let text = long(&done, &TimeZone::UTC, Folding::Lsf, 0);
        assert!(text.contains("\n\n MEMORY USAGE:\n MAX MEM: 5 Mbytes;\n\n SCHEDULING PARAMETERS:\n"), "{text}");
        let elsewhere = |cwd: &str| shown_cwd(&JobReport { cwd: cwd.into(), ..at_work() });
        assert_eq!([elsewhere("/home/jcuff"), elsewhere("/home/jcuff2")], ["$HOME", "/home/jcuff2"]);
    }

    #[test]
    fn the_history_of_a_job_is_its_events() {
        let end_ns = Some(1_332_932_110_000_000_000);
        let reasons = vec!["TERM_OWNER: job killed by owner".to_string()];
        let ended = JobReport { stat: "EXIT", exit: Some(130), end_ns, cpu_ms: Some(50), reasons, ..at_work() };
        let one = JobReport { slots: 1, exec_hosts: vec!["rcss1".into()], require: String::new(), ..ended };
        let want = "\nJob <3734>, User <jcuff>, Project <default>, Command <uname -a>\n\
                    Wed Mar 28 10:55:01: Submitted from host <iliadaccess03>, to Queue <storage>, CWD <$HOME/w>, \
                    Specified Hosts <rcss2>, <rcss1>;\n\
                    Wed Mar 28 10:55:02: Dispatched to <rcss1>;\n\
                    Wed Mar 28 10:55:02: Starting (Pid 694);\n\
                    Wed Mar 28 10:55:02: Running with execution home </home/jcuff>, Execution CWD </home/jcuff/w>, \
                    Execution Pid <694>;\n\
                    Wed Mar 28 10:55:10: Exited with exit code 130. The CPU time used is 0.1 seconds;\n\
                    Wed Mar 28 10:55:10: Completed <exit>; TERM_OWNER: job killed by owner;\n";
        assert_eq!(events(&one, &TimeZone::UTC, Folding::Unfolded), want);
    }

    #[test]
    fn arrays_are_counted() {
        let element = |index, stat| JobReport {
            index: Some(index),
            stat,
            array: Some("[1-3]%2".into()),
            name: "arr".into(),
            ..job()
        };
        let text =
            arrays(&[element(1, "DONE"), element(2, "RUN"), element(3, "PEND"), JobReport { id: 3735, ..job() }]);
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.contains("3734    arr[1-3]%2    jcuff        3      1      1      1      0      0      0      0"),
            "{text}"
        );
    }
}
