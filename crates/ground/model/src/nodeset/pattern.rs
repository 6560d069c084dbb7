//! Parses node sets.

use super::groups::{NodeGroups, matches};
use super::name::MOST_DIGITS;
use super::{MOST, NodeSet, NodeSetError};
use std::cell::Cell;

/// The deepest nesting of groups. A group that is nested deeper names itself.
const DEEPEST: usize = 16;
/// The most hosts that all groups of a text together may add, each counted as often as a group names it. Without the
/// limit, seven groups that each name the next one eight times would cause two million look-ups.
const MOST_BROUGHT: usize = 2 * MOST;
/// The number of hosts that one look-up of a group counts as.
const LOOK_UP: usize = 100;

fn wrong(position: usize, message: impl Into<String>) -> NodeSetError {
    NodeSetError { position, message: message.into() }
}

/// The settings and counters of one parse.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) groups: &'a dyn NodeGroups,
    /// The group source for names without a source.
    pub(super) source: Option<&'a str>,
    pub(super) depth: usize,
    /// Number of hosts that groups have added so far.
    pub(super) brought: &'a Cell<usize>,
    /// Whether masks are expanded. They are not in the set of all nodes, which masks are compared with.
    pub(super) masks: bool,
}

pub(super) fn parse(text: &str, context: Context) -> Result<NodeSet, NodeSetError> {
    let mut total = NodeSet::default();
    if text.trim().is_empty() {
        return Ok(total);
    }
    let mut operator = ',';
    for (position, next, part) in parts(text) {
        let set = part_set(part, position, context)?;
        total = match operator {
            '!' => total.difference(&set),
            '&' => total.intersection(&set),
            '^' => total.symmetric_difference(&set),
            _ => total.united(set),
        };
        operator = next;
    }
    if total.len() > MOST {
        return Err(wrong(0, format!("more than {MOST} hosts")));
    }
    Ok(total)
}

/// Splits a text at operators outside of brackets: position, the operator that follows, part.
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
                    start = at + c.len_utf8();
                }
            }
            _ => {}
        }
    }
    found.push((start, ',', &text[start..]));
    found
}

fn part_set(part: &str, position: usize, context: Context) -> Result<NodeSet, NodeSetError> {
    let part = part.trim();
    if part.is_empty() {
        return Err(wrong(position, "a host name is missing"));
    }
    let set = expand(part, position)?;
    if part.starts_with('@') {
        let mut total = NodeSet::default();
        for group in set.iter() {
            total = total.united(group_set(&group[1..], position, context)?);
        }
        return Ok(total);
    }
    if context.masks && part.contains(['*', '?']) {
        let all = all_nodes(position, context.source, context)?;
        return Ok(all.iter().filter(|n| set.iter().any(|mask| matches(mask, n))).map(String::from).collect());
    }
    Ok(set)
}

/// Returns the hosts of a group without its `@`: `name`, `source:name`, `*`, or `@source` for the groups' names
/// themselves.
fn group_set(group: &str, position: usize, context: Context) -> Result<NodeSet, NodeSetError> {
    if context.depth == DEEPEST {
        return Err(wrong(position, format!("group {group:?} names itself")));
    }
    let said = |e: String| wrong(position, e);
    if let Some(source) = group.strip_prefix('@') {
        let names = context.groups.list(Some(source).filter(|s| !s.is_empty())).map_err(said)?;
        return Ok(names.into_iter().collect());
    }
    let (source, name) = match group.split_once(':') {
        Some((source, name)) => (Some(source), name),
        None => (context.source, group),
    };
    if name == "*" {
        return all_nodes(position, source, context);
    }
    let text = context.groups.group(source, name).map_err(said)?;
    let text = text.ok_or_else(|| wrong(position, format!("no group {group:?}")))?;
    let inner = |e: NodeSetError| wrong(position, format!("in group {group:?}: {}", e.message));
    bring(parse(&text, Context { source, depth: context.depth + 1, ..context }).map_err(inner)?, position, context)
}

fn all_nodes(position: usize, source: Option<&str>, context: Context) -> Result<NodeSet, NodeSetError> {
    if context.depth == DEEPEST {
        return Err(wrong(position, "the group of all nodes names itself"));
    }
    let text = context.groups.all(source).map_err(|e| wrong(position, e))?;
    let text = text.ok_or_else(|| wrong(position, "no source lists all nodes"))?;
    let inner = |e: NodeSetError| wrong(position, format!("in the group of all nodes: {}", e.message));
    let context = Context { source, depth: context.depth + 1, masks: false, ..context };
    bring(parse(&text, context).map_err(inner)?, position, context)
}

/// Counts one look-up of a group and the hosts that it added.
fn bring(set: NodeSet, position: usize, context: Context) -> Result<NodeSet, NodeSetError> {
    context.brought.set(context.brought.get() + set.len() + LOOK_UP);
    match context.brought.get() > MOST_BROUGHT {
        true => Err(wrong(position, format!("its groups name more than {MOST_BROUGHT} hosts, counting repetitions"))),
        false => Ok(set),
    }
}

/// Expands the ranges of names.
fn expand(part: &str, position: usize) -> Result<NodeSet, NodeSetError> {
    let mut names = vec![String::new()];
    let (mut rest, mut at) = (part, position);
    while let Some(open) = rest.find(['[', ']']) {
        if rest[open..].starts_with(']') {
            return Err(wrong(at + open, "a ] without its ["));
        }
        let close = rest[open..].find(']').ok_or_else(|| wrong(at + open, "a [ without its ]"))? + open;
        let (text, inside, after) = (&rest[..open], &rest[open + 1..close], &rest[close + 1..]);
        if after.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('[') {
            return Err(wrong(at + close, "two ranges with nothing between them but digits"));
        }
        let numbers = ranges(inside, at + open + 1)?;
        digits_around(text, inside, after, &numbers).map_err(|m| wrong(at + open, m))?;
        if names.len().saturating_mul(numbers.len()) > MOST {
            return Err(wrong(at, format!("more than {MOST} hosts")));
        }
        names = names.iter().flat_map(|n| numbers.iter().map(move |d| format!("{n}{text}{d}"))).collect();
        at += close + 1;
        rest = after;
    }
    Ok(names.into_iter().map(|name| name + rest).collect())
}

/// Rejects unclear digits beside a range. Digits that touch a range are part of its numbers: `n1[0-2]` is n10 to n12.
/// The meaning is clear only if the numbers have one width: ClusterShell reads `n1[9-10]` as n19 to n110.
fn digits_around(before: &str, inside: &str, after: &str, numbers: &[String]) -> Result<(), &'static str> {
    let digit = |c: char| c.is_ascii_digit();
    let widths_differ = numbers.iter().any(|n| n.len() != numbers[0].len());
    if before.ends_with(digit) && widths_differ {
        return Err("digits before a range whose numbers have several widths: write the numbers out");
    }
    if after.starts_with(digit) && inside.contains('/') {
        return Err("digits after a range with a step");
    }
    if after.starts_with(digit) && inside.split(',').any(|range| from_zero_to_more_digits(range.trim())) {
        return Err("digits after a range from 0 to a longer number: padded numbers of different lengths");
    }
    Ok(())
}

/// Reports whether digits after `range` give padded numbers of different lengths: `[0-10]0` is 00 to 100.
fn from_zero_to_more_digits(range: &str) -> bool {
    range.split_once('-').is_some_and(|(first, last)| first.trim() == "0" && last.trim().len() > 1)
}

/// Expands `1-4,7,10-20/5`, with the padding.
pub(super) fn ranges(text: &str, position: usize) -> Result<Vec<String>, NodeSetError> {
    let mut numbers = Vec::new();
    for range in text.split(',').map(str::trim) {
        let more = one_range(range, position)?;
        if numbers.len() + more.len() > MOST {
            return Err(wrong(position, format!("more than {MOST} hosts")));
        }
        numbers.extend(more);
    }
    Ok(numbers)
}

fn one_range(range: &str, position: usize) -> Result<Vec<String>, NodeSetError> {
    let (span, step) = match range.split_once('/') {
        Some((span, step)) => (span.trim(), step.trim()),
        None => (range, "1"),
    };
    let (first, last) = span.split_once('-').map_or((span, span), |(a, b)| (a.trim(), b.trim()));
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.len() <= MOST_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
        let parsed = plain.then(|| digits.parse::<u64>().ok()).flatten();
        parsed.ok_or_else(|| wrong(position, format!("{range:?} is not a range of numbers")))
    };
    let (from, to, step) = (number(first)?, number(last)?, number(step)?);
    let padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
    // ClusterShell takes an end of several zeros for 0.
    if (padded(first) || (padded(last) && to > 0)) && first.len() != last.len() {
        return Err(wrong(position, format!("{range:?}: padded numbers of different lengths")));
    }
    if !span.contains('-') && step != 1 {
        return Err(wrong(position, format!("{range:?}: a step without a range")));
    }
    if from > to || step == 0 {
        return Err(wrong(position, format!("{range:?} runs backwards")));
    }
    if (to - from) / step >= MOST as u64 {
        return Err(wrong(position, format!("more than {MOST} hosts")));
    }
    let width = if padded(first) { first.len() } else { 0 };
    Ok((from..=to).step_by(step as usize).map(|n| format!("{n:0width$}")).collect())
}
