//! Whom a verb asks: the bank's host about plain trees, the source's host about a repository of restic.

use super::far::{self, From, To};
use super::home::{self, Home};
use super::target::Target;
use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use homing_snapshot::ask::{Answer, Ask};
use homing_snapshot::repository::{Act, FOLDER, Order, Repository};
use homing_snapshot::section::Engine;

/// A host, and what it is asked.
pub struct Asked {
    /// The host.
    pub host: String,
    /// The question.
    pub ask: Ask,
}

impl Asked {
    /// The question of a vault's engine. `act`: what it is to a repository; an error where it is nothing there.
    pub fn of(
        cluster: &ClusterArgs,
        target: &Target,
        plain: Ask,
        act: impl FnOnce() -> Result<Act, Failure>,
    ) -> Result<Asked, Failure> {
        if target.section.engine == Engine::Rsync {
            return Ok(Asked { host: target.host.clone(), ask: plain });
        }
        let act = act()?;
        let home = source(cluster, target)?;
        let repository = repository(target, &home)?;
        Ok(Asked { host: home.host, ask: Ask::Restic(Box::new(Order { repository, act })) })
    }

    /// The one answer.
    pub fn answer(&self) -> Result<Answer, Failure> {
        far::answer(&self.host, &self.ask)
    }

    /// A channel, for more than one.
    pub fn begin(&self) -> Result<(To, From), Failure> {
        far::ask(&self.host, &self.ask)
    }
}

/// The host with the bytes, which runs restic.
fn source(cluster: &ClusterArgs, target: &Target) -> Result<Home, Failure> {
    let source = target.section.source.as_deref();
    let source = source.ok_or_else(|| Failure::usage("restic runs where the source is, which nothing tells"))?;
    home::home(source, &target.host, &cluster.load()?)
}

/// The repository as the source's host reaches it.
pub fn repository(target: &Target, home: &Home) -> Result<Repository, Failure> {
    let section = &target.section;
    let password_file = section.password_file.clone().ok_or_else(|| Failure::usage("--password-file is missing"))?;
    let local = home.identity == home::identity(&target.host)?;
    Ok(Repository {
        host: (!local).then(|| target.host.clone()),
        folder: target.site.bank.join(&target.site.vault).join(FOLDER),
        password_file,
        ssh: section.ssh.clone(),
    })
}

/// What a repository cannot do.
pub fn not_with_restic(what: &str, hint: &str) -> Failure {
    Failure::usage(format!("{what} is not possible with restic")).hint(hint)
}
