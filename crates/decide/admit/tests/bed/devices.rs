//! Devices of the test bed, and the batches that most tests run on them.

use super::{Batch, Device, Served};

fn plain(rate: f64) -> Served {
    Served { moved: rate, again: 0.0, useful: rate }
}

/// One head: a single reader streams, more cause seeks (measured on the lab's disk).
pub fn one_head(readers: u32, _: u32, _: f64) -> Served {
    let rate = if readers < 2 { 120e6 } else { 28e6 * (f64::from(readers) / 2.0).powf(-0.06) };
    plain(rate)
}

/// Serves eight requests at once as fast as one.
pub fn ssd(readers: u32, _: u32, _: f64) -> Served {
    plain(300e6 * f64::from(readers.min(8)))
}

/// Eight disks with a head each; files are spread at random.
pub fn raid(readers: u32, _: u32, _: f64) -> Served {
    let busy = 8.0 * (1.0 - (7.0f64 / 8.0).powi(readers as i32));
    let queue = f64::from(readers) / busy.max(1.0);
    plain(busy * 120e6 / (1.0 + 1.2 * (queue - 1.0).max(0.0)))
}

/// 1 Gbit/s; the window of one reader fills half of it.
pub fn link(readers: u32, _: u32, _: f64) -> Served {
    plain((60e6 * f64::from(readers)).min(118e6))
}

/// 10 MB/s for any number of readers.
pub fn slow_link(_: u32, _: u32, _: f64) -> Served {
    plain(10e6)
}

/// Tasks read their 25 MB eight times; 200 MB of page cache hold eight of them.
pub fn thrash(readers: u32, tasks: u32, _: f64) -> Served {
    let fits = (8.0 / f64::from(tasks.max(1))).min(1.0);
    // The first of eight passes comes from the disk; of the others, the dropped chunks do.
    let missed = 1.0 / 8.0 + 7.0 / 8.0 * (1.0 - fits);
    let disk = 100e6 * f64::from(readers.min(4));
    Served { moved: disk, again: disk * (missed - 1.0 / 8.0) / missed, useful: disk / missed }
}

/// Another user's job takes most of the SSD for a while.
pub fn shared_ssd(readers: u32, tasks: u32, at_s: f64) -> Served {
    let mine = ssd(readers, tasks, at_s);
    if (2.0..4.0).contains(&at_s) { plain(mine.useful * 0.3) } else { mine }
}

/// A disk of a cloud with long requests, for any number of readers: they look like seeks.
pub fn cloud(readers: u32, _: u32, _: f64) -> Served {
    plain(50e6 * f64::from(readers.min(8)))
}

/// A disk with the same rate for any number of readers.
pub fn slow_disk(_: u32, _: u32, _: f64) -> Served {
    plain(150e6)
}

/// A server without disks that can be watched, which collapses under many readers: only throughput shows it.
pub fn crowded(readers: u32, _: u32, _: f64) -> Served {
    let many = f64::from(readers.max(8)) / 8.0;
    plain(40e6 * f64::from(readers.min(8)) / many.powf(0.7))
}

/// Tasks that read 8 MB and compute for a moment.
pub const READERS: Batch =
    Batch { tasks: 50, slots: 50, cores: 2, bytes: 8e6, cpu_s: 0.02, load_s: 0.0, start_s: 0.0, passes: 1, room: None };

/// 400 MB of page cache over a disk of 150 MB/s.
pub const SMALL: Batch = Batch { room: Some(400e6), ..READERS };

/// The rows that are compared with every fixed limit: a name, the device, the batch.
pub const ROWS: [(&str, Device, Batch); 26] = [
    ("one head", one_head, READERS),
    ("one head, 20", one_head, short(8e6)),
    ("one head, programs", one_head, Batch { load_s: 0.02, ..READERS }),
    ("one head, interpreters", one_head, Batch { start_s: 0.06, ..READERS }),
    ("ssd, interpreters", ssd, Batch { start_s: 0.06, bytes: 80e6, ..READERS }),
    ("one head, 600", one_head, Batch { tasks: 600, ..READERS }),
    ("ssd", ssd, Batch { bytes: 80e6, ..READERS }),
    ("ssd, 20", ssd, short(80e6)),
    ("raid", raid, Batch { bytes: 80e6, ..READERS }),
    ("raid, 20", raid, short(80e6)),
    ("link", link, READERS),
    ("link, 20", link, short(8e6)),
    ("link, 400", link, Batch { tasks: 400, bytes: 80e6, ..READERS }),
    ("slow link", slow_link, Batch { bytes: 5e5, ..READERS }),
    ("long tasks", crowded, Batch { tasks: 60, bytes: 2e9, ..READERS }),
    ("cloud", cloud, READERS),
    ("cloud, 40 MB", cloud, Batch { bytes: 40e6, ..READERS }),
    ("cloud, 20", cloud, short(8e6)),
    ("shared ssd", shared_ssd, Batch { tasks: 200, bytes: 80e6, ..READERS }),
    ("computing", ssd, Batch { bytes: 1e3, cpu_s: 0.2, ..READERS }),
    ("20 MB eight times", slow_disk, AGAIN),
    ("little computing", slow_disk, Batch { cpu_s: 0.05, ..AGAIN }),
    ("10 MB eight times, 20", slow_disk, Batch { tasks: 20, bytes: 80e6, cpu_s: 0.13, ..AGAIN }),
    ("20 MB once", ssd, Batch { bytes: 20e6, cpu_s: 0.03, ..SMALL }),
    ("80 MB once", ssd, Batch { bytes: 80e6, cpu_s: 0.1, ..SMALL }),
    ("computing and reading", ssd, Batch { bytes: 40e6, cpu_s: 0.5, ..SMALL }),
];

/// Files of 20 MB that are read eight times, through a small page cache.
pub const AGAIN: Batch = Batch { bytes: 160e6, passes: 8, cpu_s: 0.25, ..SMALL };

const fn short(bytes: f64) -> Batch {
    Batch { tasks: 20, bytes, ..READERS }
}

/// Batches whose reading is not known before all tasks run.
pub const CROWDS: [(&str, Device, Batch); 2] = [
    ("crowd, one head", one_head, Batch { tasks: 600, ..READERS }),
    ("crowd, link", link, Batch { tasks: 200, ..READERS }),
];
