//! `homing-campaign HOMING RUNS [SEED [LAB]]`: tries RUNS seeds, beginning with SEED.

use homing_campaign::{CampaignEnvironment, campaign};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| words.get(at).and_then(|w| w.parse().ok()).unwrap_or(otherwise);
    let Some(homing) = words.first().and_then(|w| std::fs::canonicalize(w).ok()) else {
        eprintln!("homing-campaign HOMING RUNS [SEED [LAB]]");
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
    let (summary, wrong) = campaign(&place, number(2, 1)..number(2, 1) + number(1, 100));
    print!("{summary}");
    ExitCode::from(u8::from(wrong > 0))
}
