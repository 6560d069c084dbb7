//! Writes an image's index in dirvish's form, for dirvish-locate: `find -ls` of the tree, under the source's path.

use crate::run;
use crate::tree::private;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes `index` beside the tree. `alias`: the name of the source in it. `how`: the `index` of dirvish.conf(5), none
/// or a program that compresses it.
///
/// # Errors
/// The error of a program or of the disk.
pub fn write(folder: &Path, alias: &str, how: Option<&str>) -> io::Result<()> {
    let Some(how) = how.filter(|how| !how.starts_with("no")) else { return Ok(()) };
    let (tree, index) = (folder.join("tree"), folder.join("index"));
    let (from, to) = (format!(" {}/", tree.display()), format!(" {}/", alias.trim_end_matches('/')));
    let mut find = Command::new("find");
    find.arg(&tree).arg("-ls").env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped());
    run::polite(&mut find);
    let mut find = find.spawn().map_err(|e| io::Error::new(e.kind(), format!("find: {e}")))?;
    let mut out = BufWriter::new(private(&index)?);
    for line in find.stdout.take().into_iter().flat_map(|said| BufReader::new(said).split(b'\n')) {
        writeln!(out, "{}", String::from_utf8_lossy(&line?).replacen(&from, &to, 1))?;
    }
    out.flush()?;
    done("find", find.wait()?)?;
    if how == "text" {
        return Ok(());
    }
    let mut pack = Command::new(how);
    pack.arg("--force").arg(&index).stdin(Stdio::null());
    run::polite(&mut pack);
    done(how, pack.status().map_err(|e| io::Error::new(e.kind(), format!("{how}: {e}")))?)
}

fn done(program: &str, status: std::process::ExitStatus) -> io::Result<()> {
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{program} for the index ended with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_the_names_that_people_know() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        std::fs::write(dir.path().join("tree/a b"), "x").unwrap();
        write(dir.path(), "/home", Some("none")).unwrap();
        assert!(!dir.path().join("index").exists());
        write(dir.path(), "/home", Some("text")).unwrap();
        let text = std::fs::read_to_string(dir.path().join("index")).unwrap();
        assert!(text.contains(" /home/a\\ b\n"), "{text}");
        write(dir.path(), "/home", Some("gzip")).unwrap();
        assert!(dir.path().join("index.gz").exists());
    }
}
