//! Random node-set expressions mean the same here and in ClusterShell. One
//! Python process answers for all of them.

#[path = "../../../../tests/skipped.rs"]
mod skipped;

use homing_model::NodeSet;
use homing_model::nodeset::FoldStyle;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use skipped::skipped;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SERVER: &str = r#"
import sys
try:
    from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP
except ImportError:
    print("none", flush=True)
    sys.exit(0)
print("ready", flush=True)
for line in sys.stdin:
    try:
        s = NodeSet(line.rstrip("\n"), resolver=RESOLVER_NOGROUP)
        answers = [len(s), str(s) or "-", " ".join(s) or "-", "/".join(str(p) for p in s.split(3)) or "-"]
        answers.append("/".join(str(p) for p in s.contiguous()) or "-")
        s.autostep = 3
        answers.append(str(s) or "-")
        s.autostep = None
        s.fold_axis = [-1]
        answers.append(str(s) or "-")
        print("ok", *answers, sep="\t", flush=True)
    except Exception as e:
        print("error", str(e).replace("\n", " "), sep="\t", flush=True)
"#;

struct ClusterShell {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl ClusterShell {
    fn start() -> Option<ClusterShell> {
        // Debian's package works only with Debian's own Python, even if another is first in PATH.
        for python in ["/usr/bin/python3", "python3"] {
            let started = Command::new(python)
                .args(["-c", SERVER])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut child) = started else { continue };
            let to = child.stdin.take().unwrap();
            let mut from = BufReader::new(child.stdout.take().unwrap());
            let mut hello = String::new();
            from.read_line(&mut hello).unwrap();
            if hello.trim() == "ready" {
                return Some(ClusterShell { child, to, from });
            }
            child.wait().unwrap();
        }
        skipped("no Python here has ClusterShell; install clustershell");
        None
    }

    /// Returns ClusterShell's number, folded text, list, split in three, parts without gaps, text with steps, and
    /// text folded along the last position. `None` if it is an error.
    fn ask(&mut self, expression: &str) -> Option<String> {
        writeln!(self.to, "{expression}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        answer.trim_end().strip_prefix("ok\t").map(String::from)
    }
}

impl Drop for ClusterShell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ours(expression: &str) -> Option<String> {
    let set = NodeSet::parse(expression).ok()?;
    let or = |text: String| if text.is_empty() { "-".to_string() } else { text };
    let listed = set.iter().collect::<Vec<_>>().join(" ");
    let parts = set.split(3).iter().map(NodeSet::to_string).collect::<Vec<_>>().join("/");
    let contiguous = set.contiguous().iter().map(NodeSet::to_string).collect::<Vec<_>>().join("/");
    let stepped = set.folded(&FoldStyle { autostep: Some(3), axes: None });
    let last_axis = set.folded(&FoldStyle { autostep: None, axes: Some(vec![-1]) });
    let texts = [set.to_string(), listed, parts, contiguous, stepped, last_axis].map(or);
    Some([set.len().to_string(), texts.join("\t")].join("\t"))
}

/// Generates one range, also with steps, padding, and mistakes.
fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0u32..14, 0u32..6).prop_map(|(a, n)| format!("{a}-{}", a + n)),
        4 => (0u32..14).prop_map(|a| a.to_string()),
        2 => (0u32..12, 0u32..14).prop_map(|(a, n)| format!("{a:02}-{:02}", a + n)),
        2 => (0u32..12, 0u32..14, 1u32..5).prop_map(|(a, n, s)| format!("{a}-{}/{s}", a + n)),
        1 => (0u32..120).prop_map(|a| format!("{a:03}")),
        1 => "[0-9]{0,3}-?[0-9]{0,3}(/[0-9])?",
    ]
}

fn brackets() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::collection::vec(range(), 1..4).prop_map(|r| format!("[{}]", r.join(","))),
        2 => "[0-9]{1,3}",
    ]
}

fn node() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => ("[a-c]", brackets()).prop_map(|(t, r)| t + &r),
        3 => ("[ab]", brackets(), "[nm]|-ib", brackets()).prop_map(|(a, r, b, s)| a + &r + &b + &s),
        2 => ("[ab]", brackets(), "n", brackets(), "x|\\.lan|-", brackets()).prop_map(|(a, r, b, s, c, t)| a + &r + &b + &s + &c + &t),
        1 => ("[ab][0-9]?", brackets(), "[0-9]?x?").prop_map(|(a, r, b)| a + &r + &b),
        1 => "[a-c]{1,2}%?[a-c]?",
        1 => "[a-c0-9\\[\\],/-]{1,6}",
    ]
}

fn expression() -> impl Strategy<Value = String> {
    (node(), proptest::collection::vec(("[,,,,!&^]", node()), 0..6))
        .prop_map(|(first, more)| more.into_iter().fold(first, |text, (op, node)| text + &op + &node))
}

/// Whether homing rejects the expression on purpose although ClusterShell accepts it. Examples are `n1[9-10]`, which
/// ClusterShell takes for n19 to n110, negative numbers, an empty range that touches digits (`[]0`), and more than a
/// million hosts.
fn refused_on_purpose(expression: &str) -> bool {
    if ["[]", "[,", ",,", ",]", "[/", ",/"].iter().any(|odd| expression.contains(odd)) {
        return ours(expression).is_none();
    }
    let said = NodeSet::parse(expression).err().map(|e| e.message).unwrap_or_default();
    said.contains("several widths")
        || said.starts_with("more than 1000000 hosts")
        || expression.contains("[-")
        || expression.contains(",-")
        || expression.contains("--")
}

#[test]
fn random_expressions_mean_the_same() {
    let Some(reference) = ClusterShell::start() else { return };
    let reference = RefCell::new(reference);
    let (agreed, errors) = (RefCell::new(0), RefCell::new(0));
    // PROPTEST_CASES=100000 gives a longer test.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&expression(), |text| {
        if refused_on_purpose(&text) {
            return Ok(());
        }
        let (theirs, here) = (reference.borrow_mut().ask(&text), ours(&text));
        *if theirs.is_some() { &agreed } else { &errors }.borrow_mut() += 1;
        prop_assert_eq!(here, theirs, "{}", text);
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    assert!(*agreed.borrow() > 1500 && *errors.borrow() > 50, "{agreed:?} answers and {errors:?} errors compared");
}
