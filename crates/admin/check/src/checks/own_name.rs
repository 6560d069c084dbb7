//! Does a host's own name lead to an address that others can reach?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static LOOPBACK: Code = Code {
    name: "HC-NAME-01",
    severity: Severity::Error,
    what: "a host's own name resolves to an address that only this host can reach",
    means: "daemons and MPI give other hosts the address 127.x, and listen where no other host can connect",
    seen: "`getent ahostsv4 $(hostname)`",
    mend: "remove the name from the 127.x line of /etc/hosts",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "own_name",
    script: r#"n=$(hostname 2>/dev/null || cat /proc/sys/kernel/hostname)
printf '%s\t%s\n' "$n" "$(getent ahostsv4 "$n" | awk 'NR == 1 {print $1}')""#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&LOOPBACK],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let of_others = answers.of(CHECK.key).filter(|(host, _)| host.name != "localhost");
    let finding = |(host, rows): (_, &[Vec<String>])| {
        let [name, address] = rows.first()?.as_slice() else { return None };
        let found = LOOPBACK.on(
            host,
            format!("its own name {name} resolves to {address}"),
            format!("getent ahostsv4 {name}: {address}"),
        );
        address.starts_with("127.").then(|| found.mend(without(name, "127[.]")))
    };
    of_others.filter_map(finding).collect()
}

/// Removes a name from the lines of /etc/hosts whose address matches this pattern. The file is written in place,
/// because in a container it may be a mount.
pub(crate) fn without(name: &str, address: &str) -> String {
    let name = name.replace('.', "[.]");
    let edit = format!("/^{address}/{{s/[[:space:]]{name}([[:space:]]|$)/\\1/g;/^[^[:space:]]+[[:space:]]*$/d}}");
    format!(
        "sed -E {} /etc/hosts > /etc/hosts.new && cat /etc/hosts.new > /etc/hosts && rm /etc/hosts.new",
        word(&edit)
    )
}
