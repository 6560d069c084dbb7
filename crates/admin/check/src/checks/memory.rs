//! Is there as much memory as on the twins, and is it enough?

use crate::compare::split;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::units::bytes;
use std::collections::{BTreeSet, HashMap};

/// Twins of one maker differ by the memory that firmware and kernel reserve.
const SLACK_PERCENT: u64 = 2;
/// If more than this part of the memory is in swap, it includes pages that programs use.
const SWAPPED_PERCENT: u64 = 5;

static LESS: Code = Code {
    name: "HC-MEM-03",
    severity: Severity::Error,
    what: "a host has less memory than others of its model",
    means: "a module has failed or is loose; jobs that fit on other hosts are killed there",
    seen: "MemTotal in /proc/meminfo",
    mend: "`dmidecode -t memory` shows which slot is empty",
};
static SWAPS: Code = Code {
    name: "HC-MEM-04",
    severity: Severity::Warning,
    what: "a host swaps",
    means: "all programs on it are slower, at times a hundred times",
    seen: "SwapTotal and SwapFree in /proc/meminfo",
    mend: "end the programs that use the memory; `swapoff -a && swapon -a` then empties the swap",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "memory",
    script: r#"awk '/^(MemTotal|SwapTotal|SwapFree):/ {sub(":", "", $1); print $1 "\t" $2}' /proc/meminfo"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&LESS, &SWAPS],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let of = |name| -> Vec<(&HostAnswers, u64)> {
        answers
            .value(CHECK.key, name)
            .filter_map(|(h, kib)| Some((h, kib.parse::<u64>().ok()?.saturating_mul(1024))))
            .collect()
    };
    let by_name =
        |name| -> HashMap<&str, u64> { of(name).into_iter().map(|(host, b)| (host.name.as_str(), b)).collect() };
    let (total, swap, free) = (of("MemTotal"), by_name("SwapTotal"), by_name("SwapFree"));
    let mut found = less(&total);
    for (host, memory) in &total {
        let name = host.name.as_str();
        let (Some(swap), Some(free)) = (swap.get(name), free.get(name)) else { continue };
        let used = swap.saturating_sub(*free);
        if used > memory / 100 * SWAPPED_PERCENT {
            let finding = SWAPS.on(
                host,
                "it swaps",
                format!("/proc/meminfo: {} in swap, of {} of memory", bytes(used), bytes(*memory)),
            );
            found.push(finding.look("ps -eo rss,pid,user,comm --sort=-rss | head"));
        }
    }
    found
}

fn less(total: &[(&HostAnswers, u64)]) -> Vec<HostFinding> {
    let kinds: BTreeSet<String> = total.iter().map(|(host, _)| host.kind()).collect();
    let of_kind = |kind: &String| {
        let twins: Vec<(&HostAnswers, u64)> = total.iter().filter(|(host, _)| host.kind() == *kind).copied().collect();
        let best = twins.iter().map(|(_, m)| *m).max().unwrap_or(0);
        // Hosts within the slack of the best are alike; a host with less is reported if most are alike.
        let split = split(twins.iter().map(|(h, m)| (*h, best - m <= best / 100 * SLACK_PERCENT)))?;
        let tell = |(host, _): &(&HostAnswers, bool)| {
            let own = twins.iter().find(|(h, _)| h.name == host.name).map_or(0, |(_, m)| *m);
            let what = format!("it has {} of memory, others of its model have {}", bytes(own), bytes(best));
            LESS.on(host, what, "/proc/meminfo: MemTotal").look("dmidecode -t memory | grep -E 'Locator|Size'")
        };
        split.most.then(|| split.others.iter().map(tell).collect::<Vec<_>>())
    };
    kinds.iter().filter_map(of_kind).flatten().collect()
}
