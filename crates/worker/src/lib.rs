//! The far side.

/// Serves the wire protocol on standard input and output; returns the exit status.
pub fn main_stdio() -> i32 {
    1
}
