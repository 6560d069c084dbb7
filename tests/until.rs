//! Waiting in a test for something to become so. Crates take it in by its path.

use std::time::{Duration, Instant};

/// Far longer than any of it takes on a machine that is busy with other tests:
/// only what is broken gets there.
const BOUND: Duration = Duration::from_secs(300);

/// Looks again and again; panics with `what` when it never came.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
