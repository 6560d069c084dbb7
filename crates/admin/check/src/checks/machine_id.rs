//! Does every host have a machine number of its own, or is it another's clone?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static SHARED: Code = Code {
    name: "HC-NAME-05",
    severity: Severity::Error,
    what: "hosts share a machine ID: they are clones of one image",
    means: "DHCP gives both the same address, and GlusterFS and journald treat them as one machine",
    seen: "/etc/machine-id",
    mend: "make a new ID on all of them except one",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "machine_id",
    script: r#"cat /etc/machine-id"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&SHARED],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let ids: Vec<(&HostAnswers, &str)> =
        answers.of(CHECK.key).filter_map(|(h, r)| Some((h, r.first()?.first()?.as_str()))).collect();
    let clone = |(n, (host, id)): (usize, &(&HostAnswers, &str))| {
        let (original, _) = ids[..n].iter().find(|(_, other)| other == id)?;
        let found =
            SHARED.on(host, format!("it has the machine ID of {}", original.name), format!("/etc/machine-id: {id}"));
        let is_so = format!("[ \"$(cat /etc/machine-id)\" = {} ]", word(id));
        Some(found.mend(format!(
            "{is_so} && {{ rm -f /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; cp /etc/machine-id /var/lib/dbus/; }}"
        )))
    };
    ids.iter().enumerate().filter_map(clone).collect()
}
