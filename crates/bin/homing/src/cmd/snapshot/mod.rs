//! `homing snapshot`: makes copies next to the bytes, and tries their restore.

mod args;
mod make;
mod mount;
mod read;
mod schedule;
mod show;
mod target;
mod watch;

pub use args::Args;
use args::Verb;
use homing_model::Failure;
pub use target::section_faults;
pub use watch::{Watched, watched};

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    let Args { cluster, make, verb } = args;
    match verb {
        None => make::run(&cluster, make),
        Some(Verb::List(args)) => read::list(&cluster, args),
        Some(Verb::Diff(args)) => read::diff(&cluster, args),
        Some(Verb::Cat(args)) => read::cat(&cluster, args),
        Some(Verb::Restore(args)) => read::restore(&cluster, args),
        Some(Verb::Verify(args)) => read::verify(&cluster, args),
        Some(Verb::Mount(args)) => mount::run(&cluster, args),
        Some(Verb::Schedule(args)) => schedule::run(&cluster, args),
        Some(Verb::Expire(args)) => read::expire(&cluster, args),
    }
}
