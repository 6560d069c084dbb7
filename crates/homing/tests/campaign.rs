//! Runs that are killed, stopped, starved and lied to at random, with fixed
//! seeds, and are resumed until all is done: nothing is wrong with any of them.
//! `make campaign` tries other seeds, and says how one is repeated.

mod support;

use homing_campaign::{Place, campaign};
use std::path::Path;
use support::{EXE, Lab, missing};

#[test]
fn a_hundred_runs_survive_what_befalls_them() {
    let place = Place::new(Path::new(EXE), None).unwrap();
    let (summary, wrong) = campaign(&place, 1..101);
    assert_eq!(wrong, 0, "{summary}");
}

#[test]
#[ignore = "takes many minutes; `cargo test -p homing --test campaign -- --ignored` as root"]
fn thirty_runs_over_ssh_survive_what_befalls_them() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("campaign", &["--hosts", "3", "--gluster", "1x3"]);
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-3]'"));
    let place = Place::new(Path::new(EXE), Some(&lab.name)).unwrap();
    let (summary, wrong) = campaign(&place, 1..31);
    assert_eq!(wrong, 0, "{summary}");
}
