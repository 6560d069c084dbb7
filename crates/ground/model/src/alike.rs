//! Merges equal messages of several hosts into one line, with the hosts folded.

use crate::NodeSet;

/// Formats hosts as `n[1-3] (3)`, without the count for one host.
pub fn label(hosts: &NodeSet) -> String {
    if hosts.len() > 1 { format!("{hosts} ({})", hosts.len()) } else { hosts.to_string() }
}

/// Returns one line for each message, in the order of first appearance: `n[2-4] (3): no route`. A host's own name in
/// its message is replaced by the folded hosts, and such a line needs no prefix: `host n[2-4] cannot be reached`. In
/// a command between back quotes, which no shell would run for several hosts, the name becomes HOST. The words of ssh
/// keep the name of one host, since ssh never had a folded one.
pub fn folded<'a>(messages: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let messages = messages.into_iter().map(|(host, text)| (host, around(text, host)));
    let told = gathered(messages).into_iter();
    told.map(|(hosts, pieces)| match joined(&pieces, &hosts) {
        (text, true) => text,
        (text, false) => format!("{}: {text}", label(&hosts)),
    })
    .collect()
}

/// As [`folded`], for texts that name their own host. A text that names several of `hosts`, or none, stays as it is.
pub fn folded_texts<'a>(hosts: &[String], texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let parted = texts.into_iter().map(|text| {
        let mut about = hosts.iter().map(|host| (host, around(text, host))).filter(|(_, pieces)| pieces.len() > 1);
        match (about.next(), about.next()) {
            (Some((host, pieces)), None) => (host.as_str(), pieces),
            _ => ("", vec![text]),
        }
    });
    let lines = gathered(parted.collect::<Vec<_>>()).into_iter();
    lines.map(|(hosts, pieces)| joined(&pieces, &hosts).0).collect()
}

/// Joins the pieces with the hosts between them. Also returns whether the text names the hosts.
fn joined(pieces: &[&str], hosts: &NodeSet) -> (String, bool) {
    let (mut text, mut named) = (String::new(), false);
    for (n, piece) in pieces.iter().enumerate() {
        let in_command = text.matches('`').count() % 2 == 1;
        match n {
            0 => {}
            _ if in_command && hosts.len() > 1 => text += "HOST",
            _ if is_of_ssh(&text) => text.extend(hosts.iter().next()),
            _ => {
                // A command in the line is no subject of it.
                named |= !in_command;
                text += &hosts.to_string();
            }
        }
        text += piece;
    }
    (text, named)
}

/// Whether a text ends within the words of ssh, which go on to a semicolon.
fn is_of_ssh(text: &str) -> bool {
    text.rfind("ssh: ").is_some_and(|at| !text[at..].contains("; "))
}

/// Groups equal things, each with all its hosts, in the order of first appearance.
pub fn gathered<'a, T: PartialEq>(all: impl IntoIterator<Item = (&'a str, T)>) -> Vec<(NodeSet, T)> {
    let mut kinds: Vec<(Vec<String>, T)> = Vec::new();
    for (host, thing) in all {
        match kinds.iter_mut().find(|(_, known)| *known == thing) {
            Some((hosts, _)) => hosts.push(host.into()),
            None => kinds.push((vec![host.into()], thing)),
        }
    }
    kinds.into_iter().map(|(hosts, thing)| (hosts.into_iter().collect(), thing)).collect()
}

/// Splits a text at each occurrence of a word.
fn around<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(word) {
        if at >= begin && is_word(&text[..at], &text[at + word.len()..]) {
            pieces.push(&text[begin..at]);
            begin = at + word.len();
        }
    }
    pieces.push(&text[begin..]);
    pieces
}

/// Whether the text between `before` and `behind` is a whole name: `n1` is not in `n10`, `n1-ib` or `n1.example.org`.
fn is_word(before: &str, behind: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut next = behind.chars();
    let (first, second) = (next.next(), next.next());
    let goes_on = first.is_some_and(|c| part(c) || c == '.' && second.is_some_and(part));
    !goes_on && !before.ends_with(|c| part(c) || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_folded_by_the_one_host_that_they_name() {
        let hosts: Vec<String> = (1..=12).map(|n| format!("n{n}")).collect();
        let full = |n: u32| format!("n{n}:/data/brick is not empty; it may belong to another volume");
        let own = ["too few hosts", "n1 and n2 are one machine", "n3: /mnt holds files"].map(String::from);
        let texts: Vec<String> = (1..=12).map(full).chain(own).collect();
        let told = folded_texts(&hosts, texts.iter().map(String::as_str));
        let first = "n[1-12]:/data/brick is not empty; it may belong to another volume";
        assert_eq!(told, [first, "too few hosts", "n1 and n2 are one machine", "n3: /mnt holds files"]);
    }

    #[test]
    fn what_differs_in_the_name_alone_is_the_same() {
        let said = [
            ("n2", "host n2 cannot be reached: no n2"),
            ("n10", "no route"),
            ("n3", "host n3 cannot be reached: no n3"),
            ("n1", "no route"),
            ("n4", "n40 and n4.example.org refuse"),
        ];
        let lines = folded(said);
        let reached = "host n[2-3] cannot be reached: no n[2-3]";
        assert_eq!(lines, [reached, "n[1,10] (2): no route", "n4: n40 and n4.example.org refuse"]);
    }

    #[test]
    fn the_words_of_ssh_name_a_host_that_ssh_was_given() {
        let text = |host: &str| {
            format!("host {host} is unknown: ssh: Could not resolve hostname {host}: not known; look at {host}")
        };
        let (n2, n3) = (text("n2"), text("n3"));
        let line = "host n[2-3] is unknown: ssh: Could not resolve hostname n2: not known; look at n[2-3]";
        assert_eq!(folded([("n3", n3.as_str()), ("n2", &n2)]), [line]);
        let bare = |host: &str| format!("ssh: connect to host {host} port 22: refused");
        let (n2, n3) = (bare("n2"), bare("n3"));
        assert_eq!(
            folded([("n2", n2.as_str()), ("n3", &n3)]),
            ["n[2-3] (2): ssh: connect to host n2 port 22: refused"]
        );
    }

    #[test]
    fn a_command_for_several_hosts_names_none_of_them() {
        let key = |host: &str| format!("host {host}: no key of it is on record: `ssh {host}` once");
        let (one, two) = (key("n1"), key("n2"));
        let told = folded([("n1", one.as_str()), ("n2", two.as_str())]);
        assert_eq!(told, ["host n[1-2]: no key of it is on record: `ssh HOST` once"]);
        assert_eq!(folded([("n1", one.as_str())]), ["host n1: no key of it is on record: `ssh n1` once"]);
        let bare = folded([("n1", "try `ssh n1`"), ("n2", "try `ssh n2`")]);
        assert_eq!(bare, ["n[1-2] (2): try `ssh HOST`"]);
        assert_eq!(folded([("n1", "try `ssh n1`")]), ["n1: try `ssh n1`"]);
    }

    #[test]
    fn a_hundred_hosts_are_one_line_and_names_at_both_ends_count() {
        let names: Vec<String> = (1..=100).map(|n| format!("n{n}")).collect();
        assert_eq!(folded(names.iter().map(|n| (n.as_str(), "down"))), ["n[1-100] (100): down"]);
        assert_eq!(folded([("a", "a"), ("b", "b")]), ["a,b"]);
    }
}
