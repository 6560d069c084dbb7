//! Are there files beneath a mount point?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static HIDDEN: Code = Code {
    name: "HC-MOUNT-09",
    severity: Severity::Warning,
    what: "a mount point hides files",
    means: "these files were written while it was not mounted; no user sees them, and they fill the disk",
    seen: "/ without its mounts, by `unshare -m` and `mount --bind / /run`",
    mend: "move them to another folder; `chattr +i` on the empty mount point prevents it",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "beneath",
    // Mounts of the system itself are left alone: only network mounts, and those of fstab. The former homes beneath
    // the mount that homing up made are meant to lie there: its undo gives them back.
    script: r#"[ "$(id -u)" = 0 ] || exit 0
{ awk '$1 !~ /^#/ && $2 ~ /^[/]./ {print $2}' /etc/fstab
awk '{for (i = 7; i < NF; i++) if ($i == "-") t = $(i + 1); if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"]) print $5}' /proc/self/mountinfo
} | sort -u | head -40 | awk '
NR == FNR {m[$5] = 1; next}
m[$1] {q = $1; n = 0; while (sub(/[/][^/]*$/, "", q) && q != "") if (m[q]) n = 1; if (!n) print $1}' /proc/self/mountinfo - |
unshare -m --propagation private sh -c 'mount --bind / /run || exit 0
while read -r p; do [ "$p" = "$HOMES" ] && grep -qxF "$HOMES_LINE" /etc/fstab && continue; c=$(ls -A "/run$p" 2>/dev/null | head -1); [ -z "$c" ] || printf "%s\t%s\n" "$p" "$c"; done'"#,
    waits: true,
    slow: true,
    root: Some("files hidden by mount points"),
    codes: &[&HIDDEN],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| {
        let [point, first] = row else { return None };
        // Other users may be able to create names beside a mount point: the folder is a new one.
        let script = format!(
            "mount --bind / /run && a=$(mktemp -d {}) && find {} -mindepth 1 -maxdepth 1 -execdir mv -t \"$a\" {{}} +",
            word(&format!("/run{point}.beneath.XXXXXX")),
            word(&format!("/run{point}"))
        );
        let found = HIDDEN.on(host, format!("the mount at {point} hides files"), format!("{point}: {first}, ..."));
        Some(found.mend(format!("unshare -m --propagation private sh -c {}", word(&script))))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The former homes are beneath the mount of homing's own homes. The undo of the set-up restores them, so no remedy
    /// may move them away.
    #[test]
    fn the_homes_that_homing_put_beneath_its_mount_are_no_finding() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["run/home/ann", "run/data/result"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let (fstab, run) = (root.path().join("fstab"), root.path().join("run"));
        let end = CHECK.script.split_once("while read -r p;").unwrap().1.trim_end_matches('\'');
        let script = format!("while read -r p;{end}").replace("/etc/fstab", fstab.to_str().unwrap());
        let script = script.replace("\"/run$p\"", &format!("\"{}$p\"", run.display()));
        let (homes, line) = homing_setup::homes_mark();
        let found = |lines: &str| {
            std::fs::write(&fstab, lines).unwrap();
            let script = format!("printf '/home\\n/data\\n' | {script}");
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &script]).env("HOMES", homes).env("HOMES_LINE", &line);
            let done = shell.output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        assert_eq!(found(&format!("{line}\n/homes/home /home none bind 0 0\n")), "/data\tresult\n");
        assert_eq!(found("n1:/home /home nfs defaults 0 0\n"), "/home\tann\n/data\tresult\n");
    }
}
