//! Switches that announce themselves: an lldpd for each bridge of the lab, on the ports of that bridge alone.

use crate::cgroup;
use crate::disk::{detach, reap_in_background};
use crate::error::{Doing, Result};
use crate::plan::LabPlan;
use crate::program::command;
use crate::wires::Bridge;
use std::fs::{self, File};

/// Gives a switch a /run of its own, since two lldpd of one machine share neither socket nor folder. Words: the port
/// whose address is the identity of the switch, all ports, file of settings.
const SWITCH: &str = r#"mount -t tmpfs tmpfs /run && mkdir -p /run/lldpd && chown _lldpd /run/lldpd || exit
exec lldpd -d -C "$1" -I "$2" -m '!*' -O "$3""#;

/// Starts the switches, after the hosts: the address of a port is the identity of its switch. A port that appears
/// anew, with its host, is announced from then on.
pub(crate) fn start(plan: &LabPlan) -> Result<()> {
    plan.bridges().iter().try_for_each(|bridge| start_one(plan, bridge))
}

fn start_one(plan: &LabPlan, bridge: &Bridge) -> Result<()> {
    let file = |end: &str| plan.dir().join(format!("switch-{}.{end}", bridge.switch));
    let (settings, log) = (file("conf"), file("log"));
    fs::write(&settings, settings_text(bridge)).doing("writing", &settings)?;
    let out = File::create(&log).doing("making", &log)?;
    let err = out.try_clone().doing("opening", &log)?;
    let doors = cgroup::make(&format!("homing-lab/{}/switch-{}", plan.spec.name, bridge.switch), None)?;
    let mut lldpd = command("unshare");
    lldpd.args(["--mount", "sh", "-c", SWITCH, "sh", &bridge.ports[0], &bridge.ports.join(",")]).arg(&settings);
    lldpd.stdout(out).stderr(err);
    detach(&mut lldpd);
    cgroup::enter(&mut lldpd, doors);
    reap_in_background(lldpd.spawn().doing("starting the switch of", &settings)?);
    Ok(())
}

/// Returns the settings of a switch. Switches elsewhere announce themselves every 30 seconds, which is long in a lab.
fn settings_text(bridge: &Bridge) -> String {
    let name = &bridge.switch;
    format!(
        "configure system hostname {name}\nconfigure system description 'switch {name} of a lab'\n\
         configure lldp tx-interval 2\nconfigure lldp portidsubtype ifname\n"
    )
}
