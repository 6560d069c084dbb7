//! Signals by their names.

const NAMES: [(&str, i32); 13] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("ALRM", 14),
    ("TERM", 15),
    ("CONT", 18),
    ("STOP", 19),
    ("XCPU", 24),
    ("WINCH", 28),
];

/// Returns the number of a signal, given by name (`USR1` or `SIGUSR1`) or by number.
pub fn number(text: &str) -> Option<i32> {
    let name = text.trim_start_matches("SIG");
    let by_name = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    by_name.or_else(|| text.parse().ok().filter(|number| (1..=64).contains(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_name_and_a_number() {
        assert_eq!((number("SIGUSR1"), number("TERM"), number("64")), (Some(10), Some(15), Some(64)));
        assert_eq!((number("NOSUCH"), number("0"), number("65"), number("-9")), (None, None, None, None));
    }
}
