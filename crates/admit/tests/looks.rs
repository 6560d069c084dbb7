//! What was seen on real disks, look by look, and what the controller made of it.

use homing_admit::{Controller, Seen, Settings};

/// One look of a trace: when (microseconds), tasks that use the disk, bytes they asked for, looks at them, how
/// many of these stood still, and the time that heads were seen to seek (microseconds).
type Look = (u64, u32, u64, u64, u64, u64);

fn limits(looks: &[Look]) -> Vec<Option<u32>> {
    let mut controller = Controller::new(Settings { most: 50, open_at: 50, cores: 2, learnt: None });
    let seen = |&(at_us, in_flight, read, looked, stood, slow_us): &Look| Seen {
        at_us,
        in_flight,
        read,
        looked,
        stood,
        slow_us: Some(slow_us),
        moved: Some(read),
        io_stall_us: Some(at_us * stood / looked.max(1)),
        waiting: 18,
        ..Seen::default()
    };
    let changed = |look| controller.observe(&seen(look)).map_or_else(|| controller.limit(), |change| change.limit);
    looks.iter().map(changed).collect()
}

/// md5sum of files of 2 MB on the lab's disk with one head.
const BEGINS: [Look; 4] = [
    (42, 1, 21_915, 0, 0, 0),
    (5_275, 1, 42_204, 1, 1, 0),
    (10_422, 1, 109_814, 2, 2, 8_000),
    (15_530, 2, 512_538, 4, 4, 8_000),
];

#[test]
fn a_second_reader_for_whom_the_first_stands_still_is_one_too_many() {
    let head = [&BEGINS[..], &[(20_674, 2, 515_120, 6, 6, 8_000)]].concat();
    assert_eq!(limits(&head), [Some(1), Some(1), Some(2), Some(2), Some(1)]);
}

#[test]
fn one_that_goes_on_beside_it_is_no_reason() {
    let one_goes_on = [&BEGINS[..], &[(20_674, 2, 915_120, 6, 6, 8_000)]].concat();
    assert_eq!(limits(&one_goes_on)[4], Some(2));
    let one_computes = [&BEGINS[..], &[(20_674, 2, 515_120, 6, 5, 8_000)]].concat();
    assert_eq!(limits(&one_computes)[4], Some(2));
}
