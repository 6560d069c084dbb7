//! Counts faults of style in the comments and messages of each crate and in the manual, against ceilings that only fall.
//! The rules are in CONTRIBUTING.md, under "Language". `make pages` lowers the ceilings to the counts. Also finds names of
//! types that more than two crates use, and that therefore name no subject.

use proc_macro2::{TokenStream, TokenTree};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A comment, paragraph or message does not begin with one of these.
static OPENER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?-u)^(What|Who|Whoever|Those|That which|Nobody|Whatever)\b"));
/// Plain words take their place: return, report, send, request, print, is.
static VERB: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i-u)\b(tells?|told|telling|said|says?|saying|asks?|asked|asking|hears?|heard|stands?|stood)\b")
});
static WHAT: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i-u)\bwhat\b"));
static WORD: LazyLock<Regex> = LazyLock::new(|| regex(r"[A-Za-z']+"));
static SENTENCE_END: LazyLock<Regex> = LazyLock::new(|| regex(r"[.!?][ \n]+"));
static CODE: LazyLock<Regex> = LazyLock::new(|| regex(r"`[^`]*`"));
/// A string literal that a person reads: three words in a row, and no line of a script.
static PROSE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?-u)[A-Za-z]{2,},? [A-Za-z]+,? [a-z]{2,}"));
static SCRIPT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?-u)\$[A-Za-z({]|;;|\|\||&&|>&2|; (do|then|fi)\b|^#!|SELECT "));
/// A value in a message: its name is no word that a person reads.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| regex(r"\{[^}]*\}"));
/// Words of a sentence that is counted as long.
const LONG: usize = 30;
/// The declaration of a type. An indented `type` is one that a trait names.
static TYPE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m)^(?:[ ]*(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|union)|(?:pub(?:\([a-z]+\))? )?type) ([A-Z][A-Za-z0-9]*)",
    )
});
/// Most crates that may have a type of the same name.
const SHARED: usize = 2;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// The kinds of faults, in the order of the columns of tests/language.txt.
const KINDS: [&str; 4] =
    ["openers", "verbs of data flow (tell, say, ask, hear, stand)", "uses of \"what\"", "sentences over 30 words"];

/// Faults of one crate, or of the manual: for each kind, a line `FILE:LINE: WORDS` a fault.
#[derive(Clone, Debug, Default)]
struct Faults([Vec<String>; 4]);

impl Faults {
    /// Adds the faults of a paragraph that begins at this line of a file. Lines of a file are lines of the paragraph.
    fn add(&mut self, paragraph: &str, file: &str, line: usize) {
        let at = |offset: usize| line + paragraph[..offset].matches('\n').count();
        let fault = |offset: usize, words: &str| format!("{file}:{}: {words}", at(offset));
        let begin = paragraph.len() - paragraph.trim_start().len();
        let Faults([openers, verbs, whats, long]) = self;
        openers.extend(OPENER.find(&paragraph[begin..]).map(|found| fault(begin, found.as_str())));
        verbs.extend(VERB.find_iter(paragraph).map(|found| fault(found.start(), found.as_str())));
        whats.extend(WHAT.find_iter(paragraph).map(|found| fault(found.start(), found.as_str())));
        let mut offset = begin;
        for sentence in SENTENCE_END.split(&paragraph[begin..]) {
            offset += paragraph[offset..].find(sentence).unwrap_or_default();
            let words: Vec<&str> = WORD.find_iter(sentence).map(|word| word.as_str()).collect();
            if words.len() > LONG {
                long.push(fault(offset, &format!("{} words: {} ...", words.len(), words[..6].join(" "))));
            }
            offset += sentence.len();
        }
    }

    fn row(&self) -> [usize; 4] {
        self.0.each_ref().map(Vec::len)
    }

    /// Returns the kinds of which there are more than `most`, each with all its faults.
    fn beyond(&self, most: &[usize; 4]) -> Vec<String> {
        let kinds = KINDS.iter().zip(&self.0).zip(most);
        let risen = kinds.filter(|((_, faults), most)| faults.len() > **most);
        risen.map(|((kind, faults), most)| format!("{kind}, at most {most}:\n  {}", faults.join("\n  "))).collect()
    }
}

/// Adds the comments of a Rust file: lines that follow each other are one paragraph.
fn rust(text: &str, file: &str, faults: &mut Faults) {
    let (mut paragraph, mut begin) = (String::new(), 0);
    for (at, line) in text.lines().chain([""]).enumerate() {
        match line.trim_start().strip_prefix("//") {
            Some(rest) => {
                begin = if paragraph.is_empty() { at + 1 } else { begin };
                paragraph = paragraph + rest.trim_start_matches(['/', '!']) + " \n";
            }
            None => faults.add(&std::mem::take(&mut paragraph), file, begin),
        }
    }
}

/// Adds the string literals of a Rust file that are prose: messages and explanations, without those of unit tests and
/// without attributes, where doc comments are. `source` is the text of the file.
fn messages(tokens: TokenStream, source: &str, file: &str, faults: &mut Faults) {
    let (mut is_attribute, mut is_test) = (false, false);
    for tree in tokens {
        match tree {
            TokenTree::Group(group) if is_attribute => is_test |= group.to_string().replace(' ', "") == "[cfg(test)]",
            TokenTree::Group(_) if std::mem::take(&mut is_test) => {}
            TokenTree::Group(group) => messages(group.stream(), source, file, faults),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value()).ok();
                if let Some(text) = text.filter(|text| PROSE.is_match(text) && !SCRIPT.is_match(text)) {
                    let offset = source.find(&literal.to_string()).unwrap_or_default();
                    let line = 1 + source[..offset].matches('\n').count();
                    // Lines of a message are no lines of the file.
                    let text = PLACEHOLDER.replace_all(&text, "x").replace("\n\n", "\r").replace('\n', " ");
                    text.split('\r').for_each(|paragraph| faults.add(&capitalised(paragraph), file, line));
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' || (is_attribute && punct.as_char() == '!') => {
                is_attribute = true;
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            _ => {}
        }
        is_attribute = false;
    }
}

/// Returns a text with a capital as its first letter: many messages follow a colon.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Adds the paragraphs and table cells of a page, without its code.
fn markdown(text: &str, file: &str, faults: &mut Faults) {
    let (mut paragraph, mut begin, mut fenced) = (String::new(), 0, false);
    for (at, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            continue;
        } else if line.is_empty() || line.starts_with(['#', '|']) {
            faults.add(&std::mem::take(&mut paragraph), file, begin);
            line.trim_matches('|').split('|').filter(|_| line.starts_with('|')).for_each(|cell| {
                faults.add(&CODE.replace_all(cell, "x"), file, at + 1);
            });
        } else {
            begin = if paragraph.is_empty() { at + 1 } else { begin };
            paragraph = paragraph + &CODE.replace_all(line.trim_matches([' ', '-', '*']), "x") + " \n";
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("ARCHITECTURE.md").exists()).unwrap()
}

/// Returns files below a folder with this ending.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == ending) {
                found.push(entry);
            }
        }
    }
    found
}

/// Counts the faults of each crate's comments, of its messages, and of all pages together.
fn counted() -> BTreeMap<String, Faults> {
    let mut all: BTreeMap<String, Faults> = BTreeMap::new();
    for path in files(&root().join("crates"), "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        rust(&text, &below_root(&path), all.entry(crate_of(&path)).or_default());
        if path.iter().any(|part| part == "src") && !path.iter().any(|part| part == "tests" || part == "tests.rs") {
            let faults = all.entry(format!("{}:messages", crate_of(&path))).or_default();
            messages(text.parse().unwrap(), &text, &below_root(&path), faults);
        }
    }
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    for path in files(&root().join("docs"), "md").into_iter().chain(own) {
        let is_generated = ["reference.md", "cluster-keys.md", "check-codes.md", "lsf-options.md"]
            .iter()
            .any(|name| path.ends_with(name));
        if !is_generated {
            let text = std::fs::read_to_string(&path).unwrap();
            markdown(&text, &below_root(&path), all.entry("docs".into()).or_default());
        }
    }
    all
}

fn below_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Returns the crate of a source file, as `layer/name`.
fn crate_of(path: &Path) -> String {
    let below = path.strip_prefix(root().join("crates")).unwrap();
    below.components().take(2).collect::<PathBuf>().display().to_string()
}

#[test]
fn the_name_of_a_type_is_of_its_subject() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(&root().join("crates"), "rs").iter().filter(|path| path.iter().any(|part| part == "src")) {
        for found in TYPE.captures_iter(&std::fs::read_to_string(path).unwrap()) {
            crates.entry(found[1].to_string()).or_default().insert(crate_of(path));
        }
    }
    let vague: Vec<_> = crates.iter().filter(|(_, crates)| crates.len() > SHARED).collect();
    assert!(crates.len() > 1000 && vague.is_empty(), "name the subject, as in CephLayout: {vague:#?}");
}

fn read(text: &str) -> BTreeMap<String, [usize; 4]> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_string();
        let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
        Some((name, numbers.try_into().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn faults_of_style_only_fall() {
    let file = root().join("tests/language.txt");
    let now = counted();
    let before = read(&std::fs::read_to_string(&file).unwrap_or_default());
    let none = [0; 4];
    let beyond = |(name, faults): (&String, &Faults)| -> Vec<String> {
        let kinds = faults.beyond(before.get(name).unwrap_or(&none));
        kinds.into_iter().map(|kind| format!("{name}: {kind}")).collect()
    };
    let risen: Vec<String> = now.iter().flat_map(beyond).collect();
    assert!(
        risen.is_empty(),
        "more faults of style than tests/language.txt allows; reword (\"Language\" in CONTRIBUTING.md):\n{}",
        risen.join("\n")
    );
    let fallen = now.iter().any(|(name, faults)| before.get(name).is_some_and(|most| *most != faults.row()));
    if std::env::var_os("UPDATE").is_some() {
        let mut text = "# crate, openers, verbs, what, sentences over 30 words; a number only falls\n".to_string();
        for (name, faults) in now.iter().filter(|(_, faults)| faults.row() != none) {
            let [openers, verbs, whats, long] = faults.row();
            let _ = writeln!(text, "{name} {openers} {verbs} {whats} {long}");
        }
        std::fs::write(&file, text).unwrap();
    } else {
        assert!(!fallen, "fewer faults than tests/language.txt allows: `make pages` lowers its numbers");
    }
}

#[test]
fn openers_verbs_and_long_sentences_are_found() {
    let mut faults = Faults::default();
    rust("/// What a host is told.\n/// It says what.\nfn f() {}\n// Returns the host.\n", "a.rs", &mut faults);
    assert_eq!(faults.row(), [1, 2, 2, 0]);
    let verbs = "verbs of data flow (tell, say, ask, hear, stand), at most 1:\n  a.rs:1: told\n  a.rs:2: says";
    assert_eq!(faults.beyond(&[1, 1, 2, 0]), [verbs]);
    let mut faults = Faults::default();
    let source = r#"#[doc = "it says what it says"] fn f() { bail!("what the host said: {e}", "$x says so ok") }
        #[cfg(test)] mod tests { fn f() { bail!("it says that it is") } } const A: &str = "Who asks for it";"#;
    messages(source.parse().unwrap(), source, "a.rs", &mut faults);
    assert_eq!(faults.row(), [2, 2, 1, 0]);
    assert_eq!(faults.0[0], ["a.rs:1: What", "a.rs:2: Who"]);
    let mut faults = Faults::default();
    let long = "word ".repeat(31);
    markdown(&format!("Those `tell` it.\n\n| Short. {long}. | who says |\n\n    it says\n"), "a.md", &mut faults);
    assert_eq!(faults.row(), [1, 1, 0, 1]);
    assert_eq!(faults.0[3], ["a.md:3: 31 words: word word word word word word ..."]);
}
