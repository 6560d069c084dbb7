//! Reads hints for placement and for the watch from a recipe's text. A wrong guess costs time, but never causes a
//! wrong result.

use std::path::{Path, PathBuf};

/// The likely work of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecipeWork {
    /// It reads many files to make one: link or archive.
    Gather,
    /// Anything else.
    Other,
}

/// A recipe as placement sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeTraits {
    /// Its folder.
    pub folder: PathBuf,
    /// Its likely work.
    pub step: RecipeWork,
}

/// Splits into words roughly as a shell does, which is enough for hints.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ";&|()<>\"'`=".contains(c)).filter(|w| !w.is_empty())
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns the text of a recipe: the argument of its shell's `-c`, or the words of a program that make starts without
/// one.
pub fn text_of<W: AsRef<str>>(words: impl Iterator<Item = W>) -> String {
    let words: Vec<W> = words.collect();
    if let [shell, .., option, text] = &words[..]
        && is_interpreter(shell.as_ref())
        && option.as_ref().starts_with('-')
        && option.as_ref().ends_with('c')
    {
        return text.as_ref().into();
    }
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}

/// Whether `-c` precedes a text for the program, and not the name of a source file: `sh`, `tcsh`, `python3`.
fn is_interpreter(program: &str) -> bool {
    let name = base(program);
    name.ends_with("sh") || name.starts_with("python")
}

/// Whether the recipe itself passes commands on. `homing on` finds the coordinator where make runs.
pub fn runs_on(text: &str) -> bool {
    let all: Vec<&str> = words(text).collect();
    all.windows(2).any(|pair| base(pair[0]) == "homing" && pair[1] == "on")
}

/// Whether the recipe runs make again. It must keep make's job server, which is a pipe of this host; its own recipes
/// are sent out one by one.
pub fn runs_make(text: &str, make: &str) -> bool {
    let program = |word: &str| ["make", "gmake", base(make)].contains(&base(word));
    words(text).any(program)
}

impl RecipeWork {
    /// Recognizes the work by the program's name and its options.
    pub fn of(text: &str) -> RecipeWork {
        let mut first = true;
        let mut compiler = false;
        let (mut objects, mut compiles) = (0, false);
        for word in words(text) {
            let name = base(word);
            if first && (name == "ar" || name == "ld" || name.ends_with("-ar") || name.ends_with("-ld")) {
                return RecipeWork::Gather;
            }
            first = false;
            compiler |= is_compiler(name);
            compiles |= word == "-c" || word == "-E" || word == "-S";
            objects += usize::from([".o", ".a", ".lo", ".la", ".so"].iter().any(|e| word.ends_with(e)));
        }
        if compiler && !compiles && objects > 0 { RecipeWork::Gather } else { RecipeWork::Other }
    }
}

/// Whether the program is a compiler: `gcc`, `clang++-15`, `x86_64-linux-gnu-gcc-12`.
fn is_compiler(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let last = plain.rsplit('-').next().unwrap_or(plain);
    ["gcc", "g++", "cc", "c++", "clang", "clang++"].contains(&last)
}

/// Options whose value is a file that the recipe makes.
const WRITES: [&str; 4] = ["-o", "-MF", "-MT", "-MQ"];

/// Returns words that may name files that it reads, relative to its folder. Files that it only writes are left out,
/// because queries to the servers would be wasted.
pub fn file_words(text: &str) -> Vec<PathBuf> {
    let text = text.replace('>', " -o ");
    let mut before = "";
    let reads = words(&text).filter(|word| !WRITES.contains(&std::mem::replace(&mut before, word)));
    let is_file = |w: &&str| w.contains('.') || homing_locate::is_remote(Path::new(w));
    let named = reads.filter(|w| !w.starts_with('-') && w.len() < 4096).filter(is_file);
    named.map(PathBuf::from).collect()
}

/// Returns folders in which the recipe may write, other than its own.
pub fn folders_named(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for word in words(text).filter(|w| w.contains('/') && w.len() < 4096) {
        let word = word.strip_prefix("-o").unwrap_or(word);
        if word.starts_with('-') {
            continue;
        }
        if let Some(parent) = folder.join(word).parent().filter(|p| !found.iter().any(|f| f == p)) {
            found.push(parent.to_path_buf());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_in_a_recipe_is_found() {
        assert!(runs_make("cd sub && make all", "make"));
        assert!(runs_make("/opt/bin/mymake -C x", "/opt/bin/mymake"));
        assert!(runs_make("for d in a b; do (cd $d; gmake); done", "make"));
        assert!(!runs_make("cc -c make.c -o make.o; cmake-ish", "make"));
    }

    #[test]
    fn the_text_is_what_an_interpreter_is_given_or_all_words() {
        let of = |words: &[&str]| text_of(words.iter());
        assert_eq!(of(&["/bin/sh", "-ec", "cc -c x.c"]), "cc -c x.c");
        assert_eq!(of(&["bash", "-o", "pipefail", "-c", "a | b"]), "a | b");
        assert_eq!(of(&["python3", "-c", "print(1)"]), "print(1)");
        assert_eq!(of(&["cc", "-c", "x.c"]), "cc -c x.c");
        assert_eq!(of(&["sh", "x.sh", "-c", "y", "z"]), "sh x.sh -c y z");
        assert_eq!(of(&[]), "");
        assert!(runs_on("cd x && /usr/bin/homing on gcc -c x.c") && !runs_on("homing run on") && !runs_on("on homing"));
    }

    #[test]
    fn links_and_archives_are_told_from_compilations() {
        assert_eq!(RecipeWork::of("ar rcu liblua.a lapi.o lcode.o"), RecipeWork::Gather);
        assert_eq!(RecipeWork::of("gcc -o lua lua.o liblua.a -lm"), RecipeWork::Gather);
        assert_eq!(RecipeWork::of("x86_64-linux-gnu-gcc-12 -shared -o z.so a.lo"), RecipeWork::Gather);
        assert_eq!(RecipeWork::of("gcc -O2 -c -o lapi.o lapi.c"), RecipeWork::Other);
        assert_eq!(RecipeWork::of("echo a.o"), RecipeWork::Other);
    }

    #[test]
    fn what_is_written_is_not_read() {
        let read = |text: &str| file_words(text).iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        assert_eq!(read("cc -c -o out/x.o x.c -I. 2>&1"), ["x.c"]);
        assert_eq!(read("hadoop fs -cat hdfs://nn/a | sort > hdfs://nn/b"), ["hdfs://nn/a"]);
        assert_eq!(read("cc -c -MD -MF d/x.d -MQ x.o -o x.o x.c"), ["x.c"]);
        assert_eq!(read("sed s/a/b/ <in.txt >out.txt && cat a.1 >> all.2"), ["in.txt", "a.1"]);
    }

    #[test]
    fn folders_are_those_of_the_words() {
        let found = folders_named("cc -I../inc -o ../out/x.o -c x.c && mv t /abs/d/t", Path::new("/p/src"));
        assert_eq!(found, [PathBuf::from("/p/src/../out"), PathBuf::from("/abs/d")]);
    }
}
