//! `bsub -I`: the job gets the terminal of its submitter.
//!
//! The job's descriptors are the submitter's own, passed over a socket in a private folder, so that no data is copied
//! or delayed. The alternative was to follow the output files. It has no standard input; jobs on another host use it.

use crate::{Engine, Job, JobSpec, Private, QueueError};
use homing_model::{Command, RawText};
use homing_os::say;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The word of this program that connects an interactive job to its terminal.
pub const ATTACH: &str = "lsf-attach";
/// The number of descriptors that are passed.
const PASSED: usize = 3;
/// The pause between two looks whether the job connects: short, because a person waits at the terminal.
const CALLED: Duration = Duration::from_millis(20);

/// Replaces, in the job, its standard input, output and error by the submitter's.
pub fn take_over(socket: &Path) -> io::Result<()> {
    let passed = receive(&UnixStream::connect(socket)?)?;
    let none = |_| io::Error::other("no descriptors came");
    let [input, output, error] = <[OwnedFd; PASSED]>::try_from(passed).map_err(none)?;
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    Ok(rustix::stdio::dup2_stderr(&error)?)
}

fn receive(stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
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
pub struct TerminalListener {
    folder: TempDir,
    listener: UnixListener,
}

impl TerminalListener {
    /// Waits for a job of the same user: no other user can open the folder.
    pub fn open() -> Result<TerminalListener, String> {
        let failed = |e: io::Error| format!("cannot make a socket for the interactive job: {e}");
        let folder = tempfile::Builder::new().prefix("homing-bsub-").tempdir().map_err(failed)?;
        let listener = UnixListener::bind(socket(&folder)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(TerminalListener { folder, listener })
    }

    /// Changes the job's command to one that connects back.
    pub fn join(&self, spec: &mut JobSpec, private: &mut Private) -> Result<(), String> {
        let exe = std::env::current_exe().map_err(|e| format!("cannot find the path of this program: {e}"))?;
        let socket = socket(&self.folder);
        let mut words: Vec<RawText> = vec![exe.as_path().into(), ATTACH.into(), socket.as_path().into(), "--".into()];
        match (&spec.command, private.script.take()) {
            (_, Some(script)) => words.extend(["/bin/sh".into(), "-c".into(), script]),
            (Command::Shell(line), None) => words.extend(["/bin/sh".into(), "-c".into(), line.clone()]),
            (Command::Argv(own), None) => words.extend(own.clone()),
        }
        spec.command = Command::Argv(words);
        Ok(())
    }

    /// Passes the terminal to the job when it starts, passes signals on, and ends with the job.
    pub fn serve(self, engine: &dyn Engine, id: u64) -> Result<Job, QueueError> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register_usize(signal, caught.clone(), signal as usize);
        }
        let mut joined = false;
        loop {
            let job = engine.job(id)?;
            if !joined && let Ok((stream, _)) = self.listener.accept() {
                let start = job.parts.first().and_then(|p| p.start.as_ref());
                say!("<<Starting on {}>>", start.map_or_else(crate::host_name, |s| s.host.clone()));
                let failed = |e| QueueError::Request(format!("cannot pass the terminal to job <{id}>: {e}"));
                send(&stream).map_err(failed)?;
                joined = true;
            }
            match caught.swap(0, Ordering::SeqCst) as i32 {
                0 => {}
                // The job has not started, or the terminal has gone: the signal is for the job as a whole.
                SIGTERM | SIGHUP => engine.kill(&job, None, None)?,
                _ if !joined => engine.kill(&job, None, None)?,
                signal => engine.kill(&job, None, Some(signal))?,
            }
            if job.is_over(None) {
                return Ok(job);
            }
            std::thread::sleep(if joined { engine.pace() } else { CALLED });
        }
    }
}

fn socket(folder: &TempDir) -> PathBuf {
    folder.path().join("s")
}

fn send(stream: &UnixStream) -> rustix::io::Result<()> {
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let fds = [input.as_fd(), output.as_fd(), error.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut messages = SendAncillaryBuffer::new(&mut space);
    messages.push(SendAncillaryMessage::ScmRights(&fds));
    rustix::net::sendmsg(stream, &[IoSlice::new(b"!")], &mut messages, SendFlags::empty()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_has_the_very_files_of_its_submitter() {
        let line = TerminalListener::open().unwrap();
        let calling = UnixStream::connect(socket(&line.folder)).unwrap();
        let (called, _) = line.listener.accept().unwrap();
        send(&called).unwrap();
        let own = [rustix::fs::fstat(io::stdin()), rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())];
        let same = |(fd, own): (&OwnedFd, rustix::io::Result<rustix::fs::Stat>)| {
            let (there, own) = (rustix::fs::fstat(fd).unwrap(), own.unwrap());
            (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
        };
        let passed = receive(&calling).unwrap();
        assert_eq!(passed.len(), PASSED);
        assert!(passed.iter().zip(own).all(same));
        drop(called);
        assert!(receive(&calling).unwrap().is_empty(), "its submitter has gone");
    }
}
