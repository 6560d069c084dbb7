//! Formats a command line as a user would type it again.

use homing_model::RawText;
use homing_model::text::WordReader;
use std::path::Path;

/// Returns the words of a run's command line, quoted where a shell would split them. The program is without its
/// folder.
pub fn command_line(argv: &[RawText]) -> String {
    let word = |(at, word): (usize, &RawText)| {
        let name = Path::new(word.as_os()).file_name().filter(|_| at == 0);
        WordReader::Person.quoted(&name.map_or_else(|| word.display(), |n| n.to_string_lossy().into_owned()))
    };
    argv.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether this is the command line of a build, `homing make`. For a build, make knows which recipes are left.
pub fn is_build(argv: &[RawText]) -> bool {
    argv.get(1).is_some_and(|word| word.0 == b"make")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_take_apart_are_quoted() {
        let argv = ["/opt/bin/homing", "run", "wc -l <{}", ":::", "it's", "", "a/b.c", "$(x)"].map(RawText::from);
        assert_eq!(command_line(&argv), r"homing run 'wc -l <{}' ::: 'it'\''s' '' a/b.c '$(x)'");
    }
}
