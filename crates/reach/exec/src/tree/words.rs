//! The messages between the two ends of a branch: lines of JSON.

use super::Errand;
use crate::{CommandOutcome, InputSpool, Options};
use homing_launch::wire::lines;
use homing_model::RawText;
use homing_os::threads::lock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, ErrorKind, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Most bytes of a line: a piece of output has 32 KiB, of which each byte may be written as six.
const LONGEST: usize = 1 << 20;

/// The request to a leader, in its first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaderRequest<E> {
    pub errand: E,
    pub width: usize,
    /// The hosts of the branch; the leader itself comes first.
    pub hosts: Vec<String>,
    pub fan_out: usize,
    pub connect_timeout: Duration,
    pub command_timeout: Option<Duration>,
    /// Whether standard input for the hosts follows.
    pub reads: bool,
}

impl<E: Errand> LeaderRequest<E> {
    pub fn new(errand: E, hosts: Vec<String>, options: &Options) -> LeaderRequest<E> {
        let Options { tree: width, fan_out, connect_timeout, command_timeout, .. } = *options;
        let reads = errand.input().is_some();
        LeaderRequest { errand, width, hosts, fan_out, connect_timeout, command_timeout, reads }
    }
}

/// The messages to a leader after the request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LeaderCommand {
    /// Its folder is complete.
    Go,
    /// The number of input bytes that follow this line; 0 for the end of the input.
    Input(usize),
}

/// The messages of a leader. Hosts are numbers in its branch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LeaderMessage {
    /// The folder for the data to pass on.
    Folder(String),
    /// A sign of life, with the hosts that have answered the leader and still work.
    Alive(Vec<usize>),
    Begun(usize),
    Out(usize, RawText),
    Err(usize, RawText),
    Done(usize, CommandOutcome, Duration),
    /// A line for the user.
    Note(String),
    /// The last message.
    End,
}

/// The channel to a leader, shared by the threads that write to it.
#[derive(Clone)]
pub(super) struct Mouth(Arc<Mutex<Box<dyn Write + Send>>>);

impl Mouth {
    pub fn new(to: Box<dyn Write + Send>) -> Mouth {
        Mouth(Arc::new(Mutex::new(to)))
    }

    pub fn send_message(&self, what: &impl Serialize, bytes: &[u8]) -> io::Result<()> {
        let mut to = lock(&self.0);
        lines::write_message(&mut **to, what, bytes)
    }
}

/// Writes input for the hosts.
impl Write for Mouth {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_message(&LeaderCommand::Input(bytes.len()), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the input for the hosts into `to`, until the end of the input or of the channel. Returns false for the
/// latter.
pub(super) fn take_input(from: &mut impl BufRead, to: Option<&InputSpool>) -> io::Result<bool> {
    let mut bytes = Vec::new();
    loop {
        match (receive_message::<LeaderCommand>(from)?, to) {
            (None, _) => return Ok(false),
            (Some(LeaderCommand::Input(0)), Some(to)) => {
                to.end();
                return Ok(true);
            }
            (Some(LeaderCommand::Input(size)), Some(to)) if size <= LONGEST => {
                bytes.resize(size, 0);
                from.read_exact(&mut bytes)?;
                to.append(&bytes)?;
            }
            _ => return Err(io::Error::new(ErrorKind::InvalidData, "nothing was to be read")),
        }
    }
}

pub(super) fn send_message(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    lines::write_message(to, what, &[])
}

/// Reads the next message; `None` at the end of the channel.
pub(super) fn receive_message<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    Ok(lines::next(from, LONGEST)?.map(|line| serde_json::from_slice(&line)).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_known_words_are_read() {
        let heard = |text: &str| receive_message::<LeaderMessage>(&mut text.as_bytes()).map_err(|e| e.kind());
        assert!(matches!(heard("{\"begun\":3}\n"), Ok(Some(LeaderMessage::Begun(3)))));
        assert!(matches!(
            heard("{\"done\":[1,{\"exited\":0},{\"secs\":1,\"nanos\":0}]}\n"),
            Ok(Some(LeaderMessage::Done(1, ..)))
        ));
        assert!(matches!(heard(""), Ok(None)));
        for odd in ["\"end\"", "{\"begun\":-1}\n", "{\"begun\":1,\"done\":2}\n", "{\"ran\":1}\n", "\n", "end\n"] {
            assert!(heard(odd).is_err(), "{odd:?}");
        }
        let long = format!("{{\"note\":\"{}\"}}\n", "x".repeat(LONGEST));
        assert!(heard(&long).is_err());
    }

    #[test]
    fn what_is_to_be_read_ends_when_that_is_said_and_not_before() {
        let taken = |text: &str| {
            let spool = InputSpool::empty(&std::env::temp_dir()).unwrap();
            let whole = take_input(&mut text.as_bytes(), Some(&spool));
            let mut read = Vec::new();
            let ended = spool.feed(&mut read, &true.into());
            (whole.ok(), ended, String::from_utf8(read).unwrap())
        };
        let two = "{\"input\":3}\nab\n{\"input\":2}\n{}";
        assert_eq!(taken(&format!("{two}{{\"input\":0}}\n")), (Some(true), true, "ab\n{}".into()));
        assert_eq!(taken(two), (Some(false), false, "ab\n{}".into()), "the channel has ended");
        assert_eq!(taken("{\"input\":9}\nabc"), (None, false, String::new()));
        assert_eq!(taken("{\"input\":9999999}\n").0, None);
        assert!(take_input(&mut "{\"input\":0}\n".as_bytes(), None).is_err());
    }
}
