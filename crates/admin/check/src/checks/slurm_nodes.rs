//! Which nodes does Slurm not use, and why?

use crate::finding::word;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};
use std::collections::BTreeSet;

static DOWN: Code = Code {
    name: "HC-SLURM-01",
    severity: Severity::Error,
    what: "Slurm does not use a node",
    means: "jobs wait although the node may work: Slurm keeps this state until an administrator changes it",
    seen: "`sinfo -R`",
    mend: "repair the fault that the reason names; scontrol update nodename=NODE state=resume",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "slurm_nodes",
    // Only the controller, or the first host, runs it: the same query from all would burden the controller.
    script: r#"command -v sinfo >/dev/null || exit 0
[ "$(hostname)" = "${1%%.*}" ] || [ "$#" -lt 2 ] || systemctl -q is-active slurmctld || exit 0
timeout 2 sinfo -h -N -t down,drain,fail,unknown -o '%N	%T	%E'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&DOWN],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let mut told = BTreeSet::new();
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| {
        let [node, state, reason] = row else { return None };
        let fresh = told.insert(node.clone());
        let finding = DOWN.at(node, format!("Slurm reports it {state}: {reason}"), format!("sinfo -R: {reason}"));
        let (line, look) = (
            format!("scontrol update nodename={} state=resume", word(node)),
            format!("scontrol show node {}", word(node)),
        );
        // Only the user who drained a node returns it to service.
        let is_down = state.starts_with("down");
        fresh.then(|| if is_down { finding.mend(line) } else { finding.look(look) }.from_host(&host.name))
    })
    .collect()
}
