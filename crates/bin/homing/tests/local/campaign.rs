//! Runs that are killed, stopped and starved at random, with fixed seeds. They also meet wrong clocks and damaged
//! journals. Each run is resumed until all is done, and must have no violation. `make campaign` tries other seeds,
//! and prints the command that repeats one.

use homing_campaign::{CampaignEnvironment, campaign};
use std::path::Path;

#[test]
fn runs_survive_what_befalls_them() {
    let place = CampaignEnvironment::new(Path::new(env!("CARGO_BIN_EXE_homing")), None).unwrap();
    let (summary, wrong) = campaign(&place, 1..16);
    assert_eq!(wrong, 0, "{summary}");
}
