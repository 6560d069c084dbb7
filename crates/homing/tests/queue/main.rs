//! `homing sub` and its sisters as users type them, with real processes.

mod cluster;
mod crowd;
mod engine;
mod far;
mod full;
mod killed;
#[path = "../../../../tests/preload.rs"]
mod preload;
#[path = "../../../../tests/script.rs"]
mod script;
mod seats;
mod several;
mod slurm;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../../tests/until.rs"]
mod until;
mod users;
mod verbs;
mod world;
