//! Formats the codes for users.

use crate::{Area, Code, all_codes};
use std::fmt::Write;

/// Returns the text of `--explain`: everything about a code.
pub fn explained(code: &Code) -> String {
    let rows = [
        ("area", code.area().name()),
        ("severity", code.severity.word()),
        ("where", code.seen),
        ("means", code.means),
        ("remedy", code.mend),
    ];
    let mut text = format!("{}: {}\n", code.name, code.what);
    for (name, value) in rows {
        let _ = writeln!(text, "  {name:<9} {value}");
    }
    text
}

/// Returns the manual page with all codes.
pub fn manual() -> String {
    let mut text = String::from(
        "# Codes of `homing check`\n\nYou need this page to look up a code. `homing check --explain CODE` prints one of these rows. \
         [check.md](check.md)\ndescribes the command.\n\nGenerated; `make pages`.\n",
    );
    for area in Area::ALL {
        let mut codes: Vec<&Code> = all_codes().filter(|c| c.area() == area).collect();
        codes.sort_by_key(|code| code.name);
        let _ = writeln!(text, "\n## {}\n", area.name());
        let _ = writeln!(text, "| code | fault | consequence | evidence | remedy |\n|---|---|---|---|---|");
        for c in codes {
            let cell = |text: &str| text.replace('|', "\\|");
            let what = format!("{} ({})", c.what, c.severity.word());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                c.name,
                cell(&what),
                cell(c.means),
                cell(c.seen),
                cell(c.mend)
            );
        }
    }
    text
}
