//! Formats the state of vaults as metrics for Prometheus.

use crate::ask::Listed;
use homing_model::metrics::{MetricKind, Metrics};
use jiff::Timestamp;

/// A name without the common prefix, its help text, and its value for a vault that has one.
type VaultMetric = (&'static str, &'static str, fn(&Listed) -> Option<f64>);

const FAMILIES: [VaultMetric; 10] = [
    ("last_good_timestamp_seconds", "Time of the newest good image.", |l| Some(seconds(l.newest_good()?.created?))),
    ("images", "Images.", |l| Some(l.images.len() as f64)),
    ("bad_images", "Images that are not good.", |l| {
        Some(l.images.iter().filter(|image| !image.is_good()).count() as f64)
    }),
    ("bytes", "Bytes of the files of the newest good image.", |l| Some(l.newest_good()?.bytes? as f64)),
    ("own_bytes", "Bytes of the newest good image that it does not share with the image before.", |l| {
        Some(l.newest_good()?.own_bytes? as f64)
    }),
    ("whole_bytes", "Bytes of all images if each were a whole copy.", |l| Some(l.space()?.whole_bytes as f64)),
    ("taken_bytes", "Bytes that all images occupy in the bank.", |l| Some(l.space()?.taken_bytes as f64)),
    ("added_bytes_per_day", "Bytes per day that the images of the last month added.", |l| {
        l.space()?.added_bytes_per_day
    }),
    ("free_bytes", "Free bytes of the bank.", |l| Some(l.free as f64)),
    ("proved_timestamp_seconds", "Time of the last trial restore without a difference.", |l| {
        Some(seconds(l.proved.as_ref().filter(|proof| proof.is_sound())?.at))
    }),
];

fn seconds(at: Timestamp) -> f64 {
    at.as_second() as f64
}

/// Returns the text, with a sample for each vault.
pub fn of_rows(rows: &[(&str, &Listed)], now: Timestamp) -> String {
    let mut metrics = Metrics::default();
    for (name, help, value) in FAMILIES {
        let name = format!("homing_snapshot_{name}");
        metrics.family(&name, MetricKind::Gauge, help);
        for (vault, value) in rows.iter().filter_map(|(vault, listed)| Some((vault, value(listed)?))) {
            metrics.sample(&name, &[("vault", vault)], value);
        }
    }
    metrics.only(
        "homing_snapshot_last_run_timestamp_seconds",
        MetricKind::Gauge,
        "Time at which this file was written.",
        now.as_second(),
    );
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_told_stands_in_the_manual_of_formats_and_what_is_unknown_has_no_sample() {
        let at: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let image = |name: &str, status: &str| crate::image::Image {
            name: name.into(),
            branch: "default".into(),
            created: Some(at),
            completed: Some(at),
            expires: None,
            status: status.into(),
            has_tree: true,
            files: Some(3),
            bytes: Some(100),
            own_bytes: None,
            ..crate::image::Image::default()
        };
        let images = vec![image("1", "success"), image("2", "error (23)")];
        let listed =
            Listed { images, unfinished: vec![], removing: vec![], proved: None, journal: true, free: 7, now: at };
        let text = of_rows(&[("ho\"me", &listed)], at);
        assert!(text.contains("homing_snapshot_bytes{vault=\"ho\\\"me\"} 100\n"), "{text}");
        assert!(text.contains("homing_snapshot_bad_images{vault=\"ho\\\"me\"} 1\n"), "{text}");
        assert!(
            text.contains("homing_snapshot_last_good_timestamp_seconds{vault=\"ho\\\"me\"} 1772323200\n"),
            "{text}"
        );
        assert!(!text.contains("own_bytes{") && !text.contains("proved_timestamp_seconds{"), "{text}");
        let told = include_str!("../../../../docs/formats.md");
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        names.for_each(|name| assert!(told.contains(&format!("`{name}`")), "{name}"));
    }
}
