//! The file mode creation mask of this process.

/// Returns the umask from `/proc`. Reading it by umask(2) would change it for a moment, for all threads. Returns 022
/// if `/proc` is missing, or on a kernel before 4.7.
pub fn umask() -> u32 {
    of_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or(0o022)
}

fn of_status(status: &str) -> Option<u32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_shell() {
        assert_eq!(of_status("Name:\tx\nUmask:\t0027\nState:\tR\n"), Some(0o027));
        assert_eq!(of_status("Name:\tx\n"), None);
        let shell = std::process::Command::new("sh").args(["-c", "umask"]).output().unwrap();
        let told = String::from_utf8(shell.stdout).unwrap();
        assert_eq!(u32::from_str_radix(told.trim(), 8), Ok(umask()));
    }
}
