//! Splits a source into its two parts.

/// Splits `server:/export`, where an IPv6 address is in brackets.
pub fn split(source: &[u8]) -> (&[u8], &[u8]) {
    let cut = |at: usize, mark: usize| (&source[..at], &source[at + mark..]);
    if source.starts_with(b"[")
        && let Some(at) = source.windows(2).position(|w| w == b"]:")
    {
        return (&source[1..at], &source[at + 2..]);
    }
    source.iter().position(|b| *b == b':').map_or((source, b"/"), |at| cut(at, 1))
}
