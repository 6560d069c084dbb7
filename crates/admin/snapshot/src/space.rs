//! Computes the space that the images of a vault take in their bank, and the growth by new ones.

use crate::image::Image;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The days whose images show how a vault grows: they include a month's end, holidays and weekends.
const DAYS: f64 = 30.0;
const DAY: f64 = 86_400.0;

/// Sums over the images of a vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Space {
    /// Bytes, if each image was a whole copy.
    pub whole_bytes: u64,
    /// Bytes that they take: those of each branch's oldest image, and those that each later one did not share with
    /// its reference. Bytes that only a removed image had added are missing.
    pub taken_bytes: u64,
    /// Bytes that new images have added per day; `None`: they span less than a day.
    pub added_bytes_per_day: Option<f64>,
    /// Bytes that a new image adds, the mean of the last month; `None`: none has followed another.
    pub added_bytes_per_image: Option<f64>,
}

/// Returns the space of images, the oldest first; `None`: the size of one is unknown, as with those of dirvish.
pub fn space(images: &[Image], now: Timestamp) -> Option<Space> {
    let mut branches: BTreeMap<&str, Vec<Counted>> = BTreeMap::new();
    for image in images {
        let counted = Counted { at: image.created?, whole: image.bytes?, own: image.own_bytes? };
        branches.entry(&image.branch).or_default().push(counted);
    }
    if branches.is_empty() {
        return None;
    }
    let mut all = Space::default();
    for images in branches.values() {
        all.whole_bytes += images.iter().map(|image| image.whole).sum::<u64>();
        all.taken_bytes += images[0].whole + images[1..].iter().map(|image| image.own).sum::<u64>();
        let Some(added) = added(images, now) else { continue };
        let plus = |sum: Option<f64>, more: f64| Some(sum.unwrap_or(0.0) + more);
        all.added_bytes_per_image = plus(all.added_bytes_per_image, added.bytes / added.images);
        if added.days >= 1.0 {
            all.added_bytes_per_day = plus(all.added_bytes_per_day, added.bytes / added.days);
        }
    }
    Some(all)
}

struct Counted {
    at: Timestamp,
    whole: u64,
    own: u64,
}

struct Added {
    bytes: f64,
    images: f64,
    days: f64,
}

/// Returns the bytes that the images of the last month added to the one before them.
fn added(images: &[Counted], now: Timestamp) -> Option<Added> {
    let days = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64() / DAY;
    let recent = |image: &Counted| days(image.at, now) <= DAYS;
    let first = images.iter().skip(1).position(recent)? + 1;
    let bytes = images[first..].iter().map(|image| image.own as f64).sum();
    let span = days(images[first - 1].at, images[images.len() - 1].at);
    Some(Added { bytes, images: (images.len() - first) as f64, days: span })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(branch: &str, day: &str, bytes: u64, own_bytes: u64) -> Image {
        let at = format!("2026-{day}T02:00:00Z").parse().ok();
        Image {
            name: day.into(),
            branch: branch.into(),
            created: at,
            bytes: Some(bytes),
            own_bytes: Some(own_bytes),
            ..Image::default()
        }
    }

    fn now() -> Timestamp {
        "2026-03-11T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_oldest_counts_whole_also_when_one_before_it_has_gone() {
        let images = [image("a", "03-01", 100, 3), image("a", "03-02", 104, 5), image("a", "03-11", 104, 15)];
        let found = space(&images, now()).unwrap();
        assert_eq!((found.whole_bytes, found.taken_bytes), (308, 120));
        assert_eq!((found.added_bytes_per_day, found.added_bytes_per_image), (Some(2.0), Some(10.0)));
    }

    #[test]
    fn branches_add_up_and_what_is_a_month_ago_tells_nothing_of_growth() {
        let old = [image("a", "01-01", 100, 100), image("a", "01-02", 200, 100), image("a", "03-03", 200, 60)];
        let found = space(&old, now()).unwrap();
        assert_eq!((found.added_bytes_per_day, found.added_bytes_per_image), (Some(1.0), Some(60.0)));
        let two = [image("a", "03-10", 10, 10), image("b", "03-10", 7, 7), image("b", "03-11", 7, 2)];
        let found = space(&two, now()).unwrap();
        assert_eq!((found.whole_bytes, found.taken_bytes, found.added_bytes_per_day), (24, 19, Some(2.0)));
    }

    #[test]
    fn what_is_not_counted_is_not_told() {
        let one = [image("a", "03-10", 10, 10)];
        let found = space(&one, now()).unwrap();
        assert_eq!((found.added_bytes_per_day, found.added_bytes_per_image), (None, None));
        assert_eq!(space(&[], now()), None);
        assert_eq!(space(&[Image { bytes: None, ..one[0].clone() }], now()), None);
    }
}
