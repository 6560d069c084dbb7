//! Settings of the cluster files about the power that hosts draw.

use super::Cluster;
use homing_dispatch::{Circuit, Draw};
use homing_launch::SwitchCommand;
use homing_model::Failure;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// `[power]`. All powers are in watts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PowerSection {
    /// The limit for all hosts of the file together.
    pub limit_w: Option<f64>,
    /// The power of a host when nothing runs, if `[host.NAME]` has no value.
    pub idle_w: Option<f64>,
    /// The power of a host when all slots are in use.
    pub full_w: Option<f64>,
    /// A line for /bin/sh on each host that prints the power that it draws.
    pub meter: Option<String>,
    /// A line for this machine's /bin/sh that switches `{host}` off.
    pub off: Option<String>,
    /// The same for switching it on.
    pub on: Option<String>,
    /// Minutes for which a host is idle before it is switched off.
    pub idle_min: Option<u64>,
    /// The load average above which a host is not idle.
    pub idle_load: Option<f64>,
    /// Hosts that stay on, as a node set.
    pub keep: Option<String>,
    /// The most hosts that are off at once.
    pub most_off: Option<u32>,
    /// Minutes within which a host answers after it was switched on.
    pub boot_min: Option<u64>,
    /// Seconds within which a command that switches must end.
    pub switch_s: Option<u64>,
    /// Hosts behind one fuse, by a name for people.
    #[serde(default)]
    pub circuit: BTreeMap<String, Behind>,
}

/// `[power.circuit.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Behind {
    /// The limit for them together.
    pub limit_w: f64,
    /// The hosts, as a node set.
    pub hosts: String,
}

impl PowerSection {
    /// Returns the power when nothing runs, and when all slots are in use.
    fn watts(&self) -> [Option<f64>; 2] {
        [self.idle_w, self.full_w]
    }
}

/// Default of the minutes for which hosts are idle before they are switched off.
const IDLE_MIN: u64 = 30;
/// A computing process gives a load of one. The load of an idle system is assumed to be lower than this; it was not
/// measured.
const IDLE_LOAD: f64 = 0.3;
/// Servers with much memory take several minutes before their system starts.
const BOOT_MIN: u64 = 10;
/// Chosen, not measured: `ipmitool` tries several times before it reports that a board does not answer.
const SWITCH_S: u64 = 60;

/// The commands that switch hosts off and on, and the conditions for that.
#[derive(Clone, Debug)]
pub struct Switching {
    off: Option<String>,
    on: Option<String>,
    /// The time for which a host is idle before it is switched off.
    pub idle: Duration,
    /// A greater load average counts as work.
    pub load: f64,
    /// Hosts that stay on.
    pub keep: Vec<String>,
    /// The most hosts that are off at once.
    pub most_off: Option<u32>,
    /// The most time that a host may take to boot.
    pub boot: Duration,
    /// The most time that a command that switches may run.
    patience: Duration,
}

impl Switching {
    /// Returns the command that switches a host off.
    pub fn off(&self, host: &str) -> Result<SwitchCommand, Failure> {
        self.switch(self.off.as_deref(), "off", host)
    }

    /// Returns the command that switches a host on.
    pub fn on(&self, host: &str) -> Result<SwitchCommand, Failure> {
        self.switch(self.on.as_deref(), "on", host)
    }

    fn switch(&self, line: Option<&str>, key: &str, host: &str) -> Result<SwitchCommand, Failure> {
        Ok(SwitchCommand { command: of_host(line, key, host)?, patience: self.patience })
    }
}

fn of_host(line: Option<&str>, key: &str, host: &str) -> Result<String, Failure> {
    let missing = || {
        Failure::usage(format!(
            "[power] {key} of the cluster file is missing: homing has no command that switches {host} {key}"
        ))
    };
    let hint = format!("[power] {key} = \"ipmitool -H {{host}}-bmc ... power {key}\"");
    let line = line.ok_or_else(|| missing().hint(&hint))?;
    if !line.contains("{host}") {
        return Err(Failure::usage(format!(
            "[power] {key} = {line:?} of the cluster file does not name the host: add {{host}}"
        )));
    }
    let quoted = shlex::try_quote(host).map_err(|e| Failure::usage(format!("{host:?} is not a host name: {e}")))?;
    Ok(line.replace("{host}", &quoted))
}

impl Cluster {
    /// Returns how hosts are switched: by the administrator's file if that has `[power]`, else by the user's.
    pub fn switching(&self) -> Result<Switching, Failure> {
        let power = self.power().cloned().unwrap_or_default();
        let load = power.idle_load.unwrap_or(IDLE_LOAD);
        if load.is_nan() || load < 0.0 {
            return Err(Failure::usage(format!("[power] idle_load of the cluster file: {load} is not a load average")));
        }
        let keep = power.keep.as_deref().map_or(Ok(Vec::new()), |text| self.hosts(Some(text)))?;
        let minutes = |said: Option<u64>, usual| Duration::from_secs(said.unwrap_or(usual).saturating_mul(60));
        Ok(Switching {
            idle: minutes(power.idle_min, IDLE_MIN),
            load,
            keep,
            most_off: power.most_off,
            boot: minutes(power.boot_min, BOOT_MIN),
            patience: Duration::from_secs(power.switch_s.unwrap_or(SWITCH_S)),
            off: power.off,
            on: power.on,
        })
    }

    /// Returns the circuits with a limit: of the administrator's file if that has `[power]`, else of the user's.
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

    /// Returns the command that prints the power of a host, the administrator's before the user's; empty if there is
    /// none.
    pub fn meter(&self) -> String {
        let files = [&self.machine, &self.own];
        files.iter().find_map(|file| file.power.as_ref()?.meter.clone()).unwrap_or_default()
    }

    fn power(&self) -> Option<&PowerSection> {
        self.machine.power.as_ref().or(self.own.power.as_ref())
    }

    fn circuit(&self, name: String, limit_w: f64, hosts: Vec<String>) -> Result<Circuit, Failure> {
        let refused = |why: String| Failure::usage(format!("[power] {name} of the cluster file: {why}"));
        if !(limit_w > 0.0 && limit_w < 1e9) {
            return Err(refused(format!("limit_w = {limit_w} is not a number of watts above 0")));
        }
        if hosts.is_empty() {
            return Err(refused("no hosts".into()).hint("hosts = \"n[1-4]\""));
        }
        let draws = hosts.into_iter().map(|host| match self.draw(&host) {
            Some(draw) if draw.idle_w >= 0.0 && draw.full_w >= draw.idle_w && draw.full_w < 1e6 => Ok((host, draw)),
            Some(draw) => {
                Err(refused(format!("{host}: idle_w is {} W, more than full_w, {} W", draw.idle_w, draw.full_w)))
            }
            None => Err(refused(format!("the watts of {host} are missing"))
                .hint(format!("set idle_w and full_w, in watts, in [power] or [host.{host}]"))),
        });
        let hosts = draws.collect::<Result<HashMap<_, _>, Failure>>()?;
        Ok(Circuit { name, limit_w, hosts })
    }

    /// Returns the power of a host when idle and when full, watts, if that is known.
    pub fn watts(&self, host: &str) -> Option<[f64; 2]> {
        self.draw(host).map(|draw| [draw.idle_w, draw.full_w])
    }

    /// Returns the same: values of single hosts have priority over those for all, and the administrator's over the
    /// user's.
    fn draw(&self, host: &str) -> Option<Draw> {
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
        // The administrator's limit counts.
        let wide = "hosts = \"n1\"\n[power]\nlimit_w = 9000\n";
        let limit = cluster(wide, "[power]\nlimit_w = 300\nidle_w = 1\nfull_w = 2\n").circuits().unwrap();
        assert_eq!(limit[0].limit_w, 300.0);
    }

    #[test]
    fn a_switch_is_a_line_with_the_host_in_it() {
        let text = "hosts = \"n[1-4]\"\n[power]\noff = \"ipmi {host}-bmc off\"\non = \"wake\"\nkeep = \"n[1-2]\"\nidle_min = 5\n";
        let all = cluster(text, "").switching().unwrap();
        let off = all.off("n3").unwrap();
        assert_eq!((off.command.as_str(), off.patience.as_secs()), ("ipmi n3-bmc off", 60));
        assert_eq!(all.off("n3;x").unwrap().command, "ipmi 'n3;x'-bmc off");
        let slow = cluster("[power]\noff = \"wait {host}\"\nswitch_s = 300\n", "").switching().unwrap();
        assert_eq!(slow.off("n3").unwrap().patience.as_secs(), 300);
        assert!(all.on("n3").unwrap_err().message.contains("does not name the host"));
        assert_eq!((all.keep, all.idle.as_secs(), all.boot.as_secs()), (vec!["n1".into(), "n2".into()], 300, 600));
        // The administrator's section counts as a whole: a user's command does not run on hosts that the site
        // switches.
        let none = cluster(text, "[power]\nidle_w = 1\n").switching().unwrap();
        assert!(none.off("n3").unwrap_err().message.contains("off of the cluster file is missing"));
    }

    #[test]
    fn a_meter_is_the_administrators_or_else_the_users() {
        let both = |machine: &str| cluster("[power]\nmeter = \"own\"\n", machine).meter();
        assert_eq!((both("[power]\nmeter = \"all\"\n"), both("[power]\nidle_w = 1\n")), ("all".into(), "own".into()));
        assert_eq!(cluster("", "").meter(), "");
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        for (text, says) in [
            ("hosts = \"n1\"\n[power]\nlimit_w = 100\n", "the watts of n1 are missing"),
            ("hosts = \"n1\"\n[power]\nlimit_w = -1\nidle_w = 1\nfull_w = 2\n", "not a number of watts"),
            ("hosts = \"n1\"\n[power]\nlimit_w = 100\nidle_w = 10\nfull_w = 2\n", "idle_w is 10 W, more than"),
            ("[power]\nlimit_w = 100\nidle_w = 1\nfull_w = 2\n", "no hosts"),
        ] {
            let failure = cluster(text, "").circuits().unwrap_err();
            assert!(failure.message.contains(says) && !failure.message.contains('\n'), "{}", failure.message);
        }
        assert!(cluster("", "").circuits().unwrap().is_empty());
    }
}
