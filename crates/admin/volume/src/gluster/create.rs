//! Plans a new volume: from hosts with a disk to a volume that is mounted everywhere.

use super::xml::{Brick, GlusterVolume};
use super::{UNIT, gluster, missing, mount_line, speaker, volume};
use super::{layout, options};
use crate::mount;
use crate::observe::{Observed, Store, StoreContent};
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::Spec;
use crate::step::{CommandStep, Then, VolumePlan, script, words};
use std::path::Path;

/// Options that were measured, each with its reason.
const OPTIONS: &[(&str, &str)] = &[
    ("features.cache-invalidation", "on"),
    ("features.cache-invalidation-timeout", "600"),
    ("performance.cache-invalidation", "on"),
    ("performance.md-cache-timeout", "600"),
    ("performance.quick-read-cache-invalidation", "on"),
    ("cluster.lookup-optimize", "off"),
    LINKS[0],
    LINKS[1],
];

/// Options that let a file have as many names as the file systems of the bricks allow. A brick keeps an attribute for
/// each name (gfid2path), and ext4 has room for 46 of them. GlusterFS also has a limit of its own, 100 names. Beyond
/// either it returns ENOSPC, but the new name can exist all the same if several clients make links at once. git's
/// build, which then makes a symbolic link, failed in 3 of 10 rounds. Measured: 47 names with neither option, 151 of
/// 151 with both.
pub const LINKS: [(&str, &str); 2] = [("storage.max-hardlinks", "0"), ("storage.gfid2path", "off")];

/// Seconds after which clients and bricks give up a host that vanished; bricks then release its locks. An unlink may
/// wait on a brick for the lock of a client that is given up meanwhile. It is never answered (up to GlusterFS 11.1:
/// `pl_inodelk_client_cleanup` wakes no waiter), and blocks its folder for `network.frame-timeout`, 1,800 s. By
/// default bricks give up only 38 to 42 s after the cut. A client that goes on after its own 10 s would run into
/// that.
pub const VANISHED: [(&str, &str); 5] = [
    ("network.ping-timeout", "10"),
    ("server.tcp-user-timeout", "10"),
    ("server.keepalive-time", "5"),
    ("server.keepalive-interval", "1"),
    ("server.keepalive-count", "5"),
];

/// Options that GlusterFS itself sets on each new volume.
const AT_BIRTH: [(&str, &str); 5] = [
    ("nfs.disable", "on"),
    ("transport.address-family", "inet"),
    ("storage.fips-mode-rchecksum", "on"),
    ("performance.client-io-threads", "off"),
    ("cluster.granular-entry-heal", "on"),
];

/// Whether homing, or GlusterFS itself, gives an option this value on each volume.
pub fn recommended(name: &str, value: &str) -> bool {
    OPTIONS.iter().chain(&VANISHED).chain(&AT_BIRTH).any(|(key, own)| *key == name && options::is_same(own, value))
}

const NOTES: &[&str] = &[
    "cache invalidation is on: without it another host reads old content for up to a second, even after open(); \
     with it, none of 128 trials was stale",
    "cluster.lookup-optimize is off: with it on, other hosts did not see new files for a second after a host was drained",
    "storage.max-hardlinks is 0 and storage.gfid2path off. By default a file may have 46 names on ext4 and 100 elsewhere; \
     a link beyond that can fail although it is made, and some builds of git failed",
    "network.ping-timeout is 10 s (default 42 s): all clients wait that long for a host that vanished",
    "server.tcp-user-timeout and server.keepalive-* make bricks free the locks of a vanished client after 10 s (default \
     38 to 42 s). Before that, a process that removes its file can hang for half an hour",
];

const PROBE_PEERS: &str = r#"
    for p; do gluster --mode=script peer probe "$p" || exit; done
"#;
pub(super) const DETACH_PEERS: &str = r#"
    for p; do gluster --mode=script peer detach "$p" >/dev/null 2>&1; done; true
"#;
/// A volume can be made once every peer is accepted, about a second after the probes.
const AWAIT_PEERS: &str = r#"
    i=0
    while [ $i -lt 300 ]; do
    [ "$(gluster --mode=script peer status | grep -c 'Peer in Cluster (Connected)')" -ge "$1" ] && exit 0
    i=$((i+1)); sleep 0.2; done
    gluster --mode=script peer status >&2; exit 1
"#;
const MAKE_BRICKS: &str = r#"
    mkdir -p -- "$@"
"#;
/// Its arguments are only folders that the step itself made: bricks, then `--`, then the folders above them.
const UNMAKE_BRICKS: &str = r#"
    while [ $# -gt 0 ] && [ "$1" != -- ]; do [ ! -d "$1" ] || rm -rf --one-file-system -- "$1" || exit; shift; done
    [ $# -eq 0 ] || shift
    for d; do rmdir -- "$d" 2>/dev/null; done; true
"#;

/// Plans the steps until the volume is mounted on all clients.
pub fn create(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    if let Some(there) = volume(spec, seen) {
        return existing(spec, seen, there, allowed);
    }
    let bricks = layout::bricks(spec);
    let mut refusals = missing(spec, seen);
    refusals.extend(brick_refusals(spec, seen, &bricks));
    refusals.extend(mount::refusals(spec, seen));
    refusals.extend(options::shut_out(spec, seen, &spec.options));
    if spec.stripe.is_some() {
        refusals.extend(super::stripe::refusals(spec, seen, spec.copies as usize));
    }
    lifted(refusals, allowed)?;
    let mut plan = VolumePlan::default();
    let known = start_daemons(&mut plan, seen, &spec.servers());
    if known {
        plan.then = Then::Again;
        return Ok(plan);
    }
    join(&mut plan, spec, seen, &spec.servers());
    make_folders(&mut plan, seen, &bricks);
    define(&mut plan, spec, &bricks, allowed);
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
    plan.notes = NOTES.iter().map(|n| n.to_string()).chain(options::notes(&spec.options)).collect();
    if spec.copies == 2 && !spec.arbiter && spec.servers().len() > 2 {
        plan.notes.push(
            "two copies without --arbiter: if hosts lose their connection, both copies may be written, and heal must choose one"
                .into(),
        );
    }
    Ok(plan)
}

/// Completes an existing volume if it is the same one, and refuses another.
fn existing(
    spec: &Spec,
    seen: &Observed,
    there: &GlusterVolume,
    allowed: &[Danger],
) -> Result<VolumePlan, Vec<Refusal>> {
    let wanted: Vec<String> = layout::bricks(spec).iter().map(Brick::word).collect();
    let has: Vec<String> = there.bricks.iter().map(Brick::word).collect();
    if wanted != has || there.copies() != spec.copies as usize {
        return Err(vec![Refusal::never(format!(
            "a volume {} exists already, with {} copies on {}: change it with add-host, drain-host and set-copies",
            spec.name,
            there.copies(),
            has.join(" ")
        ))]);
    }
    let refusals = mount::refusals(spec, seen).into_iter().chain(options::shut_out(spec, seen, &spec.options));
    lifted(refusals.collect(), allowed)?;
    let mut plan = VolumePlan::default();
    start_daemons(&mut plan, seen, &spec.servers());
    let speaker = speaker(spec, seen).map(|(h, _)| h).unwrap_or_default();
    set_options(&mut plan, spec, &speaker, Some(there));
    start(&mut plan, spec, &speaker, there.started);
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
    plan.notes = options::notes(&spec.options);
    Ok(plan)
}

/// Returns the objections to these bricks.
pub(super) fn brick_refusals(spec: &Spec, seen: &Observed, bricks: &[Brick]) -> Vec<Refusal> {
    let set_size = spec.copies as usize + usize::from(spec.arbiter);
    let mut refusals: Vec<Refusal> = layout::doubled(bricks, set_size)
        .into_iter()
        .map(|set| Refusal::danger(Danger::CopiesOnOneHost, format!("two copies would be on one host: {set}")))
        .collect();
    for brick in bricks {
        let Some(store) = seen.store(&brick.host, &brick.path) else { continue };
        if store.on_system_disk {
            refusals.push(Refusal::danger(
                Danger::SystemDisk,
                format!("{} is on the system disk, and a full volume would stop that host", brick.word()),
            ));
        }
        if !matches!(store.content, StoreContent::Absent | StoreContent::Empty) {
            refusals.push(Refusal::danger(
                Danger::StoreInUse,
                format!("{} is not empty; it may belong to another volume", brick.word()),
            ));
        }
    }
    refusals
}

/// Starts and enables the daemons of these hosts. Returns whether one that has to be started may know the volume.
pub(super) fn start_daemons(plan: &mut VolumePlan, seen: &Observed, hosts: &[String]) -> bool {
    let idle: Vec<&String> = hosts.iter().filter(|host| !seen.runs(host, UNIT)).collect();
    plan.made.daemons.extend(idle.iter().map(|host| host.to_string()));
    plan.phase("start the daemons", idle.iter().map(|host| mount::start_unit(host, UNIT)).collect());
    idle.iter().any(|host| seen.host(host).is_some_and(|facts| facts.glusterd_knows))
}

/// Makes `hosts` peers; the first host runs the commands.
pub(super) fn join(plan: &mut VolumePlan, spec: &Spec, seen: &Observed, hosts: &[String]) {
    let speaker = speaker(spec, seen).map(|(h, _)| h).or(hosts.first().cloned()).unwrap_or_default();
    let known = |h: &String| seen.host(&speaker).and_then(|f| f.gluster.as_ref()).is_some_and(|c| c.knows(h));
    let new: Vec<&str> = hosts.iter().filter(|h| **h != speaker && !known(h)).map(String::as_str).collect();
    if new.is_empty() {
        return;
    }
    let probe = CommandStep::new(&speaker, script(PROBE_PEERS, &new), format!("make peers of {}", new.join(", ")));
    plan.phase("join the hosts", vec![probe.undo(script(DETACH_PEERS, &new))]);
    plan.made.peers.extend(new.iter().map(|host| host.to_string()));
    let peers = seen.host(&speaker).and_then(|f| f.gluster.as_ref()).map_or(0, |c| c.peers.len());
    let count = (peers + new.len()).to_string();
    let mut all: Vec<String> = hosts.to_vec();
    all.extend(spec.servers());
    all.sort();
    all.dedup();
    let wait = |h: &String| CommandStep::new(h, script(AWAIT_PEERS, &[&count]), "wait until all peers are connected");
    plan.phase("wait for the peers", all.iter().map(wait).collect());
}

/// Makes the bricks' folders; its undo removes only these.
pub(super) fn make_folders(plan: &mut VolumePlan, seen: &Observed, bricks: &[Brick]) {
    let mut hosts: Vec<&str> = bricks.iter().map(|b| b.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut steps = Vec::new();
    for host in hosts {
        let absent =
            |b: &&Brick| b.host == host && seen.store(host, &b.path).is_none_or(|s| s.content == StoreContent::Absent);
        let paths: Vec<&str> = bricks.iter().filter(absent).map(|b| b.path.as_str()).collect();
        if paths.is_empty() {
            continue;
        }
        let above = paths.iter().flat_map(|path| folders_above(seen.store(host, path)));
        plan.made.folders.extend(above.map(|folder| (host.to_string(), folder)));
        let unmake = [paths.clone(), vec!["--"], plan.made.folders_on(host)].concat();
        let make = CommandStep::new(host, script(MAKE_BRICKS, &paths), format!("make {}", paths.join(" ")));
        steps.push(make.undo(script(UNMAKE_BRICKS, &unmake)));
    }
    plan.phase("make the bricks' folders", steps);
}

/// Returns the folders above an absent store that have to be made for it.
fn folders_above(store: Option<&Store>) -> Vec<String> {
    let Some((store, nearest)) = store.and_then(|store| Some((store, store.nearest.as_deref()?))) else {
        return Vec::new();
    };
    let above = Path::new(&store.path).ancestors().skip(1).take_while(|folder| *folder != Path::new(nearest));
    above.filter(|folder| folder.starts_with(nearest)).map(|folder| folder.display().to_string()).collect()
}

fn define(plan: &mut VolumePlan, spec: &Spec, bricks: &[Brick], allowed: &[Danger]) {
    let speaker = spec.servers().first().cloned().unwrap_or_default();
    let copies = spec.copies.to_string();
    let mut argv = gluster(&["volume", "create", &spec.name]);
    if spec.copies > 1 && !spec.arbiter {
        argv.extend(words(&["replica", &copies]));
    } else if spec.arbiter {
        argv.extend(words(&["replica", "3", "arbiter", "1"]));
    }
    argv.extend(bricks.iter().map(Brick::word));
    if allowed.iter().any(|d| matches!(d, Danger::SystemDisk | Danger::CopiesOnOneHost | Danger::StoreInUse)) {
        argv.push("force".into());
    }
    let step = CommandStep::new(&speaker, argv, format!("define the volume {}", spec.name));
    let gone =
        r#"gluster --mode=script volume info "$1" >/dev/null 2>&1 || exit 0; gluster --mode=script volume delete "$1""#;
    plan.phase("define the volume", vec![step.undo(script(gone, &[&spec.name]))]);
    set_options(plan, spec, &speaker, None);
    start(plan, spec, &speaker, false);
}

fn set_options(plan: &mut VolumePlan, spec: &Spec, speaker: &str, there: Option<&GlusterVolume>) {
    let size = spec.stripe.map(|s| s.to_string());
    let mut wanted: Vec<(&str, &str)> = OPTIONS.iter().chain(&VANISHED).copied().collect();
    if let Some(size) = &size {
        wanted.extend([("features.shard", "on"), ("features.shard-block-size", size)]);
    }
    // An option that the user has set already stays.
    wanted.retain(|(key, _)| there.is_none_or(|v| !v.options.contains_key(*key)) && !spec.options.contains_key(*key));
    set(plan, spec, speaker, &wanted, "set the recommended options".into());
    // A step of their own: GlusterFS refuses all options of a command for one, and names it.
    let own = options::lacking(&spec.options, there);
    set(plan, spec, speaker, &own, format!("set {}", options::listed(&own)));
}

fn set(plan: &mut VolumePlan, spec: &Spec, speaker: &str, wanted: &[(&str, &str)], why: String) {
    if wanted.is_empty() {
        return;
    }
    let mut argv = gluster(&["volume", "set", &spec.name]);
    argv.extend(wanted.iter().flat_map(|(k, v)| [k.to_string(), v.to_string()]));
    plan.phase("set the options", vec![CommandStep::new(speaker, argv, why)]);
}

fn start(plan: &mut VolumePlan, spec: &Spec, speaker: &str, started: bool) {
    if started {
        return;
    }
    let step =
        CommandStep::new(speaker, gluster(&["volume", "start", &spec.name]), format!("start the volume {}", spec.name));
    let stop = r#"gluster --mode=script volume info "$1" >/dev/null 2>&1 || exit 0
        gluster --mode=script volume stop "$1" force || gluster volume info "$1" | grep -q '^Status: \(Created\|Stopped\)'"#;
    plan.phase("start the volume", vec![step.undo(script(stop, &[&spec.name]))]);
}
