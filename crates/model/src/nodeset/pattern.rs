//! From text to sets.

use super::{Groups, MOST, NodeSet, NodeSetError};

/// A group may name groups; deeper than this it names itself.
const DEEPEST: usize = 16;

fn wrong(position: usize, message: impl Into<String>) -> NodeSetError {
    NodeSetError { position, message: message.into() }
}

pub(super) fn parse(text: &str, groups: &dyn Groups, depth: usize) -> Result<NodeSet, NodeSetError> {
    let mut total = NodeSet::default();
    if text.trim().is_empty() {
        return Ok(total);
    }
    let mut operator = ',';
    for (position, next, part) in parts(text) {
        let set = part_set(part, position, groups, depth)?;
        total = match operator {
            '!' => total.difference(&set),
            '&' => total.intersection(&set),
            '^' => total.symmetric_difference(&set),
            _ => total.union(&set),
        };
        operator = next;
    }
    if total.len() > MOST {
        return Err(wrong(0, format!("more than {MOST} hosts")));
    }
    Ok(total)
}

/// The text between operators outside of brackets: position, the operator that follows, part.
fn parts(text: &str) -> Vec<(usize, char, &str)> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0i32);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' | '!' | '&' | '^' if depth == 0 => {
                found.push((start, c, &text[start..at]));
                start = at + 1;
            }
            c if c.is_whitespace() && depth == 0 && !text[start..at].trim().is_empty() => {
                // Blanks separate as commas do, but not before an operator.
                let follows = text[at..].trim_start().chars().next();
                if !follows.is_some_and(|c| ",!&^".contains(c)) && follows.is_some() {
                    found.push((start, ',', &text[start..at]));
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    found.push((start, ',', &text[start..]));
    found
}

fn part_set(part: &str, position: usize, groups: &dyn Groups, depth: usize) -> Result<NodeSet, NodeSetError> {
    let part = part.trim();
    if part.is_empty() {
        return Err(wrong(position, "a host name is missing"));
    }
    if let Some(name) = part.strip_prefix('@') {
        let text = groups.group(name).ok_or_else(|| wrong(position, format!("no group {name:?}")))?;
        if depth == DEEPEST {
            return Err(wrong(position, format!("group {name:?} names itself")));
        }
        let inner = |e: NodeSetError| wrong(position, format!("in group {name:?}: {}", e.message));
        return parse(&text, groups, depth + 1).map_err(inner);
    }
    let mut names = vec![String::new()];
    let (mut rest, mut at) = (part, position);
    while let Some(open) = rest.find(['[', ']']) {
        if rest[open..].starts_with(']') {
            return Err(wrong(at + open, "a ] without its ["));
        }
        let close = rest[open..].find(']').ok_or_else(|| wrong(at + open, "a [ without its ]"))? + open;
        let numbers = ranges(&rest[open + 1..close], at + open + 1)?;
        if names.len().saturating_mul(numbers.len()) > MOST {
            return Err(wrong(at, format!("more than {MOST} hosts")));
        }
        let text = &rest[..open];
        names = names.iter().flat_map(|n| numbers.iter().map(move |d| format!("{n}{text}{d}"))).collect();
        at += close + 1;
        rest = &rest[close + 1..];
    }
    let mut set = NodeSet::default();
    names.into_iter().for_each(|name| set.insert(name + rest));
    Ok(set)
}

/// `1-4,7,10-20/5`, padding kept.
fn ranges(text: &str, position: usize) -> Result<Vec<String>, NodeSetError> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (span, step) = range.split_once('/').unwrap_or((range, "1"));
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.len() < 16 && digits.bytes().all(|b| b.is_ascii_digit());
            let parsed = plain.then(|| digits.parse::<u64>().ok()).flatten();
            parsed.ok_or_else(|| wrong(position, format!("{range:?} is no range of numbers")))
        };
        let (from, to, step) = (number(first)?, number(last)?, number(step)?);
        if from > to || step == 0 {
            return Err(wrong(position, format!("{range:?} runs backwards")));
        }
        if (to - from) / step > MOST as u64 {
            return Err(wrong(position, format!("more than {MOST} hosts")));
        }
        // Only a leading zero means padding: in 1-10 the widths differ by themselves.
        let width = if first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
        numbers.extend((from..=to).step_by(step as usize).map(|n| format!("{n:0width$}")));
    }
    Ok(numbers)
}
