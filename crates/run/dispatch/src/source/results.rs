//! `--results`: the files of each task.

use crate::ResultFiles;
use homing_model::{Failure, RawText};
use homing_os::folder::{Existing, OpenFolder};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Returns a maker of these files. Refuses a place that cannot be written. `columns`: the names of the input's
/// columns.
pub fn results_files(dir: &Path, columns: &[RawText]) -> Result<ResultFiles, Failure> {
    if let Some(kind @ ("csv" | "tsv" | "json")) = dir.extension().and_then(OsStr::to_str) {
        let text = format!("--results writes a folder, or a file for each task, but not one .{kind} file of all tasks");
        return Err(Failure::usage(text).hint("--joblog lists the tasks; `homing report RUN --json` sums them up"));
    }
    let results = homing_batch::ResultsOption::parse(&dir.into(), columns).map_err(Failure::usage)?;
    // A template names folders that only its tasks make. A plain folder, or its nearest existing ancestor, is tested
    // now.
    if let Some(folder) = results.folder() {
        let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
        tempfile::tempfile_in(there).map_err(|e| {
            Failure::system(format!("cannot write results to {}: {e}", folder.display())).hint("nothing was run")
        })?;
    }
    Ok(Box::new(move |task| {
        let paths = results.paths(task).map_err(io::Error::other)?;
        file(&paths.seq)?.write_all(task.id.to_string().as_bytes())?;
        Ok((file(&paths.stdout)?, file(&paths.stderr)?))
    }))
}

/// Makes a new file in place of one with its name, and the missing folders above it.
fn file(path: &Path) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    OpenFolder::make(folder, 0o777)?.file(name, Existing::Replace, 0o666)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::{Command, Task};

    #[test]
    fn each_task_has_its_files_and_one_file_of_all_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let make = results_files(&dir.path().join("out"), &[]).unwrap();
        make(&Task { id: 7, ..Task::of(Command::Shell("true".into())) }).unwrap();
        let found = |name: &str| {
            let mut find = std::process::Command::new("find");
            let said = find.arg(dir.path()).args(["-name", name]).output().unwrap();
            String::from_utf8(said.stdout).unwrap().lines().count()
        };
        assert_eq!((found("stdout"), found("stderr"), found("seq")), (1, 1, 1));
        assert!(
            results_files(&dir.path().join("all.csv"), &[])
                .err()
                .unwrap()
                .message
                .contains("not one .csv file of all tasks")
        );
        assert!(
            results_files("/proc/1/no/such".as_ref(), &[]).err().unwrap().message.starts_with("cannot write results")
        );
    }
}
