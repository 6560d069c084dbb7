//! Wheels that a requirements file names with their hashes. pip compares them on each host, with the hashes of the user's
//! own file: whoever fetches them need not be trusted.

use super::quoted;
use homing_steps::Content;

const SCRIPT: &str = include_str!("pip.sh");

/// A requirements file for an environment.
pub struct Wheels {
    /// It.
    pub text: String,
    into: String,
}

impl Wheels {
    /// `Err`: a line that is none of a package with its hash.
    pub fn new(text: &str, into: &str) -> Result<Wheels, String> {
        let joined = text.replace("\\\n", " ");
        let mut lines =
            joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        if lines.peek().is_none() {
            return Err("it names no package".into());
        }
        for line in lines {
            let word = line.split_whitespace().next().unwrap_or_default();
            if line.starts_with('-') {
                return Err(format!("{word} is an option: options belong into pip.conf of the host that fetches"));
            }
            if !line.contains("--hash=sha256:") {
                return Err(format!("{word} has no --hash=sha256:..., so that nobody can vouch for its file"));
            }
        }
        Ok(Wheels { text: text.into(), into: into.into() })
    }

    fn script(&self, call: &str) -> String {
        let hash = Content::from(self.text.as_str()).hash();
        format!("D={}\nS={hash}\n{SCRIPT}main() {{\n{call}\n}}\nmain", quoted(&self.into))
    }

    /// A script that tells whether a host has it (`has` or `wants`), and the kind of wheels that it takes.
    pub fn asked(&self) -> String {
        self.script("asked") + " </dev/null\n"
    }

    /// A script that fetches the wheels of this host's kind and writes them to its standard output, as tar.
    pub fn fetch(&self) -> String {
        self.script(&format!("fetch {}", Content::from(self.text.as_str()).encoded())) + " </dev/null\n"
    }

    /// A script, for `sh -c`, that installs from the files on its standard input, of which `homing.list` is this file.
    pub fn came(&self) -> String {
        self.script("came") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_has_a_hash_of_the_users() {
        let good = "# pip-compile\none==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via two\n";
        let wheels = Wheels::new(good, "/opt/it's").unwrap();
        assert!(wheels.asked().starts_with("D='/opt/it'\\''s'\nS="), "{}", wheels.asked());
        for (bad, why) in [
            ("one==1\n", "one==1 has no --hash"),
            ("# none\n", "no package"),
            ("--index-url http://m\none --hash=sha256:a\n", "--index-url is an option"),
        ] {
            let said = Wheels::new(bad, "/x").err().unwrap_or_default();
            assert!(said.contains(why), "{said}");
        }
    }
}
