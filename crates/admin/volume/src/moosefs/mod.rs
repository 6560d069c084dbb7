//! MooseFS 3: plans for volumes with one master, a chunkserver on each host, and a goal for each file.

mod change;
pub(crate) mod chunks;
pub mod goals;
#[cfg(test)]
mod tests;

pub use change::{drain_host, heal, nowhere_mounted, rebalance, set_copies};

use crate::mount::{self, FstabLine};
use crate::observe::{HostFacts, Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted, of_silent};
use crate::spec::{Spec, StorageFolder};
use crate::step::{CommandStep, VolumePlan, script, words};

const MASTER: &str = "moosefs-master";
const CHUNKSERVER: &str = "moosefs-chunkserver";

/// `systemctl enable` fails as a whole if it cannot link a SysV script; only the wants link matters.
const START: &str = r#"systemctl start "$unit" || exit
    systemctl is-enabled --quiet "$unit" || systemctl add-wants --quiet multi-user.target "$unit" || true"#;

/// mfsexports.cfg takes addresses, not names: a comment above each has the name. Earlier clients stay.
const EXPORTS: &str = r##"
    { [ -n "$fresh" ] || cat /etc/mfs/mfsexports.cfg 2>/dev/null
    [ -z "$fresh" ] || echo '127.0.0.1 / rw,alldirs,admin,maproot=0:0'
    for c; do
    [ -n "$fresh" ] || ! grep -qsxF "# $c" /etc/mfs/mfsexports.cfg || continue
    ip=$(getent ahostsv4 "$c" | awk 'NR==1 {print $1}'); [ -n "$ip" ] || { echo "no address of $c" >&2; exit 1; }
    echo "# $c"; echo "$ip / rw,alldirs,admin,maproot=0:0"; done
    } > /etc/mfs/mfsexports.cfg.new && mv -f /etc/mfs/mfsexports.cfg.new /etc/mfs/mfsexports.cfg || exit"##;

const UNMAKE_MASTER: &str = r##"
    grep -qsxF "# homing volume $1" /etc/mfs/mfsmaster.cfg || exit 0
    systemctl disable --now --quiet moosefs-master 2>/dev/null; systemctl stop moosefs-master
    rm -f /etc/systemd/system/multi-user.target.wants/moosefs-master.service
    cd /var/lib/mfs && rm -f metadata.mfs metadata.mfs.back* changelog*.mfs stats.mfs .mfsmaster.lock
    rm -f /etc/mfs/mfsmaster.cfg /etc/mfs/mfsexports.cfg
"##;
/// Removes the chunks and the store, if the chunkserver's configuration belongs to this volume. That file is removed
/// last: an interrupted removal goes on. Files of others in the folder stay, and the folder with them.
const UNMAKE_STORE: &str = r##"
    name=$1 store=$2
    if grep -qsxF "# homing volume $name" /etc/mfs/mfschunkserver.cfg; then
    systemctl disable --now --quiet moosefs-chunkserver 2>/dev/null; systemctl stop moosefs-chunkserver
    rm -f /etc/systemd/system/multi-user.target.wants/moosefs-chunkserver.service
    for d in "$store"/[0-9A-F][0-9A-F]; do
    [ ! -d "$d" ] || [ -L "$d" ] || find "$d" -xdev -type f -name 'chunk_*.mfs*' -delete
    done
    rmdir -- "$store"/[0-9A-F][0-9A-F] 2>/dev/null
    rm -f -- "$store/.lock" "$store/.metaid" "$store/.chunkdb" "$store/.tmp_chunkdb"
    rm -f /etc/mfs/mfschunkserver.cfg /etc/mfs/mfshdd.cfg /var/lib/mfs/chunkserverid.mfs
    fi
    rmdir -- "$store" 2>/dev/null
    [ ! -d "$store" ] || echo "$store has files of other programs, and stays"
"##;

const NOTES: &[&str] = &[
    "each host reads from its own copy first, by its own label (mfspreflabels); without it MooseFS only breaks ties that way",
    "the volume has one master; a metalogger on another host would keep its changes (package moosefs-metalogger)",
];

/// Returns the fstab line of a client.
pub(crate) fn mount_line(spec: &Spec, host: &str) -> FstabLine {
    let mut options = String::from("defaults,_netdev");
    if let Some(label) = label(spec, host) {
        options += &format!(",mfspreflabels={label}");
    }
    FstabLine { source: format!("{}:", spec.master()), fstype: "moosefs", options }
}

/// Returns the letter of a host; there are 26.
fn label(spec: &Spec, host: &str) -> Option<char> {
    let at = spec.servers().iter().position(|h| h == host)?;
    (spec.servers().len() <= 26).then(|| (b'A' + at as u8) as char)
}

fn marked(facts: &HostFacts, file: &str, name: &str) -> bool {
    facts.texts.get(file).is_some_and(|t| t.lines().any(|l| l == format!("# homing volume {name}")))
}

fn foreign(facts: &HostFacts, file: &str, name: &str) -> bool {
    facts.texts.contains_key(file) && !marked(facts, file, name)
}

/// Plans the steps until the volume is mounted on all clients, with its goal.
pub fn create(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let mut plan = add_host(spec, seen, allowed)?;
    let mounted = spec.clients.iter().filter(|c| seen.is_mounted(c)).filter_map(|c| seen.host(c));
    // An earlier call may have ended between the mount and the goal. A storage class is a user's own choice.
    let as_wanted = mounted.filter_map(goals::told_of_root).any(|goal| is_fine(goal, spec));
    if let (false, Some(client)) = (as_wanted, spec.clients.first()) {
        let goal = spec.copies.to_string();
        let step = CommandStep::new(client, words(&["mfssetgoal", &goal, &spec.mount]), format!("set the goal {goal}"));
        plan.phase("set the goal", vec![step]);
        plan.notes = NOTES.iter().map(|n| n.to_string()).collect();
    }
    Ok(plan)
}

fn is_fine(goal: &str, spec: &Spec) -> bool {
    goal.parse().map_or(true, |goal: u32| goal == spec.copies)
}

/// Adds hosts; goals stay as they are.
pub fn add_host(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let mut refusals = missing(spec, seen);
    refusals.extend(spec.places.iter().flat_map(|p| store_refusals(spec, seen, p)));
    refusals.extend(mount::refusals(spec, seen));
    if spec.copies as usize > spec.servers().len() {
        let why = format!("a goal of {0} needs {0} hosts; the volume has {1}", spec.copies, spec.servers().len());
        refusals.push(Refusal::danger(Danger::LastCopy, why));
    }
    lifted(refusals, allowed)?;
    let mut plan = VolumePlan::default();
    start_master(&mut plan, spec, seen);
    let fresh = start_stores(&mut plan, spec, seen);
    if fresh > 0 {
        let count = spec.servers().len().to_string();
        let wait = r#"i=0; while [ $i -lt 150 ]; do
            [ "$(mfscli -H "$1" -SCS | grep -c 'maintenance_off')" -ge "$2" ] && exit 0
            i=$((i+1)); sleep 0.2; done; mfscli -H "$1" -SCS >&2; exit 1"#;
        let step = CommandStep::new(
            spec.master(),
            script(wait, &[spec.master(), &count]),
            "wait until all chunkservers are known",
        );
        plan.phase("wait for the chunkservers", vec![step]);
    }
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
    Ok(plan)
}

fn missing(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals = of_silent(seen, |_| true);
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let serves = spec.places.iter().any(|p| p.host == *host);
        let needs = [
            (spec.master() == host, "mfsmaster", "mfsmaster.cfg", "moosefs-master"),
            (spec.master() == host, "mfscli", "", "moosefs-cli"),
            (serves, "mfschunkserver", "mfschunkserver.cfg", "moosefs-chunkserver"),
            (spec.clients.contains(host), "mfsmount", "", "moosefs-client"),
        ];
        for (_, program, config, package) in needs.into_iter().filter(|n| n.0) {
            if !facts.programs.contains(program) {
                refusals.push(Refusal::never(format!("{host} has no {program}: install the package {package} there")));
            }
            if foreign(facts, config, &spec.name) {
                refusals.push(Refusal::never(format!("{host} has another MooseFS already (/etc/mfs/{config})")));
            }
        }
    }
    refusals
}

fn store_refusals(spec: &Spec, seen: &Observed, place: &StorageFolder) -> Vec<Refusal> {
    let path = spec.store(place);
    let Some(store) = seen.store(&place.host, &path) else { return Vec::new() };
    let ours = seen.host(&place.host).is_some_and(|f| marked(f, "mfschunkserver.cfg", &spec.name));
    let mut refusals = Vec::new();
    if store.on_system_disk && !ours {
        let why = format!("{}:{path} is on the system disk, and a full volume would stop that host", place.host);
        refusals.push(Refusal::danger(Danger::SystemDisk, why));
    }
    if !matches!(store.content, StoreContent::Absent | StoreContent::Empty) && !ours {
        let why = format!("{}:{path} is not empty, and its files may belong to another program", place.host);
        refusals.push(Refusal::danger(Danger::StoreInUse, why));
    }
    refusals
}

fn start_master(plan: &mut VolumePlan, spec: &Spec, seen: &Observed) {
    let master = spec.master();
    let facts = seen.host(master);
    let ours = facts.is_some_and(|f| marked(f, "mfsmaster.cfg", &spec.name));
    if ours && seen.runs(master, MASTER) {
        return let_in(plan, spec, seen);
    }
    let text = format!(
        r##"name=$1 fresh=$2; shift 2; unit={MASTER}; mkdir -p /etc/mfs
        printf '# homing volume %s\nCHUNKS_LOOP_MIN_TIME = 60\nREPLICATIONS_DELAY_INIT = 10\n' "$name" > /etc/mfs/mfsmaster.cfg
        {EXPORTS}
        cd /var/lib/mfs || exit
        [ -e metadata.mfs ] || [ -e metadata.mfs.back ] || {{ cp metadata.mfs.empty metadata.mfs && chown mfs:mfs metadata.mfs; }} || exit
        {START}
        systemctl reload "$unit" 2>/dev/null || true"##
    );
    let mut args = vec![spec.name.as_str(), if ours { "" } else { "fresh" }];
    args.extend(spec.clients.iter().map(String::as_str));
    let mut step = CommandStep::new(master, script(&text, &args), "start the master");
    if !ours {
        step = step.undo(script(UNMAKE_MASTER, &[&spec.name]));
    }
    plan.phase("start the master", vec![step]);
}

/// Adds the new clients to the master's exports.
pub(crate) fn let_in(plan: &mut VolumePlan, spec: &Spec, seen: &Observed) {
    let exports = seen.host(spec.master()).and_then(|f| f.texts.get("mfsexports.cfg"));
    let known = |c: &&str| exports.is_some_and(|t| t.lines().any(|l| l == format!("# {c}")));
    let new: Vec<&str> = spec.clients.iter().map(String::as_str).filter(|c| !known(c)).collect();
    if new.is_empty() {
        return;
    }
    let text = format!("fresh=\n{EXPORTS}\nsystemctl reload {MASTER}");
    let step = CommandStep::new(spec.master(), script(&text, &new), format!("grant access to {}", new.join(", ")));
    plan.phase("grant the clients access", vec![step]);
}

/// Plans the start of chunkservers, and returns their number.
fn start_stores(plan: &mut VolumePlan, spec: &Spec, seen: &Observed) -> usize {
    let text = format!(
        r#"name=$1 master=$2 label=$3 store=$4 leave=$5 unit={CHUNKSERVER}
        mkdir -p /etc/mfs "$store" && chown mfs:mfs -- "$store" || exit
        {{ printf '# homing volume %s\nMASTER_HOST = %s\n' "$name" "$master"
        [ -z "$label" ] || echo "LABELS = $label"; }} > /etc/mfs/mfschunkserver.cfg
        echo "$store -$leave" > /etc/mfs/mfshdd.cfg
        {START}"#
    );
    let idle = |p: &&StorageFolder| {
        let ours = seen.host(&p.host).is_some_and(|f| marked(f, "mfschunkserver.cfg", &spec.name));
        !(ours && seen.runs(&p.host, CHUNKSERVER))
    };
    let steps = spec.places.iter().filter(idle).map(|p| {
        let store = spec.store(p);
        // MooseFS keeps 4 GiB free by default, which may be all of a small disk.
        let size = seen.store(&p.host, &store).map_or(0, |s| s.size);
        let leave = format!("{}MiB", (size / 20).clamp(64 << 20, 4 << 30) >> 20);
        let label = label(spec, &p.host).map(String::from).unwrap_or_default();
        let argv = script(&text, &[&spec.name, spec.master(), &label, &store, &leave]);
        let step = CommandStep::new(&p.host, argv, format!("start a chunkserver on {store}"));
        step.undo(script(UNMAKE_STORE, &[&spec.name, &store]))
    });
    let steps: Vec<CommandStep> = steps.collect();
    let count = steps.len();
    plan.phase("start the chunkservers", steps);
    count
}

/// Deletes the volume with its chunkservers and its master.
pub fn delete(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let mut refusals = of_silent(seen, |_| true);
    let holds = |p: &&StorageFolder| seen.store(&p.host, &spec.store(p)).is_some_and(|s| s.holds_chunks());
    let holding: Vec<&str> = spec.places.iter().filter(holds).map(|p| p.host.as_str()).collect();
    if !holding.is_empty() {
        let why = format!("the chunks of files on {} would be deleted", holding.join(", "));
        refusals.push(Refusal::danger(Danger::DeleteFiles, why));
    }
    lifted(refusals, allowed)?;
    let mut plan = crate::mount::unmount_for_good(spec, seen);
    let stores = spec.places.iter().filter(|p| {
        let there = seen.store(&p.host, &spec.store(p)).is_some_and(|s| s.content != StoreContent::Absent);
        there || seen.host(&p.host).is_some_and(|f| marked(f, "mfschunkserver.cfg", &spec.name))
    });
    let stop = |p: &StorageFolder| {
        let store = spec.store(p);
        CommandStep::new(
            &p.host,
            script(UNMAKE_STORE, &[&spec.name, &store]),
            format!("stop the chunkserver, remove {store}"),
        )
    };
    plan.phase("remove the chunkservers", stores.map(stop).collect());
    if seen.host(spec.master()).is_some_and(|f| marked(f, "mfsmaster.cfg", &spec.name)) {
        let step = CommandStep::new(
            spec.master(),
            script(UNMAKE_MASTER, &[&spec.name]),
            "stop the master, remove its metadata",
        );
        plan.phase("remove the master", vec![step]);
    }
    Ok(plan)
}
