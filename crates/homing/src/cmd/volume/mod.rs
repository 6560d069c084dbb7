//! `homing volume`: file systems over hosts.

pub mod args;
pub mod change;
pub mod create;
mod drive;
pub mod show;
mod transport;
mod watch;

use crate::failure::Failure;
pub use args::Args;
use args::Verb;

/// Runs it.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Create(a) => create::run(&args.way, a),
        Verb::List(a) => show::list(&args.way, a),
        Verb::Status(a) => show::status(&args.way, a),
        Verb::BalanceReport(a) => show::balance(&args.way, a),
        Verb::Mount(a) => change::mount(&args.way, a),
        Verb::Unmount(a) => change::unmount(&args.way, a),
        Verb::AddHost(a) => change::add_host(&args.way, a),
        Verb::DrainHost(a) => change::drain_host(&args.way, a),
        Verb::SetCopies(a) => change::set_copies(&args.way, a),
        Verb::SetStripe(a) => change::set_stripe(&args.way, a),
        Verb::Heal(a) => change::heal(&args.way, a),
        Verb::Rebalance(a) => change::rebalance(&args.way, a),
        Verb::Delete(a) => change::delete(&args.way, a),
        Verb::Resume(a) => change::resume(&args.way, a),
        Verb::Undo(a) => change::undo(&args.way, a),
    }
}
