//! Does sshd accept users' keys, by the modes of their homes?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

/// Mode bits: others may write.
const LOOSE: u32 = 0o022;
/// Mode bits: others may read a private key.
const OPEN: u32 = 0o077;

static HOME: Code = Code {
    name: "HC-SSH-01",
    severity: Severity::Error,
    what: "other users may write to a home",
    means: "sshd does not trust the keys in it: it refuses every login by key, and only the server's log has the reason",
    seen: "`stat -c %a HOME`",
    mend: "chmod go-w HOME",
};
static KEYS: Code = Code {
    name: "HC-SSH-02",
    severity: Severity::Error,
    what: "other users may write to ~/.ssh or authorized_keys, or it belongs to another user",
    means: "sshd does not trust the keys in it: it refuses every login by key, and only the server's log has the reason",
    seen: "`stat -c '%a %U' ~/.ssh ~/.ssh/authorized_keys`",
    mend: "chown it to the user; chmod go-w",
};
static PRIVATE: Code = Code {
    name: "HC-SSH-03",
    severity: Severity::Error,
    what: "other users may read a private key",
    means: "ssh does not use such a key; a user who has read it can log in as this user everywhere",
    seen: "`stat -c %a ~/.ssh/id_*`",
    mend: "chmod 600",
};
static SHARED: Code = Code {
    name: "HC-SSH-04",
    severity: Severity::Warning,
    what: "a private key without a passphrase is on a network file system",
    means: "root of each host that mounts it, and anyone who reads the network traffic, can log in as this user everywhere",
    seen: "`stat -f -c %T ~/.ssh`; `ssh-keygen -y -P '' -f KEY`",
    mend: "give it a passphrase and use ssh-agent, or keep it on a local disk",
};
static OWNER: Code = Code {
    name: "HC-USER-06",
    severity: Severity::Error,
    what: "a home belongs to another user",
    means: "the user cannot write at home; often the number of the user differs between hosts",
    seen: "`stat -c %U HOME`",
    mend: "chown -h USER: HOME, once the numbers of users are right",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "homes",
    script: r#"u=$(id -u)
getent passwd | awk -F: -v u="$u" '$3 == u || (u == 0 && $3 >= 1000 && $3 < 60000) {print $1 "\t" $6}' | head -300 |
while IFS=$T read -r n h; do
  case $h in /|/nonexistent|'') continue ;; esac
  [ -d "$h" ] || continue
  stat -L -c "%a$T%U$T%n" -- "$h" "$h/.ssh" "$h/.ssh/authorized_keys" | while read -r l; do printf 'dir\t%s\t%s\n' "$n" "$l"; done
  for k in "$h"/.ssh/id_*; do
    case $k in *.pub) continue ;; esac
    [ -f "$k" ] || continue
    p=$(ssh-keygen -y -P '' -f "$k" >/dev/null && echo none)
    printf 'key\t%s\t%s\t%s\t%s\t%s\t%s\n' "$n" "$(stat -L -c %a -- "$k")" "$(stat -f -c %T -- "$k")" "$p" "$k" "$(stat -L -c %U -- "$k")"
  done
done"#,
    waits: true,
    slow: false,
    root: Some("homes and keys of other users"),
    codes: &[&HOME, &KEYS, &PRIVATE, &SHARED, &OWNER],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key);
    rows.flat_map(|(host, row)| match row.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["dir", user, mode, owner, path] => of_folder(answers, host, [user, mode, owner, path]),
        ["key", user, mode, fs, phrase, path, owner] => of_key(host, [user, mode, fs, phrase, path, owner]),
        _ => Vec::new(),
    })
    .collect()
}

/// Returns a command with the rights of a user and no more, even if root pastes it. An entry of a home may be a link
/// by then.
fn as_user(host: &HostAnswers, user: &str, line: &str) -> String {
    if host.uid() == Some(0) && user != "root" {
        format!("su {} -s /bin/sh -c {}", word(user), word(line))
    } else {
        line.into()
    }
}

/// Adds the command that changes a mode. Only the owner of the entry may do that. The command of another owner is no
/// remedy to paste: root would run it in a folder whose user can put links there.
fn mode_mended(
    mut finding: HostFinding,
    host: &HostAnswers,
    [user, owner, path]: [&str; 3],
    change: &str,
) -> HostFinding {
    let line = format!("chmod {change} {}", word(path));
    if owner == user {
        return finding.mend_as_user(as_user(host, user, &line));
    }
    finding.what += &format!("; it belongs to {owner}, who must run: {line}");
    finding.look(format!("ls -ld {}", word(path)))
}

/// Whether the owner of a home is certain. No other user there has it as the home, and the user has one number on all
/// hosts. Otherwise the remedy could give the home of another user away, on a shared file system for all hosts.
fn is_certain(answers: &Answers, host: &HostAnswers, user: &str, path: &str) -> bool {
    let others = host.rows(CHECK.key).into_iter().flatten().filter(|row| row.len() == 5 && row[0] == "dir");
    let is_others = others.into_iter().any(|row| row[1] != user && row[4] == path);
    let of_user = |row: &&[String]| row.len() > 2 && row[0] == "user" && row[1] == user;
    let accounts = answers.each("accounts").filter(|(_, row)| of_user(row));
    let numbers: std::collections::BTreeSet<&String> = accounts.map(|(_, row)| &row[2]).collect();
    !is_others && numbers.len() < 2
}

fn of_folder(answers: &Answers, host: &HostAnswers, row: [&str; 4]) -> Vec<HostFinding> {
    let [user, mode, owner, path] = row;
    let is_home = !path.contains("/.ssh");
    let code = if is_home { &HOME } else { &KEYS };
    let mut found = Vec::new();
    if u32::from_str_radix(mode, 8).is_ok_and(|m| m & LOOSE != 0) {
        let finding =
            code.on(host, format!("other users may write to {path} of {user}"), format!("stat -c %a {path}: {mode}"));
        found.push(mode_mended(finding, host, [user, owner, path], "go-w"));
    }
    if owner != user && owner != "root" {
        let code = if is_home { &OWNER } else { &KEYS };
        let finding =
            code.on(host, format!("{path} of {user} belongs to {owner}"), format!("stat -c %U {path}: {owner}"));
        // Only the home itself is in a folder of root's, in which no other user can replace names.
        let mends = is_home && is_certain(answers, host, user, path);
        let look = format!("ls -ld {}; id {} {}", word(path), word(user), word(owner));
        found.push(if mends {
            finding.mend(format!("chown -h {}: {}", word(user), word(path)))
        } else {
            finding.look(look)
        });
    }
    found
}

fn of_key(host: &HostAnswers, [user, mode, fs, phrase, path, owner]: [&str; 6]) -> Vec<HostFinding> {
    let mut found = Vec::new();
    if u32::from_str_radix(mode, 8).is_ok_and(|m| m & OPEN != 0) {
        let finding = PRIVATE.on(host, format!("other users may read {path}"), format!("stat -c %a {path}: {mode}"));
        found.push(mode_mended(finding, host, [user, owner, path], "600"));
    }
    let shared = ["nfs", "fuseblk", "lustre", "ceph", "cifs", "smb2", "gpfs", "beegfs"].contains(&fs);
    if shared && phrase == "none" {
        let what = format!("{path} is on a network file system and has no passphrase");
        found.push(SHARED.on(host, what, format!("stat -f -c %T {path}: {fs}")).look(format!("ls -l {}", word(path))));
    }
    found
}
