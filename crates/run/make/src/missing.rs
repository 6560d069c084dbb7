//! Finds the names of missing files in the error output of a recipe. If such a file exists at a new look, the recipe
//! runs once more (`connection`).

use std::path::PathBuf;

/// How programs report a missing file: the C library's texts, and those of compilers and linkers.
const SAID: [&str; 5] = ["No such file", "cannot find", "not found", "does not exist", "can't open"];

/// Returns a line without its origin: `/bin/sh: 1: `, `/bin/bash: line 1: ` or `foo.c:3:10: `. An origin names a
/// shell, a script or a source, which are not missing.
fn unattributed(line: &str) -> &str {
    let numbered = |rest: &str| rest.trim_start().trim_start_matches("line ").starts_with(|c: char| c.is_ascii_digit());
    line.split_once(':').filter(|(_, rest)| numbered(rest)).map_or(line, |(_, rest)| rest)
}

/// Returns names in a recipe's error output that may be such files.
pub fn missing_files(errors: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in errors.lines().filter(|l| SAID.iter().any(|said| l.contains(said))) {
        let words = unattributed(line).split(|c: char| c.is_whitespace() || "'\"`\u{2018}\u{2019}:,()<>".contains(c));
        for word in words.map(|w| w.trim_end_matches('.')) {
            let path = PathBuf::from(word);
            if (word.contains('.') || word.contains('/')) && word.len() < 4096 && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_the_words_of_many_programs() {
        let has = |text: &str, name: &str| missing_files(text).contains(&PathBuf::from(name));
        assert!(has("foo.c:3:10: fatal error: gen/tab.h: No such file or directory", "gen/tab.h"));
        assert!(has("ar: lapi.o: No such file or directory", "lapi.o"));
        assert!(has("/usr/bin/ld: cannot find ./x.o: No such file", "./x.o"));
        assert!(has("gcc: error: \u{2018}a.c\u{2019}: No such file or directory", "a.c"));
        assert!(missing_files("x.c:1: error: expected ;").is_empty());
        assert!(has("/bin/sh: 1: ./gen.sh: not found", "./gen.sh"));
    }

    #[test]
    fn a_shell_that_lacks_a_command_is_not_missing_itself() {
        for said in [
            "/bin/sh: 1: foo: not found",
            "/bin/bash: line 1: foo: command not found",
            "/data/tool.sh: 3: cannot open foo: No such file",
            "foo.c:3:10: fatal error: tab: No such file or directory",
        ] {
            assert_eq!(missing_files(said), [] as [PathBuf; 0], "{said}");
        }
    }
}
