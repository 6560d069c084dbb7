//! The controller on simulated devices, compared with every fixed limit.

mod bed;

use bed::devices::*;
use bed::{Batch, Device, Limit, best, run};
use homing_admit::Tuning;

/// A batch may take this much longer than with the best fixed limit, which is unknown in advance.
const WITHIN: f64 = 1.15;
/// The same if each task first loads its program from another disk: two tasks then seem no worse than one for a
/// second.
const LOADING: f64 = 1.25;

fn auto(device: Device, batch: Batch) -> f64 {
    bed::took(device, batch, &Limit::Auto(None), Tuning::default())
}

fn fixed(device: Device, batch: Batch, n: u32) -> f64 {
    bed::took(device, batch, &Limit::Fixed(n), Tuning::default())
}

#[test]
fn every_row_is_near_the_best_fixed_limit() {
    let mut slow = Vec::new();
    for (name, device, batch) in ROWS {
        let ((least, at), auto) = (best(device, batch), auto(device, batch));
        println!("{name:24} {auto:6.2} s, best {least:6.2} s with {at:2}: {:.3}", auto / least);
        let within = if batch.load_s > 0.0 { LOADING } else { WITHIN };
        if auto > within * least {
            slow.push((name, auto / least));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn one_head_gets_one_reader() {
    assert!(auto(one_head, READERS) < 0.45 * fixed(one_head, READERS, 50));
    assert_eq!(run(one_head, READERS, &Limit::Auto(None), 5).lesson, Some(1));
}

#[test]
fn what_does_not_fit_the_page_cache_does_not_run_at_once() {
    let large = Batch { bytes: 800e6, cpu_s: 1.0, ..AGAIN };
    assert!(auto(slow_disk, large) < 0.5 * fixed(slow_disk, large, 50));
    // If the kernel does not report the cache's room, the controller finds it by trial; running tasks are not
    // stopped.
    let unknown = Batch { tasks: 200, bytes: 200e6, cpu_s: 0.05, ..READERS };
    assert!(auto(thrash, unknown) < 0.5 * fixed(thrash, unknown, 50));
}

#[test]
fn a_long_batch_finds_out_that_fewer_serve_more() {
    let batch = Batch { tasks: 600, bytes: 80e6, ..READERS };
    assert!(auto(crowded, batch) < 0.6 * fixed(crowded, batch, 50));
}

#[test]
fn a_crowd_that_nobody_knew_of_gets_a_limit_in_the_end() {
    let took = |(_, device, batch): (&str, Device, Batch)| {
        let late = bed::took(device, batch, &Limit::Late(100), Tuning::default());
        late / fixed(device, batch, 50)
    };
    let [head, link] = CROWDS.map(took);
    assert!(head < 0.5 && link < 1.06, "{head} {link}");
}

#[test]
fn pressure_alone_costs_little() {
    for (name, device) in [("ssd", ssd as Device), ("link", link)] {
        let batch = Batch { tasks: 400, bytes: 80e6, ..READERS };
        let (auto, all) = (auto(device, batch), fixed(device, batch, 50));
        assert!(auto < 1.06 * all, "{name}: {auto:.2} s, all {all:.2} s");
    }
}

#[test]
fn what_was_learnt_is_begun_with() {
    for (device, batch) in [(one_head as Device, READERS), (raid, Batch { bytes: 80e6, ..READERS })] {
        let lesson = run(device, batch, &Limit::Auto(None), 3).lesson;
        let again = bed::took(device, batch, &Limit::Auto(lesson), Tuning::default());
        let ratio = again / best(device, batch).0;
        assert!(ratio < 1.10, "{lesson:?}: {ratio}");
    }
}
