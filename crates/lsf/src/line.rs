//! From the words after bsub's options to the line that the job's shell gets.

use homing_model::RawText;
use homing_model::text::quoted;

/// Joins the words as LSF does: with blanks. The first is taken as it is, so
/// that `bsub 'a; b'` is two commands; a later word that holds blanks, quotes
/// or nothing was one word to the user's shell and stays one.
pub fn command_line(words: &[RawText]) -> RawText {
    let mut line = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(b' ');
        }
        let apart = word.0.is_empty() || word.0.iter().any(|b| b.is_ascii_whitespace() || b"'\"\\".contains(b));
        if at > 0 && apart { line.extend(quoted(&word.0)) } else { line.extend(&word.0) }
    }
    RawText(line)
}

/// The words of a shell line that may be file names, for finding its data.
pub fn words_of(line: &str) -> Vec<String> {
    let plain = |w: &String| !w.is_empty() && !w.starts_with('-');
    let cut = line.replace([';', '|', '&', '<', '>', '(', ')'], " ");
    let split = shlex::split(&cut).unwrap_or_else(|| cut.split_whitespace().map(String::from).collect());
    // `--in=FILE` and `if=FILE` name files too.
    split
        .iter()
        .flat_map(|w| [Some(w.clone()), w.split_once('=').map(|(_, v)| v.to_string())])
        .flatten()
        .filter(plain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        command_line(&words.iter().map(|w| RawText::from(*w)).collect::<Vec<_>>()).display()
    }

    #[test]
    fn a_line_stays_a_line_and_a_word_a_word() {
        assert_eq!(line(&["a; b"]), "a; b");
        assert_eq!(line(&["sh", "-c", "echo a; echo 'b'"]), r"sh -c 'echo a; echo '\''b'\'''");
        assert_eq!(line(&["echo", "$HOME", ">", "x"]), "echo $HOME > x");
        assert_eq!(line(&["printf", "%s", ""]), "printf %s ''");
    }

    #[test]
    fn files_are_looked_for_in_all_words() {
        let found = words_of("gzip -c /n/a.dat >out; dd if=/n/b --in='/n/c d' | x");
        for word in ["/n/a.dat", "out", "/n/b", "/n/c d"] {
            assert!(found.contains(&word.to_string()), "{word}");
        }
        assert!(!found.contains(&"-c".to_string()));
    }
}
