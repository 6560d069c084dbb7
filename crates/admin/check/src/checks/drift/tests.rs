use super::*;

const NOW_S: f64 = 1e6;
/// Requests of an hour, and the bytes of each.
const MANY: f64 = 1e6;
const SIZE: f64 = 4096.0;

/// Waiting for each request of an hour, microseconds; its requests; the bytes of each.
type HourSample = (f64, f64, f64);

/// Returns the findings of a host that kept these hours, the last one `old_s` seconds old, and received `received`
/// bytes in each.
fn found_of(hours: &[HourSample], old_s: f64, received: f64) -> Vec<HostFinding> {
    let rows = hours.iter().rev().enumerate().map(|(back, (wait_us, requests, size))| {
        let end_s = NOW_S - 60.0 - old_s - 3600.0 * back as f64;
        format!("=drift\t{end_s}\t{}\t{requests}\t{}\t{received}\n", wait_us * requests, size * requests)
    });
    let text = format!("=now\t{NOW_S}\n{}=end\tdrift\t0\n", rows.collect::<String>());
    judge(&Answers { hosts: vec![HostAnswers::read("n1", &[(NOW_S, text.into_bytes())])] })
}

fn found(hours: &[HourSample]) -> usize {
    found_of(hours, 0.0, 0.0).len()
}

/// Returns six days with a wait of 400 microseconds and some noise, and a day of this kind.
fn week(day: HourSample) -> Vec<HourSample> {
    let before = (0..6 * 24).map(|n| (380.0 + f64::from(n % 21), MANY, SIZE));
    before.chain([day; 24]).collect()
}

#[test]
fn a_day_that_is_worse_than_the_noise_is_told_from_that_limit_on() {
    // Of 380 to 400 six in 144 are 400: all but seven do not exceed 399.
    let day = |wait_us| week((wait_us, MANY, SIZE));
    assert_eq!(usual(day(0.0)[..144].iter().map(|hour| hour.0).collect()), Some(399.0));
    assert_eq!([TIMES * 399.0, TIMES * 399.0 + 1.0, 1.0].map(|us| found(&day(us))), [0, 1, 0]);
    let finding = &found_of(&day(2000.0), 0.0, 0.0)[0];
    let what = "tasks wait 2.00 ms for each request of its disks; under the same load it was at most 0.40 ms in the days before";
    assert_eq!(finding.what, what);
    assert_eq!(finding.seen, "the median of 24 hours of the last day; 19 of 20 of 144 hours before");
}

#[test]
fn a_few_hours_are_no_day_and_no_rule() {
    let mut hours = week((390.0, MANY, SIZE));
    hours[150..161].iter_mut().for_each(|hour| hour.0 = 9000.0);
    assert_eq!(found(&hours), 0, "fewer than half of the hours");
    hours[150..163].iter_mut().for_each(|hour| hour.0 = 9000.0);
    assert_eq!(found(&hours), 1);
    // Bad hours of each night before.
    let mut nights = week((2000.0, MANY, SIZE));
    nights[..144].iter_mut().step_by(ONE_IN).for_each(|hour| hour.0 = 5000.0);
    assert_eq!(found(&nights), 0, "one in twenty and one more");
    nights[0].0 = 390.0;
    assert_eq!(found(&nights), 1);
}

#[test]
fn other_work_is_no_slower_disk() {
    // More work than ever before; fewer requests, but more bytes; more requests, but fewer bytes.
    for day in [(2000.0, 1.1 * MANY, SIZE), (9000.0, MANY / 10.0, 64.0 * SIZE), (2000.0, 2.0 * MANY, SIZE / 8.0)] {
        assert_eq!(found(&week(day)), 0, "{day:?}");
    }
    // Half as much in the same time of waiting is a slower disk; so is one that no task ever waited for before.
    assert_eq!(found(&week((2000.0, MANY / 2.0, SIZE))), 1);
    let mut never = week((2000.0, MANY, SIZE));
    never[..144].iter_mut().for_each(|hour| hour.0 = 0.0);
    assert_eq!(found(&never), 1);
    // Small requests before, which cost less each; per byte they cost as much as now.
    let mut small = week((2000.0, MANY / 8.0, 8.0 * SIZE));
    small[..144].iter_mut().for_each(|hour| hour.0 = 250.0);
    assert_eq!(found(&small), 0);
}

#[test]
fn what_is_too_little_to_tell_is_not_told() {
    let all = week((2000.0, MANY, SIZE));
    let idle = (0.0, 0.0, SIZE);
    let part = |before: usize, day: usize| found(&all[144 - before..144 + day]);
    assert_eq!([part(144, 24), part(0, 24)], [1, 0]);
    // Six hours of the time before, on this many days.
    let on_days = |days: usize, hours: usize| {
        let is_busy = |at: usize| at % 24 < hours.div_ceil(days) && at / 24 < days;
        let before = (0..144).map(|at| if is_busy(at) { all[at] } else { idle });
        found(&before.chain(all[144..].iter().copied()).collect::<Vec<_>>())
    };
    assert_eq!([on_days(DAYS, HOURS), on_days(DAYS - 1, 24), on_days(DAYS, HOURS - DAYS)], [1, 0, 0]);
    // With a day of six hours the rest of 24 are of the days before.
    let short = |hours| [&all[..144], &vec![idle; 24 - hours], &all[144..144 + hours]].concat();
    assert_eq!([found(&short(HOURS)), found(&short(HOURS - 1))], [1, 0]);
    // Waiting that is too short to matter.
    let requests = NOTICED * HOUR_US / 2000.0;
    assert_eq!([requests, requests - 1.0].map(|n| found(&week((2000.0, n, SIZE)))), [1, 0]);
}

#[test]
fn who_waits_for_a_file_server_or_kept_nothing_lately_is_not_told() {
    let all = week((2000.0, MANY, SIZE));
    let of = |old_s, received| found_of(&all, old_s, received).len();
    assert_eq!([of(0.0, MANY * SIZE), of(0.0, MANY * SIZE + 1.0), of(2.0 * DAY_S, 0.0)], [1, 0, 0]);
}

/// Pseudo-random numbers from 0 to 1, the same each time: Marsaglia's xorshift64.
struct Drawn(u64);

impl Drawn {
    fn next(&mut self) -> f64 {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Bytes of a request, seconds that it takes a disk, and the part of them in which a task waits. The kinds are random
/// reads, sequential reads, delayed writes, small files.
const KINDS: [(f64, f64, f64); 4] = [(8e3, 0.008, 1.0), (512e3, 0.004, 1.0), (64e3, 0.002, 0.05), (4e3, 0.003, 0.6)];

/// Returns a day of a mix of these kinds, on a disk that is `slow` times as slow.
fn made_day(drawn: &mut Drawn, day: u32, slow: f64) -> Vec<Hour> {
    let shares = KINDS.map(|_| drawn.next().powi(4));
    let (sum, busy) = (shares.iter().sum::<f64>(), drawn.next());
    let hour = |_| {
        let mut hour = Hour { end_s: f64::from(day) * DAY_S, waited_us: 0.0, requests: 0.0, bytes: 0.0 };
        for ((size, takes_s, waited), share) in KINDS.iter().zip(shares) {
            let seconds = 3600.0 * busy * share / sum * (0.4 + 1.2 * drawn.next());
            hour.requests += seconds / takes_s;
            hour.bytes += seconds / takes_s * size;
            hour.waited_us += seconds * waited * slow * 1e6;
        }
        // No task waits longer than an hour in an hour: less work is done in it.
        let done = (HOUR_US / hour.waited_us).min(1.0);
        let Hour { end_s, waited_us, requests, bytes } = hour;
        Hour { end_s, waited_us: waited_us * done, requests: requests * done, bytes: bytes * done }
    };
    (0..24).map(hour).collect()
}

/// Returns how many of a thousand hosts are reported.
fn count_reported(seed: u64, slow: f64, same_work: bool) -> usize {
    let mut drawn = Drawn(seed);
    let host = |_| {
        let of_host = Drawn((drawn.next() * 1e15) as u64 | 1);
        let mut day = |day, slow| {
            let mut own = Drawn(of_host.0);
            made_day(if same_work { &mut own } else { &mut drawn }, day, slow)
        };
        let before: Vec<Hour> = (0..6).flat_map(|at| day(at, 1.0)).collect();
        usize::from(slower(&day(6, slow), before, 6.0 * DAY_S).is_some())
    };
    (0..1000).map(host).sum()
}

#[test]
fn made_work_tells_what_the_constants_are_worth() {
    for seed in [1, 2, 3] {
        assert_eq!(count_reported(seed, 1.0, true), 0, "well, with the same work each day");
        assert!(count_reported(seed, 1.0, false) <= 6, "well, with other work each day");
        assert!(count_reported(seed, 5.0, true) >= 750, "five times as slow");
        assert!(count_reported(seed, 10.0, false) >= 450, "ten times as slow, and other work");
    }
}
