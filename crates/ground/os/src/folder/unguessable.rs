//! Random names of files and secrets.

/// Returns 128 random bits as hexadecimal digits.
pub fn unguessable() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
