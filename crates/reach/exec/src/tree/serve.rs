//! The leader's end of a branch, on its standard input and output.

use super::at_work::AtWork;
use super::words::{LeaderCommand, LeaderMessage, LeaderRequest, receive_message, send_message, take_input};
use super::{Errand, LOOK};
use crate::pool::{Giver, HostEventKind, HostProgress, NoEvent};
use crate::{InputSpool, Options, Remote};
use homing_model::RawText;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Interval of the reports on hosts at work. After a few intervals, a caller can distinguish a host that hangs from a
/// leader that hangs.
const BEAT: Duration = Duration::from_millis(500);

/// Serves this host and its branch, and reports their events. The data to pass on goes into `folder`, which is
/// private to this user. Returns whether all ends were reported. Returns early when its input ends; the caller then
/// ends the processes that are left.
pub fn serve<E: Errand>(
    mut from: impl BufRead + Send + 'static,
    mut to: impl Write,
    folder: &Path,
) -> io::Result<bool> {
    let Some(ask) = receive_message::<LeaderRequest<E>>(&mut from)? else { return Ok(false) };
    let name =
        folder.to_str().ok_or_else(|| io::Error::other("the path of the folder for temporary files is not UTF-8"))?;
    send_message(&mut to, &LeaderMessage::Folder(name.into()))?;
    if receive_message(&mut from)? != Some(LeaderCommand::Go) {
        return Ok(false);
    }
    let input = if ask.reads { Some(InputSpool::empty(folder)?) } else { None };
    let gone = Arc::new(AtomicBool::new(false));
    let (end, taken) = (gone.clone(), input.clone());
    homing_os::threads::begin(move || {
        // After the standard input of the hosts, the only further event is the end of the channel.
        if taken.is_none() || take_input(&mut from, taken.as_deref()).unwrap_or(false) {
            let _ = io::copy(&mut from, &mut io::sink());
        }
        end.store(true, Ordering::Relaxed);
    })?;
    pass_on(ask, input, &mut to, folder, &gone)
}

fn pass_on<E: Errand>(
    ask: LeaderRequest<E>,
    input: Option<Arc<InputSpool>>,
    to: &mut impl Write,
    folder: &Path,
    gone: &AtomicBool,
) -> io::Result<bool> {
    let (noted, notes) = channel();
    // The note may be about a lost leader below, whose hosts were then served from here.
    let note = move |text: &str| drop(noted.send(text.to_string()));
    let remote = Remote::new(Options {
        tree: ask.width,
        fan_out: ask.fan_out,
        connect_timeout: ask.connect_timeout,
        command_timeout: ask.command_timeout,
        // A host that leads once keeps nothing.
        persist: Duration::ZERO,
        folder: Some(folder.join("s")),
        ..Options::default()
    });
    let own = std::iter::once("localhost".to_string());
    let hosts: Vec<String> = own.chain(ask.hosts.into_iter().skip(1)).collect();
    let errand = ask.errand.from(&folder.to_string_lossy(), input);
    let mut stream = remote.stream_tree(&hosts, errand, Arc::new(note));
    let (mut at_work, mut beaten) = (AtWork::default(), Instant::now());
    while !gone.load(Ordering::Relaxed) {
        let news = stream.next_within(LOOK);
        // Notes go before `End`, which is the last message.
        for text in notes.try_iter() {
            send_message(to, &LeaderMessage::Note(text))?;
        }
        match news {
            Ok(None) => return send_message(to, &LeaderMessage::End).map(|()| true),
            Ok(Some(event)) => {
                at_work.record_event(&event);
                leader_message(event).map_or(Ok(()), |told| send_message(to, &told))?;
            }
            Err(NoEvent) => {}
        }
        if beaten.elapsed() > BEAT {
            send_message(to, &LeaderMessage::Alive(at_work.take()))?;
            beaten = Instant::now();
        }
    }
    Ok(false)
}

fn leader_message(HostProgress { host, giver, what }: HostProgress) -> Option<LeaderMessage> {
    if giver == Giver::Load {
        return None;
    }
    Some(match what {
        HostEventKind::Begun => LeaderMessage::Begun(host),
        HostEventKind::Alive => return None,
        HostEventKind::Stdout(bytes) => LeaderMessage::Out(host, RawText(bytes)),
        HostEventKind::Stderr(bytes) => LeaderMessage::Err(host, RawText(bytes)),
        HostEventKind::Done(outcome, elapsed) => LeaderMessage::Done(host, outcome, elapsed),
    })
}
