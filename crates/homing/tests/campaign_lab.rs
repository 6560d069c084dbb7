//! The campaign over ssh, on hosts that lose their power, links and bricks.

mod support;

use homing_campaign::{Place, campaign};
use std::path::Path;
use support::{EXE, Lab, missing};

#[test]
#[ignore = "takes ten minutes; `cargo test -p homing --test campaign_lab -- --ignored`, as root"]
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
