//! Makes the line for the job's shell from the words after bsub's options.

use homing_model::RawText;
use homing_model::text::quoted;

/// Joins the words with blanks, as LSF does. The first is not quoted, so that `bsub 'a; b'` is two commands. A later
/// word that is empty or holds blanks or quotes was one word to the user's shell, and is quoted to stay one.
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
}
