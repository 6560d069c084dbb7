//! Decides the state of a Slurm node, as its HealthCheckProgram. The module is pure.

use crate::{HostFinding, Severity};

/// The beginning of homing's reasons: homing resumes only its own drains.
pub const MARK: &str = "homing check: ";
/// The most characters of a reason.
const LONGEST: usize = 200;

/// Slurm's state of the node and the reason, from `sinfo -h -N -n NODE -o '%T|%E'`.
pub struct NodeState<'a> {
    /// Such as `idle`, `drained*`.
    pub state: &'a str,
    /// The reason; empty or `none` if there is none.
    pub reason: &'a str,
}

/// Returns the arguments of `scontrol update` after the node's name; `None`: the state stays as it is.
/// It does not touch a node that another user has drained, or one that is down.
/// `is_known`: every look ended; otherwise nothing shows that the node is well again.
pub fn decide(found: &[HostFinding], is_known: bool, node: &NodeState) -> Option<Vec<String>> {
    let worst = found.iter().find(|f| f.code.severity == Severity::Error);
    let out = ["drain", "down", "fail", "maint"].iter().any(|word| node.state.contains(word));
    match worst {
        Some(finding) if !out => {
            let reason: String =
                format!("{MARK}{} {}", finding.code.name, finding.what).chars().take(LONGEST).collect();
            Some(vec!["State=DRAIN".into(), format!("Reason={reason}")])
        }
        None if is_known && node.state.contains("drain") && node.reason.starts_with(MARK) => {
            Some(vec!["State=RESUME".into()])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;

    #[test]
    fn only_its_own_drain_is_taken_back() {
        let ill = [code("HC-DISK-01").unwrap().at("n1", "/ is full", "")];
        let advice = [code("HC-CLOCK-04").unwrap().at("n1", "", "")];
        let says = |found: &[HostFinding], state: &str, reason: &str| {
            decide(found, true, &NodeState { state, reason }).map(|words| words.join(" ")).unwrap_or_default()
        };
        let drained = NodeState { state: "drained", reason: "homing check: HC-DISK-01 / is full" };
        assert_eq!(decide(&[], false, &drained), None, "what is not known is not well");
        assert_eq!(says(&ill, "idle", "none"), "State=DRAIN Reason=homing check: HC-DISK-01 / is full");
        assert_eq!(says(&ill, "drained", "homing check: HC-DISK-01"), "");
        assert_eq!(says(&ill, "down*", "Not responding"), "");
        assert_eq!(says(&advice, "idle", ""), "");
        assert_eq!(says(&[], "drained", "homing check: HC-DISK-01 / is full"), "State=RESUME");
        assert_eq!(says(&[], "drained", "memory is replaced"), "");
        assert_eq!(says(&[], "idle", ""), "");
    }
}
