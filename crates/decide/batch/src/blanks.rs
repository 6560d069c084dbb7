//! Blanks as Perl and GNU parallel know them.

/// Whether `\s` of Perl matches the byte. Unlike Rust's ASCII whitespace, that includes the vertical tab.
pub(crate) fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the value without blanks at its beginning.
pub(crate) fn trimmed_start(value: &[u8]) -> &[u8] {
    &value[value.iter().take_while(|byte| is_space(byte)).count()..]
}

/// Returns the value without blanks at its end.
pub(crate) fn trimmed_end(value: &[u8]) -> &[u8] {
    &value[..value.len() - value.iter().rev().take_while(|byte| is_space(byte)).count()]
}
