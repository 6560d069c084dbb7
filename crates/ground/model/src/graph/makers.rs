//! The names of tasks and the files that they make, for the tasks known so far.

use crate::{RawText, TaskId};
use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

/// A task with its line number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// Its number.
    pub task: TaskId,
    /// The line, from 1.
    pub line: u64,
}

/// How a task names another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Other {
    /// By its name.
    Name(RawText),
    /// By its number.
    Number(TaskId),
}

/// A conflict between two tasks.
#[derive(Debug, PartialEq, Eq)]
pub enum Clash {
    /// Both have this name.
    Name(RawText, Maker),
    /// Both make this file.
    Output(RawText, Maker),
}

/// The named task does not exist.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownTask(pub Other);

/// The names and outputs of the known tasks.
#[derive(Debug, Default)]
pub struct Makers {
    names: HashMap<RawText, Maker>,
    made: BTreeMap<RawText, Maker>,
    last: TaskId,
    /// Whether a later task may make a file again.
    anew: bool,
}

impl Makers {
    /// For tasks that come one after another: the last maker of a file is its maker for the tasks that follow.
    pub fn of_a_stream() -> Makers {
        Makers { anew: true, ..Makers::default() }
    }

    /// Adds a task; outputs are absolute.
    pub fn add<'a>(
        &mut self,
        maker: Maker,
        name: Option<&RawText>,
        outputs: impl Iterator<Item = &'a Path>,
    ) -> Result<(), Clash> {
        self.last = self.last.max(maker.task);
        if let Some(name) = name
            && let Some(first) = self.names.insert(name.clone(), maker)
        {
            return Err(Clash::Name(name.clone(), first));
        }
        for output in outputs.map(plain) {
            match self.made.insert(output.clone(), maker) {
                Some(first) if first.task != maker.task && !self.anew => return Err(Clash::Output(output, first)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the numbers of the known tasks that must have ended before `task` runs, in ascending order.
    pub fn needs<'a>(
        &self,
        task: TaskId,
        after: &[Other],
        inputs: impl Iterator<Item = &'a Path>,
    ) -> Result<Vec<TaskId>, UnknownTask> {
        let named = |other: &Other| self.named(other).ok_or_else(|| UnknownTask(other.clone()));
        let mut needs = after.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        // A task that waits for itself by name is a mistake; a task that changes a file in place is not.
        for input in inputs.map(plain) {
            needs.extend(self.making(&input).filter(|maker| *maker != task));
        }
        needs.sort_unstable();
        needs.dedup();
        Ok(needs)
    }

    /// Returns the name of a task, if it has one. Searches through all names.
    pub fn name(&self, task: TaskId) -> Option<&RawText> {
        self.names.iter().find(|(_, maker)| maker.task == task).map(|(name, _)| name)
    }

    fn named(&self, other: &Other) -> Option<TaskId> {
        match other {
            Other::Name(name) => self.names.get(name).map(|maker| maker.task),
            Other::Number(number) => (1..=self.last).contains(number).then_some(*number),
        }
    }

    /// Returns the makers of the file, of a folder that contains it, or of something in it.
    fn making(&self, input: &RawText) -> impl Iterator<Item = TaskId> {
        let path = input.to_path();
        let holders = path.ancestors().filter_map(|folder| self.made.get(&RawText::from(folder)));
        let mut within = input.clone();
        within.0.push(b'/');
        let parts = self.made.range(within.clone()..).take_while(|(path, _)| path.0.starts_with(&within.0));
        holders.chain(parts.map(|(_, maker)| maker)).map(|maker| maker.task).collect::<Vec<_>>().into_iter()
    }
}

/// Normalizes a path by its text alone, so that `a/./b`, `a//b` and `a/c/../b` are equal.
pub fn plain(path: &Path) -> RawText {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain.as_path().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Makers {
        let mut makers = Makers::default();
        makers.add(Maker { task: 1, line: 1 }, Some(&"cut".into()), ["/d/parts"].iter().map(Path::new)).unwrap();
        makers.add(Maker { task: 2, line: 4 }, None, ["/d/out/a", "/d/out/b"].iter().map(Path::new)).unwrap();
        makers
    }

    fn needs(after: &[Other], inputs: &[&str]) -> Result<Vec<TaskId>, UnknownTask> {
        known().needs(3, after, inputs.iter().map(Path::new))
    }

    #[test]
    fn a_file_is_made_by_who_makes_it_its_folder_or_what_lies_in_it() {
        assert_eq!(needs(&[], &["/d/out/a"]), Ok(vec![2]));
        assert_eq!(needs(&[], &["/d/parts/7"]), Ok(vec![1]));
        assert_eq!(needs(&[], &["/d/out"]), Ok(vec![2]));
        assert_eq!(needs(&[], &["/d/./x/..//out/a", "/d/parts"]), Ok(vec![1, 2]));
        assert_eq!(needs(&[], &["/d/ou", "/d/out/ab", "/d/parts.txt"]), Ok(vec![]));
    }

    #[test]
    fn others_are_named_by_name_or_number() {
        assert_eq!(needs(&[Other::Name("cut".into()), Other::Number(2)], &[]), Ok(vec![1, 2]));
        for other in [Other::Name("cat".into()), Other::Number(0), Other::Number(3)] {
            assert_eq!(needs(std::slice::from_ref(&other), &[]), Err(UnknownTask(other)));
        }
    }

    #[test]
    fn in_a_stream_a_file_may_be_made_anew() {
        let mut makers = Makers::of_a_stream();
        let out = || ["/d/out"].iter().map(Path::new);
        makers.add(Maker { task: 1, line: 1 }, None, out()).unwrap();
        assert_eq!(makers.needs(2, &[], out()), Ok(vec![1]));
        makers.add(Maker { task: 3, line: 3 }, None, out()).unwrap();
        assert_eq!(makers.needs(4, &[], out()), Ok(vec![3]));
    }

    #[test]
    fn a_name_and_an_output_belong_to_one_task() {
        let mut makers = known();
        let third = Maker { task: 3, line: 5 };
        let name = makers.add(third, Some(&"cut".into()), std::iter::empty());
        assert_eq!(name, Err(Clash::Name("cut".into(), Maker { task: 1, line: 1 })));
        let output = makers.add(third, None, ["/d/out/./b"].iter().map(Path::new));
        assert_eq!(output, Err(Clash::Output("/d/out/b".into(), Maker { task: 2, line: 4 })));
        assert!(makers.add(third, None, ["/d/z", "/d/z"].iter().map(Path::new)).is_ok(), "said twice by one task");
    }
}
