//! `homing hosts --init`: writes a first cluster file.

use crate::cmd::targets::shell_word;
use homing_model::{Failure, NodeSet};
use homing_os::folder::{Existing, make_file};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The cluster file in the current folder that all commands find.
const HERE: &str = "cluster.toml";

/// Writes the file. An existing file stays as it is.
pub fn write(hosts: &str, file: Option<&Path>) -> Result<i32, Failure> {
    let set = NodeSet::parse(hosts)
        .map_err(|e| Failure::usage(format!("{hosts:?} is no node set: {e}")).hint("homing hosts --init 'n[1-16]'"))?;
    if set.is_empty() {
        return Err(Failure::usage("no hosts are named").hint("homing hosts --init 'n[1-16]'"));
    }
    let file = file.unwrap_or(Path::new(HERE));
    let written = make_file(file, Existing::Refuse, 0o666);
    let written = written.and_then(|mut to| {
        // A part of the file would be refused as an existing one the next time.
        to.write_all(text(&set).as_bytes()).inspect_err(|_| drop(std::fs::remove_file(file)))
    });
    written.map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!("{} exists already, and was not changed", file.display()))
            .hint("homing hosts --init NODESET --cluster OTHER.toml"),
        _ => Failure::system(format!("writing {}: {e}", file.display())),
    })?;
    let option = if file == Path::new(HERE) {
        String::new()
    } else {
        format!(" --cluster {}", shell_word(&file.to_string_lossy()))
    };
    println!("{} names {set}; homing hosts{option} shows them, homing check{option} finds faults", file.display());
    println!("homing help cluster explains all keys");
    Ok(0)
}

/// Returns the text of the file: the hosts, and frequent next keys as comments.
fn text(hosts: &NodeSet) -> String {
    let first = hosts.iter().next().unwrap_or_default();
    format!(
        "# The hosts of homing's commands: ./cluster.toml, ~/.config/homing/cluster.toml, /etc/homing/cluster.toml.\n\
         # Lines that begin with # are examples. `homing help cluster` explains all keys.\n\
         \n\
         hosts = \"{hosts}\"\n\
         \n\
         # Names for some of them: homing run --hosts @big ...\n\
         # [groups]\n\
         # big = \"{first}\"\n\
         \n\
         # Most tasks at once; default: as many as the host has cores.\n\
         # [host.{first:?}]\n\
         # slots = 4\n\
         \n\
         # What homing up sets up, after a plan and a question. Each section is wanted by being here.\n\
         # [up]\n\
         # packages = [\"chrony\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_one_that_is_understood_also_without_its_comment_signs() {
        let text = text(&NodeSet::parse("n[1-16]").unwrap());
        let plain: String = text
            .lines()
            .map(|line| {
                line.strip_prefix("# ").filter(|rest| rest.starts_with('[') || rest.contains(" = ")).unwrap_or(line)
            })
            .map(|line| format!("{line}\n"))
            .collect();
        for text in [&text, &plain] {
            let parsed: toml::Table = toml::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(parsed["hosts"].as_str(), Some("n[1-16]"));
        }
        assert!(plain.contains("\n[host.\"n1\"]\nslots = 4\n"), "{plain}");
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        assert_eq!(write("n[1-2]", Some(&file)).unwrap(), 0);
        let before = std::fs::read(&file).unwrap();
        let refused = write("n[1-3]", Some(&file)).unwrap_err();
        assert!(refused.message.contains("was not changed"), "{refused}");
        assert_eq!(std::fs::read(&file).unwrap(), before);
        assert!(write("n[1-", Some(&folder.path().join("d.toml"))).is_err());
        assert!(!folder.path().join("d.toml").exists());
    }
}
