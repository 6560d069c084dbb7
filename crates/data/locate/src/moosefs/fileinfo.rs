//! `mfsfileinfo`: slower, but it fits the installed version's protocol.

use super::master::{ChunkState, CopyState};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the chunks of one file.
pub(super) fn chunks(path: &Path) -> Result<Vec<ChunkState>, String> {
    // Absolute, so that no name is taken for an option.
    let path = std::path::absolute(path).map_err(|e| format!("reading the working directory: {e}"))?;
    let mut program = Command::new("mfsfileinfo");
    let asked = program.arg(&path).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let asked = asked.map_err(|e| format!("cannot run mfsfileinfo: {e}"))?;
    parse(&asked.stdout, path.as_os_str().as_bytes()).ok_or_else(|| {
        let said = String::from_utf8_lossy(if asked.stderr.is_empty() { &asked.stdout } else { &asked.stderr });
        format!("mfsfileinfo did not report it: {}", said.trim().escape_debug())
    })
}

/// Parses the output. It begins with the file's name as it was given. The name is skipped, because it may contain
/// anything.
fn parse(text: &[u8], name: &[u8]) -> Option<Vec<ChunkState>> {
    let text = std::str::from_utf8(text.strip_prefix(name)?.strip_prefix(b":\n")?).ok()?;
    let mut chunks: Vec<ChunkState> = Vec::new();
    for line in text.lines() {
        if let Some(copy) = line.strip_prefix("\t\tcopy ") {
            let Some(ChunkState::Copies(copies)) = chunks.last_mut() else { return None };
            copies.push(one(copy)?);
        } else if let Some(chunk) = line.strip_prefix("\tchunk ") {
            let empty = chunk.ends_with(": empty");
            chunks.push(if empty { ChunkState::Empty } else { ChunkState::Copies(Vec::new()) });
        } else if !line.starts_with("\t\tno valid copies") && !line.starts_with("\tno chunks") {
            return None;
        }
    }
    Some(chunks)
}

/// Parses `1: 10.0.0.1:9422 (status:VALID)`.
fn one(copy: &str) -> Option<(Ipv4Addr, CopyState)> {
    let (address, rest) = copy.split_once(": ")?.1.split_once(':')?;
    let state = match rest.split_once("(status:")?.1 {
        s if s.starts_with("VALID") => CopyState::Valid,
        s if s.starts_with("MARKED FOR REMOVAL") => CopyState::Leaving,
        _ => CopyState::Useless,
    };
    Some((address.parse().ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_imitates_output_is_skipped() {
        let name = "/data/x:\n\tchunk 0: 1_1\n\t\tcopy 1: 6.6.6.6:9422 (status:VALID)";
        let text = format!(
            "{name}:\n\tchunk 0: 0000000000000002_00000001 / (id:2 ver:1)\n\
             \t\tcopy 1: 10.77.1.1:9422 (status:VALID)\n\t\tcopy 2: 10.77.1.2:9422 (status:MARKED FOR REMOVAL)\n\
             \t\tcopy 3: 10.77.1.3:9422 (status:WRONG VERSION , MARKED FOR REMOVAL)\n\tchunk 1: empty\n\
             \tchunk 2: 0000000000000003_00000001 / (id:3 ver:1)\n\t\tno valid copies !!!\n"
        );
        let copies = [(1, CopyState::Valid), (2, CopyState::Leaving), (3, CopyState::Useless)];
        let copies = copies.map(|(n, state)| (Ipv4Addr::new(10, 77, 1, n), state)).to_vec();
        let chunks = vec![ChunkState::Copies(copies), ChunkState::Empty, ChunkState::Copies(vec![])];
        assert_eq!(parse(text.as_bytes(), name.as_bytes()), Some(chunks));
        assert_eq!(parse(b"/data/y [0]: No such file\n", b"/data/y"), None);
    }
}
