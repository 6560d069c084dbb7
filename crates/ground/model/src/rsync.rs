//! Rsync versions with known races.

/// From this version on, rsync follows no link that replaces a folder while it copies (CVE-2024-12747 and
/// CVE-2024-12087, <https://download.samba.org/pub/rsync/NEWS#3.4.0>).
const SAFE: (u32, u32) = (3, 4);

/// Prints the first line of `rsync --version`. ` patched` follows if the package's changelog names the repair,
/// because distributions keep an older version number. If another program precedes the package's, there is no
/// changelog.
pub const VERSION_SCRIPT: &str = r#"p=$(command -v rsync)
if [ "$p" ]; then
l=$(rsync --version | head -n 1)
if [ "$p" = /usr/bin/rsync ] && { zcat /usr/share/doc/rsync/changelog.Debian.gz; rpm -q --changelog rsync; } 2>/dev/null | grep -q CVE-2024-12747; then l="$l patched"; fi
printf '%s\n' "$l"
fi"#;

/// Returns the version in a line of [`VERSION_SCRIPT`] if that rsync has the races; `None` for a safe or unknown one.
pub fn with_races(line: &str) -> Option<&str> {
    let number = line.split_whitespace().skip_while(|word| *word != "version").nth(1)?;
    let mut numbers = number.trim_start_matches('v').split('.').map_while(|number| number.parse().ok());
    let version: (u32, u32) = (numbers.next()?, numbers.next().unwrap_or(0));
    (version < SAFE && !line.ends_with(" patched")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rsync_with_known_races_is_found() {
        assert_eq!(with_races("rsync  version 3.2.7  protocol version 31"), Some("3.2.7"));
        assert_eq!(with_races("rsync  version v3.3.0  protocol version 31"), Some("v3.3.0"));
        for safe in [
            "rsync  version 3.4.1  protocol version 32",
            "rsync  version 3.10.0  protocol version 33",
            "rsync  version 3.2.7  protocol version 31 patched",
            "openrsync: protocol version 29",
            "",
        ] {
            assert_eq!(with_races(safe), None, "{safe}");
        }
    }
}
