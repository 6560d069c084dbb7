//! Links runs to the jobs of a queue in which they run: a file in the folder of a run names its job.

use crate::list::{first_event, label_of, live, names};
use std::fs;
use std::io;
use std::path::Path;

/// Name of the file.
const FILE: &str = "job";
/// The clock of a machine may be set back between the start of a job and that of its run, by this much, ns.
const SLACK_NS: i64 = 5_000_000_000;

/// Notes in the folder of a run that it is a part of a job. `job`: its number on `host`, `12`, or `12[3]` of an array.
pub fn note_job(dir: &Path, host: &str, job: &str) -> io::Result<()> {
    homing_os::folder::write_file(&dir.join(FILE), text(host, job))
}

fn text(host: &str, job: &str) -> String {
    format!("{job} {host}\n")
}

/// Returns the names of the runs below `root` that began in a job on `host`, the newest first. `since_ns` is the start
/// of the job, ns since 1970: another job may have had its number before.
pub fn runs_of_job(root: &Path, host: &str, job: &str, since_ns: i64) -> Vec<String> {
    let text = text(host, job);
    let is_its = |name: &String| {
        let dir = root.join(name);
        fs::read(dir.join(FILE)).is_ok_and(|noted| noted == text.as_bytes())
            && first_event(&dir).is_some_and(|event| event.at_ns >= since_ns.saturating_sub(SLACK_NS))
    };
    names(root).into_iter().filter(is_its).collect()
}

/// Returns the name of the one run below `root` that goes on and is no part of a job, the user's name if it has one.
/// `None` if there is none, or more than one.
pub fn single_live(root: &Path) -> Option<String> {
    let mut alone = live(root).into_iter().filter(|dir| !dir.join(FILE).exists());
    let (dir, None) = (alone.next()?, alone.next()) else { return None };
    label_of(&dir).or_else(|| Some(dir.file_name()?.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Journal;
    use homing_model::event::{Event, EventKind};

    #[test]
    fn the_runs_of_a_job_are_found_by_its_number_host_and_time() {
        let root = tempfile::tempdir().unwrap();
        let run = |at_ns: i64, job: Option<&str>| {
            let mut journal = Journal::create_anew(root.path(), at_ns, 1).unwrap();
            journal.append(&Event { at_ns, what: EventKind::RunResumed { host: "n1".into(), pid: 1 } }).unwrap();
            journal.flush().unwrap();
            job.iter().for_each(|job| note_job(journal.dir(), "n1", job).unwrap());
            journal
        };
        let day = 86_400_000_000_000;
        let all = [run(day, Some("12")), run(2 * day, Some("12")), run(3 * day, Some("12[3]")), run(4 * day, None)];
        let name = |at: usize| all[at].run();
        let of = |host, job, since| runs_of_job(root.path(), host, job, since);
        assert_eq!(of("n1", "12", 2 * day), [name(1)]);
        assert_eq!(of("n1", "12", 0), [name(1), name(0)]);
        assert_eq!((of("n2", "12", 0), of("n1", "12[3]", 0)), (vec![], vec![name(2)]));
        assert_eq!(single_live(root.path()), Some(name(3)));
        let _second = run(5 * day, None);
        assert_eq!(single_live(root.path()), None);
    }
}
