//! Which owner and which time does a new file get on a network mount?

use super::mounted::{mounts, on_top};
use crate::compare::middle;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeMap;

/// Seconds, as between hosts: make compares whole ones.
const ILL: f64 = 1.0;
/// The number of the user who gets the file; hardly any cluster has such a user.
const SOMEBODY: &str = "61184";

static CLOCK: Code = Code {
    name: "HC-CLOCK-07",
    severity: Severity::Error,
    what: "the clock of a file server differs from that of its clients",
    means: "new files look older than their sources: make and backups do too much or too little",
    seen: "the time of a new file on the mount, between two calls of `date`",
    mend: "start a time daemon on the server",
};
static SQUASHED: Code = Code {
    name: "HC-USER-09",
    severity: Severity::Warning,
    what: "root has no rights on a network file system",
    means: "files that root writes there belong to nobody, or are refused; backups as root miss private files",
    seen: "the owner of a file that root makes on the mount. homing reports it if the server trusts root of most hosts, if \
           root's home is there, or if its top folder has files of nobody",
    mend: "let the server trust root of these hosts (NFS: no_root_squash; MooseFS: maproot=0), or work as root on the server",
};
static MAPPED: Code = Code {
    name: "HC-USER-10",
    severity: Severity::Error,
    what: "new files on a network file system belong to other users than they should",
    means: "users cannot read their own files, or all users can read them",
    seen: "the owner of a new file on the mount, also after chown to a user number",
    mend: "NFS: remove all_squash, and set the same Domain in /etc/idmapd.conf everywhere; MooseFS: remove mapall",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "written",
    // One file per mount, of one byte, in a folder of its own: other users may write beside it, and root would follow
    // their links. Both are removed at once. The mount may hang, and a shell that enters it then cannot be killed.
    // `timeout` therefore kills another one, which reads the first one's output from a pipe of their own.
    script: concat!(
        "w='",
        homing_model::sh_fresh!(),
        r#"
    u=$(id -u)
    hurt() { case ~/ in "$1"/*) echo home ;; *) find "$1/" -mindepth 1 -maxdepth 1 -user "$2" ! -name ".homing-*" -printf "files\n" -quit ;; esac; }
    fresh "$1" 2>/dev/null || { e=$(fresh "$1" 2>&1 && stale); case $e in *"ermission denied"*) printf "%s\t%s\tno\t%s\n" "$2" "$u" "$(hurt "$1" 65534)" ;; esac; exit 0; }
    a=$(date +%s.%N); echo > f; sync f; m=$(stat -c "%.Y$T%u" f); b=$(date +%s.%N); o= w=${m##*$T}
    case $u,$w in
    0,0) chown -h 61184 f && o=$(stat -c %u f) ;;
    0,*) chmod 1777 . && o=$(setpriv --reuid=61184 --regid=61184 --clear-groups sh -c "set -C; echo > g && stat -c %u g; rm -f g") ;;
    esac
    stale; [ "$u" = 0 ] && [ "$w" != 0 ] && w=$(hurt "$1" "$w") || w=
    printf "%s\t%s\tyes\t%s\t%s\t%s\t%s\t%s\n" "$2" "$u" "$a" "$b" "$m" "$o" "$w"'
awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") {t = $(i + 1); s = $(i + 3)}
  if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"] && $6 ~ /^rw/ && s ~ /^rw/) print $5}' /proc/self/mountinfo | head -40 |
{ while read -r p; do
  q=$(printf '%b' "$(printf '%s' "$p" | sed 's/\\/\\0/g')")
  timeout -s KILL "$WAIT" sh -c 'r=$(sh -c "$1" sh "$2" "$3"); [ -z "$r" ] || printf "%s\n" "$r"' sh "$w" "$q" "$p" &
done; wait; }"#
    ),
    waits: true,
    slow: true,
    root: Some("whether file servers trust root"),
    codes: &[&CLOCK, &SQUASHED, &MAPPED],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows: Vec<(&HostAnswers, &[String])> = answers.each(CHECK.key).collect();
    let owners = rows.iter().filter_map(|(host, row)| mapped(host, row).or_else(|| squashed(host, row, &rows)));
    owners.chain(clocks(&rows)).collect()
}

/// Returns the owner of a file that root makes on a mount.
fn of_root(row: &[String]) -> Option<&str> {
    match row {
        [_, user, made, ..] if user == "0" && made == "no" => Some("nobody"),
        [_, user, made, _, _, _, owner, ..] if user == "0" && made == "yes" => Some(owner),
        _ => None,
    }
}

fn look(row: &[String]) -> String {
    format!("grep -F {} /proc/self/mountinfo", word(&format!(" {} ", row[0])))
}

/// Reports a server that does not trust root, if that harms a user; a server that trusts no host's root is set up
/// correctly.
fn squashed(host: &HostAnswers, row: &[String], all: &[(&HostAnswers, &[String])]) -> Option<HostFinding> {
    let owner = of_root(row).filter(|owner| *owner != "0")?;
    let same = || all.iter().filter(|(_, other)| other[0] == row[0]).filter_map(|(_, other)| of_root(other));
    let (trusted, known) = (same().filter(|owner| *owner == "0").count(), same().count());
    let point = &row[0];
    let what = match row.get(if row[2] == "no" { 3 } else { 8 }).map(String::as_str) {
        Some("home") => format!("root has no rights on {point}, where its home is"),
        Some("files") => format!("root has no rights on {point}, where its files belong to nobody"),
        _ if trusted * 2 > known => {
            format!("root has no rights on {point}, but has them on {trusted} of {known} hosts")
        }
        _ => return None,
    };
    Some(SQUASHED.on(host, what, format!("a file that root makes in {point}: owner {owner}")).look(look(row)))
}

fn mapped(host: &HostAnswers, row: &[String]) -> Option<HostFinding> {
    let [point, user, made, _, _, _, owner, given, ..] = row else { return None };
    let seen = match user.as_str() {
        _ if made != "yes" => return None,
        "0" if given.is_empty() || given == SOMEBODY => return None,
        "0" if owner == "0" => format!("chown {SOMEBODY} {point}/FILE: owner {given}"),
        "0" => format!("stat {point}/FILE of {SOMEBODY}: owner {given}"),
        user if owner != user => format!("stat {point}/FILE of {user}: owner {owner}"),
        _ => return None,
    };
    Some(MAPPED.on(host, format!("new files on {point} belong to other users"), seen).look(look(row)))
}

/// Reports a server's clock if most of its clients see a difference: the clock of a single client is a finding of its
/// own.
fn clocks(rows: &[(&HostAnswers, &[String])]) -> Vec<HostFinding> {
    let mut of_server: BTreeMap<String, Vec<(&HostAnswers, f64, &str)>> = BTreeMap::new();
    for (host, row) in rows {
        let (Some(ahead), Some(table)) = (ahead(row), mounts(host)) else { continue };
        let server = on_top(&table, &row[0]).map_or_else(|| row[0].clone(), |line| line.mount.source.display());
        of_server.entry(server).or_default().push((host, ahead, &row[0]));
    }
    let mut found = Vec::new();
    for (server, told) in of_server {
        let Some(middle) = middle(told.iter().map(|(_, ahead, _)| *ahead), 1) else { continue };
        for (host, ahead, point) in told.into_iter().filter(|(_, ahead, _)| middle.abs() > ILL && ahead.abs() > ILL) {
            let way = if middle < 0.0 { "behind" } else { "ahead of" };
            let what = format!("the clock of {server} is {:.0} s {way} those of its clients", middle.abs());
            let seen =
                format!("stat {point}/FILE and date: more than {:.0} s apart", ahead.abs().floor().min(middle.abs()));
            found.push(
                CLOCK.on(host, what, seen).look(format!(
                    "date; f=$(mktemp {}/clock-XXXXXXXXXX) && stat -c %y \"$f\" && rm \"$f\"",
                    word(point)
                )),
            );
        }
    }
    found
}

/// Returns how many seconds the server is certainly ahead; below 0: behind. The time of a server with whole seconds
/// may be up to one second later than it shows.
fn ahead(row: &[String]) -> Option<f64> {
    let [_, _, _, before, after, given, ..] = row else { return None };
    let seconds = |text: &String| text.parse::<f64>().ok().filter(|s| s.is_finite());
    let (before, after, given) = (seconds(before)?, seconds(after)?, seconds(given)?);
    let tick = if given.fract() == 0.0 { 1.0 } else { 0.01 };
    let (least, most) = (given - after, given + tick - before);
    Some(least.max(0.0) + most.min(0.0))
}
