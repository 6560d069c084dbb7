//! Which images go.

use crate::image::Image;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The images that may be removed now: what has expired, but of each branch the newest good image stays, whatever the
/// rules say. (dirvish-expire keeps the oldest where all have expired.) A branch without a good image loses nothing.
pub fn expired(images: &[Image], now: Timestamp) -> Vec<&Image> {
    let mut newest: BTreeMap<&str, &Image> = BTreeMap::new();
    for image in images.iter().filter(|image| image.is_good()) {
        let known = newest.entry(&image.branch).or_insert(image);
        if image.age_key() > known.age_key() {
            *known = image;
        }
    }
    let goes = |image: &&Image| {
        let stays = newest.get(image.branch.as_str());
        image.expires.is_some_and(|at| at <= now) && stays.is_some_and(|stays| stays.name != image.name)
    };
    images.iter().filter(goes).collect()
}
