//! What becomes of a file that is written on a network mount: whose it is, and what time it bears.

use super::mounted::mounts;
use crate::finding::word;
use crate::{Answers, Check, Code, Finding, Host, Severity};
use std::collections::BTreeMap;

/// Seconds, as between hosts: make goes by whole ones.
const ILL: f64 = 1.0;
/// The number of a user that the file is given to, whom hardly anybody has.
const SOMEBODY: &str = "61184";

static CLOCK: Code = Code {
    name: "HC-CLOCK-07",
    severity: Severity::Error,
    what: "the clock of a file server is not that of its clients",
    means: "new files look older than what they were made of: make builds too much or too little, and so do backups",
    seen: "the time of a new file on the mount, between two looks at `date`",
    mend: "start a time daemon on the server",
};
static SQUASHED: Code = Code {
    name: "HC-USER-09",
    severity: Severity::Warning,
    what: "root is nobody on a network file system",
    means: "what root copies or installs there belongs to nobody, or is refused; backups as root miss private files",
    seen: "the owner of a file that root makes on the mount",
    mend: "let the server trust root of these hosts (NFS: no_root_squash; MooseFS: maproot=0), or do it on the server",
};
static MAPPED: Code = Code {
    name: "HC-USER-10",
    severity: Severity::Error,
    what: "a network file system gives files to other users than it was told",
    means: "users cannot read what they have written, or everybody can",
    seen: "the owner of a file that was made on the mount, or given to a user by its number",
    mend: "NFS: no all_squash, and the same Domain in /etc/idmapd.conf everywhere; MooseFS: no mapall",
};

pub(crate) static CHECK: Check = Check {
    key: "written",
    // One file a mount, of one byte, which is removed at once. The mount may hang: each has a child of its own.
    ask: r#"awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") {t = $(i + 1); s = $(i + 3)}
  if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"] && $6 ~ /^rw/ && s ~ /^rw/) print $5}' /proc/self/mountinfo | head -40 |
{ while read -r p; do
  q=$(printf '%b' "$(printf '%s' "$p" | sed 's/\\/\\0/g')")
  timeout -s KILL 2 sh -c 'f=$1/.homing-check-$$-$(uname -n); u=$(id -u); a=$(date +%s.%N)
    e=$( (echo > "$f") 2>&1) || { case $e in *"ermission denied"*) printf "%s\t%s\tno\n" "$2" "$u" ;; esac; exit 0; }
    sync "$f"; m=$(stat -c "%.Y$T%u" -- "$f"); b=$(date +%s.%N); o=
    [ "$u" != 0 ] || { chown 61184 "$f" && o=$(stat -c %u -- "$f"); }
    rm -f "$f"; printf "%s\t%s\tyes\t%s\t%s\t%s\t%s\n" "$2" "$u" "$a" "$b" "$m" "$o"' sh "$q" "$p" &
done; wait; }"#,
    waits: true,
    slow: true,
    root: Some("whether file servers trust root"),
    codes: &[&CLOCK, &SQUASHED, &MAPPED],
    judge,
};

fn judge(answers: &Answers) -> Vec<Finding> {
    let rows: Vec<(&Host, &[String])> = answers.each(CHECK.key).collect();
    let owners = rows.iter().flat_map(|(host, row)| of_owner(host, row));
    owners.chain(clocks(&rows)).collect()
}

fn of_owner(host: &Host, row: &[String]) -> Vec<Finding> {
    let row: Vec<&str> = row.iter().map(String::as_str).collect();
    let table = format!("grep -F ' {} ' /proc/self/mountinfo", row[0]);
    let squashed = |seen: String| SQUASHED.on(host, format!("root is nobody on {}", row[0]), seen).look(&table);
    let mapped =
        |seen: String| MAPPED.on(host, format!("{} gives files to other users", row[0]), seen).look(table.clone());
    match row[..] {
        [_, "0", "no"] => vec![squashed("root may not make a file".into())],
        [point, "0", "yes", .., owner, _] if owner != "0" => {
            vec![squashed(format!("stat {point}/FILE of root: owner {owner}"))]
        }
        [point, "0", "yes", .., given] if !given.is_empty() && given != SOMEBODY => {
            vec![mapped(format!("chown {SOMEBODY} {point}/FILE: owner {given}"))]
        }
        [point, user, "yes", .., owner, ""] if owner != user => {
            vec![mapped(format!("stat {point}/FILE of {user}: owner {owner}"))]
        }
        _ => Vec::new(),
    }
}

/// A server is told of when most of its clients see it: the clock of a single client is a finding of its own.
fn clocks(rows: &[(&Host, &[String])]) -> Vec<Finding> {
    let mut of_server: BTreeMap<String, Vec<(&Host, f64, &str)>> = BTreeMap::new();
    for (host, row) in rows {
        let (Some(ahead), Some(table)) = (ahead(row), mounts(host)) else { continue };
        let escaped = homing_mounts::unescape(row[0].as_bytes());
        let line = table.iter().rev().find(|line| line.mount.point.0 == escaped);
        let server = line.map_or_else(|| row[0].clone(), |line| line.mount.source.display());
        of_server.entry(server).or_default().push((host, ahead, &row[0]));
    }
    let mut found = Vec::new();
    for (server, mut told) in of_server {
        told.sort_by(|a, b| a.1.total_cmp(&b.1));
        let middle = told[told.len() / 2].1;
        for (host, ahead, point) in told.into_iter().filter(|(_, ahead, _)| middle.abs() > ILL && ahead.abs() > ILL) {
            let way = if middle < 0.0 { "behind" } else { "ahead of" };
            let what = format!("the clock of {server} is {:.0} s {way} its clients'", middle.abs());
            let seen =
                format!("stat {point}/FILE and date: more than {:.0} s apart", ahead.abs().floor().min(middle.abs()));
            found.push(
                CLOCK
                    .on(host, what, seen)
                    .look(format!("f={}/clock.$$; date; touch \"$f\"; stat -c %y \"$f\"; rm \"$f\"", word(point))),
            );
        }
    }
    found
}

/// By how many seconds the server is ahead for certain, below 0: behind. A server that goes by whole seconds may be up
/// to one further than it says.
fn ahead(row: &[String]) -> Option<f64> {
    let [_, _, _, before, after, given, ..] = row else { return None };
    let seconds = |text: &String| text.parse::<f64>().ok().filter(|s| s.is_finite());
    let (before, after, given) = (seconds(before)?, seconds(after)?, seconds(given)?);
    let tick = if given.fract() == 0.0 { 1.0 } else { 0.01 };
    let (least, most) = (given - after, given + tick - before);
    Some(least.max(0.0) + most.min(0.0))
}
