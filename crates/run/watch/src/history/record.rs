//! Converts a sample to bytes and back.

use homing_model::HostSample;
use std::collections::BTreeMap;

/// The bytes of a record.
pub const BYTES: usize = 128;
/// The numbers in a record. A checksum of them follows.
const NUMBERS: usize = 15;
/// The mark of an unknown value. No counter reaches it.
const UNKNOWN: u64 = u64::MAX;
/// The run queue's length is stored in units of 1/1000.
const PARTS: f64 = 1000.0;
/// The name of the sum of all interfaces. Their own names are not kept.
const ALL: &str = "all";

/// A sample of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRecord {
    /// The number of the record among all that were ever kept, from 1.
    pub number: u64,
    /// Identifies a boot of the host. Counters begin again at each boot.
    pub boot: u64,
    /// The sample. Interfaces are added up. The bytes that NFS mounts served are left out.
    pub sample: HostSample,
}

impl SampleRecord {
    /// Makes a record of a sample. `boot_id` is as the kernel prints it.
    pub fn new(mut sample: HostSample, boot_id: &str) -> SampleRecord {
        let both = sample
            .net
            .values()
            .fold((0_u64, 0_u64), |all, one| (all.0.saturating_add(one.0), all.1.saturating_add(one.1)));
        if !sample.net.is_empty() {
            sample.net = BTreeMap::from([(ALL.to_string(), both)]);
        }
        sample.served.clear();
        (sample.io_full_us, sample.io_some_avg10) = (None, None);
        sample.r1m = sample.r1m.map(|r1m| (r1m * PARTS).round() / PARTS);
        // The first 64 bits of a random number.
        let digits: String = boot_id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        SampleRecord { number: 0, boot: u64::from_str_radix(&digits, 16).unwrap_or(0), sample }
    }

    /// Returns the load since an earlier record, and the seconds between both. `None` if the host was restarted in
    /// between, or its clock was set back.
    pub fn since(&self, before: &SampleRecord) -> Option<(homing_model::Indices, f64)> {
        let seconds = (self.sample.at_ns.saturating_sub(before.sample.at_ns)) as f64 / 1e9;
        (self.boot == before.boot && seconds > 0.0).then(|| (self.sample.since(&before.sample), seconds))
    }

    pub(crate) fn bytes(&self) -> [u8; BYTES] {
        let s = &self.sample;
        let known = |value: Option<u64>| value.unwrap_or(UNKNOWN);
        let net = s.net.get(ALL);
        let numbers: [u64; NUMBERS] = [
            self.number,
            self.boot,
            s.at_ns as u64,
            known(s.r1m.map(|r1m| (r1m * PARTS).round() as u64)),
            known(s.cpu_total_us),
            known(s.cpu_idle_us),
            known(s.swap_pages),
            known(s.mem_available),
            known(s.io_some_us),
            known(s.disk_blocks),
            known(s.disk_requests),
            known(s.nfsd_calls),
            known(net.map(|net| net.0)),
            known(net.map(|net| net.1)),
            0,
        ];
        let mut bytes = [0; BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = u64::from(crc32fast::hash(&bytes[..NUMBERS * 8]));
        bytes[NUMBERS * 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a record. Returns `None` for an incomplete, damaged or empty place.
    pub(crate) fn of(bytes: &[u8; BYTES]) -> Option<SampleRecord> {
        let mut numbers = bytes.chunks_exact(8).map(|eight| eight.try_into().map_or(UNKNOWN, u64::from_le_bytes));
        let mut next = || numbers.next().unwrap_or(UNKNOWN);
        let (number, boot, at_ns) = (next(), next(), next() as i64);
        let mut known = || Some(next()).filter(|value| *value != UNKNOWN);
        let sample = HostSample {
            at_ns,
            r1m: known().map(|parts| parts as f64 / PARTS),
            cpu_total_us: known(),
            cpu_idle_us: known(),
            swap_pages: known(),
            mem_available: known(),
            io_some_us: known(),
            disk_blocks: known(),
            disk_requests: known(),
            nfsd_calls: known(),
            net: known().zip(known()).map(|both| (ALL.to_string(), both)).into_iter().collect(),
            ..HostSample::default()
        };
        let (_kept_for_later, sum) = (next(), next());
        let is_whole = sum == u64::from(crc32fast::hash(&bytes[..NUMBERS * 8]));
        (is_whole && number > 0).then_some(SampleRecord { number, boot, sample })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_comes_back_as_it_was_and_unknown_stays_unknown() {
        let sample = HostSample {
            at_ns: -7,
            r1m: Some(1.2345),
            cpu_total_us: Some(u64::MAX - 1),
            net: BTreeMap::from([("a".into(), (1, 2)), ("b".into(), (3, 4))]),
            ..HostSample::default()
        };
        let record = SampleRecord { number: 9, ..SampleRecord::new(sample, "0123456789ab-cdef-...") };
        assert_eq!((record.boot, record.sample.r1m), (0x0123_4567_89ab_cdef, Some(1.235)));
        let back = SampleRecord::of(&record.bytes()).unwrap();
        assert_eq!(back, record);
        assert_eq!((back.sample.net[ALL], back.sample.mem_available), ((4, 6), None));
        assert_eq!(SampleRecord::of(&[0; BYTES]), None, "a place that was never written");
    }

    #[test]
    fn no_byte_can_change_unseen() {
        let record = SampleRecord { number: 3, ..SampleRecord::new(HostSample::default(), "ff") };
        let whole = record.bytes();
        for at in 0..BYTES {
            let mut bytes = whole;
            bytes[at] ^= 0x40;
            assert_eq!(SampleRecord::of(&bytes), None, "{at}");
        }
    }

    #[test]
    fn there_is_no_rate_over_a_start_of_the_host_or_a_clock_set_back() {
        let at = |boot, at_ns| SampleRecord {
            boot,
            sample: HostSample { at_ns, nfsd_calls: Some(9), ..HostSample::default() },
            ..SampleRecord::default()
        };
        assert!(at(1, 60_000_000_000).since(&at(1, 0)).is_some_and(|(_, seconds)| seconds == 60.0));
        assert_eq!((at(2, 60).since(&at(1, 0)), at(1, 0).since(&at(1, 60))), (None, None));
    }
}
