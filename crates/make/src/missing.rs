//! Files for want of which a recipe says that it failed.

use std::path::PathBuf;

/// How programs say it: the C library's words, and those of compilers and linkers.
const SAID: [&str; 5] = ["No such file", "cannot find", "not found", "does not exist", "can't open"];

/// Names in a recipe's error output that may be such files.
pub fn missing_files(errors: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in errors.lines().filter(|l| SAID.iter().any(|said| l.contains(said))) {
        let words = line.split(|c: char| c.is_whitespace() || "'\"`\u{2018}\u{2019}:,()<>".contains(c));
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
    }
}
