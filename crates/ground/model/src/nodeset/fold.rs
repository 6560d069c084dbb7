//! From sets to the shortest text that means the same, as ClusterShell writes it.

use super::name::{Name, by_number, fill};
use std::collections::{BTreeMap, BTreeSet};

/// One index position: which of its numbers, ascending.
type Axis = Vec<u32>;
/// All names whose indexes are one of each axis.
type Block = Vec<Axis>;

/// Names of one pattern as few blocks.
pub(super) struct Blocks {
    /// The numbers that occur at each position, ascending.
    numbers: Vec<Vec<String>>,
    blocks: Vec<Block>,
}

/// The folded text of a whole set.
pub(super) fn fold<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let parts = by_pattern(names).into_iter().flat_map(|(pattern, rows)| {
        let blocks = Blocks::new(&rows);
        blocks.texts().map(|axes| fill(pattern, &axes)).collect::<Vec<_>>()
    });
    parts.collect::<Vec<_>>().join(",")
}

/// The order of listings: patterns by their text, then block after block.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<&'a str> {
    let groups = by_pattern(names).into_values().flat_map(|rows| {
        if rows[0].indexes.len() < 2 {
            return rows.into_iter().map(|n| n.text.as_str()).collect::<Vec<_>>();
        }
        let texts: BTreeMap<Vec<&str>, &str> =
            rows.iter().map(|n| (n.indexes.iter().map(String::as_str).collect(), n.text.as_str())).collect();
        let blocks = Blocks::new(&rows);
        blocks.rows().filter_map(|row| texts.get(&row).copied()).collect()
    });
    groups.collect()
}

fn by_pattern<'a>(names: impl Iterator<Item = &'a Name>) -> BTreeMap<&'a str, Vec<&'a Name>> {
    let mut patterns: BTreeMap<&str, Vec<&Name>> = BTreeMap::new();
    names.for_each(|name| patterns.entry(&name.pattern).or_default().push(name));
    patterns
}

impl Blocks {
    fn new(rows: &[&Name]) -> Blocks {
        let axes = rows.first().map_or(0, |n| n.indexes.len());
        let numbers: Vec<Vec<String>> = (0..axes)
            .map(|axis| {
                let mut all: Vec<String> = rows.iter().map(|n| n.indexes[axis].clone()).collect();
                all.sort_by(|a, b| by_number(a, b));
                all.dedup();
                all
            })
            .collect();
        let place = |axis: usize, index: &String| {
            numbers[axis].binary_search_by(|n| by_number(n, index)).expect("it was collected above") as u32
        };
        // Most sets are a whole block, and need no search.
        let product = numbers.iter().map(Vec::len).try_fold(1usize, usize::checked_mul);
        let blocks = if product == Some(rows.len()) {
            vec![numbers.iter().map(|n| (0..n.len() as u32).collect()).collect()]
        } else {
            let single = |n: &&Name| n.indexes.iter().enumerate().map(|(axis, i)| vec![place(axis, i)]).collect();
            merged(rows.iter().map(single).collect(), &numbers)
        };
        Blocks { numbers, blocks }
    }

    /// Each block as folded texts, one a position.
    fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        self.blocks.iter().map(|block| {
            let axes = block.iter().zip(&self.numbers);
            axes.map(|(axis, numbers)| span(axis.iter().map(|i| numbers[*i as usize].as_str()))).collect()
        })
    }

    /// Every combination of indexes, the last one turning fastest.
    fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.blocks.iter().flat_map(|block| {
            let mut rows: Vec<Vec<&str>> = vec![Vec::new()];
            for (axis, numbers) in block.iter().zip(&self.numbers) {
                let longer = rows.iter().flat_map(|row| {
                    axis.iter().map(move |i| row.iter().copied().chain([numbers[*i as usize].as_str()]).collect())
                });
                rows = longer.collect();
            }
            rows
        })
    }
}

/// Joins blocks that differ in one position only until none are left.
/// ClusterShell's way, so that the result is its: neighbours in the order of
/// [`sort`] first, all pairs when that brings nothing more.
fn merged(mut blocks: Vec<Block>, numbers: &[Vec<String>]) -> Vec<Block> {
    let ranks: Vec<Vec<u32>> = numbers.iter().map(|n| as_text(n)).collect();
    let mut all_pairs = false;
    loop {
        sort(&mut blocks, &ranks);
        let before = blocks.len();
        blocks = pass(blocks, all_pairs);
        match (blocks.len() == before, all_pairs) {
            (true, true) => return blocks,
            (true, false) => all_pairs = true,
            (false, _) => {}
        }
    }
}

fn pass(blocks: Vec<Block>, all_pairs: bool) -> Vec<Block> {
    let mut left: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
    for at in 0..left.len() {
        let Some(mut block) = left[at].take() else { continue };
        for other in left[at + 1..].iter_mut() {
            let Some(candidate) = other else { continue };
            match only_difference(&block, candidate) {
                Some(axis) => {
                    block[axis].append(&mut candidate[axis]);
                    block[axis].sort_unstable();
                    *other = None;
                }
                None if all_pairs => {}
                None => break,
            }
        }
        left[at] = Some(block);
    }
    left.into_iter().flatten().collect()
}

/// Blocks have no name in common, so where all other positions are equal, this one is disjoint.
fn only_difference(a: &Block, b: &Block) -> Option<usize> {
    let mut differing = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y).map(|(axis, _)| axis);
    let first = differing.next()?;
    differing.next().is_none().then_some(first)
}

/// Larger blocks first; then position by position more numbers first, then by first and last number.
fn sort(blocks: &mut [Block], ranks: &[Vec<u32>]) {
    blocks.sort_by_cached_key(|block| {
        let size: u128 = block.iter().map(|axis| axis.len() as u128).product();
        let axis = |(axis, ranks): (&Axis, &Vec<u32>)| {
            let rank = |i: Option<&u32>| i.map(|i| ranks[*i as usize]);
            (std::cmp::Reverse(axis.len()), rank(axis.first()), rank(axis.last()))
        };
        (std::cmp::Reverse(size), block.iter().zip(ranks).map(axis).collect::<Vec<_>>())
    });
}

/// The place of each number among all when they are compared as texts, "10" before "9".
fn as_text(numbers: &[String]) -> Vec<u32> {
    let sorted: BTreeSet<(&String, usize)> = numbers.iter().enumerate().map(|(i, n)| (n, i)).collect();
    let mut ranks = vec![0; numbers.len()];
    for (rank, (_, i)) in sorted.into_iter().enumerate() {
        ranks[i] = rank as u32;
    }
    ranks
}

/// A run of numbers within brackets.
struct Run<'a> {
    first: &'a str,
    last: &'a str,
    /// The width that numbers must have to belong to it, when it is padded.
    width: Option<usize>,
}

impl Run<'_> {
    fn pads_as(&self, number: &str) -> bool {
        self.width.map_or(!padded(number), |width| number.len() == width)
    }
}

/// `1`, or `[1-3,7]`. A run goes on while the padding stays what it was. As
/// ClusterShell has it, a run after a gap takes the padding over from a single
/// number before it: `[00,10-99,100]`, but `[00-01,10-100]`.
fn span<'a>(numbers: impl Iterator<Item = &'a str>) -> String {
    let mut runs: Vec<Run> = Vec::new();
    for number in numbers {
        let own = padded(number).then_some(number.len());
        let width = match runs.last_mut() {
            Some(run) if run.pads_as(number) && successor(run.last) == number => {
                run.last = number;
                continue;
            }
            Some(run) if run.pads_as(number) && run.first == run.last => run.width,
            _ => own,
        };
        runs.push(Run { first: number, last: number, width });
    }
    let single = |run: &Run| run.first == run.last;
    let text = |run: &Run| if single(run) { run.first.to_string() } else { format!("{}-{}", run.first, run.last) };
    let folded = runs.iter().map(text).collect::<Vec<_>>().join(",");
    if matches!(&runs[..], [run] if single(run)) { folded } else { format!("[{folded}]") }
}

fn padded(number: &str) -> bool {
    number.len() > 1 && number.starts_with('0')
}

/// One more, without a bound on the number of digits; wider only when all are nines.
fn successor(number: &str) -> String {
    let mut digits = number.as_bytes().to_vec();
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return String::from_utf8(digits).expect("digits");
        }
        *digit = b'0';
    }
    format!("1{}", "0".repeat(number.len()))
}
