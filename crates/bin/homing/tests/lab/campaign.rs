//! The campaign over ssh, on hosts that lose their power, links and bricks. Three labs run at once, since the
//! campaign mostly waits for hosts.

use crate::support::{EXE, Lab, missing};
use homing_campaign::{CampaignEnvironment, campaign};
use std::ops::Range;
use std::path::Path;

#[test]
fn runs_over_ssh_survive_what_befalls_them() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    std::thread::scope(|scope| {
        [1..8, 8..15, 15..22].map(|seeds| {
            scope.spawn(move || survive(seeds));
        })
    });
}

fn survive(seeds: Range<u64>) {
    let lab = Lab::up(&format!("campaign{}", seeds.start), &["--hosts", "3", "--gluster", "1x3"]);
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-3]'"));
    let place = CampaignEnvironment::new(Path::new(EXE), Some(&lab.name)).unwrap();
    let (summary, wrong) = campaign(&place, seeds);
    assert_eq!(wrong, 0, "{summary}");
}
