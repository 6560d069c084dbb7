//! Shows the effect of each constant of the controller. It is halved and doubled over all rows of the test bed, and
//! the rows that change by 3 % are printed.

#[path = "../tests/bed/mod.rs"]
#[allow(dead_code)]
mod bed;

use bed::devices::{CROWDS, ROWS};
use bed::{Limit, took};
use homing_admit::Tuning;

/// The name of a constant, and the function that scales it.
type Constant = (&'static str, fn(&mut Tuning, f64));

macro_rules! constants {
    (shares: $($share:ident)*; times: $($time:ident)*; factors: $($factor:ident)*) => {
        [
            $((stringify!($share), (|t, by| t.$share *= by) as fn(&mut Tuning, f64)),)*
            $((stringify!($time), |t, by| t.$time = (t.$time as f64 * by) as u64),)*
            // For a factor, its distance from one is scaled.
            $((stringify!($factor), |t, by| t.$factor = 1.0 + (t.$factor - 1.0) * by),)*
        ]
    };
}

const CONSTANTS: [Constant; 11] = constants!(
    shares: quiet step_bytes plain price filled;
    times: step_us looks starts_us vain_us measure_us;
    factors: gain
);

fn rows(tuning: Tuning) -> Vec<f64> {
    let known = ROWS.iter().map(|row| (row, Limit::Auto(None)));
    let all = known.chain(CROWDS.iter().map(|row| (row, Limit::Late(100))));
    all.map(|((_, device, batch), limit)| took(*device, *batch, &limit, tuning)).collect()
}

fn main() {
    let base = rows(Tuning::default());
    for (name, scale) in CONSTANTS {
        for by in [0.5, 2.0] {
            let mut tuning = Tuning::default();
            scale(&mut tuning, by);
            let moved = rows(tuning);
            let all = ROWS
                .iter()
                .chain(&CROWDS)
                .zip(base.iter().zip(&moved))
                .map(|((row, ..), (base, now))| (row, now / base));
            let much: Vec<String> = all
                .filter(|(_, ratio)| (ratio - 1.0).abs() >= 0.03)
                .map(|(row, ratio)| format!("{row} {ratio:.2}"))
                .collect();
            println!("{name:16} x{by}: {}", if much.is_empty() { "-".into() } else { much.join(", ") });
        }
    }
}
