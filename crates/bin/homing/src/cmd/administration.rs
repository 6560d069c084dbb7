//! The commands that administer a cluster. Without the feature `admin` they are names alone: `homing` becomes
//! `homing-admin` before it parses their words.

#[cfg(feature = "admin")]
mod here {
    use crate::cmd;
    use homing_model::Failure;
    pub type Bench = cmd::bench::Args;
    pub fn bench(args: Bench) -> Result<i32, Failure> {
        cmd::bench::run(args)
    }
    pub type Cache = cmd::cache::Args;
    pub fn cache(args: Cache) -> Result<i32, Failure> {
        cmd::cache::run(args)
    }
    pub type Check = cmd::check::Args;
    pub fn check(args: Check) -> Result<i32, Failure> {
        cmd::check::run(args)
    }
    pub type Down = cmd::up::down::Args;
    pub fn down(args: Down) -> Result<i32, Failure> {
        cmd::up::down::run(args)
    }
    pub type Lab = cmd::lab::Args;
    pub fn lab(args: Lab) -> Result<i32, Failure> {
        cmd::lab::run(args)
    }
    pub type Power = cmd::power::Args;
    pub fn power(args: Power) -> Result<i32, Failure> {
        cmd::power::run(args)
    }
    pub type Snapshot = cmd::snapshot::Args;
    pub fn snapshot(args: Snapshot) -> Result<i32, Failure> {
        cmd::snapshot::run(args)
    }
    pub type Topology = cmd::topology::Args;
    pub fn topology(args: Topology) -> Result<i32, Failure> {
        cmd::topology::run(&args)
    }
    pub type Tune = cmd::tune::Args;
    pub fn tune(args: Tune) -> Result<i32, Failure> {
        cmd::tune::run(&args)
    }
    pub type Up = cmd::up::Args;
    pub fn up(args: Up) -> Result<i32, Failure> {
        cmd::up::run(args)
    }
    pub type Volume = cmd::volume::Args;
    pub fn volume(args: Volume) -> Result<i32, Failure> {
        cmd::volume::run(args)
    }
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
