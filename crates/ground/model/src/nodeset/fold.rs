//! Folds sets into the shortest text with the same meaning, as ClusterShell writes it.

use super::name::{Name, by_number, fill};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers at one index position, as places in `Blocks::numbers`, ascending.
type Axis = Vec<u32>;
/// All names whose indexes are one of each axis.
type Block = Vec<Axis>;

/// The names of one pattern as few blocks.
pub(super) struct Blocks {
    /// The numbers that occur at each position, ascending.
    numbers: Vec<Vec<String>>,
    blocks: Vec<Block>,
}

/// Returns the folded text of a whole set.
pub(super) fn fold<'a>(names: impl Iterator<Item = &'a Name>, style: &FoldStyle) -> String {
    let parts = by_pattern(names).into_iter().flat_map(|(pattern, rows)| {
        let blocks = Blocks::new(&rows);
        blocks.texts(style).map(|axes| fill(pattern, &axes)).collect::<Vec<_>>()
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Returns the names of each part of the set whose numbers have no gap, in the order of listings.
pub(super) fn contiguous<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<Vec<String>> {
    let parts = by_pattern(names).into_iter().flat_map(|(pattern, rows)| {
        let blocks = Blocks::new(&rows);
        let of_block = |block: &Block| {
            let parts = product(blocks.numbers_of(block).map(without_gaps).collect());
            parts
                .into_iter()
                .map(|part| product(part).iter().map(|row| fill(pattern, row)).collect())
                .collect::<Vec<_>>()
        };
        blocks.blocks.iter().flat_map(of_block).collect::<Vec<_>>()
    });
    parts.collect()
}

/// Cuts ascending numbers where one is missing or the padding changes.
fn without_gaps(numbers: Vec<&str>) -> Vec<Vec<String>> {
    let numbers_of =
        |run: NumberRun| (run.first..=run.last).map(|n| format!("{n:0width$}", width = run.width)).collect();
    Cutter::runs(&numbers, None).into_iter().map(numbers_of).collect()
}

/// Returns every combination of one item of each list, the last list turning fastest.
fn product<T: Clone>(lists: Vec<Vec<T>>) -> Vec<Vec<T>> {
    lists.into_iter().fold(vec![Vec::new()], |rows, list| {
        let longer =
            rows.iter().flat_map(|row| list.iter().map(|item| [row.as_slice(), std::slice::from_ref(item)].concat()));
        longer.collect()
    })
}

/// Returns the names in the order of listings: patterns by their text, then block after block.
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

    /// Returns each block as folded texts, one for each position. A position that is not folded gives a text for each
    /// of its numbers; the first one turns fastest.
    fn texts(&self, style: &FoldStyle) -> impl Iterator<Item = Vec<String>> {
        self.blocks.iter().flat_map(|block| {
            let axes = self.numbers_of(block).enumerate().map(|(at, numbers)| match style.folds(at, block.len()) {
                true => vec![span(&numbers, style.autostep)],
                false => numbers.into_iter().map(String::from).collect(),
            });
            let backwards = product(axes.rev().collect());
            backwards.into_iter().map(|row| row.into_iter().rev().collect()).collect::<Vec<_>>()
        })
    }

    /// Returns the numbers of a block, position by position.
    fn numbers_of<'a>(&'a self, block: &'a Block) -> impl DoubleEndedIterator<Item = Vec<&'a str>> + ExactSizeIterator {
        let axes = block.iter().zip(&self.numbers);
        axes.map(|(axis, numbers)| axis.iter().map(|i| numbers[*i as usize].as_str()).collect())
    }

    /// Returns every combination of indexes, the last one turning fastest.
    fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.blocks.iter().flat_map(|block| product(self.numbers_of(block).collect()))
    }
}

/// Joins blocks that differ in one position only, until there are no such blocks. This is ClusterShell's method, so
/// the result is the same. It joins neighbours in the order of [`sort`] first. If that joins nothing, it tries all
/// pairs.
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

/// Returns the only position where two blocks differ. Blocks have no name in common, so their numbers there are
/// disjoint.
fn only_difference(a: &Block, b: &Block) -> Option<usize> {
    let mut differing = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y).map(|(axis, _)| axis);
    let first = differing.next()?;
    differing.next().is_none().then_some(first)
}

/// Sorts larger blocks first, then position by position: more numbers first, then by first and last number.
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

/// Returns the rank of each number when they are compared as texts, "10" before "9".
fn as_text(numbers: &[String]) -> Vec<u32> {
    let sorted: BTreeSet<(&String, usize)> = numbers.iter().enumerate().map(|(i, n)| (n, i)).collect();
    let mut ranks = vec![0; numbers.len()];
    for (rank, (_, i)) in sorted.into_iter().enumerate() {
        ranks[i] = rank as u32;
    }
    ranks
}

/// How a set is folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldStyle {
    /// The least count of numbers at equal distances that become `a-b/step`; `None`: never.
    pub autostep: Option<u64>,
    /// The index positions that are folded, from 0 on, or from -1 backwards; `None`: all.
    pub axes: Option<Vec<i64>>,
}

impl FoldStyle {
    /// Reports whether the position `at` of `count` is folded.
    fn folds(&self, at: usize, count: usize) -> bool {
        let is_at = |axis: &i64| usize::try_from(if *axis < 0 { axis + count as i64 } else { *axis }) == Ok(at);
        self.axes.as_ref().is_none_or(|axes| axes.iter().any(is_at))
    }
}

/// Numbers at equal distances, all of one width or all without padding.
struct NumberRun {
    first: u64,
    last: u64,
    step: u64,
    /// Digits of a padded number; 0 without padding.
    width: usize,
}

impl NumberRun {
    fn text(&self) -> String {
        let NumberRun { first, last, step, width } = self;
        match (first == last, step) {
            (true, _) => format!("{first:0width$}"),
            (false, 1) => format!("{first:0width$}-{last:0width$}"),
            (false, _) => format!("{first:0width$}-{last:0width$}/{step}"),
        }
    }
}

/// Cuts ascending numbers into runs as ClusterShell does. Numbers at a distance above 1 are a run if there are
/// `autostep` of them, and single otherwise. After such single numbers the last one begins the next run, and keeps
/// its padding: `[00,10-99,100]`, but `[00-01,10-100]`.
struct Cutter {
    autostep: Option<u64>,
    runs: Vec<NumberRun>,
    first: u64,
    last: u64,
    /// Distance of the numbers since `first`, if there are two.
    step: Option<u64>,
    digits: usize,
    padded: bool,
}

impl Cutter {
    fn runs(numbers: &[&str], autostep: Option<u64>) -> Vec<NumberRun> {
        let mut cutter: Option<Cutter> = None;
        for text in numbers {
            let (number, digits, padded) = (text.parse().unwrap_or(0), text.len(), padded(text));
            match &mut cutter {
                Some(cutter) => cutter.take(number, digits, padded),
                None => {
                    let runs = Vec::new();
                    let new = Cutter { autostep, runs, first: number, last: number, step: None, digits, padded };
                    cutter = Some(new);
                }
            }
        }
        cutter.map_or_else(Vec::new, |mut cutter| {
            cutter.close(cutter.last);
            cutter.runs
        })
    }

    fn take(&mut self, number: u64, digits: usize, padded: bool) {
        let other_width = if self.padded { digits != self.digits } else { padded };
        let distance = number.abs_diff(self.last);
        let other_step = !other_width && self.step.is_some_and(|step| step != distance);
        if other_width || other_step {
            let step = self.step.unwrap_or(1);
            // The last of single numbers begins the next run.
            if self.is_run() || other_width {
                self.close(self.last);
                (self.first, self.digits, self.padded) = (number, digits, padded);
            } else {
                if let Some(before) = self.last.checked_sub(step) {
                    self.close(before);
                }
                self.first = self.last;
            }
            self.step = other_step.then_some(distance);
        } else {
            self.step = Some(distance);
        }
        self.last = number;
    }

    /// Reports whether the numbers since `first` are written as one run.
    fn is_run(&self) -> bool {
        let Some(step) = self.step else { return true };
        let steps = (self.last - self.first) / step.max(1);
        step == 1 || self.autostep.is_some_and(|least| steps + 1 >= least)
    }

    /// Writes the numbers from `first` to `last`, as one run or each alone.
    fn close(&mut self, last: u64) {
        let (first, step) = (self.first, self.step.unwrap_or(1).max(1));
        let width = if self.padded { self.digits } else { 0 };
        if self.is_run() {
            self.runs.push(NumberRun { first, last, step, width });
            return;
        }
        let mut number = first;
        while number <= last {
            self.runs.push(NumberRun { first: number, last: number, step: 1, width });
            number += step;
        }
    }
}

/// Returns `1`, or `[1-3,7]`.
fn span(numbers: &[&str], autostep: Option<u64>) -> String {
    let runs = Cutter::runs(numbers, autostep);
    let folded = runs.iter().map(NumberRun::text).collect::<Vec<_>>().join(",");
    if matches!(&runs[..], [run] if run.first == run.last) { folded } else { format!("[{folded}]") }
}

fn padded(number: &str) -> bool {
    number.len() > 1 && number.starts_with('0')
}
