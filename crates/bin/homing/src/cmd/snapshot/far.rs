//! The other end: this program, on the bank's host or the source's.

use homing_model::Failure;
use homing_snapshot::serve;
use std::ffi::OsString;
use std::io::BufReader;

/// `snapshot-host`, on standard input and output.
pub fn host() -> Result<i32, Failure> {
    let mut out = std::io::stdout();
    homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).map_err(Failure::system)?;
    serve::serve(BufReader::new(std::io::stdin()), &mut out).map_err(Failure::system)?;
    Ok(0)
}

/// `snapshot-remove VAULT`.
pub fn remove(words: &[OsString]) -> Result<i32, Failure> {
    let vault = words.first().ok_or_else(|| Failure::usage("which vault?"))?;
    homing_snapshot::remove::all(vault.as_ref()).map_err(Failure::system)?;
    Ok(0)
}
