//! Do hosts have the keys that others know?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static CHANGED: Code = Code {
    name: "HC-SSH-06",
    severity: Severity::Error,
    what: "a host has a different key than known_hosts",
    means: "ssh refuses to connect to it; that is right after a new installation, else another machine may answer in its place",
    seen: "`ssh-keyscan NAME` and `ssh-keygen -F NAME`",
    mend: "if the host was reinstalled, and ssh-keygen -lf /etc/ssh/ssh_host_*.pub on it shows the new key: ssh-keygen -R NAME, then connect again",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "host_keys",
    // A key of an unknown kind is no fault: ssh requests the kind that it knows. Each kind costs a connection, and
    // sshd refuses some if many arrive at once (MaxStartups). Only known kinds are requested, and twice at most.
    script: r#"command -v ssh-keyscan >/dev/null || exit 0
keys() { awk '!/^#/ && $1 !~ /^@/ {print $2 " " $3}'; }
scan() { ssh-keyscan -T 2 -t "$t" -- "$h" | keys | grep .; }
for h; do
  [ $((n += 1)) -le 64 ] || break
  for f in "$HOME/.ssh/known_hosts" /etc/ssh/ssh_known_hosts; do
    k=$(ssh-keygen -F "$h" -f "$f" | keys)
    [ -n "$k" ] || continue
    t=$(printf '%s\n' "$k" | awk '/^ssh-ed25519 /{print "ed25519"} /^ssh-rsa /{print "rsa"} /^ecdsa-/{print "ecdsa"}' |
      sort -u | paste -sd,)
    [ -n "$t" ] || continue
    { { scan || { sleep 1; scan; }; } | while read -r t v; do
        case $k in *"$t $v"*) ;; *"$t "*) printf '%s\t%s\t%s\n' "$h" "$t" "$f" ;; esac
      done; } &
  done
done; wait"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&CHANGED],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| {
        let [name, kind, file] = row else { return None };
        let what = format!("{name} has a different key than known_hosts here");
        let found = CHANGED.on(host, what, format!("ssh-keyscan {name} and {file}: {kind}"));
        // To forget the key means to trust the next one: a person compares them on the host itself first.
        let name = word(name);
        Some(found.look(format!(
            "ssh-keygen -l -F {name} -f {}; ssh-keyscan {name} 2>/dev/null | ssh-keygen -lf -",
            word(file)
        )))
    })
    .collect()
}
