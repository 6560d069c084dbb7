//! Brings files to hosts: one host fetches them for all that want them.

use crate::{Fetch, PackagesByHost, Sent, TransferReport, fetch_once, send};
use homing_model::Failure;
use homing_steps::SshExecutor;

/// The files to bring to hosts.
pub struct DeliveryRequest<'a> {
    /// Files by the host that wants them.
    pub wanted: &'a PackagesByHost,
    /// The hosts that may fetch, in this order. One that lacks no file may still have the internet access that the
    /// others lack.
    pub fetchers: Vec<String>,
    /// The script that fetches.
    pub fetch: &'a Fetch,
    /// The script that takes the files from its standard input, as tar.
    pub script: &'a str,
}

/// The reason why nothing was brought.
pub enum Unbrought {
    /// No host could fetch; the reason of each.
    Nobody(Vec<(String, String)>),
    /// This machine could not pass the files on.
    Here(Failure),
}

impl From<Failure> for Unbrought {
    fn from(failure: Failure) -> Unbrought {
        Unbrought::Here(failure)
    }
}

/// Lets the first host that can fetch do so, and sends each host its files. Returns the host that fetched, and the
/// results of all hosts.
pub fn bring(
    executor: &SshExecutor,
    load: &DeliveryRequest,
    say: &dyn Fn(&str),
) -> Result<(String, TransferReport), Unbrought> {
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|e| Failure::system(format!("making a temporary folder for packages: {e}")))?;
    let by = fetch_once(executor, load.fetchers.iter(), load.fetch, folder.path(), say).map_err(Unbrought::Nobody)?;
    let sent = Sent { folder: folder.path(), beside: None, script: load.script };
    Ok((by, send(executor, load.wanted, &sent).map_err(Failure::system)?))
}
