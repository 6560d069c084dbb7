//! A file a check.

mod accounts;
mod alike;
mod answering;
mod beneath;
mod bond;
mod clock;
mod counters;
mod devices;
mod dns;
mod fstab;
mod full;
mod homes;
mod kernel_log;
mod kernel_state;
mod links;
mod machine_id;
mod memory;
mod mounted;
mod nologin;
mod own_name;
mod processors;
mod resolve;
mod same_files;
mod settings;
mod slurm_nodes;
mod startup;
mod time_daemon;
mod units;
mod versions;

use crate::Check;

/// All checks, in the order of their areas.
pub static CHECKS: &[&Check] = &[
    &own_name::CHECK,
    &resolve::CHECK,
    &dns::CHECK,
    &machine_id::CHECK,
    &clock::CHECK,
    &time_daemon::CHECK,
    &homes::CHECK,
    &startup::CHECK,
    &accounts::CHECK,
    &nologin::CHECK,
    &fstab::CHECK,
    &mounted::CHECK,
    &answering::CHECK,
    &beneath::CHECK,
    &full::CHECK,
    &devices::CHECK,
    &kernel_log::CHECK,
    &counters::CHECK,
    &memory::CHECK,
    &processors::CHECK,
    &links::CHECK,
    &bond::CHECK,
    &units::CHECK,
    &versions::CHECK,
    &settings::CHECK,
    &same_files::CHECK,
    &slurm_nodes::CHECK,
    &kernel_state::CHECK,
];
