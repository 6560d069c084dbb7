//! Starts threads where the system may refuse one. `std::thread::spawn` and a scope's `spawn` panic then. This module
//! returns an error with its reason, or runs the work in the caller.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, scope};
use std::time::Duration;

/// Locks data that stays whole even if a thread panicked while it held the lock: each change of it is one step.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a thread. The error names the limits on the number of threads.
pub fn begin<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> io::Result<JoinHandle<R>> {
    begin_as(Builder::new(), work)
}

/// As [`begin`], with a builder that has a name or a stack size.
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

/// Does `work` in a thread. If no thread can be started, it does the work before it returns. The work must end by
/// itself.
pub fn begin_or_do(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    // A thread that cannot be started drops its work.
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    let begun = begin(move || do_once(&theirs));
    if begun.is_err() {
        do_once(&work);
    }
    begun.ok()
}

fn do_once(work: &Mutex<Option<impl FnOnce()>>) {
    let mine = lock(work).take();
    if let Some(work) = mine {
        work();
    }
}

/// Returns the result of `look`, or `None` if it takes longer than `limit`. If no thread can be started, the look has
/// no bound. Users with too many processes are frequent; a dead server at the same time is rare.
pub fn within<R: Send + 'static>(limit: Duration, look: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (to, from) = std::sync::mpsc::channel();
    begin_or_do(move || drop(to.send(look())));
    from.recv_timeout(limit).ok()
}

/// Returns the result of `act` for each item, in their order. Each item has its own thread; if no more threads can be
/// started, the existing ones do the rest one after another.
pub fn each<'i, T: Sync, R: Send>(items: &'i [T], act: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    each_of(items, items.len(), act)
}

/// As [`each`], with at most `at_once` items at a time. A slow item delays only its own thread.
pub fn each_of<'i, T: Sync, R: Send>(items: &'i [T], at_once: usize, act: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    let untaken = Mutex::new(items.iter().enumerate());
    let made = Mutex::new(items.iter().map(|_| None).collect::<Vec<_>>());
    let next = || lock(&untaken).next();
    let work = || {
        while let Some((at, item)) = next() {
            let result = act(item);
            lock(&made)[at] = Some(result);
        }
    };
    scope(|scope| {
        for _ in 1..at_once.min(items.len()) {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.into_iter().map(|result| result.expect("each item was taken once")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn work_is_done_once_and_results_keep_their_order() {
        let (to, from) = std::sync::mpsc::channel();
        if let Some(thread) = begin_or_do(move || to.send(1).unwrap()) {
            thread.join().unwrap();
        }
        assert_eq!(from.iter().collect::<Vec<i32>>(), [1]);
        assert_eq!(each(&[3, 1, 2], |n| n * 2), [6, 2, 4]);
        assert_eq!(each(&[], |n: &u32| n * 2), [0_u32; 0]);
        assert_eq!(begin(|| 7).unwrap().join().unwrap(), 7);
    }

    #[test]
    fn so_many_at_once_and_a_slow_one_keeps_no_other_waiting() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let others = std::sync::Barrier::new(2);
        let items: Vec<usize> = (0..9).collect();
        let made = each_of(&items, 2, |n| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The first item ends only after the last one has begun, which never happens if items run in pairs.
            if [0, 8].contains(n) {
                others.wait();
            }
            now.fetch_sub(1, Ordering::SeqCst);
            n + 1
        });
        assert_eq!((made, most.into_inner()), ((1..10).collect(), 2));
    }
}
