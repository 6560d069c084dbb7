//! Tests that raise labs or guests, one module a suite. `make test-lab` runs each suite as a process of its own.
//! `make test-lab ONLY=volume` runs one of them.

#[path = "../../../../../tests/alone.rs"]
mod alone;
#[path = "../support/engine.rs"]
mod engine;
#[path = "../support/guests.rs"]
mod guests;
#[path = "../support/links.rs"]
mod links;
#[path = "../../../../../tests/preload.rs"]
mod preload;
#[path = "../support/up.rs"]
mod setup;
#[path = "../../../../../tests/skipped.rs"]
mod skipped;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/terminal.rs"]
mod terminal;
#[path = "../../../../../tests/until.rs"]
mod until;
#[path = "../support/world.rs"]
mod world;

mod admission;
mod advise;
mod along;
mod bench_net;
mod cache;
mod campaign;
mod ceph;
mod check;
mod fence;
mod jobs;
mod lab;
mod lab_systems;
mod lab_wires;
mod leaders;
mod make;
mod moosefs;
mod nfs;
mod nfs_leases;
mod power;
mod queue;
mod queue_slurm;
mod screen;
mod shared_disks;
mod skew;
mod slurm;
mod snapshot;
mod snapshot_restic;
mod sshfs;
mod topology;
mod tree;
mod tune;
mod up;
mod up_alone;
mod up_disks;
mod up_homes;
mod up_in_force;
mod up_mtu;
mod up_traps;
mod usage;
mod volume;
