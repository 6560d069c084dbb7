//! `homing sub` and its sisters as users type them, with real processes.

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
