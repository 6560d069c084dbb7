//! The commands that administer a cluster. Without the feature `admin` they are names alone: `homing` becomes
//! `homing-admin` before it parses their words.

#[cfg(feature = "admin")]
mod here {
    pub use crate::cmd::bench::{Args as Bench, run as bench};
    pub use crate::cmd::cache::{Args as Cache, run as cache};
    pub use crate::cmd::check::{Args as Check, run as check};
    pub use crate::cmd::lab::{Args as Lab, run as lab};
    pub use crate::cmd::power::{Args as Power, run as power};
    pub use crate::cmd::snapshot::{Args as Snapshot, run as snapshot};
    pub use crate::cmd::topology::{Args as Topology, run as topology};
    pub use crate::cmd::tune::{Args as Tune, run as tune};
    pub use crate::cmd::up::down::{Args as Down, run as down};
    pub use crate::cmd::up::{Args as Up, run as up};
    pub use crate::cmd::volume::{Args as Volume, run as volume};
}

#[cfg(not(feature = "admin"))]
mod elsewhere {
    use homing_model::Failure;
    use std::ffi::OsString;

    /// Words of a command that is in `homing-admin`.
    #[derive(clap::Args)]
    #[command(disable_help_flag = true)]
    pub struct Elsewhere {
        /// Its words
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    }

    pub fn become_admin(_: Elsewhere) -> Result<i32, Failure> {
        Err(crate::programs::become_admin(&std::env::args_os().collect::<Vec<_>>()))
    }

    pub type Bench = Elsewhere;
    pub use become_admin as bench;
    pub type Cache = Elsewhere;
    pub use become_admin as cache;
    pub type Check = Elsewhere;
    pub use become_admin as check;
    pub type Down = Elsewhere;
    pub use become_admin as down;
    pub type Lab = Elsewhere;
    pub use become_admin as lab;
    pub type Power = Elsewhere;
    pub use become_admin as power;
    pub type Snapshot = Elsewhere;
    pub use become_admin as snapshot;
    pub type Topology = Elsewhere;
    pub use become_admin as topology;
    pub type Tune = Elsewhere;
    pub use become_admin as tune;
    pub type Up = Elsewhere;
    pub use become_admin as up;
    pub type Volume = Elsewhere;
    pub use become_admin as volume;
}

#[cfg(not(feature = "admin"))]
pub use elsewhere::*;
#[cfg(feature = "admin")]
pub use here::*;
