//! A submission from a unit of systemd, say a timer's or a CI runner's. systemd ends what is left of a unit that has ended
//! (`KillMode=control-group`, its default), and would end the runner and its jobs. So a runner that is started there gets
//! a scope of its own; where that cannot be had, the submitter is told.

use crate::files;
use homing_model::text::quoted;
use std::time::{Duration, Instant};

/// systemd takes longer only where it hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether a runner has left its unit.
const PAUSE: Duration = Duration::from_millis(5);
/// Where a user's systemd is asked, for a process that no session was made for.
const BUS: &str =
    "r=/run/user/$(id -u); [ -n \"$XDG_RUNTIME_DIR\" ] || [ ! -d \"$r\" ] || export XDG_RUNTIME_DIR=\"$r\"; ";

/// A unit that processes belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// As `backup.service`.
    pub name: String,
    /// Of a user's own systemd.
    pub of_user: bool,
}

/// The service that a process is of, by its `/proc/PID/cgroup`. Sessions are scopes, which systemd leaves alone.
fn service(cgroup: &str) -> Option<Unit> {
    let lines = || cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of = |controller: &str| lines().find(|(known, _)| *known == controller).map(|(_, path)| path);
    // The second version's, or the first's hierarchy of systemd's own.
    let path = [of(""), of("name=systemd")].into_iter().flatten().find(|path| path.contains(".service"))?;
    let units: Vec<&str> =
        path.split('/').filter(|part| [".service", ".scope"].iter().any(|end| part.ends_with(end))).collect();
    let (name, around) = units.split_last()?;
    let manager = |unit: &str| unit.starts_with("user@");
    let is_service = name.ends_with(".service") && !manager(name);
    is_service.then(|| Unit { name: name.to_string(), of_user: around.iter().any(|unit| manager(unit)) })
}

impl Unit {
    /// That of a process; `None` where it is of none.
    fn of(pid: u32) -> Option<Unit> {
        // The tests have no systemd: they say what processes are of, all or one by its number.
        let told = std::env::var("HOMING_QUEUE_CGROUP").ok().filter(|_| cfg!(debug_assertions));
        let paths = match told {
            Some(told) => [format!("{told}.{pid}"), told],
            None => [format!("/proc/{pid}/cgroup"), String::new()],
        };
        service(&paths.iter().find_map(|path| std::fs::read_to_string(path).ok())?)
    }

    /// Whether it leaves its processes alone when it ends. What cannot be asked is taken to end them.
    fn leaves_processes(&self) -> bool {
        let whose = if self.of_user { "--user" } else { "--system" };
        let name = String::from_utf8_lossy(&quoted(self.name.as_bytes())).into_owned();
        let line = format!("{BUS}exec systemctl {whose} show --property=KillMode --value -- {name}");
        homing_os::process::ask(&line, PATIENCE).is_ok_and(|mode| matches!(mode.trim_ascii(), b"process" | b"none"))
    }

    /// The words before a program that put it into a scope of its own; `None` where systemd gives none.
    fn way_out(&self) -> Option<Vec<String>> {
        let whose = if self.of_user || files::uid() != 0 { "--user" } else { "--system" };
        let run = format!("exec systemd-run {whose} --scope --quiet --collect --");
        homing_os::process::ask(&format!("{BUS}{run} true"), PATIENCE).ok()?;
        Some(["/bin/sh".into(), "-c".into(), format!("{BUS}{run} \"$@\""), "sh".into()].into())
    }

    /// For who submits: what becomes of jobs.
    pub fn warning(&self) -> String {
        let (name, user) = (&self.name, files::user_name(files::uid()));
        let instead = match files::uid() {
            0 => String::new(),
            _ => format!(", or loginctl enable-linger {user}"),
        };
        format!(
            "homing: jobs end with the unit {name}: its KillMode ends their runner, and systemd gives no scope of its own\n  \
             try: KillMode=process in {name}{instead}"
        )
    }
}

/// How a process gets away from the end of the unit that it is of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It is of none, or of one that leaves its processes alone.
    Free,
    /// By words before its program.
    Out(Vec<String>),
    /// Not at all.
    Doomed(Unit),
}

/// That of a runner which this process starts.
pub(crate) fn stay() -> Stay {
    let Some(unit) = ending(std::process::id()) else { return Stay::Free };
    match unit.way_out() {
        Some(words) => Stay::Out(words),
        None => Stay::Doomed(unit),
    }
}

/// The unit of this process, if a runner on its way out of it has not left it in time.
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

/// The unit whose end is that of a process.
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
