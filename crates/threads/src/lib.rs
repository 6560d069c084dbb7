//! Threads where there may be none left: `std::thread::spawn` and a scope's `spawn` panic then. Here it is an
//! error with its reason, or whoever wanted the thread does the work.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, scope};

/// Begins a thread. The error says what limits their number.
pub fn begin<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> io::Result<JoinHandle<R>> {
    begin_as(Builder::new(), work)
}

/// The same, with a name or a stack of its own.
pub fn begin_as<R: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    let why = |e: io::Error| {
        let limits = "`ulimit -u`, pids.max of the control group and memory limit their number";
        io::Error::new(e.kind(), format!("cannot start a thread: {e}; {limits}"))
    };
    builder.spawn(work).map_err(why)
}

/// Does `work` in a thread, or before it returns where none can be begun: for work that ends by itself.
pub fn begin_or_do(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    // A thread that cannot be begun drops what it was to do.
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    let begun = begin(move || do_once(&theirs));
    if begun.is_err() {
        do_once(&work);
    }
    begun.ok()
}

fn do_once(work: &Mutex<Option<impl FnOnce()>>) {
    let mine = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = mine {
        work();
    }
}

/// What `act` makes of each item, in their order; each in a thread of its own, or here, one after another, where no
/// more threads can be begun.
pub fn each<'i, T: Sync, R: Send>(items: &'i [T], act: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    let act = &act;
    scope(|scope| {
        let begun = items.iter().map(|item| Builder::new().spawn_scoped(scope, move || act(item))).collect::<Vec<_>>();
        let made = items.iter().zip(begun).map(|(item, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => act(item),
        });
        made.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_results_keep_their_order() {
        let (to, from) = std::sync::mpsc::channel();
        if let Some(thread) = begin_or_do(move || to.send(1).unwrap()) {
            thread.join().unwrap();
        }
        assert_eq!(from.iter().collect::<Vec<i32>>(), [1]);
        assert_eq!(each(&[3, 1, 2], |n| n * 2), [6, 2, 4]);
        assert_eq!(begin(|| 7).unwrap().join().unwrap(), 7);
    }
}
