//! `homing sub` and the other job commands as users type them, with real processes.

mod cluster;
mod crowd;
mod engine;
mod far;
mod full;
mod killed;
mod seats;
mod several;
mod unit;
mod users;
mod verbs;
mod world;
