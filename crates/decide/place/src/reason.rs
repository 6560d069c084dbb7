//! The reason why a task runs on its host: the same value for table, journal and page.

use crate::HostIx;
use homing_model::links::Path;
use homing_model::units::bytes;
use std::fmt::{self, Display};

/// The reason why a host got a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It has no input whose place is known.
    NoInput,
    /// Its inputs do not count any more: enough tasks have named them, and hosts have them in their caches.
    ReadBefore,
    /// It has inputs, but no usable host of the run holds any of them.
    HeldByNone {
        /// Bytes of its inputs.
        total: u64,
    },
    /// No host holds more.
    Holds {
        /// Bytes here.
        local: u64,
        /// Bytes of all its inputs.
        total: u64,
    },
    /// Fetching is cheaper than waiting.
    Fetches {
        /// The host that holds most and would be free first.
        from: HostIx,
        /// Expected wait there, microseconds.
        wait_us: u64,
        /// Expected time to fetch, microseconds.
        fetch_us: u64,
        /// The path of the bytes.
        path: Path,
    },
    /// Locality is off.
    InTurn,
}

impl Reason {
    /// Returns the reason as text for people, with the names of hosts.
    pub fn text<N: Display>(&self, name: impl Fn(HostIx) -> N) -> String {
        match self {
            Reason::NoInput => "no input on a volume".into(),
            Reason::ReadBefore => "its inputs count as read there before".into(),
            Reason::HeldByNone { total } => format!("no usable host holds any of its {}", bytes(*total)),
            Reason::Holds { local, total } => {
                // Rounded down: "100 %" is printed only for all bytes.
                let percent = (u128::from(*local) * 100).checked_div(u128::from(*total)).unwrap_or(0);
                format!("holds {percent} % of {}", bytes(*total))
            }
            Reason::Fetches { from, wait_us, fetch_us, path } => format!(
                "{} holds it but its queue is {}, fetching takes {}{path}",
                name(*from),
                seconds(*wait_us),
                seconds(*fetch_us)
            ),
            Reason::InTurn => "hosts in turn, locality is off".into(),
        }
    }
}

impl Display for Reason {
    /// Prints hosts as numbers; [`Reason::text`] names them.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text(|host| format!("host {host}")))
    }
}

fn seconds(us: u64) -> String {
    let s = us as f64 / 1e6;
    if s < 0.1 { format!("{:.1} ms", s * 1e3) } else { format!("{s:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_person_would_say_it() {
        let holds = Reason::Holds { local: 50_000_000, total: 50_000_000 };
        assert_eq!(holds.to_string(), "holds 100 % of 50.0 MB");
        let nearly = Reason::Holds { local: 49_999_999, total: 50_000_000 };
        assert_eq!(nearly.to_string(), "holds 99 % of 50.0 MB");
        let fetches = |path| Reason::Fetches { from: 1, wait_us: 3_100_000, fetch_us: 400_000, path };
        let named = fetches(Path::Unknown).text(|host| ["n1", "n2"][host]);
        assert_eq!(named, "n2 holds it but its queue is 3.1 s, fetching takes 0.4 s");
        let near = fetches(Path::Leaf("leaf1".into())).to_string();
        assert!(near.ends_with("fetching takes 0.4 s on the same switch leaf1"), "{near}");
    }
}
