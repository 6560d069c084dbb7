//! Files that one host fetches for all who want them.

use crate::{Fetch, Gone, Sent, Wanted, fetch_once, send};
use homing_model::Failure;
use homing_steps::SshExecutor;

/// What hosts are brought.
pub struct Load<'a> {
    /// Files by the host that wants them.
    pub wanted: &'a Wanted,
    /// Hosts that may fetch besides: one that has all may still have the way out that the others lack.
    pub others: Vec<String>,
    /// What is fetched.
    pub fetch: &'a Fetch,
    /// Takes them there from its standard input, as tar.
    pub script: &'a str,
}

/// Why nothing was brought.
pub enum Unbrought {
    /// No host could fetch, and why each could not.
    Nobody(Vec<(String, String)>),
    /// This machine could not pass it on.
    Here(Failure),
}

impl From<Failure> for Unbrought {
    fn from(failure: Failure) -> Unbrought {
        Unbrought::Here(failure)
    }
}

/// Has the first host that can fetch, and sends each host what it wants; who fetched, and what became of the hosts.
pub fn bring(executor: &SshExecutor, load: &Load, say: &dyn Fn(&str)) -> Result<(String, Gone), Unbrought> {
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|e| Failure::system(format!("making a folder for packages: {e}")))?;
    let hosts = load.wanted.keys().chain(&load.others);
    let by = fetch_once(executor, hosts, load.fetch, folder.path(), say).map_err(Unbrought::Nobody)?;
    let sent = Sent { folder: folder.path(), beside: None, script: load.script };
    Ok((by, send(executor, load.wanted, &sent).map_err(Failure::system)?))
}
