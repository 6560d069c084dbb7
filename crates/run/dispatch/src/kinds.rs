//! Kinds of commands, and which of them move bytes. Commands that begin with the same word are of one kind. A task
//! without named inputs does not show in advance whether it moves bytes: earlier tasks of its kind do.

use homing_model::Command;
use homing_place::MOST_KINDS;

/// The bytes from which a task counts as moving. Less is not worth a limit: a head streams as much in the time of one
/// seek, 8 ms.
const MUCH: u64 = 1 << 20;
/// The bytes of its own files that a program reads when it starts. Read calls do not distinguish them from its data.
const ITSELF: u64 = 4 << 20;
/// After so many tasks in a row that moved little, a kind does not count any more. Thus a kind that writes now and
/// then does not change back and forth.
const IN_A_ROW: u32 = 10;

/// The bytes that a task has moved so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    /// Bytes of block devices.
    pub disk: u64,
    /// Bytes by read calls.
    pub read: u64,
    /// Bytes by write calls.
    pub written: u64,
}

impl Moved {
    /// Whether that is much, for a task that has printed so many bytes. The clients of most network file systems have
    /// no block device. There only the calls show it, including calls on pipes.
    pub fn is_much(self, printed: u64, network: bool) -> bool {
        let calls = network && (self.written.saturating_sub(printed) >= MUCH || self.read >= MUCH + ITSELF);
        self.disk >= MUCH || calls
    }
}

#[derive(Debug)]
struct TaskKind {
    name: Vec<u8>,
    /// The number of its tasks in a row that moved little; `None` before the first is known.
    idle: Option<u32>,
    counts: bool,
}

/// The kinds of a run.
#[derive(Debug)]
pub(crate) struct Kinds {
    kinds: Vec<TaskKind>,
    last: usize,
    presumed: bool,
}

impl Kinds {
    /// `known` are the kinds that moved bytes in an earlier run. Whether the others move bytes is `presumed` until it
    /// is seen.
    pub fn new(known: &[String], presumed: bool) -> Kinds {
        let kind = |name: &String| TaskKind { name: name.clone().into_bytes(), idle: Some(0), counts: true };
        // The last place is for all kinds that cannot be distinguished any more.
        let kinds = known.iter().take(usize::from(MOST_KINDS) - 1).map(kind).collect();
        Kinds { kinds, last: 0, presumed }
    }

    /// Returns the kind of a command.
    pub fn of(&mut self, command: &Command) -> u8 {
        let name = first_word(command);
        if self.kinds.get(self.last).is_none_or(|kind| kind.name != name) {
            self.last = self.kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| self.add(name));
        }
        self.last as u8
    }

    fn add(&mut self, name: &[u8]) -> usize {
        if self.kinds.len() < usize::from(MOST_KINDS) {
            self.kinds.push(TaskKind { name: name.to_vec(), idle: None, counts: self.presumed });
        }
        self.kinds.len() - 1
    }

    /// Whether tasks of this kind count at the storage where they run.
    pub fn counts(&self, kind: u8) -> bool {
        self.kinds[usize::from(kind)].counts
    }

    /// Whether unknown kinds count.
    pub fn presumes(&self) -> bool {
        self.presumed
    }

    /// From now on, unknown kinds do not count. Returns the kinds for which that is a change.
    pub fn presume_no_more(&mut self) -> Vec<u8> {
        self.presumed = false;
        let unseen = (0u8..).zip(&mut self.kinds).filter(|(_, kind)| kind.idle.is_none() && kind.counts);
        let change = |(at, kind): (u8, &mut TaskKind)| {
            kind.counts = false;
            at
        };
        unseen.map(change).collect()
    }

    /// Whether it is unknown if this kind moves bytes.
    pub fn is_unknown(&self, kind: u8) -> bool {
        self.kinds[usize::from(kind)].idle.is_none()
    }

    /// Records that another task moved much or did not. Returns whether that changes if the kind counts.
    pub fn record_moved(&mut self, kind: u8, much: bool) -> bool {
        let kind = &mut self.kinds[usize::from(kind)];
        let idle = match (much, kind.idle) {
            (true, _) => 0,
            (false, None) => IN_A_ROW,
            (false, Some(idle)) => idle.saturating_add(1),
        };
        kind.idle = Some(idle);
        let counts = idle < IN_A_ROW;
        std::mem::replace(&mut kind.counts, counts) != counts
    }

    /// Returns the name for users.
    pub fn name(&self, kind: u8) -> String {
        String::from_utf8_lossy(&self.kinds[usize::from(kind)].name).into_owned()
    }

    /// Returns the kinds that were seen to move bytes.
    pub fn movers(&self) -> Vec<String> {
        let seen = (0..self.kinds.len()).filter(|k| self.kinds[*k].counts && self.kinds[*k].idle.is_some());
        seen.map(|kind| self.name(kind as u8)).collect()
    }
}

fn first_word(command: &Command) -> &[u8] {
    match command {
        Command::Argv(words) => words.first().map_or(&[], |word| word.0.as_slice()),
        Command::Shell(line) => {
            // Only the leading name: `f=1;` and `f=2;` begin the same command.
            let named = |b: &u8| b.is_ascii_alphanumeric() || b"_./+-".contains(b) || !b.is_ascii();
            let line = line.0.trim_ascii_start();
            &line[..line.iter().position(|b| !named(b)).unwrap_or(line.len())]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        Command::Shell(line.into())
    }

    #[test]
    fn the_first_word_tells_the_kind_and_the_rest_share_one() {
        let mut kinds = Kinds::new(&["tar".into()], false);
        let (tar, dd) = (kinds.of(&shell(" tar xf a")), kinds.of(&shell("dd\tif=a")));
        assert!((tar, dd) == (0, 1) && kinds.counts(tar) && !kinds.counts(dd));
        assert_eq!(kinds.of(&Command::Argv(vec!["dd".into(), "if=b".into()])), dd);
        assert_eq!(kinds.of(&shell("tar")), tar);
        assert_eq!(kinds.of(&shell("dd;tar")), dd);
        let others: Vec<u8> = (0..40).map(|n| kinds.of(&shell(&format!("./{n}.sh x")))).collect();
        assert_eq!((others[0], others[13], others[14], others[39]), (2, 15, 15, 15));
        assert_eq!(kinds.of(&shell("")), 15);
    }

    #[test]
    fn what_was_seen_once_counts_until_ten_in_a_row_move_nothing() {
        let mut kinds = Kinds::new(&[], false);
        let dd = kinds.of(&shell("dd"));
        assert!(kinds.is_unknown(dd) && kinds.record_moved(dd, true) && kinds.movers() == ["dd"]);
        let told: Vec<bool> = (0..12).map(|_| kinds.record_moved(dd, false)).collect();
        assert_eq!(told.iter().position(|changed| *changed), Some(9), "the tenth in a row");
        assert!(!kinds.counts(dd) && kinds.record_moved(dd, true));
    }

    #[test]
    fn what_is_presumed_holds_until_the_first_is_known() {
        let mut kinds = Kinds::new(&[], true);
        let sleep = kinds.of(&shell("sleep 1"));
        assert!(kinds.counts(sleep) && kinds.movers().is_empty());
        assert!(kinds.record_moved(sleep, false) && !kinds.counts(sleep));
    }

    #[test]
    fn calls_are_bytes_only_where_no_device_tells() {
        let pipes = Moved { disk: 0, read: 1 << 30, written: 1 << 30 };
        assert!(!pipes.is_much(0, false) && pipes.is_much(0, true));
        assert!(Moved { disk: MUCH, ..Moved::default() }.is_much(0, false));
        let prints = Moved { written: 5 << 20, read: MUCH, ..Moved::default() };
        assert!(!prints.is_much(5 << 20, true) && prints.is_much(4 << 20, true));
    }
}
