//! Reads the number of hosts of a job, from `--nodes`.

use std::str::FromStr;

/// A number of hosts, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The least number, from 1 on.
    pub least: u32,
    /// The largest number.
    pub most: u32,
}

impl FromStr for Nodes {
    type Err = String;
    fn from_str(text: &str) -> Result<Nodes, String> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0);
        match (number(least), number(most)) {
            (Some(least), Some(most)) if least <= most => Ok(Nodes { least, most }),
            _ => Err("expected a number of hosts from 1, or a range, as in 2-4".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_or_two() {
        assert_eq!("3".parse(), Ok(Nodes { least: 3, most: 3 }));
        assert_eq!("2-4".parse(), Ok(Nodes { least: 2, most: 4 }));
        for bad in ["", "0", "4-2", "0-2", "2-", "-2", "2-4-6", "x"] {
            assert!(bad.parse::<Nodes>().is_err(), "{bad}");
        }
    }
}
