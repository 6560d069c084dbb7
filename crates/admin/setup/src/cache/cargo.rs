//! Crates that a Cargo.lock names with their hashes. Each host compares them with those, and cargo does when it builds.

use super::{PackageFile, quoted};

const SCRIPT: &str = include_str!("cargo.sh");
/// Where Cargo.lock says that a crate comes from, and where its registry gives it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Where crates.io gives a crate.
pub const CRATES_IO: &str = "https://static.crates.io/crates/{crate}/{crate}-{version}.crate";

/// The crates of a Cargo.lock that come from crates.io; those of the project itself have no source. `from`: where they are
/// fetched, with `{crate}` and `{version}` in it. `Err`: one that has no hash, or comes from elsewhere.
pub fn crates(lock: &str, from: &str) -> Result<Vec<PackageFile>, String> {
    if from.chars().any(|c| c.is_whitespace() || c.is_control() || "'\"\\".contains(c)) || !from.contains("{crate}") {
        return Err(format!("{from:?} is no address with {{crate}} in it"));
    }
    let mut all = Vec::new();
    for part in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = part
                .lines()
                .take_while(|line| !line.starts_with('['))
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            line.trim().strip_prefix('"')?.strip_suffix('"')
        };
        let (Some(name), Some(version)) = (value("name"), value("version")) else {
            return Err("it is no Cargo.lock: a package lacks its name or version".into());
        };
        let Some(source) = value("source") else { continue };
        if source != REGISTRY {
            return Err(format!("{name} {version} comes from {source}, and only crates.io's are known here"));
        }
        let is_plain = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        };
        let is_hash = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let hash = value("checksum").filter(is_hash);
        let (Some(hash), true) = (hash, is_plain(name) && is_plain(version)) else {
            return Err(format!("{name} {version} has no checksum, so that nobody can vouch for its file"));
        };
        let uri = from.replace("{crate}", name).replace("{version}", version);
        all.push(PackageFile { name: format!("{name}-{version}.crate"), size: 0, sha256: hash.into(), uri });
    }
    if all.is_empty() { Err("it names no crate of crates.io".into()) } else { Ok(all) }
}

/// As `sha256sum` writes it.
pub fn list<'f>(crates: impl IntoIterator<Item = &'f PackageFile>) -> String {
    crates.into_iter().map(|file| format!("{}  {}\n", file.sha256, file.name)).collect()
}

fn script(into: &str, call: &str) -> String {
    format!("D={}\n{SCRIPT}main() {{\n{call}\n}}\nmain", quoted(into))
}

/// A script that tells which of the files a host's folder lacks.
pub fn asked(crates: &[PackageFile], into: &str) -> String {
    format!("{} <<'END'\n{}END\n", script(into, "asked"), list(crates))
}

/// A script that fetches files and writes them to its standard output, as tar.
pub fn fetch(crates: &[PackageFile]) -> String {
    let lines: String = crates.iter().map(|file| format!("{} {}\n", file.uri, file.name)).collect();
    format!("{} <<'END'\n{lines}END\n", script("", "fetch"))
}

/// A script, for `sh -c`, that unpacks the files on its standard input, of which `homing.list` has the hashes of the rest.
pub fn came(into: &str) -> String {
    script(into, "came") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, rest: &str) -> String {
        format!("[[package]]\nname = \"{name}\"\nversion = \"1.2.3+x\"\n{rest}\n")
    }

    #[test]
    fn crates_are_those_of_the_lock_with_its_hashes() {
        let sure =
            format!("source = \"{REGISTRY}\"\nchecksum = \"{}\"\ndependencies = [\n \"own\",\n]\n", "a".repeat(64));
        let lock = format!("version = 4\n\n{}{}", package("own", ""), package("one", &sure));
        let all = crates(&lock, CRATES_IO).unwrap();
        assert_eq!((all.len(), all[0].uri.as_str()), (1, "https://static.crates.io/crates/one/one-1.2.3+x.crate"));
        assert_eq!(list(&all), format!("{}  one-1.2.3+x.crate\n", "a".repeat(64)));
        let refused = |lock: &str| crates(lock, CRATES_IO).unwrap_err();
        assert!(refused(&package("git", "source = \"git+https://x\"\n")).contains("comes from git+https://x"));
        assert!(refused(&package("bare", &format!("source = \"{REGISTRY}\"\n"))).contains("no checksum"));
        assert!(refused(&package("../x", &sure)).contains("nobody can vouch"));
        assert!(refused(&package("own", "")).contains("no crate"));
        assert!(crates(&lock, "http://x/' {crate}").is_err());
    }
}
