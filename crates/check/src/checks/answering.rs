//! Do network mounts answer?

use crate::finding::word;
use crate::{Answers, Check, Code, Finding, Host, Severity};

static HUNG: Code = Code {
    name: "HC-MOUNT-07",
    severity: Severity::Error,
    what: "a mount does not answer",
    means: "every program that looks there waits, and cannot be interrupted",
    seen: "`stat POINT/NAME` with a name that cannot be cached, for 2 s",
    mend: "bring its server or daemon back; else umount -fl and mount again",
};
static DEAD: Code = Code {
    name: "HC-MOUNT-08",
    severity: Severity::Error,
    what: "the daemon of a mount has died, or its folder is gone from the server",
    means: "every access fails: \"Transport endpoint is not connected\", \"Stale file handle\"; the mount table shows nothing",
    seen: "`stat POINT/NAME`",
    mend: "umount -l POINT; mount POINT",
};

pub(crate) static CHECK: Check = Check {
    key: "answering",
    // In a name only the kernel's own escapes are undone. A child that cannot be killed holds no pipe of ours.
    ask: r#"awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") t = $(i + 1)
  if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"]) print $5}' /proc/self/mountinfo | head -40 |
{ while read -r p; do
  q=$(printf '%b' "$(printf '%s' "$p" | sed 's/\\/\\0/g')")
  ( e=$(timeout -s KILL "$WAIT" stat -- "$q/.homing-check-$$" 2>&1 >/dev/null); s=$?
    case $e in *'No such file'*|*'Permission denied'*) s=0 ;; esac
    printf '%s\t%s\t%s\n' "$p" "$s" "${e##*: }" ) &
done; wait; }"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&HUNG, &DEAD],
    judge,
};

fn judge(answers: &Answers) -> Vec<Finding> {
    answers.each(CHECK.key).filter_map(|(host, row)| of_mount(host, row)).collect()
}

fn of_mount(host: &Host, row: &[String]) -> Option<Finding> {
    let [point, status, said] = row else { return None };
    let point = String::from_utf8_lossy(&homing_mounts::unescape(point.as_bytes())).into_owned();
    let again = format!("umount -fl {0}; mount {0}", word(&point));
    match status.as_str() {
        "0" => None,
        "137" => Some(
            HUNG.on(host, format!("{point} does not answer"), format!("stat {point}/NAME: nothing in time"))
                .mend(again),
        ),
        _ => Some(DEAD.on(host, format!("{point}: {said}"), format!("stat {point}/NAME: {said}")).mend(again)),
    }
}
