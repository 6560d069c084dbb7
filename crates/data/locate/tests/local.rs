//! The contract suite on this machine's own disk.

use homing_locate::{Locator, contract};
use homing_mounts::FileSystemKind;
use std::collections::BTreeSet;

#[test]
fn local_disks_keep_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let locator = Locator::new().unwrap();
    assert_eq!(locator.volume_of(dir.path()).unwrap().kind, FileSystemKind::Local);
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    contract::check(&locator, dir.path(), &BTreeSet::from([own]));
}
