//! `homing lsf install DIR` and `homing lsf remove DIR`.

use crate::cmd::targets::shell_word;
use clap::Subcommand;
use homing_model::Failure;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Arguments of `homing lsf`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: InstallCommand,
}

#[derive(Subcommand)]
enum InstallCommand {
    /// Put links named bsub, bjobs, lsload and so on into DIR; they call this program
    Install {
        /// Folder for the links, made if missing. Put it at the front of PATH
        dir: PathBuf,
    },
    /// Remove these links
    Remove {
        /// Folder with the links
        dir: PathBuf,
    },
}

/// Installs or removes the links.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.what {
        InstallCommand::Install { dir } => install(&dir),
        InstallCommand::Remove { dir } => remove(&dir),
    }
}

fn install(dir: &Path) -> Result<i32, Failure> {
    let exe = crate::programs::own_path()?;
    let failed = |what: &Path, e: std::io::Error| Failure::system(format!("cannot make {}: {e}", what.display()));
    homing_os::folder::make_folders(dir).map_err(|e| failed(dir, e))?;
    let dir = &std::path::absolute(dir).map_err(|e| failed(dir, e))?;
    for name in super::names() {
        let link = dir.join(name);
        if link.symlink_metadata().is_ok() {
            if !ours(&link, &exe) {
                let message = format!("{} exists and was not made by homing", link.display());
                return Err(Failure::usage(message).hint("use another directory, or move this file away"));
            }
            std::fs::remove_file(&link).map_err(|e| failed(&link, e))?;
        }
        symlink(&exe, &link).map_err(|e| failed(&link, e))?;
    }
    let conf = conf(dir);
    let queue = crate::cluster::Cluster::of_queue()?.queue_config()?.default_queue().to_string();
    let params = params(&conf);
    homing_os::folder::make_folders(&params).map_err(|e| failed(&params, e))?;
    // Snakemake and Nextflow read these two files, and bsub reads the units. LSB_JOB_MEMLIMIT=Y declares that a limit
    // is for the whole job. Without it, Nextflow divides the limit among the slots.
    let files = [
        (params.join("lsb.params"), format!("Begin Parameters\nDEFAULT_QUEUE = {queue}\nEnd Parameters\n")),
        (conf.join("lsf.conf"), format!("LSF_UNIT_FOR_LIMITS={}\nLSB_JOB_MEMLIMIT=Y\n", homing_lsf::units::USUAL)),
    ];
    for (file, text) in files {
        if is_foreign(&file) {
            eprintln!("homing: {} was changed since homing wrote it, and is left as it is", file.display());
            continue;
        }
        homing_os::folder::write_file(&file, text).map_err(|e| failed(&file, e))?;
    }
    println!(
        "{} commands are in {}; put it first, and let others find its lsf.conf:\nexport PATH={}:$PATH LSF_ENVDIR={}",
        super::names().count(),
        dir.display(),
        shell_word(&dir.to_string_lossy()),
        shell_word(&conf.to_string_lossy())
    );
    Ok(0)
}

/// Returns the folder of `lsb.params`, below the folder of `lsf.conf`.
fn params(conf: &Path) -> PathBuf {
    conf.join("lsbatch").join(super::CLUSTER).join("configdir")
}

/// Returns the folder of `lsf.conf`, beside the links of a directory.
pub fn conf(dir: &Path) -> PathBuf {
    dir.join("lsf/conf")
}

/// Returns whether a link leads to this program, or to one with the same file name, even a removed one.
fn ours(link: &Path, exe: &Path) -> bool {
    std::fs::read_link(link).is_ok_and(|to| to == exe || to.file_name() == exe.file_name())
}

fn remove(dir: &Path) -> Result<i32, Failure> {
    let exe = crate::programs::own_path()?;
    for name in super::names() {
        let link = dir.join(name);
        if ours(&link, &exe) {
            std::fs::remove_file(&link)
                .map_err(|e| Failure::system(format!("cannot remove {}: {e}", link.display())))?;
        }
    }
    // A folder with anything else in it stays.
    let conf = conf(dir);
    let params = params(&conf);
    for file in [params.join("lsb.params"), conf.join("lsf.conf")] {
        if !is_foreign(&file) {
            let _ = std::fs::remove_file(&file);
        }
    }
    for folder in params.ancestors().take_while(|folder| folder.starts_with(dir)) {
        let _ = std::fs::remove_dir(folder);
    }
    Ok(0)
}

/// Returns whether a file has lines that homing does not write into its own, as the configuration of a real LSF has.
fn is_foreign(file: &Path) -> bool {
    let own = ["Begin Parameters", "DEFAULT_QUEUE = ", "End Parameters", "LSF_UNIT_FOR_LIMITS=", "LSB_JOB_MEMLIMIT=Y"];
    let is_own = |line: &str| own.iter().any(|begin| line.starts_with(begin));
    match std::fs::read_to_string(file) {
        Ok(text) => !text.lines().all(is_own),
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns the directory of the link by which this program was called.
pub fn folder() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    let link = match called.components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(&called)).find(|p| p.exists())?,
        _ => called,
    };
    std::path::absolute(link).ok()?.parent().map(Path::to_path_buf)
}
