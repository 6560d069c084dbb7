//! Runs that are killed, stopped, starved and lied to at random, with fixed
//! seeds, and are resumed until all is done: nothing is wrong with any of them.
//! `make campaign` tries other seeds, and says how one is repeated.

use homing_campaign::{Place, campaign};
use std::path::Path;

#[test]
fn runs_survive_what_befalls_them() {
    let place = Place::new(Path::new(env!("CARGO_BIN_EXE_homing")), None).unwrap();
    let (summary, wrong) = campaign(&place, 1..16);
    assert_eq!(wrong, 0, "{summary}");
}
