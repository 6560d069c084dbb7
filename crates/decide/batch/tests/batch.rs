//! Tests batches through the public interface: sources, limits, task files, errors.

use homing_batch::{Batch, BatchError, Files, InputOptions, Packing, compose, tasks_file};
use homing_model::{Command, RawText, Task};
use std::io::{BufReader, Cursor, Read};

fn words(words: &[&str]) -> Vec<RawText> {
    words.iter().map(|w| RawText::from(*w)).collect()
}

fn batch(text: &[&str], options: InputOptions, stdin: &'static str) -> Result<Batch, BatchError> {
    let mut inputs = Files::new(&options.cwd, Box::new(stdin.as_bytes()));
    compose(&words(text), options, &mut inputs, false)
}

fn argv(task: Task) -> Vec<String> {
    match task.command {
        Command::Argv(words) => words.iter().map(RawText::display).collect(),
        Command::Shell(line) => panic!("a shell for {line:?}"),
    }
}

#[test]
fn a_million_tasks_are_made_as_they_are_asked_for() {
    let thousand: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    let mut text = vec!["run", ":::"];
    text.extend(thousand.iter().map(String::as_str));
    text.push(":::");
    text.extend(thousand.iter().map(String::as_str));
    let mut all = batch(&text, InputOptions::default(), "").unwrap();
    assert_eq!(all.total(), Some(1_000_000));
    assert_eq!(argv(all.next().unwrap().unwrap()), ["run", "0", "0"]);
    let last = all.last().unwrap().unwrap();
    assert_eq!(last.id, 1_000_000);
    assert_eq!(argv(last), ["run", "999", "999"]);
}

/// Endless input: only the requested bytes are read.
struct Yes;
impl Read for Yes {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        to.iter_mut().enumerate().for_each(|(i, b)| *b = b"y\n"[i % 2]);
        Ok(to.len() & !1)
    }
}

#[test]
fn standard_input_is_a_stream() {
    let mut all = compose(
        &words(&["run"]),
        InputOptions::default(),
        &mut Files::new(".".as_ref(), Box::new(BufReader::new(Yes))),
        false,
    )
    .unwrap();
    assert!(all.uses_stdin());
    assert_eq!(all.total(), None);
    assert_eq!(argv(all.nth(4).unwrap().unwrap()), ["run", "y"]);
}

#[test]
fn a_shuffled_batch_has_each_task_once_and_is_repeatable() {
    let run = |seed| {
        let options = InputOptions { shuf: Some(seed), ..Default::default() };
        let all = batch(&["r", ":::", "a", "b", "c", "d", ":::", "1", "2", "3"], options, "").unwrap();
        all.map(|t| argv(t.unwrap())[1..].concat()).collect::<Vec<_>>()
    };
    let (first, mut sorted) = (run(1), run(1));
    assert_eq!(first, sorted);
    assert_ne!(first, run(2));
    sorted.sort();
    assert_eq!(sorted, ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3", "d1", "d2", "d3"]);
}

#[test]
fn files_are_sources_and_declared_files_are_filled_in() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("list"), "a/x.fq\nb/y z.fq\n").unwrap();
    let options = InputOptions {
        cwd: dir.path().to_owned(),
        arg_files: vec!["list".into()],
        outputs: words(&["{.}.sam"]),
        inputs_extra: words(&["ref.fa", "{//}/index"]),
        ..Default::default()
    };
    let mut all = batch(&["bwa", "mem", "ref.fa"], options, "").unwrap();
    assert_eq!(all.total(), Some(2));
    assert!(!all.uses_stdin());
    let task = all.nth(1).unwrap().unwrap();
    assert_eq!(task.args, words(&["b/y z.fq"]));
    assert_eq!(task.outputs, words(&["b/y z.sam"]));
    assert_eq!(task.inputs, words(&["ref.fa", "b/index"]));
    assert_eq!(argv(task), ["bwa", "mem", "ref.fa", "b/y z.fq"]);
}

#[test]
fn a_value_keeps_its_newline_and_a_program_known_to_the_shell_gets_one() {
    let mut all = batch(&["wc", ":::", "a\nb"], InputOptions::default(), "").unwrap();
    assert_eq!(all.next().unwrap().unwrap().args, words(&["a\nb"]));
    let task = batch(&["{}", "/tmp", ":::", "cd"], InputOptions::default(), "").unwrap().next().unwrap().unwrap();
    assert_eq!(task.command, Command::Shell("cd /tmp".into()));
}

#[test]
fn what_cannot_be_is_said() {
    let message = |text: &[&str], stdin| match batch(text, InputOptions::default(), stdin) {
        Err(error) => error.to_string(),
        Ok(mut all) => all.find_map(Result::err).expect("an error").to_string(),
    };
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent").display().to_string();
    assert!(message(&["x", "::::", &absent], "").contains(&format!("{absent}: No such file")));
    assert!(message(&["x", "::::", "-", "-"], "").contains("twice"));
    assert!(message(&["x", ":::+", "a"], "").contains("use ':::'"));
    assert!(message(&["x", "::::"], "").contains("no file"));
    let nul = message(&["x"], "a\0b\n");
    assert!(nul.contains("task 1: a value holds a zero byte") && nul.ends_with("find -print0, add -0"), "{nul}");
    assert!(message(&["x", "::::", "/"], "").contains("cannot read /"));
    let tty = compose(
        &words(&["x"]),
        InputOptions::default(),
        &mut Files::new(".".as_ref(), Box::new(std::io::empty())),
        true,
    );
    assert!(matches!(tty, Err(BatchError::NoInput)));
    let sole = batch(&["x", ":::"], InputOptions::default(), "ignored\n").unwrap();
    assert_eq!((sole.total(), sole.count()), (Some(0), 0));
}

#[test]
fn a_batch_without_a_task_names_the_lack_of_each_source() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("none"), "").unwrap();
    let note = |text: &[&str], options: InputOptions| {
        let mut all = batch(text, InputOptions { cwd: dir.path().to_owned(), ..options }, "").unwrap();
        let note = all.empty_note();
        assert!(all.next().is_none(), "{text:?}");
        note
    };
    let plain = InputOptions::default;
    assert_eq!(note(&["x", "::::", "none"], plain()), "none was empty, so there are no tasks");
    assert_eq!(note(&["x", ":::"], plain()), "':::' has no value behind it, so there are no tasks");
    assert_eq!(note(&["x"], plain()), "standard input was empty, so there are no tasks");
    let blank = InputOptions { no_run_if_empty: true, ..plain() };
    assert_eq!(
        note(&["x", "::::", "none", ":::"], blank),
        "none was empty or blank, ':::' has no value behind it, so there are no tasks"
    );
    let header = InputOptions { header: true, ..plain() };
    assert_eq!(
        note(&["x", ":::", "a"], header),
        "':::' has no value behind the names of columns, so there are no tasks"
    );
}

#[test]
fn a_zero_byte_has_the_hint_for_its_input() {
    let message = |delimiter: Option<&str>, input: &'static [u8]| {
        let options = InputOptions { delimiter: delimiter.map(RawText::from), ..Default::default() };
        let mut inputs = Files::new(".".as_ref(), Box::new(input));
        let mut all = compose(&words(&["x"]), options, &mut inputs, false).unwrap();
        all.find_map(Result::err).expect("an error").to_string()
    };
    assert!(message(None, b"a\0b\0").ends_with("add -0"));
    assert!(message(Some(","), b"a\0,b").ends_with("give -0 instead of -d"));
    assert!(message(None, b"\xff\xfea\0\n\0").contains("UTF-16"));
}

/// An endless stream of one byte.
struct Endless(u8);
impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        to.fill(self.0);
        Ok(to.len())
    }
}

#[test]
fn an_item_without_end_is_refused_and_named() {
    let endless = |byte| Box::new(BufReader::new(Endless(byte)));
    let of = |byte, options| {
        let mut inputs = Files::new(".".as_ref(), endless(byte));
        let mut all = compose(&words(&["x"]), options, &mut inputs, false).unwrap();
        let said = all.next().unwrap().unwrap_err().to_string();
        assert!(all.next().is_none(), "nothing comes after it");
        said
    };
    assert!(of(0, InputOptions::default()).starts_with("standard input: item 1 is longer than 131071 bytes"));
    assert!(of(b'x', InputOptions { delimiter: Some("xy".into()), ..Default::default() }).contains("131071"));
    assert!(of(b'x', InputOptions { colsep: Some(",".into()), ..Default::default() }).contains("6291456"));
    let mut tasks = tasks_file(endless(b' '), None, "work.jsonl", InputOptions::default()).unwrap();
    let said = tasks.next().unwrap().unwrap_err().to_string();
    assert!(said.starts_with("work.jsonl: item 1 is longer than"), "{said}");
    assert!(tasks.next().is_none());
}

#[test]
fn the_longest_item_is_taken_with_its_delimiter_or_without() {
    let longest = "x".repeat(32 * 4096 - 1);
    let text = format!("a\n{longest}\n{longest}");
    let mut inputs = Files::new(".".as_ref(), Box::new(Cursor::new(text)));
    let all = compose(&words(&["run"]), InputOptions::default(), &mut inputs, false).unwrap();
    let lengths: Vec<usize> = all.map(|task| argv(task.unwrap())[1].len()).collect();
    assert_eq!(lengths, [1, longest.len(), longest.len()]);
}

/// Input that is cut off in the middle of an item.
struct Cut(&'static [u8]);
impl Read for Cut {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(to) {
            Ok(0) => Err(std::io::Error::other("cut off")),
            other => other,
        }
    }
}

#[test]
fn of_input_that_is_cut_off_the_last_item_is_never_used() {
    let made = |text: &[&str], options: InputOptions, input: &'static [u8]| {
        let mut inputs = Files::new(".".as_ref(), Box::new(BufReader::new(Cut(input))));
        let all: Vec<_> = compose(&words(text), options, &mut inputs, false).unwrap().collect();
        let (tasks, errors): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert!(matches!(errors[..], [Err(BatchError::Read { .. })]), "{text:?}");
        tasks.into_iter().map(|t| argv(t.unwrap())[1..].join(" ")).collect::<Vec<_>>()
    };
    let with = |options: InputOptions| made(&["x"], options, b"a\nb\nc");
    assert_eq!(with(InputOptions::default()), ["a", "b"]);
    assert_eq!(
        with(InputOptions { packing: Packing { records: Some(2), ..Default::default() }, ..Default::default() }),
        ["a b"]
    );
    assert_eq!(
        with(InputOptions { packing: Packing { records: Some(3), ..Default::default() }, ..Default::default() }),
        [""; 0]
    );
    assert_eq!(with(InputOptions { no_run_if_empty: true, ..Default::default() }), ["a", "b"]);
    assert_eq!(with(InputOptions { shuf: Some(1), ..Default::default() }), [""; 0]);
    assert_eq!(made(&["x"], InputOptions { null: true, ..Default::default() }, b"a\0b\0c"), ["a", "b"]);
    let commas = || InputOptions { delimiter: Some(",;".into()), ..Default::default() };
    assert_eq!(made(&["x"], commas(), b"a,;b,;c,"), ["a", "b"]);
    // The source that varies fastest is needed for the number of every task: no task is known before its end.
    assert_eq!(made(&["x", ":::", "1", "2", "::::", "-"], InputOptions::default(), b"a\nb"), [""; 0]);
    assert_eq!(made(&["x", "::::", "-", ":::", "1", "2"], InputOptions::default(), b"a\nb"), ["a 1", "a 2"]);
    assert_eq!(made(&["x", ":::", "1", "2", "::::+", "-"], InputOptions::default(), b"a\nb"), ["1 a"]);
    let cut = Box::new(BufReader::new(Cut(b"{\"command\": \"true\"}\n{\"command\": \"false\"}")));
    let tasks: Vec<_> = tasks_file(cut, None, "-", InputOptions::default()).unwrap().collect();
    assert!(matches!(tasks[..], [Ok(_), Err(BatchError::Read { .. })]), "{tasks:?}");
}

fn lines(text: &'static str) -> Vec<Result<Task, BatchError>> {
    let options = InputOptions { cwd: "/run".into(), ..Default::default() };
    tasks_file(Box::new(Cursor::new(text)), None, "work.jsonl", options).unwrap().collect()
}

#[test]
fn a_task_file_says_everything_about_a_task() {
    let tasks = lines(concat!(
        r#"{"command": "sort a > b", "inputs": ["a"], "outputs": ["b"], "cpus": 2, "memory": "2G", "timeout": "2m"}"#,
        "\n\n",
        r#"{"argv": ["cat", {"b64": "/w=="}, "$x"], "cwd": "sub", "env": {"A": "1"}, "memory": 5, "timeout": 1.5}"#,
    ));
    let tasks: Vec<Task> = tasks.into_iter().map(Result::unwrap).collect();
    assert_eq!(tasks[0].command, Command::Shell("sort a > b".into()));
    assert_eq!((tasks[0].cpus, tasks[0].memory, tasks[0].timeout_ms), (2, Some(2 << 30), Some(120_000)));
    assert_eq!((&tasks[0].inputs, &tasks[0].outputs), (&words(&["a"]), &words(&["b"])));
    assert_eq!(tasks[1].id, 2);
    assert_eq!(tasks[1].command, Command::Argv(vec!["cat".into(), RawText(vec![0xff]), "$x".into()]));
    assert_eq!(tasks[1].cwd, Some("/run/sub".into()));
    assert_eq!(tasks[1].env, [("A".into(), "1".into())]);
    assert_eq!((tasks[1].memory, tasks[1].timeout_ms), (Some(5), Some(1500)));
}

#[test]
fn a_bad_line_of_a_task_file_is_named() {
    for (text, want) in [
        ("{}", "neither 'command' nor 'argv'"),
        ("\n{\"comand\": \"x\"}", "line 2: unknown field `comand`"),
        ("{\"command\": \"x\", \"argv\": [\"x\"]}", "give one"),
        ("{\"argv\": []}", "empty"),
        ("{\"command\": \"x\", \"memory\": \"2Q\"}", "a size is"),
        ("{\"command\": \"x\", \"timeout\": 0}", "more than 0"),
        ("{\"command\": \"x\", \"cpus\": 0}", "at least 1"),
        ("{\"command\": \"x\\u0000\"}", "zero byte"),
        ("nonsense", "work.jsonl line 1: expected a JSON object, such as {\"command\""),
        ("\"echo a\"", "expected a JSON object"),
        ("[{\"command\": \"a\"}]", "a JSON array is not a task"),
        ("[\n{\"command\": \"a\"}\n]", "jq -c '.[]' FILE"),
        ("{\"command\":\n\"a\"}", "on one line"),
        ("{\"command\": \"x\", \"resources\": {\"gpu\": 1}}", "no host of this run has the resource \"gpu\""),
    ] {
        let error = lines(text).remove(0).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn a_value_of_a_wrong_type_is_named_with_its_key() {
    for (members, want) in [
        (r#""cpus": "2""#, r#"'cpus' is "2"; it must be a whole number"#),
        (r#""cpus": 1.5"#, "'cpus' is 1.5; it must be a whole number"),
        (r#""cpus": -1"#, "'cpus' is -1; it must be a whole number"),
        (r#""cpus": 4294967296"#, "'cpus' is 4294967296; it must be at most 4294967295"),
        (r#""outputs": "x""#, r#"'outputs' is "x"; it must be a list of texts"#),
        (r#""inputs": ["a", 1]"#, "'inputs' has 1; each must be a text"),
        (r#""env": ["A=1"]"#, r#"'env' is ["A=1"]; it must be an object of texts, such as {"LANG": "C"}"#),
        (r#""env": {"A": 1}"#, "'env': A is 1; it must be a text"),
        (r#""name": 1"#, "'name' is 1; it must be a text"),
        (r#""cwd": {"b64": "!"}"#, r#"'cwd' is {"b64":"!"}; it must be a text"#),
        (r#""after": "x""#, r#"'after' is "x"; it must be a list of names or numbers of tasks"#),
        (r#""after": [1.5]"#, "'after' has 1.5; each must be the name or the number of a task"),
        (r#""mem": [1]"#, r#"'mem' is [1]; it must be a whole number of bytes, or a size such as "4G""#),
        (r#""timeout": true"#, r#"'timeout' is true; it must be a number of seconds, or a time such as "2m""#),
        (r#""resources": {"gpu": "1"}"#, r#"'resources': gpu is "1"; it must be a number"#),
    ] {
        let line = format!("{{\"command\": \"x\", {members}}}");
        let mut tasks = tasks_file(Box::new(Cursor::new(line)), None, "t", InputOptions::default()).unwrap();
        assert_eq!(tasks.next().unwrap().unwrap_err().to_string(), format!("t line 1: {want}"), "{members}");
    }
    // Faults of other kinds keep the words of the parser.
    assert!(lines("{\"command\": \"x\"} y").remove(0).unwrap_err().to_string().contains("trailing characters (column"));
}

#[test]
fn a_mark_before_the_first_line_is_no_part_of_it() {
    let tasks = lines("\u{feff}{\"command\": \"a\"}\n{\"command\": \"b\"}");
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].as_ref().unwrap().command, Command::Argv(vec!["a".into()]));
}

#[test]
fn one_broken_line_anywhere_in_a_file_is_an_error_before_the_first_task() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("work.jsonl");
    let good = "{\"command\": \"a\"}\n";
    for (broken, want) in [
        ("{\"command\": \"b\"", "EOF"),
        ("{\"command\": \"b\", \"retires\": 1}", "`retires`"),
        ("{\"command\": \"b\", \"memory\": \"2Q\"}", "a size is"),
        ("{\"command\": \"b\", \"timeout\": -1}", "more than 0"),
        ("{\"command\": \"b\", \"cpus\": 0}", "at least 1"),
        ("[]", "array"),
    ] {
        std::fs::write(&path, format!("{good}{good}{broken}\n{good}")).unwrap();
        let from = Box::new(BufReader::new(std::fs::File::open(&path).unwrap()));
        let opened = tasks_file(from, Some(path.clone()), "work.jsonl", InputOptions::default());
        let said = opened.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(said.contains("work.jsonl line 3") && said.contains(want), "{broken}: {said}");
    }
}

#[test]
fn a_name_belongs_to_one_task_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("work.jsonl");
    let named = |name: &str| format!("{{\"name\": \"{name}\", \"command\": \"echo {name}\"}}\n");
    let open = |names: &[&str]| {
        std::fs::write(&path, names.iter().map(|name| named(name)).collect::<String>()).unwrap();
        let from = Box::new(BufReader::new(std::fs::File::open(&path).unwrap()));
        tasks_file(from, Some(path.clone()), "work.jsonl", InputOptions::default())
    };
    let said = open(&["x", "y", "x"]).err().map(|e| e.to_string());
    assert_eq!(said.as_deref(), Some("work.jsonl line 3: the task on line 1 has the name \"x\" too"));
    let all = open(&["x", "y", "xy"]).unwrap();
    assert!(!all.has_links() && all.total().is_none(), "nothing of such a file is kept");
    assert_eq!(all.count(), 3);
}

#[test]
fn tasks_of_a_file_know_what_they_run_after() {
    let dir = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let path = dir.path().join("work.jsonl");
        std::fs::write(&path, text).unwrap();
        let options = InputOptions { cwd: "/run".into(), ..Default::default() };
        let from = Box::new(BufReader::new(std::fs::File::open(&path).unwrap()));
        tasks_file(from, Some(path), "work.jsonl", options)
    };
    let after = |text: &str| read(text).unwrap().map(|task| task.unwrap().after).collect::<Vec<_>>();
    let text = "{\"command\": \"b\", \"inputs\": [\"/run/d/x\"]}\n\n{\"command\": \"a\", \"cwd\": \"d\", \"outputs\": [\"x\"]}\n\
                {\"command\": \"c\", \"\\u0061fter\": [1], \"inputs\": [\"none\"]}";
    assert_eq!(after(text), [vec![2], vec![], vec![1]]);
    assert_eq!(read(text).unwrap().total(), Some(3));
    let plain = "{\"command\": \"a\", \"inputs\": [\"x\"]}\n{\"command\": \"b\", \"name\": \"b\"}\n";
    let batch = read(plain).unwrap();
    assert!(!batch.has_links() && batch.total().is_none(), "nothing of such a file is kept");
    let text = "{\"command\": \"a\", \"outputs\": [\"x\"], \"inputs\": [\"x\"]}";
    assert_eq!(after(text), [Vec::<u64>::new()], "a file that is changed in its place");
}
