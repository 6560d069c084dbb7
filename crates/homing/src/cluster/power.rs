//! What the cluster files tell of the power that hosts draw.

use super::Cluster;
use crate::failure::Failure;
use homing_dispatch::{Circuit, Draw};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// `[power]`. All in watts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Power {
    /// What all hosts of the file may draw together.
    pub limit_w: Option<f64>,
    /// What a host draws when nothing runs, where `[host.NAME]` does not say.
    pub idle_w: Option<f64>,
    /// When all slots are in use.
    pub full_w: Option<f64>,
    /// Hosts behind one fuse, by a name for people.
    #[serde(default)]
    pub circuit: BTreeMap<String, Behind>,
}

/// `[power.circuit.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Behind {
    /// What they may draw together.
    pub limit_w: f64,
    /// The hosts, as a node set.
    pub hosts: String,
}

impl Power {
    /// When nothing runs, and when all slots are in use.
    fn watts(&self) -> [Option<f64>; 2] {
        [self.idle_w, self.full_w]
    }
}

impl Cluster {
    /// Circuits with a limit: of the administrator's file where that has `[power]`, else of the user's.
    pub fn circuits(&self) -> Result<Vec<Circuit>, Failure> {
        let Some(power) = self.power() else { return Ok(Vec::new()) };
        let all = power.limit_w.map(|limit_w| Ok((String::from("limit_w"), limit_w, self.hosts(None)?)));
        let behind = power.circuit.iter().map(|(name, circuit)| {
            let hosts = self.set(&circuit.hosts, None)?.iter().map(String::from).collect();
            Ok((format!("circuit {name}"), circuit.limit_w, hosts))
        });
        let named = all.into_iter().chain(behind);
        named
            .map(|one: Result<_, Failure>| one.and_then(|(name, limit_w, hosts)| self.circuit(name, limit_w, hosts)))
            .collect()
    }

    fn power(&self) -> Option<&Power> {
        self.machine.power.as_ref().or(self.own.power.as_ref())
    }

    fn circuit(&self, name: String, limit_w: f64, hosts: Vec<String>) -> Result<Circuit, Failure> {
        let refused = |why: String| Failure::usage(format!("[power] {name} of the cluster file: {why}"));
        if !(limit_w > 0.0 && limit_w < 1e9) {
            return Err(refused(format!("{limit_w} is no limit in watts")));
        }
        if hosts.is_empty() {
            return Err(refused("no hosts".into()).hint("hosts = \"n[1-4]\""));
        }
        let draws = hosts.into_iter().map(|host| match self.draw(&host) {
            Some(draw) if draw.idle_w >= 0.0 && draw.full_w >= draw.idle_w && draw.full_w < 1e6 => Ok((host, draw)),
            Some(draw) => {
                Err(refused(format!("{host} cannot draw {} W when idle and {} W at most", draw.idle_w, draw.full_w)))
            }
            None => Err(refused(format!("what {host} draws is not said"))
                .hint(format!("idle_w and full_w in [power] or [host.{host}], watts"))),
        });
        let hosts = draws.collect::<Result<HashMap<_, _>, Failure>>()?;
        Ok(Circuit { name, limit_w, hosts })
    }

    /// What a host draws, if that is said: of single hosts before all, the administrator's before the user's.
    pub fn draw(&self, host: &str) -> Option<Draw> {
        let files = [&self.machine, &self.own];
        let single = |which: usize| files.iter().find_map(|file| file.host.get(host)?.watts()[which]);
        let all = |which: usize| files.iter().find_map(|file| file.power.as_ref()?.watts()[which]);
        let of = |which| single(which).or_else(|| all(which));
        Some(Draw { idle_w: of(0)?, full_w: of(1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(own: &str, machine: &str) -> Cluster {
        Cluster::of(toml::from_str(own).unwrap(), toml::from_str(machine).unwrap())
    }

    #[test]
    fn circuits_have_the_draw_of_their_hosts() {
        let text = "hosts = \"n[1-3]\"\n[power]\nlimit_w = 700\nidle_w = 90\nfull_w = 200\n\
                    [power.circuit.rack]\nlimit_w = 400\nhosts = \"n[1-2]\"\n[host.n2]\nfull_w = 250\n";
        let circuits = cluster(text, "").circuits().unwrap();
        let names: Vec<(&str, usize)> = circuits.iter().map(|c| (c.name.as_str(), c.hosts.len())).collect();
        assert_eq!(names, [("limit_w", 3), ("circuit rack", 2)]);
        assert_eq!(circuits[0].hosts["n2"], Draw { idle_w: 90.0, full_w: 250.0 });
        // The administrator's limit is the limit.
        let wide = "hosts = \"n1\"\n[power]\nlimit_w = 9000\n";
        let limit = cluster(wide, "[power]\nlimit_w = 300\nidle_w = 1\nfull_w = 2\n").circuits().unwrap();
        assert_eq!(limit[0].limit_w, 300.0);
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        for (text, says) in [
            ("hosts = \"n1\"\n[power]\nlimit_w = 100\n", "n1 draws is not said"),
            ("hosts = \"n1\"\n[power]\nlimit_w = -1\nidle_w = 1\nfull_w = 2\n", "no limit in watts"),
            ("hosts = \"n1\"\n[power]\nlimit_w = 100\nidle_w = 10\nfull_w = 2\n", "10 W when idle"),
            ("[power]\nlimit_w = 100\nidle_w = 1\nfull_w = 2\n", "no hosts"),
        ] {
            let failure = cluster(text, "").circuits().unwrap_err();
            assert!(failure.message.contains(says) && !failure.message.contains('\n'), "{}", failure.message);
        }
        assert!(cluster("", "").circuits().unwrap().is_empty());
    }
}
