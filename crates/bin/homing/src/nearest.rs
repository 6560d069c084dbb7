//! Finds the name that a mistyped one probably is.

use clap::Command;

/// Returns the long option that a wrong one may be: the one that it begins, or the one that differs least.
pub fn near_option(command: &Command, name: &str) -> Option<String> {
    if !name.starts_with("--") {
        return None;
    }
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let longs: Vec<String> = shown.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
    let name = name.replace('_', "-");
    let longer: Vec<&String> = longs.iter().filter(|long| long.starts_with(&name) && name.len() > 3).collect();
    let names: Vec<&str> = longs.iter().map(|long| long.trim_start_matches('-')).collect();
    match &longer[..] {
        [one] => Some(one.to_string()),
        // Dashes are in every option, and make none similar.
        _ => nearest(name.trim_start_matches('-'), &names).map(|name| format!("--{name}")),
    }
}

/// Returns the name that differs least: by one letter, or by at most a third of the letters.
pub fn nearest<'n>(given: &str, names: &[&'n str]) -> Option<&'n str> {
    let (letters, name) =
        names.iter().map(|name| (distance(given, name), *name)).min_by_key(|(letters, _)| *letters)?;
    (letters <= 1.max(given.chars().count() / 3)).then_some(name)
}

/// Counts the letters to change, add, leave out or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!((distance("rnu", "run"), distance("run", "runs"), distance("", "ab")), (1, 1, 2));
        assert_eq!(nearest("zzzz", &["run", "runs"]), None);
    }

    #[test]
    fn dashes_make_no_options_similar() {
        let command = || Command::new("x").args(["no-fence", "dry-run"].map(|name| clap::Arg::new(name).long(name)));
        assert_eq!(near_option(&command(), "--nonsense"), None);
        assert_eq!(near_option(&command(), "--dryrun").as_deref(), Some("--dry-run"));
    }
}
