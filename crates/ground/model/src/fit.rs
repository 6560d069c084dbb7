//! Text that fits into a number of columns: lines break at blanks, and tables break between columns.
//!
//! It does not: find out how many columns there are. `None` is a file or a pipe, where lines have no bound.

use std::ops::Range;

/// The last column in which the value of a line `label  value` may begin. Lines of a broken value begin there too.
const LABEL: usize = 16;

/// Returns the number of columns of a line. Escape sequences of colours have none.
pub fn width(line: &str) -> usize {
    let (mut columns, mut is_escape) = (0, false);
    for c in line.chars() {
        match c {
            '\x1b' => is_escape = true,
            'm' if is_escape => is_escape = false,
            _ if is_escape => {}
            _ => columns += 1,
        }
    }
    columns
}

/// Returns the bound if a line of the text is longer than that.
pub fn exceeded(text: &str, columns: Option<usize>) -> Option<usize> {
    columns.filter(|most| text.lines().any(|line| width(line) > *most))
}

/// Breaks lines that are longer than `columns` at blanks. A word that is longer, such as a path, stays whole. The new
/// lines begin below the value of `label  value`, else two columns behind the start of the line.
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.into() };
    text.split_inclusive('\n').map(|line| wrapped_line(line, columns)).collect()
}

fn wrapped_line(line: &str, columns: usize) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if width(body) <= columns {
        return line.into();
    }
    let indent = hanging(body).min(columns / 2);
    let (mut out, mut at, mut rest) = (String::new(), 0, body);
    while !rest.is_empty() {
        let word = rest.trim_start_matches(' ');
        let (blanks, end) = (rest.len() - word.len(), word.find(' ').unwrap_or(word.len()));
        let wide = width(&word[..end]);
        if at > indent && at + blanks + wide > columns {
            out += &format!("\n{:indent$}", "");
            at = indent;
        } else {
            out += &rest[..blanks];
            at += blanks;
        }
        out += &word[..end];
        (at, rest) = (at + wide, &word[end..]);
    }
    out + end
}

/// Breaks a command behind `label` with a backslash, so that it can still be pasted. A quoted word stays whole.
pub fn wrapped_command(label: &str, command: &str, columns: Option<usize>) -> String {
    let indent = width(label);
    let Some(room) = columns.map(|columns| columns.saturating_sub(indent + 2)).filter(|room| width(command) > *room)
    else {
        return format!("{label}{command}");
    };
    let mut lines = vec![String::new()];
    for word in shell_words(command) {
        let last = lines.last_mut().expect("there is a first one");
        match () {
            () if last.is_empty() => *last = word,
            () if width(last) + 1 + width(&word) > room => lines.push(word),
            () => *last += &format!(" {word}"),
        }
    }
    label.to_string() + &lines.join(&format!(" \\\n{:indent$}", ""))
}

/// Returns the words of a command as they are written, with their quotes.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut quote, mut escaped) = (vec![String::new()], None, false);
    for c in command.chars() {
        match (quote, c) {
            (None, ' ') if !escaped => {
                words.push(String::new());
                continue;
            }
            (None, '\'' | '"') if !escaped => quote = Some(c),
            (Some(open), _) if open == c && !escaped => quote = None,
            _ => {}
        }
        escaped = c == '\\' && !escaped && quote != Some('\'');
        words.last_mut().expect("there is a first one").push(c);
    }
    words
}

/// Returns the column in which the further lines of a long line begin.
fn hanging(line: &str) -> usize {
    let first = line.len() - line.trim_start_matches(' ').len();
    let label = line[first..].find("  ").map(|at| {
        // A coloured label ends with an escape sequence between its blanks and the value.
        let mut value = &line[first + at..];
        while let Some(rest) = value.strip_prefix(' ').or_else(|| Some(value.strip_prefix('\x1b')?.split_once('m')?.1))
        {
            value = rest;
        }
        width(&line[..line.len() - value.len()])
    });
    label.filter(|at| *at <= LABEL).unwrap_or(first + 2)
}

/// Shortens a line to `columns` at a blank, and marks that with an ellipsis.
pub fn clipped(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.into();
    }
    let room = columns.saturating_sub(2);
    let at = line.char_indices().nth(room).map_or(line.len(), |(at, _)| at);
    let whole = if line[at..].starts_with(' ') { at } else { line[..at].rfind(' ').unwrap_or(at) };
    format!("{} …", line[..whole].trim_end())
}

/// Formats rows as lines, each column as wide as its longest cell; the columns of `right` are aligned to the right. If
/// they are wider than `columns`, the rest becomes further tables below, each with the first column.
pub fn aligned<const N: usize>(rows: &[[String; N]], right: Range<usize>, columns: Option<usize>) -> String {
    let width = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new()];
    let mut at = 0;
    for column in 0..N {
        let wide = widths[column] + if at == 0 { 0 } else { 2 };
        if columns.is_some_and(|columns| at + wide > columns) && blocks.last().is_some_and(|block| block.len() > 1) {
            blocks.push(vec![0]);
            at = widths[0];
        }
        at += widths[column] + if at == 0 { 0 } else { 2 };
        blocks.last_mut().expect("there is a first one").push(column);
    }
    let cell = |row: &[String; N], column: usize| match (right.contains(&column), widths[column]) {
        (true, width) => format!("{:>width$}", row[column]),
        (false, width) => format!("{:<width$}", row[column]),
    };
    let line = |row: &[String; N], block: &[usize]| {
        let cells: Vec<String> = block.iter().map(|column| cell(row, *column)).collect();
        cells.join("  ").trim_end().to_string() + "\n"
    };
    let table = |block: &Vec<usize>| rows.iter().map(|row| line(row, block)).collect::<String>();
    blocks.iter().map(table).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(text: &str) -> usize {
        text.lines().map(width).max().unwrap_or(0)
    }

    #[test]
    fn a_line_breaks_at_blanks_below_its_value() {
        let line = "measured   21.9 kB of read calls, pipes included\n";
        assert_eq!(
            wrapped(line, Some(30)),
            "measured   21.9 kB of read\n           calls, pipes\n           included\n"
        );
        assert_eq!(wrapped(line, Some(80)), line);
        assert_eq!(wrapped(line, None), line);
        assert_eq!(wrapped("one two three", Some(9)), "one two\n  three");
        assert_eq!(wrapped("  seen   a b c", Some(12)), "  seen   a b\n      c");
    }

    #[test]
    fn a_long_word_stays_whole_and_a_colour_has_no_width() {
        assert_eq!(
            wrapped("see /a/very/long/path/of/a/file now", Some(12)),
            "see\n  /a/very/long/path/of/a/file\n  now"
        );
        let red = "\x1b[2mtasks      \x1b[0m1 done, \x1b[31m2 failed\x1b[0m in 3 s";
        assert_eq!(wrapped(red, Some(40)), red);
        assert_eq!(
            wrapped(red, Some(26)),
            "\x1b[2mtasks      \x1b[0m1 done, \x1b[31m2\n           failed\x1b[0m in 3 s"
        );
    }

    #[test]
    fn a_long_command_can_be_pasted() {
        let command = "homing exec -w n1 'a quoted word' and more";
        assert_eq!(wrapped_command("  look   ", command, None), format!("  look   {command}"));
        let broken = wrapped_command("  look   ", command, Some(30));
        assert_eq!(broken, "  look   homing exec -w n1 \\\n         'a quoted word' and \\\n         more");
        assert!(longest(&broken) <= 30);
    }

    #[test]
    fn a_quoted_word_of_a_command_stays_whole_whatever_it_quotes() {
        for word in [r"'a '\''b c'\'' d'", r"a\ b", r#""a \" b""#, r"'a\'"] {
            let broken = wrapped_command("", &format!("exec {word} end"), Some(4));
            assert_eq!(broken, format!("exec \\\n{word} \\\nend"));
        }
    }

    #[test]
    fn a_clipped_line_ends_with_a_whole_word() {
        assert_eq!(clipped("homing run sha256sum", 80), "homing run sha256sum");
        assert_eq!(clipped("homing run sha256sum", 15), "homing run …");
        assert_eq!(clipped("homing run sha256sum", 12), "homing run …");
        assert_eq!(clipped("unbroken", 5), "unb …");
    }

    #[test]
    fn a_wide_table_becomes_several_and_loses_no_cell() {
        let row = |name: &str| [name.to_string(), "1234567890".into(), "x".repeat(12), "y".repeat(6)];
        let rows = [row("HOST"), row("n1")];
        assert_eq!(aligned(&rows, 1..4, None).lines().count(), 2);
        let narrow = aligned(&rows, 1..4, Some(24));
        assert_eq!(
            narrow,
            "HOST  1234567890\nn1    1234567890\n\nHOST  xxxxxxxxxxxx\nn1    xxxxxxxxxxxx\n\nHOST  yyyyyy\nn1    yyyyyy\n"
        );
        assert!(longest(&narrow) <= 24);
        // A cell that is wider than the place is in a table of its own.
        assert_eq!(aligned(&rows, 1..4, Some(8)).matches("HOST").count(), 3);
    }
}
