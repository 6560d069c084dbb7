//! Reads how many copies files are to have, as `mfsgetgoal` prints it (MooseFS 3.0.117).

use crate::observe::{HostFacts, MountPoint, Observed};
use crate::spec::Spec;
use crate::step::words;

/// The present goals of the files below a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goals {
    /// Number of files by goal.
    by_goal: Vec<(u64, u64)>,
    /// Names of storage classes that are no plain goal.
    classes: Vec<String>,
}

/// Returns the command that prints the goals, for [`client`].
pub fn question(path: &str) -> Vec<String> {
    words(&["mfsgetgoal", "-r", path])
}

/// Returns a host that answers and has the volume mounted.
pub fn client(spec: &Spec, seen: &Observed) -> Option<String> {
    spec.clients.iter().find(|c| seen.host(c).is_some_and(|f| f.point == MountPoint::Ours)).cloned()
}

/// Reads the answer to [`question`]; `None` if it contains no counts.
pub fn read(text: &str) -> Option<Goals> {
    let (mut goals, mut counted) = (Goals::default(), false);
    for line in text.lines() {
        let Some((what, count)) = line.rsplit_once(':') else { continue };
        let Ok(count) = count.trim().parse() else { continue };
        counted = true;
        let what = what.trim();
        if let Some(goal) = what.strip_prefix("files with goal").and_then(|g| g.trim().parse().ok()) {
            goals.by_goal.push((goal, count));
        } else if let Some(class) = what.strip_prefix("files with storage class") {
            goals.classes.push(class.trim().trim_matches('\'').to_string());
        }
    }
    // For a folder without files, only the folders are counted.
    counted.then_some(goals)
}

impl Goals {
    /// Describes the copies that would be lost if all files had `copies`; `None` if none.
    pub(crate) fn given_up(&self, copies: u32) -> Option<String> {
        let more: Vec<String> = (self.by_goal.iter().filter(|(goal, files)| *goal > u64::from(copies) && *files > 0))
            .map(|(goal, files)| format!("{files} files with {goal} copies"))
            .chain(self.classes.iter().map(|class| format!("some files of the storage class {class}")))
            .collect();
        (!more.is_empty()).then(|| more.join(", "))
    }
}

/// Returns the goal of the volume's root as a host sees it, a number or the name of a storage class. `None` if it is
/// not mounted there, or its master does not answer.
pub(crate) fn told_of_root(facts: &HostFacts) -> Option<&str> {
    facts.texts.get("goal")?.trim().rsplit_once(": ").map(|(_, told)| told)
}

/// Returns the goal of the volume's root; `None` also for a storage class that is no plain goal.
pub(crate) fn of_root(facts: &HostFacts) -> Option<u32> {
    told_of_root(facts)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_and_compared() {
        let text = "/data:\n files with goal                2 :          2\n files with goal                3 :          3\n \
            files with storage class       'my class' :          1\n directories with goal          9 :          2\n";
        let goals = read(text).unwrap();
        assert_eq!(goals.given_up(2).unwrap(), "3 files with 3 copies, some files of the storage class my class");
        assert_eq!(
            goals.given_up(1).unwrap(),
            "2 files with 2 copies, 3 files with 3 copies, some files of the storage class my class"
        );
        let empty = read("/data/new:\n directories with goal          3 :          1\n").unwrap();
        assert_eq!(empty.given_up(1), None);
        assert_eq!(read("/data/new: no such file"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_name_with_colons_does_not_hide_the_goal() {
        let facts =
            |text: &str| HostFacts { texts: [("goal".to_string(), text.to_string())].into(), ..HostFacts::default() };
        assert_eq!(of_root(&facts("/data: 2\n")), Some(2));
        assert_eq!(of_root(&facts("/data: 'fast'\n")), None);
        assert_eq!(of_root(&facts("")), None);
    }
}
