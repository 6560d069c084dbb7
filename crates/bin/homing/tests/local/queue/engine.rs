//! This machine's queue keeps the contract of engines.

use super::world::World;
use crate::engine::SUITE;
use std::process::Command;

#[test]
fn this_machines_queue_keeps_the_contract() {
    let world = World::new(2);
    let folder = tempfile::tempdir().unwrap();
    let mut suite = Command::new(std::env::current_exe().unwrap());
    let output = world.set_up(suite.args(SUITE)).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("1 passed"), "{printed}");
}
