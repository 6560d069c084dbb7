//! Names of jobs by a pattern.

/// Whether a text fits a pattern: `*` is any text, other characters are literal. It backtracks to the last star only,
/// so that it is never slow.
pub fn pattern_fits(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < t.len() {
        if p.get(i) == Some(&'*') {
            star = Some((i, j));
            i += 1;
        } else if p.get(i) == Some(&t[j]) {
            (i, j) = (i + 1, j + 1);
        } else if let Some((at, from)) = star {
            (i, j, star) = (at + 1, from + 1, Some((at, from + 1)));
        } else {
            return false;
        }
    }
    p[i..].iter().all(|c| *c == '*')
}
