//! Copies the states of a folder into plain trees in dirvish's layout, next to the bytes.
//!
//! A bank is a folder of vaults, a vault a folder of images, an image a folder with `tree`, `summary` and `manifest`.
//! Files that have not changed are shared by hard links. rsync copies. Rules, expiry and manifests are decided by
//! pure code that reads no disk.
//!
//! The copy of an interrupted image is continued by the next one (`make`). If the bank is full, making an image fails
//! and all earlier ones stay.
//!
//! It does not: back databases up, or copy a folder that changes as one state unless its file system makes instant
//! copies. It does not expire an image while a clock is in doubt.

pub mod ask;
pub mod asking;
mod attributes;
pub mod banks;
pub mod conf;
pub mod destination;
mod dirvish;
mod disk;
pub mod doubt;
pub mod expiry;
mod flaws;
mod freeze;
mod gate;
pub mod home;
pub mod image;
mod index;
pub mod instant;
mod journal;
pub mod keep;
mod look;
mod make;
pub mod manifest;
pub mod metrics;
pub mod order;
pub mod output;
pub mod pace;
mod parts;
mod period;
mod place;
mod plan;
pub mod remove;
pub mod repository;
mod restic;
mod restore;
pub mod rsync;
mod run;
mod scratch;
pub mod section;
mod sender;
pub mod serve;
mod share;
#[cfg(test)]
#[path = "../../../../tests/skipped.rs"]
mod skipped;
pub mod space;
pub mod split;
pub mod target;
pub mod timer;
pub mod timers;
mod transfer;
mod tree;
mod vault;
mod verify;
mod walk;
