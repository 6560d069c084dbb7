//! `bsub -I`: the job gets the terminal of its submitter.
//!
//! The job's descriptors are the submitter's own, passed over a socket in a
//! private folder, so nothing is copied and nothing is late. Another way was
//! to follow the output files, which has no standard input and is how it is
//! done for a job on another host.

use super::{Refusal, said};
use crate::cmd::queue::act::Followed;
use crate::failure::Failure;
use homing_model::{Command, RawText};
use homing_queue::{Engine, JobSpec, Private};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The hidden subcommand that stands before the job's own words.
pub const VERB: &str = "lsf-attach";
/// Descriptors that are passed.
const PASSED: usize = 3;

/// Arguments of the hidden `lsf-attach`.
#[derive(clap::Args)]
pub struct AttachArgs {
    socket: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<std::ffi::OsString>,
}

/// In the job: takes the descriptors over and becomes the job's command.
pub fn attach(args: AttachArgs) -> Result<i32, Failure> {
    let gone =
        |e: &dyn std::fmt::Display| Failure::system(format!("the terminal of the interactive job has gone: {e}"));
    let stream = UnixStream::connect(&args.socket).map_err(|e| gone(&e))?;
    let passed = receive(&stream).map_err(|e| gone(&e))?;
    let [input, output, error] = <[OwnedFd; PASSED]>::try_from(passed).map_err(|_| gone(&"no descriptors came"))?;
    let set = rustix::stdio::dup2_stdin(&input).and_then(|()| rustix::stdio::dup2_stdout(&output));
    set.and_then(|()| rustix::stdio::dup2_stderr(&error)).map_err(|e| gone(&e))?;
    drop((stream, input, output, error));
    let failed = std::process::Command::new(&args.words[0]).args(&args.words[1..]).exec();
    Err(Failure::system(format!("cannot start {:?}: {failed}", args.words[0])))
}

fn receive(stream: &UnixStream) -> std::io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8];
    rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut messages, RecvFlags::CMSG_CLOEXEC)?;
    let rights = messages.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(rights.flatten().collect())
}

/// The submitter's end.
pub struct Line {
    folder: tempfile::TempDir,
    listener: UnixListener,
}

impl Line {
    /// Waits for a job of the same user: nobody else gets into the folder.
    pub fn open() -> Result<Line, Refusal> {
        let failed =
            |e: std::io::Error| said(format!("cannot make a socket for the interactive job: {e}. Job not submitted."));
        let folder = tempfile::Builder::new().prefix("homing-bsub-").tempdir().map_err(failed)?;
        let listener = UnixListener::bind(folder.path().join("s")).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Line { folder, listener })
    }

    /// Makes the job one that calls back.
    pub fn join(&self, spec: &mut JobSpec, private: &mut Private) -> Result<(), Refusal> {
        let exe =
            std::env::current_exe().map_err(|e| said(format!("cannot find homing itself: {e}. Job not submitted.")))?;
        let mut words: Vec<RawText> =
            vec![exe.as_path().into(), VERB.into(), self.folder.path().join("s").as_path().into(), "--".into()];
        match (&spec.command, private.script.take()) {
            (_, Some(script)) => words.extend(["/bin/sh".into(), "-c".into(), script]),
            (Command::Shell(line), None) => words.extend(["/bin/sh".into(), "-c".into(), line.clone()]),
            (Command::Argv(own), None) => words.extend(own.clone()),
        }
        spec.command = Command::Argv(words);
        Ok(())
    }

    /// Hands the terminal over when the job starts, passes signals on, and
    /// ends with the job, with its status.
    pub fn serve(self, engine: &dyn Engine, id: u64) -> Result<i32, Refusal> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register_usize(signal, caught.clone(), signal as usize);
        }
        let mut joined = false;
        loop {
            let job = engine.job(id)?;
            if !joined && let Ok((stream, _)) = self.listener.accept() {
                let host = job
                    .parts
                    .first()
                    .and_then(|p| p.start.as_ref())
                    .map_or_else(homing_queue::host_name, |s| s.host.clone());
                eprintln!("<<Starting on {host}>>");
                send(&stream).map_err(|e| said(format!("cannot pass the terminal to job <{id}>: {e}")))?;
                joined = true;
            }
            match caught.swap(0, Ordering::SeqCst) as i32 {
                0 => {}
                // Not started, or the terminal has gone: there is nothing to interrupt but the job itself.
                SIGTERM | SIGHUP => engine.kill(&job, None, None)?,
                _ if !joined => engine.kill(&job, None, None)?,
                signal => engine.kill(&job, None, Some(signal))?,
            }
            if let Some(status) = ended(&job) {
                return Ok(status);
            }
            std::thread::sleep(if joined { engine.pace() } else { Duration::from_millis(20) });
        }
    }
}

fn send(stream: &UnixStream) -> rustix::io::Result<()> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let fds = [input.as_fd(), output.as_fd(), error.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut messages = SendAncillaryBuffer::new(&mut space);
    messages.push(SendAncillaryMessage::ScmRights(&fds));
    rustix::net::sendmsg(stream, &[IoSlice::new(b"!")], &mut messages, SendFlags::empty()).map(|_| ())
}

/// The exit status of a job that is over; what it says about its end goes to standard error.
fn ended(job: &homing_queue::Job) -> Option<i32> {
    if !job.parts.iter().all(|p| p.state.is_over()) {
        return None;
    }
    let ends = job.parts.iter().filter_map(|p| p.end.as_ref());
    ends.clone().filter_map(|e| e.reason.as_ref()).for_each(|reason| eprintln!("Job <{}>: {reason}", job.id));
    Some(ends.map(|e| e.exit).find(|code| *code != 0).unwrap_or(if job.parts.iter().all(|p| p.end.is_some()) {
        0
    } else {
        255
    }))
}

/// For a job that is elsewhere: its output as it comes, without input.
pub fn follow(engine: &dyn Engine, id: u64) -> Result<i32, Refusal> {
    let mut streams: Vec<Followed> = Vec::new();
    loop {
        let job = engine.job(id)?;
        if streams.is_empty()
            && let Some(part) = job.parts.first()
            && let Some(start) = &part.start
        {
            eprintln!("<<Starting on {}>>", start.host);
            streams = job.outputs(part).iter().map(|path| Followed::new(path)).collect();
        }
        for stream in &mut streams {
            stream.copy()?;
        }
        if let Some(status) = ended(&job) {
            return Ok(status);
        }
        std::thread::sleep(engine.pace());
    }
}
