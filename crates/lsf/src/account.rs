//! `bacct`: what jobs that have ended took, summed up.

use crate::jobs::Job;

/// Which jobs were asked for, as its first lines tell.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Of this user; of all when `None`.
    pub user: Option<String>,
    /// Of this project.
    pub project: Option<String>,
    /// On this host.
    pub host: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
}

/// All that is summed of one quantity.
struct Sum(Vec<f64>);

impl Sum {
    fn shown(&self, value: Option<f64>) -> String {
        value.filter(|_| !self.0.is_empty()).map_or("-".into(), |v| format!("{v:.1}"))
    }
    fn total(&self) -> String {
        self.shown(Some(self.0.iter().sum()))
    }
    fn average(&self) -> String {
        self.shown(Some(self.0.iter().sum::<f64>() / self.0.len() as f64))
    }
    fn most(&self) -> String {
        self.shown(self.0.iter().copied().reduce(f64::max))
    }
    fn least(&self) -> String {
        self.shown(self.0.iter().copied().reduce(f64::min))
    }
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from).max(0) as f64 / 1e9
}

/// The summary of jobs that have ended; `-` is what was not measured.
pub fn summary(jobs: &[&Job], asked: &Asked) -> String {
    let done = jobs.iter().filter(|job| job.stat == "DONE").count();
    let of = |value: &dyn Fn(&Job) -> Option<f64>| Sum(jobs.iter().filter_map(|job| value(job)).collect());
    let cpu = of(&|job| job.cpu_ms.map(|ms| ms as f64 / 1000.0));
    let wait = of(&|job| Some(seconds(job.submit_ns, job.start_ns?)));
    let turnaround = of(&|job| Some(seconds(job.submit_ns, job.end_ns?)));
    let mut out = "\nAccounting information about jobs that are:\n".to_string();
    let chosen = |one: &Option<String>, by: &str, all: &str| match one {
        Some(name) => format!("  - {by} {name}.\n"),
        None => format!("  - {all}.\n"),
    };
    out += &chosen(&asked.user, "submitted by users", "submitted by all users");
    out += &chosen(&asked.project, "accounted on projects", "accounted on all projects");
    out += "  - completed normally or exited.\n";
    out += &chosen(&asked.host, "executed on hosts", "executed on all hosts");
    out += &chosen(&asked.queue, "submitted to queues", "submitted to all queues");
    out += &format!("{}\n\nSUMMARY:      ( time unit: second )\n", "-".repeat(78));
    let mut row = |cells: &[(&str, String)]| {
        let cells = cells.iter().map(|(name, value)| format!(" {name:<27} {value:>9}"));
        out.push_str(&(cells.collect::<Vec<_>>().join("     ") + "\n"));
    };
    row(&[
        ("Total number of done jobs:", done.to_string()),
        ("Total number of exited jobs:", (jobs.len() - done).to_string()),
    ]);
    row(&[("Total CPU time consumed:", cpu.total()), ("Average CPU time consumed:", cpu.average())]);
    row(&[("Maximum CPU time of a job:", cpu.most()), ("Minimum CPU time of a job:", cpu.least())]);
    row(&[("Total wait time in queues:", wait.total())]);
    row(&[("Average wait time in queue:", wait.average())]);
    row(&[("Maximum wait time in queue:", wait.most()), ("Minimum wait time in queue:", wait.least())]);
    row(&[("Average turnaround time:", turnaround.average())]);
    row(&[("Maximum turnaround time:", turnaround.most()), ("Minimum turnaround time:", turnaround.least())]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_what_was_measured() {
        const S: i64 = 1_000_000_000;
        let job = |stat, start_ns, cpu_ms| Job { stat, start_ns, end_ns: Some(9 * S), cpu_ms, ..Job::default() };
        let jobs = [job("DONE", Some(2 * S), Some(1500)), job("DONE", Some(4 * S), None), job("EXIT", None, None)];
        let text = summary(&jobs.iter().collect::<Vec<_>>(), &Asked { queue: Some("q".into()), ..Asked::default() });
        let cell =
            |name: &str| text.split(name).nth(1).unwrap_or_default().split_whitespace().next().unwrap().to_string();
        assert_eq!((cell("done jobs:"), cell("exited jobs:")), ("2".into(), "1".into()), "{text}");
        assert_eq!(
            (cell("Total CPU time consumed:"), cell("Average CPU time consumed:")),
            ("1.5".into(), "1.5".into())
        );
        assert_eq!(
            (cell("Average wait time in queue:"), cell("Maximum turnaround time:")),
            ("3.0".into(), "9.0".into())
        );
        assert!(text.contains("- submitted to queues q.\n  ") || text.contains("- submitted to queues q.\n"), "{text}");
        let none = summary(&[], &Asked::default());
        assert!(none.contains("Total CPU time consumed:            -"), "{none}");
    }
}
