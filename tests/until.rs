//! Waits in a test for a condition. Crates include it by its path.

use std::time::{Duration, Instant};

/// Far longer than any event takes on a machine that is busy with other tests. Only a broken program gets there.
const BOUND: Duration = Duration::from_secs(300);

/// Repeats the check until it is true; panics with the name of the event after [`BOUND`].
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
