//! The order of a vault's images. Each has a number of its own in its summary; no clock decides which is newer.
//!
//! Images of dirvish and of older versions have no number. An image with a number lists those that were there before
//! it. One that no image lists is newer than all of them. Among such images, an image comes after the image whose
//! files it shares; otherwise its date decides.

use crate::image::Image;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Dates that differ by less do not contradict: a summary has local time, and clocks are set by hours.
pub const TOLERANCE: SignedDuration = SignedDuration::from_hours(24);

/// Returns the images in the order in which they were made, the oldest first.
pub fn ordered(images: Vec<Image>) -> Vec<Image> {
    let mut numbered: Vec<&Image> = images.iter().filter(|image| image.sequence.is_some()).collect();
    numbered.sort_by_key(|image| image.sequence);
    let mut listed: HashMap<&str, (u64, usize)> = HashMap::new();
    for image in numbered {
        for (at, name) in image.older.iter().enumerate() {
            listed.entry(name).or_insert((image.sequence.unwrap_or(0), at));
        }
    }
    let unlisted: HashMap<&str, &Image> = images
        .iter()
        .filter(|image| image.sequence.is_none() && !listed.contains_key(image.name.as_str()))
        .map(|image| (image.name.as_str(), image))
        .collect();
    let mut ranks = HashMap::new();
    for name in unlisted.keys() {
        rank(name, &unlisted, &mut ranks);
    }
    let key = |image: &Image| match (image.sequence, listed.get(image.name.as_str())) {
        (Some(number), _) => (number, 1, 0, Rank::default()),
        (None, Some((number, at))) => (*number, 0, *at, Rank::default()),
        (None, None) => (u64::MAX, 1, 0, ranks.get(image.name.as_str()).copied().unwrap_or_default()),
    };
    let mut keyed: Vec<_> = images.iter().map(|image| (key(image), image.completed, image.name.clone())).collect();
    keyed.sort();
    let place: HashMap<String, usize> = keyed.into_iter().enumerate().map(|(at, (.., name))| (name, at)).collect();
    let mut images = images;
    images.sort_by_key(|image| place.get(&image.name).copied());
    images
}

/// A date, and the number of images made one from another since.
type Rank = (Option<Timestamp>, u32);

/// Notes the rank of an image: its own date, or the step after its reference's rank if that is later.
fn rank<'n>(name: &'n str, images: &HashMap<&'n str, &'n Image>, ranks: &mut HashMap<&'n str, Rank>) {
    // Chains are as long as a vault has images: each step is taken once.
    let mut chain = Vec::new();
    let mut next = Some(name);
    while let Some(name) = next.filter(|name| !ranks.contains_key(name) && !chain.contains(name)) {
        chain.push(name);
        next = images.get(name).and_then(|image| image.reference.as_deref()).filter(|name| images.contains_key(name));
    }
    let mut before = next.and_then(|name| ranks.get(name)).copied();
    for name in chain.into_iter().rev() {
        let own = (images.get(name).and_then(|image| image.completed), 0);
        let rank = before.filter(|before| *before >= own).map_or(own, |(at, steps)| (at, steps + 1));
        ranks.insert(name, rank);
        before = Some(rank);
    }
}

/// Returns the images whose dates contradict their position by more than [`TOLERANCE`]: the host's clock was wrong
/// when they were made. If images contradict each other, the smaller group counts as wrong. `images`: in their order.
pub fn misdated(images: &[Image]) -> BTreeSet<String> {
    let dated: Vec<(&str, Timestamp)> =
        images.iter().filter_map(|image| Some((image.name.as_str(), image.created?))).collect();
    let dates: Vec<Timestamp> = dated.iter().map(|(_, at)| *at).collect();
    let sound = longest_rise(&dates);
    let contradicts = |at: usize| {
        let by = |other: usize| {
            let (earlier, later) = if other < at { (dates[other], dates[at]) } else { (dates[at], dates[other]) };
            earlier.duration_since(later)
        };
        sound.iter().any(|other| *other != at && by(*other) > TOLERANCE)
    };
    dated.iter().enumerate().filter(|(at, _)| contradicts(*at)).map(|(_, (name, _))| name.to_string()).collect()
}

/// Returns the positions of the longest row of dates that never falls; of several the one that ends earliest.
fn longest_rise(dates: &[Timestamp]) -> Vec<usize> {
    // The last date of the best row of each length, and the position before each date in its row.
    let (mut ends, mut before) = (Vec::<usize>::new(), vec![None; dates.len()]);
    for (at, date) in dates.iter().enumerate() {
        let length = ends.partition_point(|end| dates[*end] <= *date);
        before[at] = length.checked_sub(1).map(|last| ends[last]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut row: Vec<usize> = std::iter::successors(ends.last().copied(), |at| before[*at]).collect();
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, day: &str, reference: Option<&str>) -> Image {
        let at = format!("{day}T02:00:00Z").parse().ok();
        let reference = reference.map(String::from);
        Image { name: name.into(), created: at, completed: at, reference, ..Image::default() }
    }

    fn numbered(name: &str, day: &str, number: u64, older: &[&str]) -> Image {
        let older = older.iter().map(|name| name.to_string()).collect();
        Image { sequence: Some(number), older, ..image(name, day, None) }
    }

    fn names(images: Vec<Image>) -> Vec<String> {
        ordered(images).into_iter().map(|image| image.name).collect()
    }

    #[test]
    fn numbers_decide_and_not_dates() {
        let images = vec![
            numbered("c", "2020-01-01", 3, &[]),
            numbered("a", "2030-01-01", 1, &[]),
            numbered("b", "2026-01-01", 2, &[]),
        ];
        assert_eq!(names(images), ["a", "b", "c"]);
    }

    #[test]
    fn images_without_numbers_are_where_the_numbered_ones_saw_them() {
        // x and y were there before 5, whose clock was a year behind; dirvish has made z since.
        let images = vec![
            image("z", "2026-03-04", Some("five")),
            numbered("six", "2026-03-03", 6, &["x", "y"]),
            numbered("five", "2025-03-02", 5, &["x", "y"]),
            image("y", "2026-03-01", None),
            image("x", "2026-02-01", None),
        ];
        assert_eq!(names(images.clone()), ["x", "y", "five", "six", "z"]);
        // The first one that listed them has expired.
        let images: Vec<Image> = images.into_iter().filter(|image| image.name != "five").collect();
        assert_eq!(names(images), ["x", "y", "six", "z"]);
    }

    #[test]
    fn without_any_numbers_an_image_follows_the_one_that_it_was_made_from() {
        // The state that an older version leaves: b under a clock a year ahead, c and d under the right one again.
        let images = vec![
            image("d", "2026-03-04", Some("b")),
            image("c", "2026-03-03", Some("b")),
            image("b", "2027-03-02", Some("a")),
            image("a", "2026-03-01", None),
        ];
        assert_eq!(names(images), ["a", "b", "c", "d"]);
        // Weekly images stay longer than the daily ones between them. An image whose reference is gone has its date.
        let images = vec![
            image("m2", "2026-03-09", Some("gone")),
            image("t", "2026-03-03", Some("m1")),
            image("m1", "2026-03-02", None),
        ];
        assert_eq!(names(images), ["m1", "t", "m2"]);
        // References in a circle never occur, and the search ends.
        assert_eq!(names(vec![image("b", "2026-03-02", Some("a")), image("a", "2026-03-01", Some("b"))]).len(), 2);
    }

    #[test]
    fn of_dates_that_contradict_each_other_the_fewer_are_wrong() {
        let of = |days: &[&str]| {
            let images: Vec<Image> =
                days.iter().enumerate().map(|(at, day)| numbered(&at.to_string(), day, 1, &[])).collect();
            misdated(&images).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&["2026-03-01", "2026-03-02", "2027-03-03", "2026-03-04"]), ["2"]);
        assert_eq!(of(&["2026-03-01", "2026-03-02", "1970-01-01", "2026-03-04"]), ["2"]);
        assert_eq!(of(&["2027-03-01", "2026-03-02"]), ["0"], "the later one has seen more");
        assert_eq!(of(&["2026-03-02", "2026-03-01"]), Vec::<String>::new(), "a day is no contradiction");
    }
}
