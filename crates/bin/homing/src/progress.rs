//! Finds out whether and how a line of progress can be shown on the terminal.

pub use homing_report::progress::{ProgressTerminal, RequestProgress, line, request_line};
use rustix::fd::AsFd;
use rustix::termios::{isatty, tcgetwinsize};

/// The columns of a terminal that does not report its width.
const USUAL_COLUMNS: u16 = 80;
/// The fewest columns that lines are broken for. A terminal that reports fewer does not know its width.
const FEWEST_COLUMNS: usize = 20;

/// Returns the place for a line on standard error, if that is a terminal that moves its cursor. Queried for each
/// line, because a window may change its size.
pub fn place() -> Option<ProgressTerminal> {
    let stderr = rustix::stdio::stderr();
    if !isatty(stderr) || is_dumb() {
        return None;
    }
    let columns = tcgetwinsize(stderr).map_or(0, |size| size.ws_col);
    let columns = usize::from(if columns == 0 { USUAL_COLUMNS } else { columns }) - 1;
    Some(ProgressTerminal { columns, utf8: locale_is_utf8() })
}

/// Returns the columns of lines on `out`: those of `COLUMNS`, else those of the terminal. `None`: a file or a pipe,
/// whose reader wants whole lines.
pub fn columns_of(out: impl AsFd) -> Option<usize> {
    let terminal = || isatty(&out).then(|| tcgetwinsize(&out).map_or(0, |size| size.ws_col).into());
    let columns = set("COLUMNS").and_then(|text| text.parse().ok()).or_else(terminal)?;
    Some(if columns < FEWEST_COLUMNS { USUAL_COLUMNS.into() } else { columns })
}

/// Returns the columns of lines on standard output.
pub fn columns() -> Option<usize> {
    columns_of(rustix::stdio::stdout())
}

/// Removes the line, if there is a place for one.
pub fn clear() {
    if place().is_some() {
        eprint!("\r\x1b[K");
    }
}

/// Returns whether the locale of the environment has more than ASCII.
pub fn locale_is_utf8() -> bool {
    is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(set))
}

/// Returns whether the terminal, by its name, does not move its cursor.
pub fn is_dumb() -> bool {
    set("TERM").is_none_or(|term| term == "dumb")
}

/// Returns whether colours may be written to `out`: a terminal that knows colours, without NO_COLOR. An empty NO_COLOR
/// has no effect: <https://no-color.org>.
pub fn has_colors(out: impl std::io::IsTerminal) -> bool {
    out.is_terminal() && !is_dumb() && set("NO_COLOR").is_none()
}

/// Returns a variable that is set and not empty.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns whether the locale's character set is UTF-8, by the first variable that is set.
fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let locale = variables.into_iter().flatten().next().unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_is_read_in_its_order() {
        let set = |all: &str, lang: &str| [all, "", lang].map(|v| Some(v.to_string()).filter(|v| !v.is_empty()));
        assert!(is_utf8(set("", "de_DE.UTF-8")) && is_utf8(set("C.utf8", "C")));
        assert!(!is_utf8(set("C", "de_DE.UTF-8")) && !is_utf8(set("", "")));
    }
}
