//! Times that several commands take by the same option, with the same bounds.

use homing_batch::{BatchError, parse_duration_within, parse_seconds};
use std::time::Duration;

/// Reads `--fs-timeout`, the longest silence of a file system.
pub fn fs_timeout(text: &str) -> Result<Duration, BatchError> {
    parse_duration_within("--fs-timeout", text, 1.0..=f64::INFINITY)
}

/// Reads `--seconds`, the time for which each part of a measurement loads a pair of hosts.
pub fn load_time(text: &str) -> Result<Duration, BatchError> {
    parse_duration_within("--seconds", text, 0.1..=60.0)
}

/// Reads `--timeout`, the longest time of one step on one host, in whole seconds.
pub fn step_limit(text: &str) -> Result<u64, BatchError> {
    parse_seconds("--timeout", text, 1..=u64::MAX)
}
