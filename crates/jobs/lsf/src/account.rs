//! `bacct`: sums up the resources that ended jobs took.

/// The jobs that are chosen, as the first lines of `bacct` describe them.
#[derive(Clone, Debug, Default)]
pub struct AccountFilter {
    /// Of this user; of all when `None`.
    pub user: Option<String>,
    /// Of this project.
    pub project: Option<String>,
    /// On this host.
    pub host: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
}

/// An ended job and the resources that it took, microseconds. A quantity that was not measured is unknown; for a job
/// that never ran all are.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobAccounting {
    /// Whether it ended with status 0.
    pub done: bool,
    /// Processor time.
    pub cpu_us: Option<u64>,
    /// Time from submission to start.
    pub wait_us: Option<u64>,
    /// Time from submission to end.
    pub turnaround_us: Option<u64>,
}

/// All values of one quantity.
struct Sum(Vec<u64>);

impl Sum {
    fn shown(value: Option<f64>) -> String {
        value.map_or("-".into(), |us| format!("{:.1}", us / 1e6))
    }
    fn all(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<u64>() as f64)
    }
    fn total(&self) -> String {
        Sum::shown(self.all())
    }
    fn average(&self) -> String {
        Sum::shown(self.all().map(|all| all / self.0.len() as f64))
    }
    fn most(&self) -> String {
        Sum::shown(self.0.iter().max().map(|us| *us as f64))
    }
    fn least(&self) -> String {
        Sum::shown(self.0.iter().min().map(|us| *us as f64))
    }
}

/// Returns the summary of ended jobs; `-` is a value that was not measured.
pub fn summary(jobs: &[JobAccounting], filter: &AccountFilter) -> String {
    let done = jobs.iter().filter(|job| job.done).count();
    let of = |value: fn(&JobAccounting) -> Option<u64>| Sum(jobs.iter().filter_map(value).collect());
    let (cpu, wait, turnaround) = (of(|job| job.cpu_us), of(|job| job.wait_us), of(|job| job.turnaround_us));
    let mut out = "\nAccounting information about jobs that are:\n".to_string();
    let chosen = |one: &Option<String>, by: &str, all: &str| match one {
        Some(name) => format!("  - {by} {name}.\n"),
        None => format!("  - {all}.\n"),
    };
    out += &chosen(&filter.user, "submitted by users", "submitted by all users");
    out += &chosen(&filter.project, "accounted on projects", "accounted on all projects");
    out += "  - completed normally or exited.\n";
    out += &chosen(&filter.host, "executed on hosts", "executed on all hosts");
    out += &chosen(&filter.queue, "submitted to queues", "submitted to all queues");
    out += &format!("{}\nSUMMARY:      ( time unit: second )\n", crate::tables::rule());
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
        const S: u64 = 1_000_000;
        let ran = |done, wait, cpu_us| JobAccounting { done, cpu_us, wait_us: Some(wait), turnaround_us: Some(9 * S) };
        let jobs = [ran(true, 2 * S, Some(S + S / 2)), ran(true, 4 * S, None), JobAccounting::default()];
        let text = summary(&jobs, &AccountFilter { queue: Some("q".into()), ..AccountFilter::default() });
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
        let none = summary(&[], &AccountFilter::default());
        assert!(none.contains("Total CPU time consumed:            -"), "{none}");
    }
}
