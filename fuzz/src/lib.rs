//! What must hold of each parser for any bytes at all: no panic, no hang, and
//! what was understood means the same when it is written down and read again.
//!
//! One function a parser. `cargo test` runs them over the corpora and what is
//! near to them; `make fuzz` lets libFuzzer look for more.

use homing_batch::{Batch, Files, InputOptions, Packing, command_line, compose, fill_slot, quote, tasks_file};
use homing_journal::{Counts, Journal, replay};
use homing_launch::wire::branch::{FromLeader, ToLeader};
use homing_launch::wire::stub::{FromStub, ToStub};
use homing_launch::wire::{FromWorker, ToWorker, encode, receive, receive_hello, receive_some, send_hello};
use homing_model::nodeset::NodeGroups;
use homing_model::{Event, NodeSet, RawText};
use homing_queue::plan::Queue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::io::Cursor;

/// A target by its name, which is that of its corpus too.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 7] = [
    ("wire", wire),
    ("journal", journal),
    ("nodeset", nodeset),
    ("template", template),
    ("lsf", lsf),
    ("cluster", cluster),
    ("tasks", tasks),
];

/// Tasks taken from one batch: combinations of sources are many soon.
const TASKS: usize = 200;

/// Frames of both directions, of the stub and of leaders, and the hello line.
pub fn wire(bytes: &[u8]) {
    frames::<ToWorker>(bytes);
    frames::<FromWorker>(bytes);
    frames::<ToStub>(bytes);
    frames::<FromStub>(bytes);
    frames::<ToLeader>(bytes);
    frames::<FromLeader>(bytes);
    if let Ok(facts) = receive_hello(&mut Cursor::new(bytes), |_| ()) {
        let mut again = Vec::new();
        send_hello(&mut again, &facts).expect("memory takes it");
        assert_eq!(receive_hello(&mut Cursor::new(again), |_| ()).expect("our own hello"), facts);
    }
}

fn frames<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) {
    let mut from = Cursor::new(bytes);
    while let Ok(messages) = receive_some::<T>(&mut from) {
        for message in &messages {
            let mut frame = Vec::new();
            encode(message, &mut frame).expect("as small as what arrived");
            let again = receive::<T>(&mut Cursor::new(frame)).expect("our own frame").expect("one frame");
            assert_eq!(again, *message);
        }
        if messages.is_empty() {
            break;
        }
    }
}

/// A run's folder with these bytes as its journal: reading goes on to the end,
/// and opening it for more changes no whole record.
pub fn journal(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the journal");
    std::fs::write(dir.path().join(homing_journal::FILE), bytes).expect("room for the journal");
    let read = || -> Vec<Event> { replay(dir.path()).expect("the file is there").flatten().collect() };
    let before = read();
    let mut counts = Counts::default();
    before.iter().for_each(|event| counts.add(&event.what));
    let _ = (counts.named(), homing_journal::runs(dir.path().parent().expect("a folder above")).len());
    drop(Journal::reopen(dir.path()));
    assert_eq!(read(), before);
}

/// A node set means the same when it is folded and read again.
pub fn nodeset(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // Larger sets take seconds under a sanitizer, and show nothing that smaller ones do not.
    if let Ok(set) = NodeSet::parse(&text)
        && set.len() <= 2000
    {
        let folded = set.to_string();
        assert_eq!(NodeSet::parse(&folded).expect(&folded), set, "{text:?}");
        assert_eq!(set.split(3).iter().fold(NodeSet::default(), |all, part| all.union(part)), set);
    }
    let _ = NodeSet::parse_ranges(&text);
}

/// The words of a command line, zero bytes between them; what stands behind
/// two zero bytes is standard input.
pub fn template(bytes: &[u8]) {
    let at = bytes.windows(2).position(|pair| pair == [0, 0]);
    let (words, stdin) = at.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + 2..]));
    let words = words_of(words);
    // Files that it names are not this target's: a device never ends.
    if words.iter().any(|w| w.0.starts_with(b"::::")) {
        return;
    }
    let odd = |bit: u8| bytes.first().is_some_and(|b| b & bit != 0);
    let options = InputOptions {
        null: odd(1),
        quote: odd(2),
        shuf: odd(4).then_some(7),
        packing: Packing { records: odd(8).then_some(2), ..Packing::default() },
        no_run_if_empty: odd(16),
        colsep: odd(32).then(|| RawText::from(",")),
        ..InputOptions::default()
    };
    let value = words.last().cloned().unwrap_or_default();
    if !value.0.contains(&0)
        && let Ok(text) = std::str::from_utf8(&value.0)
    {
        let quoted = String::from_utf8(quote(&value.0)).expect("text stays text when it is quoted");
        assert_eq!(shlex::split(&quoted), Some(vec![text.to_string()]), "{quoted}");
    }
    let mut inputs = Files::new("/".as_ref(), Box::new(Cursor::new(stdin.to_vec())));
    if let Ok(batch) = compose(&words, options, &mut inputs, false) {
        take(batch);
    }
}

fn take(batch: Batch) {
    for mut task in batch.take(TASKS).flatten() {
        fill_slot(&mut task.command, 3);
        let _ = command_line(&task.command);
        let line = serde_json::to_string(&task).expect("a task can be written");
        assert_eq!(serde_json::from_str::<homing_model::Task>(&line).expect(&line), task);
    }
}

/// What bsub and its kin are given: words, scripts, lists of fields, requirements.
pub fn lsf(bytes: &[u8]) {
    let words = words_of(bytes);
    if let Ok(homing_lsf::bsub::Call::Submit(own)) = homing_lsf::bsub::call(&words) {
        let _ = homing_lsf::bsub::with_script(*own, bytes);
    }
    let _ = homing_lsf::line::command_line(&words);
    let _ = homing_lsf::bsub::default_name(bytes);
    let text = String::from_utf8_lossy(bytes);
    let _ = homing_lsf::columns::Columns::parse(&text, &homing_lsf::fields::FIELDS);
    let _ = homing_lsf::env::EnvRule::parse(&text).map(|rule| rule.apply(vec![("A".into(), "b".into())]));
    let _ = (homing_lsf::choose::wanted(&text), homing_lsf::time::run_limit(&text));
    let _ = homing_lsf::tables::Show::only(&text, &[]);
    if let Ok(asked) = homing_queue::require::Requirement::all(&[&text]) {
        let known = |name: &str| (name == "mem").then_some(homing_queue::require::Value::Number(500.0));
        let _ = (asked.lacks(&known), asked.shown());
    }
}

/// A cluster file: node sets by way of its groups, which may name each other, and queues.
pub fn cluster(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(file) = toml::from_str::<toml::Table>(&text) else { return };
    let groups = Table(file.get("groups").and_then(|g| g.as_table()).cloned().unwrap_or_default());
    if let Some(hosts) = file.get("hosts").and_then(|h| h.as_str()) {
        let _ = NodeSet::parse_with(hosts, &groups).map(|set| set.to_string());
    }
    let queues = file.get("queue").and_then(|q| q.as_table()).into_iter().flatten();
    for queue in queues.filter_map(|(_, queue)| queue.clone().try_into::<Queue>().ok()) {
        let json = serde_json::to_string(&queue).expect("a queue can be written");
        assert_eq!(serde_json::from_str::<Queue>(&json).expect(&json), queue);
        let _ = NodeSet::parse_with(&queue.hosts, &groups);
    }
}

struct Table(toml::Table);

impl NodeGroups for Table {
    fn group(&self, _: Option<&str>, name: &str) -> Result<Option<String>, String> {
        Ok(self.0.get(name).and_then(|nodes| nodes.as_str()).map(String::from))
    }

    fn all(&self, _: Option<&str>) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn list(&self, _: Option<&str>) -> Result<Vec<String>, String> {
        Ok(self.0.keys().cloned().collect())
    }
}

/// A file for `--tasks`.
pub fn tasks(bytes: &[u8]) {
    if let Ok(batch) = tasks_file(Box::new(Cursor::new(bytes.to_vec())), None, "tasks", InputOptions::default()) {
        take(batch);
    }
}

fn words_of(bytes: &[u8]) -> Vec<RawText> {
    bytes.split(|b| *b == 0).map(|word| RawText(word.to_vec())).collect()
}
