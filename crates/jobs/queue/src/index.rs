//! Load indices of a site's own: a command on each host that prints one number, as LSF's elim did.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A command that runs longer is ended, and its value is unknown.
pub const LIMIT: Duration = Duration::from_secs(10);

/// The table `[index.NAME]` of the cluster file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// A line for /bin/sh on each host. It runs as the user whose jobs wait there.
    pub command: String,
    /// Seconds between two runs of the command.
    #[serde(default = "minute")]
    pub period: u64,
}

fn minute() -> u64 {
    60
}

/// Returns the number that a command has printed; the error quotes other output.
pub fn number(command: &str, output: &[u8]) -> Result<f64, String> {
    let text = String::from_utf8_lossy(output);
    let read = text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let shown: String = text.trim().chars().take(40).collect();
    read.ok_or_else(|| format!("{command:?} printed {shown:?}, which is not a number"))
}

impl Index {
    /// Returns its value on this machine now.
    pub fn read_value(&self) -> Result<f64, String> {
        number(&self.command, &homing_os::process::run_shell(&self.command, LIMIT)?)
    }
}

/// Values of all indices. Each command runs again after its period, in a thread of its own.
pub(crate) struct Answers {
    indices: BTreeMap<String, Index>,
    asked: BTreeMap<String, IndexQuery>,
}

struct IndexQuery {
    at: Instant,
    answer: Option<Receiver<Result<f64, String>>>,
    value: Option<f64>,
    /// The last error that was printed.
    said: Option<String>,
}

impl Answers {
    /// Runs each command once and waits for the values.
    pub fn first(indices: &BTreeMap<String, Index>) -> Answers {
        let mut all = Answers { indices: indices.clone(), asked: BTreeMap::new() };
        for (name, index) in indices {
            all.asked.insert(
                name.clone(),
                IndexQuery { at: Instant::now(), answer: start_query(index), value: None, said: None },
            );
        }
        let begun = Instant::now();
        for (name, asked) in &mut all.asked {
            asked.take(name, (LIMIT + Duration::from_secs(1)).saturating_sub(begun.elapsed()));
        }
        all
    }

    /// Whether these are its indices.
    pub fn are(&self, indices: &BTreeMap<String, Index>) -> bool {
        self.indices == *indices
    }

    /// Returns the known value of each index now.
    pub fn now(&mut self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.asked.iter_mut().map(|(name, asked)| {
            asked.take(name, Duration::ZERO);
            let index = &self.indices[name];
            if asked.answer.is_none() && asked.at.elapsed() >= Duration::from_secs(index.period.max(1)) {
                (asked.at, asked.answer) = (Instant::now(), start_query(index));
            }
            (name.as_str(), asked.value)
        })
    }
}

fn start_query(index: &Index) -> Option<Receiver<Result<f64, String>>> {
    let (tell, answer) = channel();
    let index = index.clone();
    // Without a thread its value stays unknown until the next period.
    homing_os::threads::begin(move || tell.send(index.read_value())).ok().map(|_| answer)
}

impl IndexQuery {
    fn take(&mut self, name: &str, within: Duration) {
        let Some(answer) = self.answer.as_ref().and_then(|answer| answer.recv_timeout(within).ok()) else { return };
        self.answer = None;
        let wrong = answer.as_ref().err().cloned();
        if let Some(why) = wrong.as_ref().filter(|_| wrong != self.said) {
            homing_os::say!("homing: index {name} is unknown on this host: {why}");
        }
        (self.value, self.said) = (answer.ok(), wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(command: &str) -> Index {
        Index { command: command.into(), period: 1 }
    }

    #[test]
    fn a_command_prints_one_number_or_its_value_is_unknown_for_a_reason() {
        assert_eq!(index("echo ' 4.5 '").read_value(), Ok(4.5));
        for (command, why) in [
            ("echo many", "printed \"many\", which is not a number"),
            ("echo 1 2", "printed \"1 2\""),
            ("true", "printed \"\""),
            ("echo nan", "is not a number"),
            ("echo 3; exit 4", "failed: exit status: 4"),
            ("sleep 1000", "did not end within 10 s"),
        ] {
            let told = index(command).read_value().unwrap_err();
            assert!(told.contains(why) && !told.contains('\n'), "{command}: {told}");
        }
        // A process in the background is not waited for.
        assert_eq!(index("setsid sleep 20 & echo 7").read_value(), Ok(7.0));
    }

    #[test]
    fn the_first_answers_are_there_from_the_beginning() {
        let all = [("good", "echo 12"), ("bad", "echo text")];
        let all = all.iter().map(|(name, command)| (name.to_string(), index(command))).collect();
        let mut answers = Answers::first(&all);
        assert_eq!(answers.now().collect::<Vec<_>>(), [("bad", None), ("good", Some(12.0))]);
        assert!(answers.are(&all) && !answers.are(&BTreeMap::new()));
    }
}
