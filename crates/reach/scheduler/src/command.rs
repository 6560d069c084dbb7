//! Runs commands of batch systems with a deadline: a daemon may be away.

use homing_model::RawText;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The error of a command of a batch system that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: `{command}` {what}")]
pub struct AskError {
    doing: &'static str,
    command: String,
    what: String,
}

/// Runs a command of a batch system with this standard input. `env`, if given, replaces the environment.
pub fn command(
    doing: &'static str,
    words: &[&str],
    input: &[u8],
    env: Option<&[(RawText, RawText)]>,
) -> Result<String, AskError> {
    let shown = words.join(" ");
    let failed = |what: String| AskError { doing, command: shown.clone(), what };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(env) = env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name.as_os(), value.as_os())));
    }
    let mut child = command.spawn().map_err(|e| failed(format!("did not start: {e}")))?;
    let (mut pipe, input) = (child.stdin.take(), input.to_vec());
    // A separate thread: a long input may have to wait until answers are read.
    let writer = homing_os::threads::begin(move || pipe.as_mut().map(|p| p.write_all(&input)));
    let streams = (child.stdout.take(), child.stderr.take());
    let begun = || -> io::Result<_> { Ok((writer?, reader(streams.0)?, reader(streams.1)?)) };
    let (writer, out, err) = begun().map_err(|e| {
        let _ = child.kill();
        let _ = child.wait();
        failed(e.to_string())
    })?;
    let ended = homing_os::process::ended_within(&mut child, PATIENCE).map_err(|e| failed(e.to_string()))?;
    let Some(status) = ended else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(format!("gave no answer in {} s; is its daemon up?", PATIENCE.as_secs())));
    };
    let text = out.join().unwrap_or_default();
    let _ = writer.join();
    if status.success() {
        return Ok(text);
    }
    let said = err.join().unwrap_or_default();
    Err(failed(format!("ended with {status}: {}", said.trim().lines().last().unwrap_or("it printed no message"))))
}

fn reader(stream: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<String>> {
    homing_os::threads::begin(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
