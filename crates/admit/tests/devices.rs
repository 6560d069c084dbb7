//! The controller against simulated devices, beside every fixed limit.

mod bed;

use bed::{Batch, Device, Limit, Outcome, Served, run};

const FIXED: [u32; 7] = [1, 2, 4, 8, 16, 32, 50];
const SEEDS: [u64; 3] = [7, 77, 777];

fn plain(rate: f64) -> Served {
    Served { moved: rate, again: 0.0, useful: rate, seeks: false }
}

/// One head: alone a reader streams, others cost seeks (facts measured on the lab's disk).
fn one_head(readers: u32, _: u32, _: f64) -> Served {
    let rate = if readers < 2 { 120e6 } else { 28e6 * (f64::from(readers) / 2.0).powf(-0.06) };
    Served { seeks: readers > 1, ..plain(rate) }
}

/// Serves eight requests at once as fast as one.
fn ssd(readers: u32, _: u32, _: f64) -> Served {
    plain(300e6 * f64::from(readers.min(8)))
}

/// Eight disks with a head each; files lie anywhere.
fn raid(readers: u32, _: u32, _: f64) -> Served {
    let busy = 8.0 * (1.0 - (7.0f64 / 8.0).powi(readers as i32));
    let queue = f64::from(readers) / busy.max(1.0);
    Served { seeks: readers > 3, ..plain(busy * 120e6 / (1.0 + 1.2 * (queue - 1.0).max(0.0))) }
}

/// 1 Gbit/s; a window that fills half of it.
fn link(readers: u32, _: u32, _: f64) -> Served {
    plain((60e6 * f64::from(readers)).min(118e6))
}

/// Tasks read their 25 MB eight times; 200 MB of page cache hold eight of them.
fn thrash(readers: u32, tasks: u32, _: f64) -> Served {
    let fits = (8.0 / f64::from(tasks.max(1))).min(1.0);
    // The first of eight passes comes from the disk, of the others what was dropped.
    let missed = 1.0 / 8.0 + 7.0 / 8.0 * (1.0 - fits);
    let disk = 100e6 * f64::from(readers.min(4));
    Served { moved: disk, again: disk * (missed - 1.0 / 8.0) / missed, useful: disk / missed, seeks: false }
}

/// Another user's job takes most of the SSD for a while.
fn shared_ssd(readers: u32, tasks: u32, at_s: f64) -> Served {
    let mine = ssd(readers, tasks, at_s);
    if (2.0..4.0).contains(&at_s) { plain(mine.useful * 0.3) } else { mine }
}

/// A disk of a cloud whose requests take long, however many: they look like seeks.
fn cloud(readers: u32, _: u32, _: f64) -> Served {
    Served { seeks: true, ..plain(50e6 * f64::from(readers.min(8))) }
}

const READERS: Batch = Batch { tasks: 50, slots: 50, cores: 2, bytes: 8e6, cpu_s: 0.02, passes: 1, room: None };

/// 400 MB of page cache over a disk of 150 MB/s.
const SMALL: Batch = Batch { room: Some(400e6), ..READERS };

fn took(device: Device, batch: Batch, limit: &Limit) -> f64 {
    SEEDS.iter().map(|&seed| run(device, batch, limit, seed).took_s).sum::<f64>() / SEEDS.len() as f64
}

fn best(device: Device, batch: Batch) -> (f64, u32) {
    let all = FIXED.iter().map(|&n| (took(device, batch, &Limit::Fixed(n)), n));
    all.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are limits")
}

/// Time with the limit found, as a share of the best fixed one's.
fn ratio(name: &str, device: Device, batch: Batch) -> f64 {
    let (least, at) = best(device, batch);
    let auto = took(device, batch, &Limit::Auto(None));
    let Outcome { limits, .. } = run(device, batch, &Limit::Auto(None), SEEDS[0]);
    println!("{name}: {auto:.2} s, best {least:.2} s with {at}, ratio {:.3}; {limits:?}", auto / least);
    auto / least
}

#[test]
fn one_head_gets_one_reader() {
    assert!(ratio("one head", one_head, READERS) < 1.10);
    let auto = took(one_head, READERS, &Limit::Auto(None));
    assert!(auto < 0.45 * took(one_head, READERS, &Limit::Fixed(50)));
    assert_eq!(run(one_head, READERS, &Limit::Auto(None), 5).lesson, Some(1));
}

#[test]
fn an_ssd_gets_many() {
    assert!(ratio("ssd", ssd, Batch { bytes: 80e6, ..READERS }) < 1.10);
}

#[test]
fn a_raid_gets_some() {
    assert!(ratio("raid", raid, Batch { bytes: 80e6, ..READERS }) < 1.10);
}

#[test]
fn a_link_is_filled() {
    assert!(ratio("link", link, READERS) < 1.10);
}

#[test]
fn seeks_that_do_no_harm_limit_nothing() {
    assert!(ratio("cloud", cloud, READERS) < 1.10);
    assert!(ratio("cloud", cloud, Batch { bytes: 40e6, ..READERS }) < 1.10);
}

#[test]
fn a_page_cache_is_not_overrun() {
    assert!(ratio("page cache", thrash, Batch { bytes: 200e6, cpu_s: 0.05, ..READERS }) < 1.10);
}

/// A disk that serves all alike.
fn slow_disk(_: u32, _: u32, _: f64) -> Served {
    plain(150e6)
}

#[test]
fn files_that_are_read_again_stay_in_a_small_cache() {
    let batch = Batch { bytes: 160e6, passes: 8, cpu_s: 0.25, ..SMALL };
    let cases = [
        ("20 MB eight times", batch, 1.10),
        ("little computing", Batch { cpu_s: 0.05, ..batch }, 1.10),
        // Fewer than fit share the disk as well, and the first computes while the others read.
        ("20 of 10 MB", Batch { tasks: 20, bytes: 80e6, cpu_s: 0.13, ..batch }, 0.95),
    ];
    let slow = cases.map(|(name, batch, most)| (name, ratio(name, slow_disk, batch), most));
    assert!(slow.iter().all(|(_, ratio, most)| ratio <= most), "{slow:?}");
    // Two fit; whether three do takes a task's five seconds to see, which is not always found.
    let large = Batch { bytes: 800e6, cpu_s: 1.0, ..batch };
    assert!(took(slow_disk, large, &Limit::Auto(None)) < 0.5 * took(slow_disk, large, &Limit::Fixed(50)));
}

#[test]
fn files_that_are_read_once_may_be_larger_than_the_cache() {
    for (name, bytes, cpu_s) in [("20 MB once", 20e6, 0.03), ("80 MB once", 80e6, 0.1), ("computing", 40e6, 0.5)] {
        assert!(ratio(name, ssd, Batch { bytes, cpu_s, ..SMALL }) < 1.10);
    }
}

#[test]
fn computing_is_not_held_back() {
    assert!(ratio("computing", ssd, Batch { bytes: 1e3, cpu_s: 0.2, ..READERS }) < 1.05);
}

#[test]
fn a_short_batch_does_not_pay_for_learning() {
    let short = Batch { tasks: 20, ..READERS };
    let mut slow = Vec::new();
    let cases: [(&str, Device, f64); 6] = [
        ("one head", one_head, 1.0),
        ("ssd", ssd, 10.0),
        ("raid", raid, 10.0),
        ("link", link, 1.0),
        ("cloud", cloud, 1.0),
        ("page cache", thrash, 25.0),
    ];
    for (name, device, times) in cases {
        let ratio = ratio(name, device, Batch { bytes: short.bytes * times, ..short });
        // Whether more than fit are tried before these 20 end is a matter of some milliseconds.
        if ratio > if name == "page cache" { 1.07 } else { 1.05 } {
            slow.push((name, ratio));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// A server without disks of its own to look at, which collapses when many ask: only throughput tells.
fn crowded(readers: u32, _: u32, _: f64) -> Served {
    let many = f64::from(readers.max(8)) / 8.0;
    plain(40e6 * f64::from(readers.min(8)) / many.powf(0.7))
}

#[test]
fn a_long_batch_finds_out_that_fewer_serve_more() {
    let batch = Batch { tasks: 600, bytes: 80e6, ..READERS };
    let all = took(crowded, batch, &Limit::Fixed(50));
    let auto = took(crowded, batch, &Limit::Auto(None));
    println!("crowded: {auto:.2} s, with all {all:.2} s, best {:?}", best(crowded, batch));
    assert!(auto < 0.6 * all);
}

#[test]
fn a_limit_needs_evidence() {
    // Pressure alone is none: as many run as may, but for short trials.
    for (name, device) in [("ssd", ssd as Device), ("link", link)] {
        let run = run(device, Batch { tasks: 400, bytes: 80e6, ..READERS }, &Limit::Auto(None), 9);
        assert_eq!(run.lesson, None, "{name}: {:?}", run.limits);
    }
}

#[test]
fn what_was_learnt_is_begun_with() {
    for (device, batch) in [(one_head as Device, READERS), (raid, Batch { bytes: 80e6, ..READERS })] {
        let lesson = run(device, batch, &Limit::Auto(None), 3).lesson;
        let again = took(device, batch, &Limit::Auto(lesson));
        assert!(again < 1.06 * best(device, batch).0, "{lesson:?}: {again}");
    }
}

#[test]
fn other_users_come_and_go() {
    assert!(ratio("shared ssd", shared_ssd, Batch { tasks: 200, bytes: 80e6, ..READERS }) < 1.10);
}

#[test]
fn tasks_of_which_nobody_knew_that_they_read_get_a_limit_as_well() {
    let (all, alone) = (took(one_head, READERS, &Limit::Fixed(50)), took(one_head, READERS, &Limit::Fixed(1)));
    for after in [5, 20, 100] {
        let late = run(one_head, READERS, &Limit::Late(after), SEEDS[0]);
        println!("{after} ms: {:.2} s, one at a time {alone:.2}, all {all:.2}; {:?}", late.took_s, late.limits);
        assert_eq!(late.lesson, Some(1), "{:?}", late.limits);
        assert!(took(one_head, READERS, &Limit::Late(after)) < 0.45 * all);
    }
}

#[test]
fn tasks_of_which_nobody_knew_that_they_read_are_not_limited_without_harm() {
    let cases = [("ssd", ssd as Device, 80e6, 0.02), ("link", link, 8e6, 0.02), ("computing", ssd, 2e6, 0.2)];
    for (name, device, bytes, cpu_s) in cases {
        let batch = Batch { bytes, cpu_s, ..READERS };
        let (late, all) = (took(device, batch, &Limit::Late(20)), took(device, batch, &Limit::Fixed(50)));
        println!("{name}: {late:.2} s, all {all:.2}");
        assert!(late < 1.02 * all, "{name}: {late:.2} s, all {all:.2}");
    }
}
