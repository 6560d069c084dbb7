//! The allocation in which this process was started, from its environment.

use homing_model::NodeSet;

/// A job of the user's in which workers become steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The batch system's number of the job.
    pub job: String,
    /// Its nodes with the processors that it has on each.
    pub nodes: Vec<(String, u32)>,
    /// The node on which this process itself runs as part of the job; `None` if `salloc` left it on the login node.
    pub here: Option<String>,
}

impl Allocation {
    /// Reads the variables that salloc, sbatch and srun set. `None` outside of a job, or if they contradict each
    /// other.
    pub(crate) fn of_slurm(var: &dyn Fn(&str) -> Option<String>) -> Option<Allocation> {
        let job = var("SLURM_JOB_ID").filter(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))?;
        let names = expand(&var("SLURM_JOB_NODELIST").or_else(|| var("SLURM_NODELIST"))?)?;
        let cpus = counts(&var("SLURM_JOB_CPUS_PER_NODE")?)?;
        // The last count is that of all further nodes.
        let count = |at: usize| cpus.get(at).or(cpus.last()).copied().unwrap_or(1);
        let nodes: Vec<(String, u32)> = names.into_iter().enumerate().map(|(at, name)| (name, count(at))).collect();
        let here = var("SLURMD_NODENAME").filter(|own| nodes.iter().any(|(name, _)| name == own));
        Some(Allocation { job, nodes, here })
    }
}

/// Returns the names in Slurm's own order, which the counts follow.
pub(crate) fn expand(list: &str) -> Option<Vec<String>> {
    let mut depth = 0;
    let parts = list.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    let mut names = Vec::new();
    for part in parts.collect::<Vec<_>>() {
        names.extend(NodeSet::parse(part).ok()?.iter().map(String::from));
    }
    (!names.is_empty()).then_some(names)
}

/// Parses counts: `2(x3),1` is 2, 2, 2, 1.
fn counts(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (count, times) = part.split_once("(x").unwrap_or((part, "1)"));
        let times: usize = times.strip_suffix(')')?.parse().ok()?;
        all.extend(std::iter::repeat_n(count.parse::<u32>().ok()?, times.min(1 << 20)));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Option<Allocation> {
        Allocation::of_slurm(&|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
    }

    #[test]
    fn counts_follow_the_list() {
        let found = read(&[
            ("SLURM_JOB_ID", "17"),
            ("SLURM_JOB_NODELIST", "z[2,9-10],a1"),
            ("SLURM_JOB_CPUS_PER_NODE", "2(x2),8,1"),
            ("SLURMD_NODENAME", "z9"),
        ]);
        let nodes = [("z2", 2), ("z9", 2), ("z10", 8), ("a1", 1)].map(|(n, c)| (n.to_string(), c)).to_vec();
        assert_eq!(found, Some(Allocation { job: "17".into(), nodes, here: Some("z9".into()) }));
    }

    #[test]
    fn outside_and_half_told() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("SLURM_JOB_ID", "1"), ("SLURM_JOB_NODELIST", "n1")]), None);
        let list = [("SLURM_JOB_NODELIST", "n1"), ("SLURM_JOB_CPUS_PER_NODE", "x")];
        assert_eq!(read(&[&[("SLURM_JOB_ID", "1")], &list[..]].concat()), None);
        assert_eq!(read(&[&[("SLURM_JOB_ID", "--x")], &list[..]].concat()), None);
    }
}
