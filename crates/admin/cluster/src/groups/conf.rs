//! Reads `groups.conf`: sections, `key: value` or `key = value`, in the syntax of Python's configparser.

use std::collections::BTreeMap;

/// A section's name and its values.
pub type Section = (String, BTreeMap<String, String>);

/// Reads a text; a line in no known form is an error.
pub fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    let mut last_key: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if let Some(name) = trimmed.strip_prefix('[').filter(|_| !line.starts_with(char::is_whitespace)) {
            let name = name.strip_suffix(']').ok_or_else(|| wrong("[ has no ]"))?;
            sections.push((name.to_string(), BTreeMap::new()));
            last_key = None;
            continue;
        }
        let Some((_, values)) = sections.last_mut() else { return Err(wrong("a value before the first [section]")) };
        // An indented line continues the value before it.
        if let Some(value) = last_key.as_ref().filter(|_| line.starts_with(char::is_whitespace)) {
            let value = values.entry(value.clone()).or_default();
            value.push('\n');
            value.push_str(trimmed);
            continue;
        }
        let at = trimmed.find([':', '=']).ok_or_else(|| wrong("expected [section] or KEY: VALUE"))?;
        let key = trimmed[..at].trim().to_lowercase();
        values.insert(key.clone(), trimmed[at + 1..].trim().to_string());
        last_key = Some(key);
    }
    Ok(sections)
}

/// Replaces `$NAME` and `${NAME}` if `values` has the name, and `$$` by `$`; leaves all others to the shell.
pub fn substitute(template: &str, values: &[(&str, &str)]) -> String {
    let (mut out, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let (braced, inside) = match rest.strip_prefix('{') {
            Some(inside) => (true, inside),
            None => (false, rest),
        };
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let closed = !braced || inside[end..].starts_with('}');
        match values.iter().find(|(name, _)| closed && *name == &inside[..end]) {
            Some((_, value)) => {
                out.push_str(value);
                rest = &inside[end + usize::from(braced)..];
            }
            None => out.push('$'),
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_comments_and_continued_lines() {
        let text =
            "# a\n[Main]\ndefault: local\n; b\n[a,b]\nmap= sed -n 's/^$GROUP:\\(.*\\)/\\1/p' f\nlist: one\n  two\n";
        let sections = parse(text).unwrap();
        assert_eq!(sections[0].1["default"], "local");
        assert_eq!(sections[1].0, "a,b");
        assert_eq!(sections[1].1["map"], "sed -n 's/^$GROUP:\\(.*\\)/\\1/p' f");
        assert_eq!(sections[1].1["list"], "one\ntwo");
        assert!(parse("x: 1").unwrap_err().contains("line 1"));
    }

    #[test]
    fn only_known_names_are_replaced() {
        let values = [("GROUP", "io"), ("CFGDIR", "/etc/c")];
        assert_eq!(substitute("cat $CFGDIR/x ${GROUP}s $GROUPS $$1 awk '{print $2}' $", &values), {
            "cat /etc/c/x ios $GROUPS $1 awk '{print $2}' $"
        });
    }
}
