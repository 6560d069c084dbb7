//! The energy that this host uses, from its best source: the site's meter, the firmware's, or the processors'
//! counters.

use homing_model::{Energy, MeteredBy};
use homing_os::threads::lock;
use homing_probe::{HostEnergy, Rapl, firmware_watts, watts};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const POWERCAP: &str = "/sys/class/powercap";
const HWMON: &str = "/sys/class/hwmon";
/// Interval between two readings. The controller of a board takes up to a second for an answer, and does nothing else
/// meanwhile.
const PERIOD: Duration = Duration::from_secs(10);
/// Longest wait for the answer of a meter.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters shown of a meter's output that contains no watts.
const SHOWN: usize = 60;

/// The energy used since `began`.
pub(crate) struct EnergyMeter {
    began: Instant,
    way: Mutex<EnergySource>,
}

enum EnergySource {
    Unknown,
    Counters(Rapl),
    Watts(HostEnergy),
}

impl EnergyMeter {
    /// Starts the clock, without a source yet.
    pub(crate) fn new() -> EnergyMeter {
        EnergyMeter { began: Instant::now(), way: Mutex::new(EnergySource::Unknown) }
    }

    /// Returns the energy used so far, if it is measured.
    pub(crate) fn look(&self) -> Option<Energy> {
        match &mut *self.way() {
            EnergySource::Unknown => None,
            EnergySource::Counters(rapl) => Some(rapl.look(self.began.elapsed())),
            EnergySource::Watts(power) => power.look(self.began.elapsed()),
        }
    }

    fn way(&self) -> std::sync::MutexGuard<'_, EnergySource> {
        lock(&self.way)
    }

    fn add_reading(&self, watts: f64) {
        if let EnergySource::Watts(power) = &mut *self.way() {
            power.add_reading(watts, self.began.elapsed());
        }
    }

    /// Reads the source every period, until the worker ends.
    fn keep_asking(&self, by: MeteredBy, first: f64, ask: impl Fn() -> Option<f64>) {
        *self.way() = EnergySource::Watts(HostEnergy::begin(by, Duration::ZERO));
        let mut answer = Some(first);
        loop {
            answer.into_iter().for_each(|watts| self.add_reading(watts));
            std::thread::sleep(PERIOD);
            answer = ask();
        }
    }
}

/// Measures until the worker ends. `meter` is the site's command, or empty; `note` receives the reason if it is not
/// used.
///
/// # Errors
/// No thread could be started.
pub(crate) fn measure(
    measured: Arc<EnergyMeter>,
    meter: String,
    note: impl Fn(String) + Send + 'static,
) -> std::io::Result<()> {
    // In a separate thread: each source may hang.
    homing_os::threads::begin(move || {
        let rapl = Rapl::begin(Path::new(POWERCAP), measured.began.elapsed());
        if !meter.is_empty() {
            match read_watts(&meter, PATIENCE) {
                Ok(first) => measured.keep_asking(MeteredBy::Meter, first, || read_watts(&meter, PATIENCE).ok()),
                Err(why) => note(format!("the meter of [power] is not used on this host: {why}")),
            }
        }
        if let Some(first) = firmware_watts(Path::new(HWMON)) {
            measured.keep_asking(MeteredBy::Hwmon, first, || firmware_watts(Path::new(HWMON)));
        }
        if let Some(rapl) = rapl {
            *measured.way() = EnergySource::Counters(rapl);
        }
    })
    .map(drop)
}

/// Returns the watts that a meter prints, or why there are none.
fn read_watts(meter: &str, patience: Duration) -> Result<f64, String> {
    let text = homing_os::process::run_shell(meter, patience)?;
    let text = String::from_utf8_lossy(&text);
    watts(&text).ok_or_else(|| {
        let shown: String = text.trim().chars().take(SHOWN).collect();
        format!("{meter:?} printed {shown:?}, which is not a number of watts")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_meter_tells_watts_or_why_not() {
        let long = Duration::from_secs(60);
        assert_eq!(read_watts("echo 'Instantaneous power reading: 214 Watts'", long), Ok(214.0));
        let why = |meter: &str, patience| read_watts(meter, patience).unwrap_err();
        assert!(why("echo many", long).ends_with("printed \"many\", which is not a number of watts"));
        assert!(why("exit 1", long).contains("failed: exit status: 1"));
        assert!(why("sleep 1000", Duration::ZERO).contains("did not end within 0 s"));
    }

    #[test]
    fn a_meter_is_used_and_one_that_tells_rubbish_is_named() {
        let measured = Arc::new(EnergyMeter::new());
        assert_eq!(measured.look(), None);
        let (told, notes) = channel();
        measure(measured.clone(), "echo 100".into(), |_| ()).unwrap();
        while measured.look().is_none() {
            std::thread::yield_now();
        }
        let energy = measured.look().unwrap();
        assert!(energy.by == MeteredBy::Meter && (energy.uj / 100).abs_diff(energy.us) <= 1, "{energy:?}");
        measure(Arc::new(EnergyMeter::new()), "echo many".into(), move |why| drop(told.send(why))).unwrap();
        assert!(notes.recv().unwrap().starts_with("the meter of [power] is not used on this host: \"echo many\""));
    }
}
