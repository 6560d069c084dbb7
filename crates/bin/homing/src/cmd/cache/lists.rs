//! `homing cache pip` and `homing cache cargo`: files that a file of the user's names with their hashes.

use super::{Manner, concluded};
use crate::cmd::targets::Targets;
use crate::consent::Consent;
use homing_model::Failure;
use homing_relay::{Came, Lists};
use homing_setup::cache::cargo;
use homing_setup::cache::pip::Wheels;
use std::path::{Path, PathBuf};

/// What both have.
#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    targets: Targets,
    /// Folder on each host, on a disk of its own
    #[arg(long, value_name = "FOLDER")]
    into: String,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    manner: Manner,
}

/// Arguments of `homing cache pip`.
///
/// The first host fetches the wheels; they go to the others over the connections
/// that homing has. pip compares each with its hash in the file before it installs.
/// Hosts of another Python, processor or C library have a first host of their own.
///
/// Exit status: 0: installed everywhere; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Pip {
    #[command(flatten)]
    common: Common,
    /// Requirements, each with its version and --hash (pip-compile --generate-hashes makes such a file)
    #[arg(value_name = "REQUIREMENTS")]
    file: PathBuf,
}

/// Arguments of `homing cache cargo`.
///
/// The first host fetches the crates; they go to the others over the connections
/// that homing has. Each host compares each with its checksum in Cargo.lock. Cargo
/// builds from the folder when .cargo/config.toml says so: see the manual.
///
/// Exit status: 0: all are everywhere; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Cargo {
    #[command(flatten)]
    common: Common,
    /// Where crates are fetched
    #[arg(long, value_name = "ADDRESS", default_value = cargo::CRATES_IO)]
    from: String,
    /// Cargo.lock
    #[arg(value_name = "CARGO.LOCK")]
    file: PathBuf,
}

impl Common {
    fn begin(&self, file: &Path, act: impl FnOnce(Lists) -> Result<Came, Failure>) -> Result<i32, Failure> {
        if !self.into.starts_with('/') || self.into.contains(char::is_control) {
            return Err(Failure::usage(format!("--into {:?} is no absolute path", self.into)));
        }
        let hosts = self.targets.hosts()?;
        super::confirm(self.consent, &hosts, &format!("what {} names goes to {}", file.display(), self.into))?;
        let executor = self.manner.executor(&self.targets)?;
        let came = act(Lists::new(executor, &hosts, file, &|text| self.manner.say(text))?)?;
        concluded(&hosts, &came, &self.manner)
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))
}

/// Wheels, kind by kind.
pub fn pip(args: &Pip) -> Result<i32, Failure> {
    let wheels = Wheels::new(&read(&args.file)?, &args.common.into)
        .map_err(|why| Failure::usage(format!("{}: {why}", args.file.display())))?;
    args.common.begin(&args.file, |lists| lists.pip(&wheels))
}

/// Crates: each host gets those that it lacks.
pub fn crates(args: &Cargo) -> Result<i32, Failure> {
    let crates = cargo::crates(&read(&args.file)?, &args.from)
        .map_err(|why| Failure::usage(format!("{}: {why}", args.file.display())))?;
    args.common.begin(&args.file, |lists| lists.crates(&crates, &args.common.into))
}
