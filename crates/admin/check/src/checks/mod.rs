//! The checks, one file each.

mod accounts;
mod alike;
pub(crate) mod answering;
mod barriers;
mod beneath;
mod bond;
pub mod burn_in;
mod ceph;
pub(crate) mod clock;
mod counters;
mod devices;
mod dns;
mod drift;
mod exports;
mod fstab;
mod fstab_volume;
mod full;
mod homes;
mod host_based;
mod host_keys;
mod idmap;
mod kernel_log;
mod kernel_state;
mod links;
mod logins;
mod lvm;
mod machine_id;
mod memory;
mod mounted;
mod nologin;
mod own_name;
mod path_mtu;
mod ports;
mod processors;
mod reply;
mod resolve;
mod rsync_races;
mod same_files;
mod settings;
mod slurm_nodes;
mod smart;
mod startup;
mod switch;
mod time_daemon;
mod units;
mod versions;
mod written;

use crate::HostCheck;

/// All checks, in the order of their areas.
pub static CHECKS: &[&HostCheck] = &[
    &own_name::CHECK,
    &resolve::CHECK,
    &dns::CHECK,
    &machine_id::CHECK,
    &clock::CHECK,
    &time_daemon::CHECK,
    &homes::CHECK,
    &startup::CHECK,
    &logins::CHECK,
    &host_keys::CHECK,
    &host_based::CHECK,
    &accounts::CHECK,
    &nologin::CHECK,
    &idmap::CHECK,
    &fstab::CHECK,
    &mounted::CHECK,
    &answering::CHECK,
    &beneath::CHECK,
    &exports::CHECK,
    &written::CHECK,
    &full::CHECK,
    &devices::CHECK,
    &kernel_log::CHECK,
    &counters::CHECK,
    &smart::CHECK,
    &drift::CHECK,
    &lvm::CHECK,
    &barriers::CHECK,
    &memory::CHECK,
    &processors::CHECK,
    &links::CHECK,
    &switch::CHECK,
    &bond::CHECK,
    &path_mtu::CHECK,
    &ports::CHECK,
    &reply::CHECK,
    &units::CHECK,
    &versions::CHECK,
    &rsync_races::CHECK,
    &settings::CHECK,
    &same_files::CHECK,
    &slurm_nodes::CHECK,
    &ceph::CHECK,
    &kernel_state::CHECK,
];
