//! The host's end of the channel: runs a job of another machine as a job of this host's own queue.

use super::{RemoteJobMessage, SILENCE, Word};
use crate::engine::Engine;
use crate::job::{JobEnd, Origin};
use crate::process::ProcessIdentity;
use crate::{ElementState, Job, JobElement, QueueError};
use homing_model::RawText;
use homing_os::names::{VariableOrigin, origin_of_work};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The file in the folder of a job that is a share: with it the job may start.
pub(crate) const GO: &str = "go.json";
/// The pause between two looks at the job.
const LOOK: Duration = Duration::from_millis(50);
/// The pause between two looks at why it waits, which read the load.
const REASON: Duration = Duration::from_secs(1);
/// Output that is sent at once, bytes.
const PIECE: u64 = 256 << 10;

/// Submits the job in the first line of `orders`, reports its course and carries orders out until its end. The job
/// ends when the orders end, because then no keeper answers for it.
pub fn serve(
    engine: &dyn Engine,
    orders: impl BufRead + Send + 'static,
    news: &mut dyn Write,
) -> Result<(), QueueError> {
    let (to, words) = channel();
    let listener = homing_os::threads::begin(move || listen(orders, &to));
    listener.map_err(|e| QueueError::Program(e.to_string()))?;
    let Ok(Some(Word::Job(asked, id, index))) = words.recv() else {
        return Err(QueueError::Request("received no job over the connection".into()));
    };
    let (mut spec, mut private) = *asked;
    private.env = at_home(private.env, std::env::vars_os());
    if let Some(why) = refusal(engine, &spec.queue)? {
        return send_message(news, &RemoteJobMessage::Refused(why));
    }
    spec.origin = Some(Origin { id, index, process: ProcessIdentity::own() });
    let id = engine.submit(&spec, &private)?;
    let followed = Follower { engine, id, news, sent: SentNews::default(), counts_from: None }.follow(&words);
    if followed.is_err() {
        let _ = engine.job(id).and_then(|job| engine.kill(&job, None, None));
    }
    followed
}

/// Returns the environment of a job from another machine, with the login's variables of this host.
fn at_home(
    mut env: Vec<(RawText, RawText)>,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(RawText, RawText)> {
    let of_login = |name: &OsStr| origin_of_work(name) == VariableOrigin::Login;
    env.retain(|(name, _)| !of_login(name.as_os()));
    env.extend(own.filter(|(name, _)| of_login(name)).map(|(name, value)| (name.into(), value.into())));
    env
}

/// Passes words on; `None` is a sign of life.
fn listen(orders: impl BufRead, to: &std::sync::mpsc::Sender<Option<Word>>) {
    for line in orders.lines().map_while(Result::ok) {
        let word = serde_json::from_str(&line).ok();
        // An unreadable line comes from a newer version and is no order to this one.
        if to.send(word).is_err() {
            return;
        }
    }
}

/// Returns why the queue of this host does not take the job.
fn refusal(engine: &dyn Engine, queue: &str) -> Result<Option<String>, QueueError> {
    let config = engine.config()?;
    let host = crate::host_name();
    let known: Vec<&str> = config.queues.keys().map(String::as_str).collect();
    Ok(match config.queues.get(queue) {
        None => Some(format!("{host} has no queue {queue}; its queues: {}", known.join(", "))),
        Some(_) => config.refuses(queue, crate::uid()).map(|why| format!("queue {queue} on {host}: {why}")),
    })
}

/// Returns the line of a host that could not be reached, for the job's keeper.
pub fn unasked(why: &str) -> Vec<u8> {
    let line = serde_json::to_vec(&RemoteJobMessage::Waits(why.into())).unwrap_or_default();
    [line, b"\n".to_vec()].concat()
}

fn send_message(news: &mut dyn Write, what: &RemoteJobMessage) -> Result<(), QueueError> {
    let sent = homing_launch::wire::lines::write_message(news, what, &[]);
    sent.map_err(|e| QueueError::Program(format!("the sender of the job has ended: {e}")))
}

/// The news that were sent.
#[derive(Default)]
struct SentNews {
    reason: Option<(String, Instant)>,
    started: bool,
    loaded: Option<String>,
    /// Bytes of standard output and standard error that were sent.
    streams: [u64; 2],
}

struct Follower<'a> {
    engine: &'a dyn Engine,
    id: u64,
    news: &'a mut dyn Write,
    sent: SentNews,
    /// Bytes that this host had received when the job started.
    counts_from: Option<u64>,
}

impl Follower<'_> {
    fn follow(&mut self, words: &Receiver<Option<Word>>) -> Result<(), QueueError> {
        let (mut heard, mut rounds) = (Instant::now(), 0u32);
        loop {
            let job = self.engine.job(self.id)?;
            let Some(part) = job.parts.first() else { return Err(QueueError::NotFound(self.id.to_string())) };
            if self.look(&job, part)? {
                return Ok(());
            }
            // A runner may have been killed meanwhile; without one the job would never start.
            rounds += 1;
            if rounds.is_multiple_of(100) {
                self.engine.tend()?;
            }
            match words.recv_timeout(LOOK) {
                Ok(word) => {
                    heard = Instant::now();
                    word.map_or(Ok(()), |word| self.obey(&job, &word))?;
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < SILENCE => {}
                Err(_) => return Err(QueueError::Program("the sender of the job has ended".into())),
            }
        }
    }

    fn obey(&mut self, job: &Job, word: &Word) -> Result<(), QueueError> {
        match word {
            Word::Job(..) => Ok(()),
            Word::Count => {
                self.counts_from = Some(received());
                Ok(())
            }
            Word::Stop(stop) => self.engine.stop(job, None, *stop),
            Word::Signal(signal) => self.engine.kill(job, None, Some(*signal)),
            Word::Go => {
                let path = job.dir.join(GO);
                crate::files::write_json(&path, &true, 0o644).map_err(QueueError::io("write", &path))
            }
            Word::End => self.engine.kill(job, None, None),
        }
    }

    /// Sends the news; returns whether the job has ended.
    fn look(&mut self, job: &Job, part: &JobElement) -> Result<bool, QueueError> {
        match &part.start {
            None if !part.state.is_over() => self.reason(job)?,
            None => {}
            Some(start) if !std::mem::replace(&mut self.sent.started, true) => {
                send_message(self.news, &RemoteJobMessage::Started(start.host.clone()))?;
            }
            Some(_) => {}
        }
        if !part.state.is_over() && self.sent.loaded != part.stopped_by {
            self.sent.loaded.clone_from(&part.stopped_by);
            send_message(self.news, &RemoteJobMessage::Loaded(part.stopped_by.clone()))?;
        }
        let over = part.state.is_over();
        self.outputs(job, part, over)?;
        match (&part.end, part.state) {
            (Some(end), ElementState::Done | ElementState::Exit) => {
                let since = self.counts_from.map(|from| (crate::host_name(), received().saturating_sub(from)));
                send_message(
                    self.news,
                    &RemoteJobMessage::Ended(JobEnd { received: since.into_iter().collect(), ..end.clone() }),
                )?;
            }
            (_, ElementState::Lost) => return Err(QueueError::Program("the job was interrupted".into())),
            _ => return Ok(false),
        }
        // The output was sent, and is kept where the job was submitted.
        self.files(job, part).iter().for_each(|path| drop(std::fs::remove_file(path)));
        Ok(true)
    }

    fn reason(&mut self, job: &Job) -> Result<(), QueueError> {
        if self.sent.reason.as_ref().is_some_and(|(_, at)| at.elapsed() < REASON) {
            return Ok(());
        }
        let found = self.engine.reasons(std::slice::from_ref(job))?;
        let text = found.values().next().map_or(String::new(), ToString::to_string);
        let new = self.sent.reason.as_ref().is_none_or(|(sent, _)| *sent != text);
        self.sent.reason = Some((text.clone(), Instant::now()));
        if new { send_message(self.news, &RemoteJobMessage::Waits(text)) } else { Ok(()) }
    }

    fn files(&self, job: &Job, part: &JobElement) -> [PathBuf; 2] {
        ["out", "err"].map(|stream| job.output(part, stream))
    }

    /// Sends the output that is not sent yet: a piece of each file, or all of it at the end.
    fn outputs(&mut self, job: &Job, part: &JobElement, all: bool) -> Result<(), QueueError> {
        for (nth, path) in self.files(job, part).iter().enumerate() {
            loop {
                let piece = piece(path, self.sent.streams[nth]).map_err(QueueError::io("read", path))?;
                if piece.is_empty() {
                    break;
                }
                self.sent.streams[nth] += piece.len() as u64;
                let what = if nth == 0 {
                    RemoteJobMessage::Out(RawText(piece))
                } else {
                    RemoteJobMessage::Err(RawText(piece))
                };
                send_message(self.news, &what)?;
                if !all {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes that this host has received over its interfaces since its boot.
fn received() -> u64 {
    homing_probe::sample().net.values().map(|(received, _)| received).sum()
}

/// Returns the next bytes of a file from an offset; none if the file does not exist.
fn piece(path: &std::path::Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_from_elsewhere_has_the_home_of_the_login_here_and_the_path_of_its_submitter() {
        let sent = [("HOME", "/root"), ("PATH", "/venv/bin"), ("XDG_RUNTIME_DIR", "/run/0"), ("A", "1")];
        let own = [("HOME", "/home/ann"), ("PATH", "/bin"), ("A", "2")];
        let sent = sent.map(|(name, value)| (RawText::from(name), RawText::from(value))).to_vec();
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let all = at_home(sent, own.into_iter());
        let shown: Vec<String> =
            all.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(shown, ["PATH=/venv/bin", "A=1", "HOME=/home/ann"]);
    }
}
