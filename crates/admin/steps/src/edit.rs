//! Edits homing's blocks in files that others write too, and disables lines outside of them.

/// The prefix of a disabled line.
const RETIRED: &str = "#homing: ";

/// Returns the first line of a block.
pub fn begin(name: &str) -> String {
    format!("# homing {name}: begin; what is between these lines is written by homing up")
}

fn end(name: &str) -> String {
    format!("# homing {name}: end")
}

/// Returns the lines before the block, of it, and after it. `Err` if one of its two markers is missing.
fn cut<'t>(text: &'t str, name: &str) -> Result<Option<[&'t str; 3]>, String> {
    let at = |marker: &str| {
        let mut start = 0;
        text.split_inclusive('\n').find_map(|line| {
            let from = start;
            start += line.len();
            (line.trim_end() == marker).then_some((from, start))
        })
    };
    match (at(&begin(name)), at(&end(name))) {
        (None, None) => Ok(None),
        (Some((from, body)), Some((ends, rest))) if body <= ends => {
            Ok(Some([&text[..from], &text[body..ends], &text[rest..]]))
        }
        _ => Err(format!("the first or the last line of homing's block {name} is missing")),
    }
}

/// Returns the text in the block; `None` without a block.
pub fn block_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    cut(text, name).ok().flatten().map(|[_, body, _]| body)
}

/// Returns the text with this body in the block, or without the block. The text outside stays as it is.
pub(crate) fn with_block(text: &str, name: &str, body: Option<&str>) -> Result<String, String> {
    let block = body.map(|body| format!("{}\n{body}{}\n", begin(name), end(name))).unwrap_or_default();
    Ok(match cut(text, name)? {
        Some([before, _, behind]) => format!("{before}{block}{behind}"),
        None if block.is_empty() => text.into(),
        None => format!("{text}{}{block}", if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }),
    })
}

/// Disables lines by making them comments.
pub(crate) fn retire(text: &str, lines: &[String]) -> String {
    let each = |line: &str| {
        let is_one = lines.iter().any(|l| l == line.trim_end_matches('\n'));
        if is_one { format!("{RETIRED}{line}") } else { line.into() }
    };
    text.split_inclusive('\n').map(each).collect()
}

/// Enables all disabled lines again.
pub(crate) fn restore(text: &str) -> String {
    text.split_inclusive('\n').map(|line| line.strip_prefix(RETIRED).unwrap_or(line)).collect()
}

/// Returns the disabled lines in their original form.
pub fn retired(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix(RETIRED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_of_a_block_stays_and_without_it_the_text_is_what_it_was() {
        let old = "127.0.0.1 localhost\n127.0.1.1 n1\n";
        let new = with_block(&retire(old, &["127.0.1.1 n1".into()]), "names", Some("10.0.0.1 n1\n")).unwrap();
        assert_eq!(block_of(&new, "names"), Some("10.0.0.1 n1\n"));
        assert_eq!(retired(&new).collect::<Vec<_>>(), ["127.0.1.1 n1"]);
        let edited = format!("# mine\n{new}# behind\n");
        let again = with_block(&edited, "names", Some("10.0.0.1 n1\n10.0.0.2 n2\n")).unwrap();
        assert!(again.starts_with("# mine\n") && again.ends_with("n2\n# homing names: end\n# behind\n"), "{again}");
        assert_eq!(restore(&with_block(&again, "names", None).unwrap()), format!("# mine\n{old}# behind\n"));
        assert_eq!(restore(&with_block(&new, "names", None).unwrap()), old);
    }

    #[test]
    fn a_text_without_a_last_newline_gets_one_and_half_a_block_is_not_touched() {
        assert!(with_block("a", "x", Some("b\n")).unwrap().starts_with("a\n# homing x: begin"));
        let half = with_block("", "x", Some("b\n")).unwrap().replace("# homing x: end\n", "");
        assert!(with_block(&half, "x", None).is_err());
        assert_eq!(block_of(&half, "x"), None);
    }
}
