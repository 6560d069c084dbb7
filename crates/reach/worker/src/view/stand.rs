//! Finds out whether this host has the files of a volume, and where. The proof is a file with an unguessable name
//! that the coordinator has just made.

use super::{MountAlias, MountView, is_plain, os, probe_command};
use homing_model::RawText;
use homing_mounts::nfs::{EXPORTS, server_paths};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The message `ToWorker::HasVolume`.
pub(crate) struct VolumeQuestion {
    pub point: RawText,
    pub path: RawText,
    pub nonce: RawText,
    pub secret: RawText,
}

/// Returns the view with the volume, and a text for the user; or the reason against it.
pub(crate) fn stand(question: &VolumeQuestion, view: &MountView) -> Result<(MountView, String), String> {
    let point = question.point.to_path();
    let proves = |dir: &Path| {
        let file = dir.join(question.nonce.as_path());
        std::fs::read(file).is_ok_and(|content| content == question.secret.0)
    };
    // This read makes automount mount it.
    if proves(&point) {
        return Ok((view.clone(), format!("{} is mounted now", point.display())));
    }
    let exports = std::fs::read_to_string(EXPORTS).unwrap_or_default();
    let asked = at_home(&question.path);
    let found = asked.and_then(|path| server_paths(&path, &exports).into_iter().find(|dir| proves(dir)));
    let local =
        found.ok_or_else(|| format!("{} is not mounted, and no local directory has its files", point.display()))?;
    let place = MountAlias { point: point.clone(), local: local.clone() };
    let private = view.with(place.clone(), true);
    let told = |how: &str| format!("it serves {} from its own {}; tasks {how}", point.display(), local.display());
    match permitted(&private, &point.join(question.nonce.as_path())) {
        Ok(()) => Ok((private, told("see it under its usual name"))),
        Err(why) if is_plain(&local) => Ok((
            view.with(place, false),
            told(&format!("get its local path in their commands, because private mounts are not permitted ({why})")),
        )),
        Err(why) => Err(format!(
            "private mounts are not permitted ({why}), and the path {} cannot be part of a command",
            local.display()
        )),
    }
}

/// Resolves a path that begins at a home, `~/DIR` or `~USER/DIR`, on this host.
fn at_home(path: &RawText) -> Option<RawText> {
    let Some(rest) = path.0.strip_prefix(b"~") else { return Some(path.clone()) };
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let home = match std::str::from_utf8(&rest[..end]).ok()? {
        "" => homing_os::names::home()?,
        user => homing_os::names::home_of(user)?,
    };
    let below = Path::new(OsStr::from_bytes(rest[end..].strip_prefix(b"/").unwrap_or_default()));
    let there: PathBuf = home.join(below).components().collect();
    Some(RawText::from(there.as_path()))
}

/// Runs a command in the view that looks for the file, to prove that the view is permitted.
fn permitted(view: &MountView, file: &Path) -> Result<(), String> {
    let (program, words) = probe_command(view, file);
    let output = Command::new(program).args(words.iter().skip(1).map(os)).stdin(Stdio::null()).output();
    let output = output.map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Err(if said.is_empty() { "its files are not visible in the mount".into() } else { said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_begin_at_a_home() {
        let of = |path: &str| at_home(&path.into()).map(|p| p.display());
        let home = homing_os::names::home().unwrap();
        assert_eq!(of("/srv/~x").as_deref(), Some("/srv/~x"));
        assert_eq!(of("~/a/b"), Some(home.join("a/b").display().to_string()));
        assert_eq!(of("~/"), Some(home.display().to_string()));
        assert_eq!(of("~root/x").as_deref(), Some("/root/x"));
        assert_eq!(of("~nobody-of-that-name/x"), None);
    }

    #[test]
    fn only_the_nonce_with_its_secret_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("n"), "right").unwrap();
        let ask = |point: &Path, secret: &str| {
            let question = VolumeQuestion {
                point: point.into(),
                path: "/nowhere-at-all".into(),
                nonce: "n".into(),
                secret: secret.into(),
            };
            stand(&question, &MountView::default())
        };
        assert!(ask(dir.path(), "right").is_ok_and(|(view, _)| view == MountView::default()));
        assert!(ask(dir.path(), "wrong").is_err());
        assert!(ask(Path::new("/data-of-others"), "right").is_err());
    }
}
