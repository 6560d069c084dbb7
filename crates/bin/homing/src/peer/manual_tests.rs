//! The tables of the manual, made from the grammar.

use super::*;
use std::path::Path;

/// Returns the rows of all options of a command.
fn rows(command: &Command, absent: &[PeerOption]) -> String {
    let mut rows = String::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_positional() && arg.get_id() != "help") {
        let short = arg.get_short().map(|letter| format!("`-{letter}`"));
        let long = arg.get_long().map(|long| format!("`--{long}`"));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let value = match arg.get_action().takes_values() {
            true => arg.get_value_names().map_or(String::new(), |names| format!(" `{}`", names[0])),
            false => String::new(),
        };
        let instead = absent.iter().find(|row| arg.get_id() == row.id).and_then(|row| match row.means {
            Meaning::Absent(instead) => Some(format!("refused: {instead}")),
            _ => None,
        });
        let text = instead.unwrap_or_else(|| arg.get_help().map(ToString::to_string).unwrap_or_default());
        rows += &format!("| {}{value} | {} |\n", names.join(", "), text.replace('|', "\\|"));
    }
    rows
}

/// Compares the table of a page, between two marks, with the grammar; with UPDATE=1 it writes the table.
pub fn compare(page: &str, mark: &str, command: &Command, absent: &[PeerOption]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap();
    let file = root.join(page);
    let text = std::fs::read_to_string(&file).unwrap();
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let (head, rest) = text.split_once(&begin).expect(mark);
    let (_, tail) = rest.split_once(&end).expect(mark);
    let wanted = format!("{head}{begin}| option | does |\n|---|---|\n{}{end}{tail}", rows(command, absent));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap();
    assert!(there == wanted, "{page} differs from the options; `make pages` writes it");
}
