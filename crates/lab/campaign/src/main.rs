//! `homing-campaign HOMING RUNS [SEED [LAB]]`: tries RUNS seeds, beginning with SEED.

use homing_campaign::{CampaignEnvironment, campaign};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| words.get(at).map_or(Some(otherwise), |word| word.parse().ok());
    let homing = words.first().and_then(|word| std::fs::canonicalize(word).ok());
    let (Some(homing), Some(runs), Some(seed), ..=4) = (homing, number(1, 100), number(2, 1), words.len()) else {
        eprintln!("usage: homing-campaign HOMING RUNS [SEED [LAB]]; HOMING is the program, RUNS and SEED are numbers");
        return ExitCode::from(255);
    };
    let lab = words.get(3).filter(|name| !name.is_empty()).map(String::as_str);
    let place = match CampaignEnvironment::new(&homing, lab) {
        Ok(place) => place,
        Err(e) => {
            eprintln!("homing-campaign: cannot make a folder for the campaign: {e}");
            return ExitCode::from(254);
        }
    };
    let (summary, wrong) = campaign(&place, seed..seed.saturating_add(runs));
    print!("{summary}");
    ExitCode::from(u8::from(wrong > 0))
}
