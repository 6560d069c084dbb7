//! Keeps runners that are started in a systemd unit, for example by a timer or a CI runner. systemd ends all
//! processes of a unit that has ended (`KillMode=control-group`, its default), and would end the runner and its jobs.
//! Therefore such a runner gets a scope of its own. If systemd gives none, the submitter gets a warning.

use crate::files;
use homing_model::text::quoted;
use std::time::{Duration, Instant};

/// systemd takes longer only if it hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two looks whether a runner has left its unit.
const PAUSE: Duration = Duration::from_millis(5);
/// Finds the user's systemd for a process without a session.
const BUS: &str =
    "r=/run/user/$(id -u); [ -n \"$XDG_RUNTIME_DIR\" ] || [ ! -d \"$r\" ] || export XDG_RUNTIME_DIR=\"$r\"; ";

/// A unit that processes belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// For example `backup.service`.
    pub name: String,
    /// Whether it is a unit of a user's own systemd.
    pub of_user: bool,
}

/// Returns the service of a process, by its `/proc/PID/cgroup`. Sessions are scopes, which systemd leaves alone.
fn service(cgroup: &str) -> Option<Unit> {
    let lines = || cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of = |controller: &str| lines().find(|(known, _)| *known == controller).map(|(_, path)| path);
    // The path in version 2 of cgroups, or in systemd's own hierarchy of version 1.
    let path = [of(""), of("name=systemd")].into_iter().flatten().find(|path| path.contains(".service"))?;
    let units: Vec<&str> =
        path.split('/').filter(|part| [".service", ".scope"].iter().any(|end| part.ends_with(end))).collect();
    let (name, around) = units.split_last()?;
    let manager = |unit: &str| unit.starts_with("user@");
    let is_service = name.ends_with(".service") && !manager(name);
    is_service.then(|| Unit { name: name.to_string(), of_user: around.iter().any(|unit| manager(unit)) })
}

impl Unit {
    /// Returns the service of a process, if it has one.
    fn of(pid: u32) -> Option<Unit> {
        // The tests have no systemd: files name the units of processes, of all or of one by its number.
        let told = std::env::var("HOMING_QUEUE_CGROUP").ok().filter(|_| cfg!(debug_assertions));
        let paths = match told {
            Some(told) => [format!("{told}.{pid}"), told],
            None => [format!("/proc/{pid}/cgroup"), String::new()],
        };
        service(&paths.iter().find_map(|path| std::fs::read_to_string(path).ok())?)
    }

    /// Whether it leaves its processes alone when it ends. If systemd does not answer, it is assumed to end them.
    fn leaves_processes(&self) -> bool {
        let whose = if self.of_user { "--user" } else { "--system" };
        let name = String::from_utf8_lossy(&quoted(self.name.as_bytes())).into_owned();
        let line = format!("{BUS}exec systemctl {whose} show --property=KillMode --value -- {name}");
        homing_os::process::run_shell(&line, PATIENCE)
            .is_ok_and(|mode| matches!(mode.trim_ascii(), b"process" | b"none"))
    }

    /// Returns the words before a program that put it into a scope of its own; `None` if systemd gives none.
    fn way_out(&self) -> Option<Vec<String>> {
        let whose = if self.of_user || files::uid() != 0 { "--user" } else { "--system" };
        let run = format!("exec systemd-run {whose} --scope --quiet --collect --");
        homing_os::process::run_shell(&format!("{BUS}{run} true"), PATIENCE).ok()?;
        Some(["/bin/sh".into(), "-c".into(), format!("{BUS}{run} \"$@\""), "sh".into()].into())
    }

    /// Returns the warning to the submitter about the end of the jobs.
    pub fn warning(&self) -> String {
        let (name, user) = (&self.name, files::user_name(files::uid()));
        let instead = match files::uid() {
            0 => String::new(),
            _ => format!(", or loginctl enable-linger {user}"),
        };
        format!(
            "homing: jobs end with the unit {name}: its KillMode ends their runner, and systemd grants no scope for \
             it\n  try: KillMode=process in {name}{instead}"
        )
    }
}

/// How a process survives the end of its unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It is in no unit, or in one that leaves its processes alone.
    Free,
    /// By words before its program.
    Out(Vec<String>),
    /// It does not.
    Doomed(Unit),
}

/// Returns how a runner that this process starts survives.
pub(crate) fn stay() -> Stay {
    let Some(unit) = ending(std::process::id()) else { return Stay::Free };
    match unit.way_out() {
        Some(words) => Stay::Out(words),
        None => Stay::Doomed(unit),
    }
}

/// Waits until process `pid`, a runner, has left the unit of this process. Returns that unit if it has not in time: the
/// unit would then end the runner with itself.
pub(crate) fn kept_by(pid: u32) -> Option<Unit> {
    let (own, begun) = (Unit::of(std::process::id())?, Instant::now());
    while Unit::of(pid).as_ref() == Some(&own) {
        if begun.elapsed() > PATIENCE {
            return Some(own);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

/// Returns the unit that would end a process with itself.
pub(crate) fn ending(pid: u32) -> Option<Unit> {
    Unit::of(pid).filter(|unit| !unit.leaves_processes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_the_control_group_and_a_session_is_none() {
        let unit = |name: &str, of_user| Some(Unit { name: name.into(), of_user });
        for (cgroup, wanted) in [
            ("0::/system.slice/backup.service\n", unit("backup.service", false)),
            ("0::/system.slice/system-ci.slice/ci@1.service/job\n", unit("ci@1.service", false)),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n", unit("x.service", true)),
            ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", None),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
            ("0::/system.slice/a.service/run-1.scope\n", None),
            ("9:name=systemd:/system.slice/cron.service\n4:memory:/x\n0::/\n", unit("cron.service", false)),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(service(cgroup), wanted, "{cgroup}");
        }
    }
}
