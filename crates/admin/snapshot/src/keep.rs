//! Decides which expired images are removed. The last [`KEPT`] good ones of each branch stay in any case.

use crate::image::Image;
use jiff::Timestamp;
use std::collections::HashMap;

/// The newest good images of each branch that stay, whatever the rules and the clock are. One may be a copy of a
/// damaged source, and a second one may be made under a wrong clock.
pub const KEPT: usize = 3;

/// Returns the images that may be removed now: all expired ones except the last [`KEPT`] good images of each branch.
/// A branch without a good image loses nothing. (dirvish-expire keeps the oldest if all have expired.)
/// `images`: in the order of [`crate::order::ordered`].
pub fn expired(images: &[Image], now: Timestamp) -> Vec<&Image> {
    // The number of good images that a branch has from here on.
    let mut good: HashMap<&str, usize> = HashMap::new();
    let mut stays = Vec::with_capacity(images.len());
    for image in images.iter().rev() {
        let count = good.entry(&image.branch).or_default();
        stays.push(image.is_good() && *count < KEPT);
        *count += usize::from(image.is_good());
    }
    let has_good = |image: &Image| good.get(image.branch.as_str()).is_some_and(|count| *count > 0);
    let all = images.iter().zip(stays.into_iter().rev());
    let goes = |(image, stays): &(&Image, bool)| !stays && has_good(image) && image.expires.is_some_and(|at| at <= now);
    all.filter(goes).map(|(image, _)| image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_three_good_images_of_a_branch_stay_whatever_the_clock_is() {
        let image = |name: &str, branch: &str, status: &str| Image {
            name: name.into(),
            branch: branch.into(),
            status: status.into(),
            has_tree: true,
            expires: "2026-03-01T00:00:00Z".parse().ok(),
            ..Image::default()
        };
        let good = |name: &str| image(name, "default", "success");
        let bad = |name: &str| image(name, "default", "error (23)");
        let images = [
            good("1"),
            bad("2"),
            good("3"),
            image("x", "other", "success"),
            good("4"),
            bad("5"),
            good("6"),
            image("y", "poor", "error (23)"),
        ];
        let now = "2126-01-01T00:00:00Z".parse().unwrap();
        let gone: Vec<&str> = expired(&images, now).into_iter().map(|image| image.name.as_str()).collect();
        assert_eq!(gone, ["1", "2", "5"]);
        assert_eq!(expired(&images, "2026-02-01T00:00:00Z".parse().unwrap()), Vec::<&Image>::new());
    }
}
