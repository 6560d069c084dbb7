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
