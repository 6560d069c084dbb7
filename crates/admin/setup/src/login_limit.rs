//! Checks limits of `[up.limits]`.

/// The items that can be limited (limits.conf(5)), without those that are no limit of a process.
const ITEMS: [&str; 16] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "maxlogins",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "sigpending",
    "stack",
];

/// The most open files of a process (fs.nr_open, Linux's own 1024 x 1024): with a higher limit, or none, pam_limits
/// refuses each login.
const MOST_FILES: u64 = 1024 * 1024;

/// The least values, in units of limits.conf(5), with which a user can log in and list a folder. Measured with bash and
/// ls of Debian 12 (nofile 4, nproc 8, as 6,000, data 500, stack 16), and rounded up.
const LEAST: [(&str, u64); 7] =
    [("nofile", 16), ("nproc", 32), ("as", 16_384), ("data", 4_096), ("stack", 64), ("fsize", 1_024), ("maxlogins", 1)];

/// Returns the fault of a limit.
pub(crate) fn fault(item: &str, value: &str) -> Option<String> {
    if !ITEMS.contains(&item) {
        return Some(format!("[up.limits] {item:?} is not one of {}", ITEMS.join(", ")));
    }
    let bad = || Some(format!("[up.limits] {item} = {value:?} is not a number, `unlimited`, or SOFT:HARD of these"));
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let (Some(soft), Some(hard)) = (number(soft), number(hard)) else { return bad() };
    if soft > hard {
        return Some(format!("[up.limits] {item} = {value:?}: the soft limit is above the hard one"));
    }
    let least = LEAST.into_iter().find(|(name, least)| *name == item && soft < *least);
    if let Some((_, least)) = least {
        return Some(format!("[up.limits] {item} = {value:?}: below {least} no user can log in"));
    }
    (item == "nofile" && hard > MOST_FILES)
        .then(|| format!("[up.limits] nofile = {value:?}: above {MOST_FILES} (fs.nr_open) no user can log in"))
}

/// Conversion from units of limits.conf(5) to those of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitUnit {
    /// The same unit.
    One,
    /// KB, converted to bytes.
    Kilobytes,
    /// Minutes, converted to seconds.
    Minutes,
    /// The nice value, in the kernel's form: 20 less that.
    Nice,
}

impl LimitUnit {
    /// Converts a number to the unit of /proc/PID/limits; unlimited stays unlimited.
    pub(crate) fn of(self, number: u64) -> u64 {
        match self {
            _ if number == u64::MAX => number,
            LimitUnit::One => number,
            LimitUnit::Kilobytes => number.saturating_mul(1024),
            LimitUnit::Minutes => number.saturating_mul(60),
            LimitUnit::Nice => 20u64.saturating_sub(number),
        }
    }
}

/// Returns a limit's line of /proc/PID/limits, and its unit; `None` for a limit that no process shows.
pub(crate) fn kernel(item: &str) -> Option<(&'static str, LimitUnit)> {
    Some(match item {
        "as" => ("Max address space", LimitUnit::Kilobytes),
        "core" => ("Max core file size", LimitUnit::Kilobytes),
        "cpu" => ("Max cpu time", LimitUnit::Minutes),
        "data" => ("Max data size", LimitUnit::Kilobytes),
        "fsize" => ("Max file size", LimitUnit::Kilobytes),
        "locks" => ("Max file locks", LimitUnit::One),
        "memlock" => ("Max locked memory", LimitUnit::Kilobytes),
        "msgqueue" => ("Max msgqueue size", LimitUnit::One),
        "nice" => ("Max nice priority", LimitUnit::Nice),
        "nofile" => ("Max open files", LimitUnit::One),
        "nproc" => ("Max processes", LimitUnit::One),
        "rss" => ("Max resident set", LimitUnit::Kilobytes),
        "rtprio" => ("Max realtime priority", LimitUnit::One),
        "sigpending" => ("Max pending signals", LimitUnit::One),
        "stack" => ("Max stack size", LimitUnit::Kilobytes),
        _ => return None,
    })
}

/// Reads a limit; `unlimited` is more than any number.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text {
        "unlimited" => Some(u64::MAX),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_lock_users_out_is_refused() {
        for (item, value) in
            [("memlock", "unlimited"), ("nofile", "1024:1048576"), ("stack", "64"), ("core", "0:unlimited")]
        {
            assert_eq!(fault(item, value), None, "{item} {value}");
        }
        for (item, value, why) in [
            ("nofile", "1048577", "no user can log in"),
            ("nofile", "1024:unlimited", "no user can log in"),
            ("nofile", "1", "below 16 no user can log in"),
            ("nofile", "3:1024", "below 16 no user can log in"),
            ("nproc", "0", "no user can log in"),
            ("stack", "0", "no user can log in"),
            ("maxlogins", "0", "no user can log in"),
            ("memory", "1", "is not one of as, "),
            ("nproc", "", "is not a number"),
            ("nproc", "-1", "is not a number"),
            ("nproc", "1:", "is not a number"),
            ("nproc", "5\n* - nproc 1", "is not a number"),
            ("nproc", "5:4", "above the hard one"),
        ] {
            assert!(fault(item, value).is_some_and(|f| f.contains(why)), "{item} {value}: {:?}", fault(item, value));
        }
    }
}
