//! The conversation with one stub. It announces the recipe to the coordinator, and reports the end when this host
//! sees the files that the recipe wrote.

use crate::asked::{BuildEvent, RecipeRequest, ToConnection};
use crate::near::{Near, files_of};
use crate::{RecipeWork, missing_files};
use homing_launch::wire::OutputStream;
use homing_launch::wire::stub::{FromStub, ToStub};
use homing_model::{FileChange, Outcome, RawText};
use homing_os::names::VariableOrigin;
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// The most error output that is searched for missing files, bytes.
const SEARCHED: usize = 64 << 10;

/// Serves one stub until its end.
pub fn serve(id: u64, stream: &UnixStream, near: &Arc<Near>, news: &Sender<BuildEvent>) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut from = BufReader::new(reading);
    let Ok(Some(FromStub::Recipe { words, cwd, env, part })) = homing_launch::wire::receive(&mut from) else { return };
    let env = without_login(env, |name| std::env::var_os(name));
    let (signals, end) = (news.clone(), id);
    let listening = homing_os::threads::begin(move || {
        while let Ok(Some(FromStub::Signal(_))) = homing_launch::wire::receive(&mut from) {
            let _ = signals.send(BuildEvent::Stop { id: end });
        }
        let _ = signals.send(BuildEvent::Stop { id: end });
    });
    match listening {
        Ok(_) => end_with(
            stream,
            &converse(RecipeRequest { part, ..RecipeRequest::new(id, words, cwd, env) }, stream, near, news),
        ),
        Err(error) => refuse(stream, &error),
    }
}

/// Returns the environment of a recipe without variables of the login here, because the host that runs it has its
/// own. Variables that the makefile has changed are kept.
fn without_login(
    mut env: Vec<(RawText, RawText)>,
    own: impl Fn(&OsStr) -> Option<OsString>,
) -> Vec<(RawText, RawText)> {
    env.retain(|(name, value)| match homing_os::names::origin_of_work(name.as_os()) {
        VariableOrigin::Login => own(name.as_os()).is_none_or(|own| own != value.as_os()),
        VariableOrigin::Submitter | VariableOrigin::Nobody => true,
    });
    env
}

/// Reports to a stub that its recipe does not run, and why.
pub fn refuse(stream: &UnixStream, error: &std::io::Error) {
    end_with(stream, &ToStub::Failed(format!("cannot run this recipe: {error}")));
}

fn end_with(mut stream: &UnixStream, last: &ToStub) {
    let _ = homing_launch::wire::send(&mut stream, last);
    let _ = stream.flush();
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Runs the recipe and returns the last message to the stub.
fn converse(mut asked: RecipeRequest, stream: &UnixStream, near: &Near, news: &Sender<BuildEvent>) -> ToStub {
    let cwd = asked.cwd.to_path();
    let step = RecipeWork::of(&asked.text);
    // Done first, because other connections would wait for later looks.
    let files = match files_of(&asked.text, &cwd, step) {
        Ok(files) => files,
        Err(silent) => return ToStub::Failed(silent),
    };
    near.notice(&cwd);
    asked.mount = near.shared_mount(&cwd);
    asked.step = step;
    asked.inputs = near.inputs(files);
    asked.folders = near.folders(&asked.text, &cwd);
    loop {
        let (outcome, errors) = match attempt(&mut asked, stream, near, news) {
            Ok(ended) => ended,
            Err(last) => return last,
        };
        let found = if asked.again || outcome.is_success() { Vec::new() } else { reappeared(near, &errors, &cwd) };
        let Some(first) = found.first() else { return ToStub::Done(outcome) };
        let note = format!(
            "homing make: {} was missing on the recipe's host and exists now: running the recipe again\n",
            first.path.display()
        );
        let mut to = stream;
        let _ =
            homing_launch::wire::send(&mut to, &ToStub::Output { stream: OutputStream::Err, bytes: note.into_bytes() });
        asked.again = true;
        asked.extra = found;
    }
}

/// Makes one attempt. Returns how it ended with its error output, or a final message to the stub.
fn attempt(
    asked: &mut RecipeRequest,
    stream: &UnixStream,
    near: &Near,
    news: &Sender<BuildEvent>,
) -> Result<(Outcome, Vec<u8>), ToStub> {
    let (reply, answers) = channel();
    asked.reply = reply;
    let gone = || ToStub::Failed("the coordinator of this build ended".into());
    news.send(BuildEvent::Asked(Box::new(asked.clone()))).map_err(|_| gone())?;
    let mut errors = Vec::new();
    let mut to = stream;
    // This sender would keep the channel open when the coordinator drops the other one.
    asked.reply = channel().0;
    loop {
        match answers.recv().map_err(|_| gone())? {
            ToConnection::Output(stream, bytes) => {
                if stream == OutputStream::Err && errors.len() < SEARCHED {
                    errors.extend_from_slice(&bytes);
                }
                let _ = homing_launch::wire::send(&mut to, &ToStub::Output { stream, bytes });
            }
            ToConnection::Here => return Err(ToStub::Here),
            ToConnection::Failed(why) => return Err(ToStub::Failed(why)),
            ToConnection::Ended { outcome, ticket } => {
                let took = near.catch_up().map_err(ToStub::Failed)?;
                let _ = news.send(BuildEvent::Seen { ticket, took });
                return Ok((outcome, errors));
            }
        }
    }
}

/// Returns files named in error output that a fresh look finds. Only file systems whose clients may see old states
/// count: a file on a local disk is never late.
fn reappeared(near: &Near, errors: &[u8], cwd: &Path) -> Vec<FileChange> {
    let named = missing_files(&String::from_utf8_lossy(errors)).into_iter().map(|p| cwd.join(p));
    let seen = named.filter(|p| near.may_be_late(p)).filter_map(|p| {
        Some(FileChange { now: Some(homing_fence::stamp(&p)?), path: p.as_path().into(), fresh: false, was: None })
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_fence_explains_makes_a_recipe_run_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.h"), "").unwrap();
        let near = Near::new(dir.path(), true, homing_locate::OwnLocators::default()).unwrap();
        let errors = b"x.c:1:2: fatal error: x.h: No such file or directory\n/bin/sh: 1: foo: not found\n";
        let again = reappeared(&near, errors, dir.path());
        assert_eq!(again.len(), usize::from(near.may_be_late(&dir.path().join("x.h"))));
        assert!(again.iter().all(|change| change.path.as_path() != Path::new("/bin/sh")));
        assert!(!near.may_be_late(Path::new("/proc/self/stat")));
    }
}
