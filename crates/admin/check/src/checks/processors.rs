//! Do hosts have the processors of others of their model, at the same speed?

use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeSet;

static FEWER: Code = Code {
    name: "HC-CPU-01",
    severity: Severity::Error,
    what: "a host has fewer or more processors than others of its model",
    means: "tasks take longer there; hyper-threading or a socket is switched off",
    seen: "/sys/devices/system/cpu/present",
    mend: "check the firmware settings: hyper-threading, sockets",
};
static OFFLINE: Code = Code {
    name: "HC-CPU-02",
    severity: Severity::Warning,
    what: "processors are switched off",
    means: "tasks take longer there",
    seen: "/sys/devices/system/cpu/online and present",
    mend: "write 1 into /sys/devices/system/cpu/cpuN/online",
};
static GOVERNOR: Code = Code {
    name: "HC-CPU-03",
    severity: Severity::Warning,
    what: "processors save power on some hosts and not on others",
    means: "tasks take longer there, and measurements cannot be compared",
    seen: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    mend: "write the same governor into each of these files",
};
static CLOCK_SOURCE: Code = Code {
    name: "HC-CPU-05",
    severity: Severity::Warning,
    what: "the kernel uses a different clock source than on others of its model",
    means: "reading the time takes up to a hundred times longer (hpet, acpi_pm), which slows databases and MPI",
    seen: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    mend: "find the reason in the kernel log (`dmesg | grep -i tsc`), then write the right source into that file",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "processors",
    script: r#"c=/sys/devices/system/cpu
printf 'model\t%s\n' "$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo)"
first product /sys/class/dmi/id/product_name
first present $c/present
first online $c/online
[ ! -e $c/cpu0/cpufreq/scaling_governor ] ||
  printf 'governor\t%s\n' "$(cat $c/cpu[0-9]*/cpufreq/scaling_governor | sort -u | tr '\n' ' ' | sed 's/ $//')"
first clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&FEWER, &OFFLINE, &GOVERNOR, &CLOCK_SOURCE],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let kinds: BTreeSet<String> = answers.hosts.iter().map(HostAnswers::kind).collect();
    let mut found: Vec<HostFinding> = kinds.iter().flat_map(|kind| of_twins(answers, kind)).collect();
    let present: Vec<_> = answers.value(CHECK.key, "present").collect();
    for (host, online) in answers.value(CHECK.key, "online") {
        if present.iter().any(|(h, all)| h.name == host.name && *all != online) {
            let line = "for f in /sys/devices/system/cpu/cpu[0-9]*/online; do echo 1 > $f; done";
            found.push(
                OFFLINE
                    .on(host, "processors are switched off", format!("/sys/devices/system/cpu/online: {online}"))
                    .mend(line),
            );
        }
    }
    found
}

fn of_twins(answers: &Answers, kind: &str) -> Vec<HostFinding> {
    let rows = [
        ("present", &FEWER, "the processors", "/sys/devices/system/cpu/present", None),
        (
            "governor",
            &GOVERNOR,
            "the governor",
            "scaling_governor",
            Some("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"),
        ),
        (
            "clocksource",
            &CLOCK_SOURCE,
            "the kernel's clock source",
            "current_clocksource",
            Some("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
    ];
    let of_row = |(name, code, noun, seen, file): (&str, &'static Code, &str, &str, Option<&str>)| {
        let split = split(answers.value(CHECK.key, name).filter(|(host, _)| host.kind() == kind))?;
        let (right, like) = (split.most, split.most_of());
        let finding = |(host, own): (&HostAnswers, &str)| {
            let found = code.on(host, format!("{noun}: {own}, but {right} on {like}"), format!("{seen}: {own}"));
            match file {
                Some(file) => found.mend(format!("for f in {file}; do echo {} > $f; done", word(right))),
                None => found.look("lscpu"),
            }
        };
        Some(split.others.into_iter().map(finding).collect::<Vec<_>>())
    };
    rows.into_iter().filter_map(of_row).flatten().collect()
}
