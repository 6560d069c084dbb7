//! The keeper's end: a channel to the host, and the news that come back over it.

use super::{BEAT, RemoteJobMessage, Word};
use homing_launch::wire::{MAX_FRAME, lines};
use std::io::{self, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A channel to a host.
pub(crate) struct Far {
    child: Child,
    words: Sender<Word>,
    news: Receiver<RemoteJobMessage>,
}

impl Far {
    /// Opens it and sends the job.
    pub fn open(mut command: Command, job: Word) -> io::Result<Far> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("its pipes are missing"));
        };
        let (words, told) = channel();
        let (tell, news) = channel();
        let _ = words.send(job);
        homing_os::threads::begin(move || speak(to, &told))?;
        homing_os::threads::begin(move || forward_messages(from, &tell))?;
        Ok(Far { child, words, news })
    }

    /// Sends an order. A host that has gone needs none.
    pub fn order(&self, word: Word) {
        let _ = self.words.send(word);
    }

    /// Returns the next news within a time. The error means that no more will come.
    pub fn next(&self, within: Duration) -> Result<Option<RemoteJobMessage>, ()> {
        match self.news.recv_timeout(within) {
            Ok(news) => Ok(Some(news)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn speak(mut to: ChildStdin, words: &Receiver<Word>) {
    loop {
        let line = match words.recv_timeout(BEAT) {
            Ok(word) => serde_json::to_vec(&word).unwrap_or_default(),
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if to.write_all(&[&line[..], b"\n"].concat()).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn forward_messages(from: ChildStdout, news: &Sender<RemoteJobMessage>) {
    let mut from = BufReader::new(from);
    while let Ok(Some(line)) = lines::next(&mut from, MAX_FRAME) {
        // Unreadable news come from a newer version and change nothing here.
        let Ok(what) = serde_json::from_slice(&line) else { continue };
        if news.send(what).is_err() {
            return;
        }
    }
}
