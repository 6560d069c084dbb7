//! Names of files and secrets that nobody can guess.

use rustix::rand::{GetRandomFlags, getrandom};

/// 128 bits, as hexadecimal digits.
pub fn unguessable() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
