//! Do all members of bonds carry traffic?

use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static DOWN: Code = Code {
    name: "HC-NET-05",
    severity: Severity::Error,
    what: "a member of a bond is down",
    means: "half of the rate is lost, and the host loses its network with the next cable",
    seen: "/proc/net/bonding/*",
    mend: "check the cable and the switch port; `ip link set dev MEMBER up`",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "bond",
    script: r#"awk -F': ' '/^Slave Interface/ {m = $2} /^MII Status/ && m != "" {n = FILENAME; sub(".*/", "", n); print n "\t" m "\t" $2; m = ""}' /proc/net/bonding/*"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&DOWN],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| {
        let [bond, member, status] = row else { return None };
        let finding = DOWN.on(host, format!("{member} of {bond} is {status}"), format!("/proc/net/bonding/{bond}"));
        (status != "up").then(|| finding.mend(format!("ip link set dev {} up", crate::finding::word(member))))
    })
    .collect()
}
