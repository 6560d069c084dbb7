//! Are files that must be the same on all hosts the same?

use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static SLURM: Code = Code {
    name: "HC-SLURM-02",
    severity: Severity::Error,
    what: "slurm.conf differs between hosts",
    means: "nodes register with other hardware than the controller expects, or drop messages",
    seen: "`sha256sum /etc/slurm/slurm.conf`",
    mend: "copy the file of the other hosts; scontrol reconfigure",
};
static MUNGE: Code = Code {
    name: "HC-SLURM-03",
    severity: Severity::Error,
    what: "the munge key differs between hosts",
    means: "Slurm refuses every message from there: \"Invalid credential\"",
    seen: "`sha256sum /etc/munge/munge.key`",
    mend: "copy the key of the other hosts, and restart munge",
};
static SWITCH: Code = Code {
    name: "HC-USER-08",
    severity: Severity::Warning,
    what: "nsswitch.conf differs between hosts",
    means: "users, groups and host names come from other sources there",
    seen: "`sha256sum /etc/nsswitch.conf`",
    mend: "copy the file of the other hosts",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "same_files",
    // 16 digits distinguish two files, and reveal nothing of a key. The package of munge makes a different key on
    // each host: where munge is not used, that is no fault.
    script: r#"k=/etc/munge/munge.key; [ -e /etc/slurm/slurm.conf ] || pidof munged >/dev/null || k=
sha256sum /etc/slurm/slurm.conf $k /etc/nsswitch.conf | awk '{print $2 "\t" substr($1, 1, 16)}'"#,
    waits: false,
    slow: false,
    root: Some("the munge key"),
    codes: &[&SLURM, &MUNGE, &SWITCH],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let files = [("/etc/slurm/slurm.conf", &SLURM), ("/etc/munge/munge.key", &MUNGE), ("/etc/nsswitch.conf", &SWITCH)];
    files.into_iter().flat_map(|(file, code)| of_file(answers, file, code)).collect()
}

fn of_file(answers: &Answers, file: &str, code: &'static Code) -> Vec<HostFinding> {
    let Some(split) = split(answers.value(CHECK.key, file)) else { return Vec::new() };
    let (source, like) = (split.like[0], split.most_of());
    let finding = |(host, own): (&HostAnswers, &str)| {
        let found = code.on(host, format!("{file} differs from that of {like}"), format!("sha256sum {file}: {own}..."));
        // The transfer may be cut short, or the file may have changed: only a file with the known hash replaces the
        // old one.
        let line = format!(
            "t=$(mktemp) && cat > \"$t\" && sha256sum \"$t\" | grep -q ^{} && cat \"$t\" > {}; r=$?; rm -f \"$t\"; exit $r",
            word(split.most),
            word(file)
        );
        found.mend(line).fed_by(&source.name, file)
    };
    split.others.into_iter().map(finding).collect()
}
