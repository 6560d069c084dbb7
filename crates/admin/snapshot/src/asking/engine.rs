//! Selects the host for a command: the bank's host for plain trees, the source's host for a repository of restic.

use super::channel::{self, From, To};
use super::home::{self, ClusterContext, SourceHome};
use crate::ask::{SnapshotReply, SnapshotRequest};
use crate::repository::{Act, FOLDER, Repository, RepositoryRequest, Restore};
use crate::section::Engine;
use crate::target::Target;
use homing_model::Failure;

/// A host, and the request to it.
pub struct HostRequest {
    /// The host.
    pub host: String,
    /// The request.
    pub request: SnapshotRequest,
}

impl HostRequest {
    /// Returns the request for a vault's engine. `act`: the action on a repository; an error if a repository does not
    /// have it.
    pub fn of(
        known: &ClusterContext,
        target: &Target,
        plain: SnapshotRequest,
        act: impl FnOnce() -> Result<Act, Failure>,
    ) -> Result<HostRequest, Failure> {
        if target.section.engine == Engine::Rsync {
            return Ok(HostRequest { host: target.host.clone(), request: plain });
        }
        let act = act()?;
        let home = source(known, target)?;
        HostRequest::repository(target, home.host, &home.identity, act)
    }

    /// Returns a restore into a folder of a host. That host reads the repository itself, because the source's host
    /// may be lost.
    pub fn restore(target: &Target, host: &str, restore: Restore) -> Result<HostRequest, Failure> {
        HostRequest::repository(target, host.into(), &home::identity(host)?, Act::Restore(restore))
    }

    fn repository(target: &Target, host: String, identity: &str, act: Act) -> Result<HostRequest, Failure> {
        let repository = repository(target, identity)?;
        Ok(HostRequest { host, request: SnapshotRequest::Restic(Box::new(RepositoryRequest { repository, act })) })
    }

    /// Returns the only answer.
    pub fn answer(&self) -> Result<SnapshotReply, Failure> {
        channel::answer(&self.host, &self.request)
    }

    /// Opens a channel, for several answers.
    pub fn begin(&self) -> Result<(To, From), Failure> {
        channel::send_request(&self.host, &self.request)
    }
}

/// Returns the host with the bytes, which runs restic.
pub fn source(known: &ClusterContext, target: &Target) -> Result<SourceHome, Failure> {
    let source = target.section.source.as_deref();
    let source = source.ok_or_else(|| {
        Failure::usage("restic runs on the source's host, but the source is missing: set source = \"HOST:/PATH\"")
    })?;
    home::home(source, &target.host, known)
}

/// Returns the repository as a host reaches it.
pub fn repository(target: &Target, identity: &str) -> Result<Repository, Failure> {
    let section = &target.section;
    let password_file = section.password_file.clone().ok_or_else(|| Failure::usage("--password-file is missing"))?;
    let local = identity == home::identity(&target.host)?;
    Ok(Repository {
        host: (!local).then(|| target.host.clone()),
        folder: target.site.bank.join(&target.site.vault).join(FOLDER),
        password_file,
        ssh: section.ssh.clone(),
    })
}

/// Returns the error for a command that a repository does not support.
pub fn not_with_restic(what: &str, hint: &str) -> Failure {
    Failure::usage(format!("{what} is not available with restic")).hint(hint)
}
