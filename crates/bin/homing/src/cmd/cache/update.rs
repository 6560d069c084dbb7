//! `homing cache update`.

use super::{Manner, concluded};
use crate::cmd::targets::Targets;
use homing_model::Failure;

/// Arguments of `homing cache update`.
///
/// Does the work of `apt-get update` on each host. The first host with access to a
/// mirror fetches each index, and homing copies it to the others, which need no access.
/// apt on each host compares the indexes with the signature that it trusts.
///
/// Exit status: 0: done everywhere; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Update {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    manner: Manner,
}

/// Updates the indexes of packages on hosts.
pub fn update(args: &Update) -> Result<i32, Failure> {
    let hosts = args.targets.hosts()?;
    let executor = args.manner.executor(&args.targets)?;
    let came = homing_relay::indexes(&executor, &hosts, &[], &|text| args.manner.print_message(text))
        .map_err(Failure::system)?;
    concluded(&hosts, &came, &args.manner)
}
