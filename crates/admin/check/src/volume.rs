//! Converts the findings of `homing volume status` to findings of a check.

use crate::finding::{folded, word};
use crate::{Code, HostFinding, Severity};
use homing_model::NodeSet;
use homing_volume::observe::StrayPool;
use homing_volume::{HostFaultKind, Observed, Spec, foreign_mount_look, health, host_faults};

static ILL: Code = Code {
    name: "HC-VOL-01",
    severity: Severity::Error,
    what: "a volume lacks bricks, chunks or copies",
    means: "files cannot be read, or the next fault destroys them",
    seen: "`homing volume status NAME`",
    mend: "homing volume heal NAME",
};
static ADVICE: Code = Code {
    name: "HC-VOL-02",
    severity: Severity::Warning,
    what: "a volume has a setting that is known to cause errors",
    means: "the finding describes it",
    seen: "`homing volume status NAME`",
    mend: "the command that the finding names",
};
static HOST: Code = Code {
    name: "HC-VOL-03",
    severity: Severity::Error,
    what: "a host of a volume does not serve or mount it",
    means: "files are missing on that host, or copies are not made",
    seen: "`homing volume status NAME`",
    mend: "homing volume mount NAME; start its daemon with systemctl start",
};

static OVERDUE: Code = Code {
    name: "HC-VOL-04",
    severity: Severity::Error,
    what: "the last good image of a folder is older than its window, or there is none",
    means: "if the folder is lost, newer files are lost with it",
    seen: "`homing snapshot list NAME`",
    mend: "homing snapshot NAME",
};

static FILLING: Code = Code {
    name: "HC-VOL-07",
    severity: Severity::Warning,
    what: "a bank has room for fewer than four new images of each of its vaults",
    means: "homing may not be able to make the next images",
    seen: "`homing snapshot list NAME`",
    mend: "set a shorter `expire` in [snapshot.NAME] for the next images, or use a larger disk",
};

static DIFFERS: Code = Code {
    name: "HC-VOL-08",
    severity: Severity::Warning,
    what: "an option or the export of a volume differs from its record",
    means: "the file system does not behave as it was set up, or lets in other machines",
    seen: "`gluster volume get NAME all`; `exportfs -v` on the server",
    mend: "homing volume set-option NAME KEY=VALUE; homing volume mount NAME exports it again",
};

/// All codes of volumes, and of the images of folders.
pub(crate) static CODES: &[&Code] = &[&ILL, &HOST, &OVERDUE, &ADVICE, &FILLING, &DIFFERS];

/// Returns the names of the codes that a look at volumes finds.
pub fn codes_of_volumes() -> impl Iterator<Item = &'static str> {
    [&ILL, &HOST, &ADVICE, &DIFFERS].into_iter().map(|code| code.name)
}

/// Returns the names of the codes that a look at the images of folders finds.
pub fn codes_of_vaults() -> impl Iterator<Item = &'static str> {
    [&OVERDUE, &FILLING].into_iter().map(|code| code.name)
}

/// Returns the finding of a vault on `host` whose last good image is too old, with a text about its age.
pub fn of_vault(name: &str, host: &str, what: &str) -> HostFinding {
    let finding = OVERDUE.at(host, format!("snapshot {name}: {what}"), format!("homing snapshot list {name}"));
    finding.here(&format!("homing snapshot {}", word(name)))
}

/// Returns the finding of a bank on `host` that fills up, with a text about its space; `vault` is one of its vaults.
pub fn of_bank(host: &str, vault: &str, what: &str) -> HostFinding {
    FILLING
        .at(host, what, format!("homing snapshot list {vault}"))
        .look_here(&format!("homing snapshot list {}", word(vault)))
}

/// Returns a finding of a volume. Its remedy is a command for the hosts with the fault, or one of homing itself. A
/// fault of the volume as a whole is that of `speaker`, a host that serves it.
fn of_health(name: &str, speaker: &str, found: &health::VolumeFinding) -> HostFinding {
    let code = match found {
        found if found.ill => &ILL,
        found if found.differs => &DIFFERS,
        _ => &ADVICE,
    };
    let finding = code.at(speaker, format!("volume {name}: {}", found.what), format!("homing volume status {name}"));
    let hosts = found.host.as_deref().and_then(|set| NodeSet::parse(set).ok());
    let finding = HostFinding { hosts: hosts.unwrap_or(finding.hosts), ..finding };
    match (found.remedy.starts_with("homing "), found.mends) {
        (true, true) => finding.here(&found.remedy),
        (true, false) => finding.look_here(&found.remedy),
        (false, true) => finding.mend(&found.remedy),
        (false, false) => finding.look(&found.remedy),
    }
}

/// Returns all findings of a volume on these of its hosts; `whole`: the faults of the volume as a whole.
pub fn found(spec: &Spec, hosts: &[String], seen: &Observed, whole: &[health::VolumeFinding]) -> Vec<HostFinding> {
    // A daemon that is down is the cause of bricks that are down, and comes first.
    let queried = hosts.iter().filter(|host| seen.hosts.contains_key(*host));
    let mut found: Vec<HostFinding> = queried
        .flat_map(|host| host_faults(spec, seen, host).into_iter().map(move |kind| (host, kind)))
        .flat_map(|(host, kind)| of_host(spec, host, &kind))
        .collect();
    let speaker = hosts.first().into_iter();
    found.extend(speaker.flat_map(|speaker| whole.iter().map(move |of| of_health(&spec.name, speaker, of))));
    folded(found)
}

/// Returns the findings of a host that does not do its part; one for each unit that does not run.
fn of_host(spec: &Spec, host: &str, kind: &HostFaultKind) -> Vec<HostFinding> {
    let name = word(&spec.name);
    let finding = |lack: &str| {
        HOST.at(host, format!("volume {}: {lack}", spec.name), format!("homing volume status {}", spec.name))
    };
    let one = match kind {
        HostFaultKind::Stopped(units) => {
            let of =
                |unit: &&str| finding(&format!("{unit} does not run")).mend(format!("systemctl start {}", word(unit)));
            return units.iter().map(of).collect();
        }
        // The host has answered the other checks: a mount whose server is down can make this one hang.
        HostFaultKind::Unknown(why) => {
            finding(&format!("its part of it is unknown: {why}")).look_here(&format!("homing volume status {name}"))
        }
        HostFaultKind::StrayPool(text) => finding(text).mend(StrayPool::CLEANING),
        HostFaultKind::OtherMount(other) => {
            let lack = format!("{other} is mounted at {}, and not the volume", spec.mount);
            finding(&lack).look(foreign_mount_look(&spec.mount))
        }
        HostFaultKind::Unmounted => {
            finding(&format!("{} is not mounted", spec.mount)).here(&format!("homing volume mount {name}"))
        }
    };
    vec![one]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, mount: &str) -> Spec {
        serde_json::from_value(serde_json::json!({
            "name": name, "kind": "moosefs", "places": [], "copies": 2, "mount": mount, "clients": ["n1"], "master": "n1",
        }))
        .unwrap()
    }

    /// A mount whose server is down makes the query of a volume hang on a host that has answered the other checks.
    #[test]
    fn a_host_whose_part_is_unknown_is_not_well() {
        let spec = spec("m", "/m");
        let hosts = [("n1".to_string(), Err("no answer within 20 s".to_string()))];
        let found = found(&spec, &["n1".into()], &Observed { hosts: hosts.into() }, &[]);
        assert_eq!((found.len(), found[0].code.name), (1, "HC-VOL-03"));
        assert!(found[0].what.ends_with("its part of it is unknown: no answer within 20 s"), "{}", found[0].what);
        assert_eq!(found[0].command(""), Some("homing volume status m".into()));
    }

    #[test]
    fn what_a_volume_lacks_is_told_with_its_remedy() {
        let ill = |remedy: &str| health::VolumeFinding {
            what: "brick n2:/b is down".into(),
            remedy: remedy.into(),
            ill: true,
            host: None,
            mends: true,
            differs: false,
        };
        let found = of_health("data", "n1", &ill("homing volume heal data"));
        assert_eq!((found.code.name, found.command("")), ("HC-VOL-01", Some("homing volume heal data".into())));
        let of_brick =
            |mends| health::VolumeFinding { host: Some("n2".into()), mends, ..ill("systemctl start glusterd") };
        let found = of_health("data", "n1", &of_brick(true));
        assert_eq!(found.hosts.to_string(), "n2", "the host of the brick, and not the one that was queried");
        assert_eq!(found.command(""), Some("homing exec -w n2 'systemctl start glusterd'".into()));
        assert!(!of_health("data", "n1", &of_brick(false)).remedy.unwrap().mends);
        let of_all = health::VolumeFinding { host: Some("n[1-2]".into()), ..of_brick(true) };
        let in_file = of_health("data", "n1", &of_all).command("--cluster c.toml ");
        assert_eq!(in_file.as_deref(), Some("homing exec --cluster c.toml -w 'n[1-2]' 'systemctl start glusterd'"));
        let found = of_health("data", "n1", &health::VolumeFinding { ill: false, ..ill("gluster volume start data") });
        assert_eq!(found.code.name, "HC-VOL-02");
        assert_eq!(found.command(""), Some("homing exec -w n1 'gluster volume start data'".into()));
        let differs = health::VolumeFinding { ill: false, differs: true, ..ill("homing volume set-option data a.b=1") };
        let found = of_health("data", "n1", &differs);
        assert_eq!((found.code.name, found.code.severity), ("HC-VOL-08", Severity::Warning));
        assert_eq!(found.command(""), Some("homing volume set-option data a.b=1".into()));
        let spec = spec("data", "/data");
        let of = |host: &str, kind| of_host(&spec, host, &kind).remove(0);
        let found = of("n2", HostFaultKind::Stopped(vec!["glusterd"]));
        assert_eq!(
            (found.code.name, found.command("")),
            ("HC-VOL-03", Some("homing exec -w n2 'systemctl start glusterd'".into()))
        );
        let equal = ["n1", "n2", "n4"].map(|host| of(host, HostFaultKind::Stopped(vec!["glusterd"])));
        let equal = folded(equal.to_vec());
        assert_eq!(equal.len(), 1, "one finding for equal hosts");
        assert_eq!(equal[0].command(""), Some("homing exec -w 'n[1-2,4]' 'systemctl start glusterd'".into()));
        let foreign = of("n2", HostFaultKind::OtherMount("/dev/sdb1".into()));
        assert!(foreign.what.contains("/dev/sdb1 is mounted at /data") && !foreign.remedy.unwrap().mends);
        let found = of("n2", HostFaultKind::Unmounted);
        assert_eq!(found.command(""), Some("homing volume mount data".into()));
        let of_lab = found.command("--lab newb -l root ");
        assert_eq!(of_lab.as_deref(), Some("homing volume mount data --lab newb"), "the cluster that was checked");
        assert_eq!(found.command("-l root "), found.command(""));
        let found = of_vault("home", "b1", "there is no good image");
        assert_eq!((found.code.name, found.command("")), ("HC-VOL-04", Some("homing snapshot home".into())));
        let found = of_bank("b1", "home", "the bank /bank has 1 GB free");
        assert_eq!((found.code.name, found.command("")), ("HC-VOL-07", Some("homing snapshot list home".into())));
    }
}
