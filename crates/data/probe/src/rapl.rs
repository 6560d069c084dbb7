//! Reads the energy counters of the processors, which Linux shows below `/sys/class/powercap`.

use homing_model::{Energy, MeteredBy};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest interval between two readings. Within it a socket below 2 kW does not pass the smallest known range,
/// 65 kJ, twice.
const LONGEST: Duration = Duration::from_secs(60);

/// One counter.
#[derive(Clone, Debug)]
struct Zone {
    /// The path identifies the zone, because zones of two sockets have equal names.
    energy: PathBuf,
    /// The value at which it begins again, microjoules.
    range: u64,
    /// Whether it counts the whole board, which includes all other zones.
    board: bool,
    last: u64,
}

/// The counters of this host since the first reading.
#[derive(Clone, Debug)]
pub struct Rapl {
    zones: Vec<Zone>,
    at: Duration,
    /// Microjoules of the board, and of sockets and memory.
    board: u64,
    parts: u64,
    over: Duration,
}

impl Rapl {
    /// Reads the counters below `powercap` for the first time; `now` is a time on a clock that does not go back.
    /// Returns `None` if there are none, or one may not be read: a partial sum would be wrong. Since Linux 5.10 only
    /// root may read them.
    pub fn begin(powercap: &Path, now: Duration) -> Option<Rapl> {
        let zones: Option<Vec<Zone>> = read_dir(powercap)
            .ok()?
            .flatten()
            // The same socket may appear again as `intel-rapl-mmio`.
            .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"intel-rapl:"))
            .filter_map(|entry| zone(&entry.path()))
            .collect();
        let zones = zones.filter(|zones| !zones.is_empty())?;
        Some(Rapl { zones, at: now, board: 0, parts: 0, over: Duration::ZERO })
    }

    /// Returns the energy used since the first reading. It leaves out times in which reading failed, or which were so
    /// long that a counter may have begun again more than once.
    pub fn look(&mut self, now: Duration) -> Energy {
        let read: Option<Vec<u64>> = self.zones.iter().map(|zone| number(&zone.energy)).collect();
        if let Some(read) = read {
            let (past, at) = (now.saturating_sub(self.at), now);
            let counts = past <= LONGEST;
            for (zone, energy) in self.zones.iter_mut().zip(read) {
                let grown =
                    energy.checked_sub(zone.last).unwrap_or_else(|| energy + zone.range.saturating_sub(zone.last));
                zone.last = energy;
                *(if zone.board { &mut self.board } else { &mut self.parts }) += if counts { grown } else { 0 };
            }
            self.at = at;
            self.over += if counts { past } else { Duration::ZERO };
        }
        // A board's counter that is below the sum of its parts does not count.
        Energy { uj: self.board.max(self.parts), us: self.over.as_micros() as u64, by: MeteredBy::Rapl }
    }
}

/// Returns `None` for a part of another zone, and `Some(None)` for a zone that cannot be read.
fn zone(path: &Path) -> Option<Option<Zone>> {
    let name = read_to_string(path.join("name")).ok()?;
    let name = name.trim();
    let board = name == "psys";
    let counts = board || name == "dram" || name.starts_with("package-");
    let read = |energy: PathBuf| {
        let (last, range) = (number(&energy)?, number(&path.join("max_energy_range_uj"))?);
        Some(Zone { energy, range, board, last })
    };
    counts.then(|| read(path.join("energy_uj")))
}

fn number(path: &Path) -> Option<u64> {
    read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const RANGE: u64 = 262_143_328_850;

    struct RaplFixture(tempfile::TempDir);

    impl RaplFixture {
        fn new() -> RaplFixture {
            RaplFixture(tempfile::tempdir().unwrap())
        }

        fn zone(&self, zone: &str, name: &str, energy: u64) {
            let folder = self.0.path().join(zone);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("name"), format!("{name}\n")).unwrap();
            fs::write(folder.join("max_energy_range_uj"), format!("{RANGE}\n")).unwrap();
            fs::write(folder.join("energy_uj"), format!("{energy}\n")).unwrap();
        }

        /// Two sockets, whose memory zones have the same name.
        fn sockets(&self, package: u64, dram: u64) {
            for socket in 0..2 {
                self.zone(&format!("intel-rapl:{socket}"), &format!("package-{socket}"), package);
                self.zone(&format!("intel-rapl:{socket}:0"), "core", package / 2);
                self.zone(&format!("intel-rapl:{socket}:1"), "dram", dram);
            }
        }

        fn begin(&self) -> Option<Rapl> {
            Rapl::begin(self.0.path(), Duration::ZERO)
        }
    }

    fn after(rapl: &mut Rapl, seconds: u64) -> (u64, u64) {
        let energy = rapl.look(Duration::from_secs(seconds));
        (energy.uj, energy.us / 1_000_000)
    }

    #[test]
    fn sockets_and_memory_are_added_up_by_path_and_parts_of_sockets_are_not() {
        let made = RaplFixture::new();
        made.sockets(1000, 100);
        made.zone("intel-rapl-mmio:0", "package-0", 1000);
        made.zone("dtpm:0", "package-9", 5);
        let mut rapl = made.begin().unwrap();
        assert_eq!(after(&mut rapl, 1), (0, 1));
        made.sockets(1500, 130);
        assert_eq!(after(&mut rapl, 3), (1060, 3));
    }

    #[test]
    fn the_board_is_used_alone_where_it_counts_all() {
        let made = RaplFixture::new();
        made.sockets(0, 0);
        made.zone("intel-rapl:2", "psys", 0);
        let mut rapl = made.begin().unwrap();
        made.sockets(100, 10);
        assert_eq!(after(&mut rapl, 1).0, 220, "a counter of a board that stands still");
        made.zone("intel-rapl:2", "psys", 400);
        assert_eq!(after(&mut rapl, 2).0, 400);
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on_and_too_long_a_time_is_left_out() {
        let made = RaplFixture::new();
        made.sockets(RANGE - 50, 0);
        let mut rapl = made.begin().unwrap();
        made.sockets(100, 0);
        assert_eq!(after(&mut rapl, 60), (300, 60));
        made.sockets(200, 0);
        assert_eq!(after(&mut rapl, 121), (300, 60), "it may have begun anew twice");
        made.sockets(201, 0);
        assert_eq!(after(&mut rapl, 122), (302, 61));
    }

    #[test]
    fn without_each_counter_there_is_no_sum() {
        let made = RaplFixture::new();
        assert!(made.begin().is_none() && Rapl::begin(&made.0.path().join("none"), Duration::ZERO).is_none());
        made.sockets(1, 1);
        // Makes the file unreadable, as for an ordinary user. Root can read any file, so a folder replaces it.
        let energy = made.0.path().join("intel-rapl:1:1/energy_uj");
        fs::remove_file(&energy).unwrap();
        fs::create_dir(&energy).unwrap();
        assert!(made.begin().is_none());
        fs::remove_dir(&energy).unwrap();
        fs::write(&energy, "1\n").unwrap();
        let mut rapl = made.begin().unwrap();
        fs::write(&energy, "\n").unwrap();
        assert_eq!(after(&mut rapl, 5), (0, 0), "a look that fails counts no time");
    }
}
