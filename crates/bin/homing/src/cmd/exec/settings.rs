//! `-O KEY=VALUE`: the settings of clush.conf, as a table.

use super::own::{ClushOptions, When};
use homing_exec::Options;
use homing_model::Failure;
use std::time::Duration;

/// The changes of all settings.
#[derive(Default)]
pub struct ExecSettings {
    fanout: Option<usize>,
    connect_timeout: Option<Duration>,
    /// The inner `None`: no limit.
    command_timeout: Option<Option<Duration>>,
    user: Option<String>,
    ssh_options: Vec<String>,
    ssh_path: Option<String>,
    /// Words before the command.
    pub prefix: Option<String>,
    /// Whether a password is read and given to each command before its input.
    pub password: bool,
    files: Option<u64>,
}

/// Takes a value; an error describes the values that are possible.
type Take = fn(&mut ExecSettings, &mut ClushOptions, &str) -> Result<(), &'static str>;

/// A setting acts, or is refused with its replacement.
enum SettingAction {
    Acts(Take),
    Absent(&'static str),
}

use SettingAction::{Absent, Acts};

const KEYS: &[(&str, SettingAction)] = &[
    ("fanout", Acts(|s, _, v| put(&mut s.fanout, v.parse().ok().filter(|n| *n > 0), "a number of hosts"))),
    ("connect_timeout", Acts(|s, _, v| put(&mut s.connect_timeout, time(v).filter(|t| !t.is_zero()), TIME))),
    (
        "command_timeout",
        Acts(|s, _, v| put(&mut s.command_timeout, time(v).map(|t| (!t.is_zero()).then_some(t)), TIME)),
    ),
    ("ssh_user", Acts(|s, _, v| put(&mut s.user, word(v), "a name"))),
    ("ssh_path", Acts(|s, _, v| put(&mut s.ssh_path, word(v), "a program"))),
    (
        "ssh_options",
        Acts(|s, _, v| {
            s.ssh_options = shlex::split(v).ok_or("words quoted as in a shell")?;
            Ok(())
        }),
    ),
    ("color", Acts(|_, own, v| put(&mut own.color, Some(When::read(v)?), ""))),
    ("node_count", Acts(|_, own, v| set(&mut own.counts, v))),
    ("maxrc", Acts(|_, own, v| set(&mut own.maxrc, v))),
    (
        "verbosity",
        Acts(|_, own, v| {
            let level: u8 = v.parse().ok().filter(|level| *level < 3).ok_or("0 (-q), 1 or 2 (-v)")?;
            (own.quiet, own.verbose) = (level == 0, level == 2);
            Ok(())
        }),
    ),
    ("fd_max", Acts(|s, _, v| put(&mut s.files, v.parse().ok(), "a number of open files"))),
    ("command_prefix", Acts(|s, _, v| put(&mut s.prefix, Some(v.to_string()), ""))),
    ("password_prompt", Acts(|s, _, v| set(&mut s.password, v))),
    ("history_size", Absent("homing exec has no prompt, so no history")),
    ("confdir", Absent("homing reads no clush.conf; -O KEY=VALUE for each setting")),
    ("scp_path", Absent("homing push and pull copy, by rsync")),
    ("scp_options", Absent("homing push and pull copy, by rsync; -o has options of ssh")),
    ("rsh_path", Absent("homing uses ssh; -O ssh_path=PROGRAM")),
    ("rsh_options", Absent("homing uses ssh; -O ssh_options=WORDS")),
    ("rcp_path", Absent("homing push and pull copy, by rsync")),
];

/// The words of a time.
const TIME: &str = "a time: seconds, or like 90s, 2m, 1h30m";

fn put<T>(to: &mut Option<T>, value: Option<T>, possible: &'static str) -> Result<(), &'static str> {
    *to = Some(value.ok_or(possible)?);
    Ok(())
}

fn word(value: &str) -> Option<String> {
    Some(value.to_string()).filter(|value| !value.is_empty())
}

fn time(value: &str) -> Option<Duration> {
    homing_batch::parse_duration("-O", value).ok()
}

/// Takes the words that clush's file takes for a choice.
fn set(to: &mut bool, value: &str) -> Result<(), &'static str> {
    *to = match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => true,
        "0" | "no" | "false" | "off" => false,
        _ => return Err("yes or no"),
    };
    Ok(())
}

/// Reads the settings; some change options. The last one of a key counts.
pub fn read(own: &mut ClushOptions) -> Result<ExecSettings, Failure> {
    let mut settings = ExecSettings::default();
    for given in std::mem::take(&mut own.settings) {
        let known = || KEYS.iter().filter(|(_, setting)| matches!(setting, Acts(_))).map(|(key, _)| *key);
        let every = || known().collect::<Vec<_>>().join(", ");
        let Some((key, value)) = given.split_once('=') else {
            return Err(Failure::usage(format!("-O {given}: KEY=VALUE expected")).hint(every()));
        };
        match KEYS.iter().find(|(known, _)| *known == key.trim()).map(|(_, setting)| setting) {
            None => return Err(Failure::usage(format!("-O {given}: unknown setting {key}")).hint(every())),
            Some(Absent(instead)) => {
                return Err(Failure::usage(format!("-O {given}: this setting is not supported")).hint(*instead));
            }
            Some(Acts(take)) => take(&mut settings, own, value.trim())
                .map_err(|possible| Failure::usage(format!("-O {given}: possible values: {possible}")))?,
        }
    }
    Ok(settings)
}

impl ExecSettings {
    /// Changes the options of connections, and the limit of open files of this process.
    pub fn apply(&self, options: &mut Options) -> Result<(), Failure> {
        options.fan_out = self.fanout.unwrap_or(options.fan_out);
        options.connect_timeout = self.connect_timeout.unwrap_or(options.connect_timeout);
        options.command_timeout = self.command_timeout.unwrap_or(options.command_timeout);
        options.user = self.user.clone().or(options.user.take());
        options.ssh.extend(self.ssh_options.iter().map(Into::into));
        if let (Some(path), Some(program)) = (&self.ssh_path, options.ssh.first_mut()) {
            *program = path.into();
        }
        self.files.map_or(Ok(()), limit_files)
    }
}

fn limit_files(most: u64) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    let current = Some(hard.map_or(most, |hard| hard.min(most)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: hard })
        .map_err(|e| Failure::usage(format!("-O fd_max={most}: the limit of open files could not be set: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> Result<(ClushOptions, ExecSettings, Options), String> {
        let mut own =
            ClushOptions { settings: given.iter().map(ToString::to_string).collect(), ..ClushOptions::default() };
        let settings =
            read(&mut own).map_err(|f| f.message + &f.hint.map_or(String::new(), |hint| "; ".to_string() + &hint))?;
        let mut options = Options::default();
        settings.apply(&mut options).map_err(|f| f.message)?;
        Ok((own, settings, options))
    }

    #[test]
    fn the_last_value_of_a_setting_counts() {
        let (own, settings, options) = of(&[
            "fanout=3",
            "maxrc=yes",
            "maxrc=no",
            "command_timeout=1m30s",
            "ssh_path=/bin/x",
            "ssh_options=-v -C",
            "node_count=off",
            "command_prefix=sudo -n",
            "verbosity=2",
        ])
        .unwrap();
        assert_eq!((options.fan_out, options.command_timeout), (3, Some(Duration::from_secs(90))));
        assert_eq!(options.ssh, ["/bin/x", "-v", "-C"]);
        assert!(!own.maxrc && !own.counts && own.verbose && settings.prefix.as_deref() == Some("sudo -n"));
    }

    #[test]
    fn a_setting_that_is_not_here_names_the_replacement() {
        for (given, part) in [
            ("nope=1", "unknown setting nope; fanout, "),
            ("rsh_path=/x", "-O ssh_path=PROGRAM"),
            ("fanout=0", "a number of hosts"),
            ("maxrc=perhaps", "yes or no"),
            ("color=red", "never, always or auto"),
            ("fanout", "KEY=VALUE expected"),
        ] {
            let why = of(&[given]).err().unwrap();
            assert!(why.contains(part), "{given}: {why}");
        }
    }
}
