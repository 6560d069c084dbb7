//! Shows the gain of placement on one machine. Four hosts with thin links hold a replicated volume; one batch runs
//! over it twice.

use crate::{GlusterSpec, LabPlan, LabSpec};
use homing_model::Failure;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The settings of the demonstration.
pub struct Demo {
    /// Name of the lab to raise.
    pub name: String,
    /// Number of input files.
    pub files: u32,
    /// Bytes of each.
    pub size: u64,
    /// Rate of each host's link, bits per second.
    pub link: u64,
    /// Tasks at a time on each host.
    pub jobs: u32,
    /// Whether the lab is taken down at the end.
    pub down: bool,
    /// The folder of the caller's journals.
    pub journals: PathBuf,
}

/// The folder of the runs' journals on n1. It is not below root's home, where a host of a lab could see the machine's
/// own runs.
const RUNS: &str = "/var/lib/homing-demo";

/// The cost of one run of the batch.
struct DemoCost {
    took: Duration,
    link_bytes: u64,
}

/// Runs the demonstration and returns the exit status of the batches. The callback receives a line for each step.
pub fn run(args: &Demo, report: &dyn Fn(&str)) -> Result<i32, Failure> {
    let name = &args.name;
    if crate::is_up(name) {
        let failure = Failure::usage(format!("the lab {name} is up, and may be in use"));
        return Err(failure.hint(format!("homing lab down --name {name}, or another --name")));
    }
    let plan = raise(args, report)?;
    let result = compare(args, &plan, report);
    if args.down {
        crate::down(name)?;
    } else {
        report(&format!("lab {name} stays up; `homing lab down --name {name}` ends it"));
    }
    result
}

fn raise(args: &Demo, tell: &dyn Fn(&str)) -> Result<LabPlan, Failure> {
    // Two copies of everything on four hosts, and room for the file system itself.
    let each = u64::from(args.files).saturating_mul(args.size) + (512 << 20);
    let spec = LabSpec {
        name: args.name.clone(),
        hosts: 4,
        link_bits_per_s: Some(args.link),
        disk_bytes: each.max(2 << 30),
        gluster: Some(GlusterSpec { replica: 2, sets: Some(2) }),
        ..LabSpec::default()
    };
    tell(&format!(
        "starting four hosts with links of {} Mbit/s and a GlusterFS volume of 2x2 bricks",
        args.link / 1_000_000
    ));
    Ok(crate::up_with(&spec, tell)?)
}

fn compare(args: &Demo, plan: &LabPlan, tell: &dyn Fn(&str)) -> Result<i32, Failure> {
    if plan.spec.gluster.is_none() {
        let hint = format!("homing lab down --name {}", plan.spec.name);
        return Err(Failure::usage(format!("lab {} has no GlusterFS volume", plan.spec.name)).hint(hint));
    }
    tell(&format!("writing {} files of {} bytes to /data/demo", args.files, args.size));
    let files = write_input(args, plan)?;
    tell("\n== tasks placed in turn, regardless of their data");
    tell("emptying the caches of this machine, which first writes pending data; then running the batch");
    let (status_turn, turn) = batch(args, plan, &files, &["--no-locality"])?;
    tell("\n== tasks placed next to their data");
    let (status_near, near) = batch(args, plan, &files, &[])?;
    let status = status_turn.max(status_near);
    if status == 0 {
        tell(&format!("\n{}", verdict(&turn, &near)));
    } else {
        // Times of failed batches have no meaning.
        tell(&format!("\nno comparison: the batches ended with status {status_turn} and {status_near}"));
    }
    Ok(status)
}

fn verdict(turn: &DemoCost, near: &DemoCost) -> String {
    let (a, b) = (turn.took.as_secs_f64(), near.took.as_secs_f64());
    format!(
        "in turn {a:.1} s, {:.1} MB over links; next to the data {b:.1} s, {:.1} MB over links: {:.2} of the time",
        turn.link_bytes as f64 / 1e6,
        near.link_bytes as f64 / 1e6,
        b / a.max(1e-9)
    )
}

/// Fills the volume from one host, as users usually do.
fn write_input(args: &Demo, plan: &LabPlan) -> Result<Vec<String>, Failure> {
    let files: Vec<String> = (1..=args.files).map(|i| format!("/data/demo/f{i:03}")).collect();
    on_first(plan, &["mkdir", "-p", "/data/demo"])?;
    for file in &files {
        on_first(
            plan,
            &[
                "dd",
                "if=/dev/urandom",
                &format!("of={file}"),
                "bs=1M",
                "iflag=fullblock,count_bytes",
                &format!("count={}", args.size),
                "status=none",
            ],
        )?;
    }
    Ok(files)
}

fn on_first(plan: &LabPlan, words: &[&str]) -> Result<(), Failure> {
    let mut c = crate::exec(&plan.spec.name, "n1")?;
    let status = c.args(words).stdin(Stdio::null()).status();
    let status = status.map_err(|e| Failure::system(format!("starting {} on n1: {e}", words[0])))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::system(format!("{} on n1 of the lab ended with {status}", words.join(" "))))
    }
}

/// Runs `md5sum` of every file by this very program inside n1, with cold caches.
fn batch(args: &Demo, plan: &LabPlan, files: &[String], options: &[&str]) -> Result<(i32, DemoCost), Failure> {
    let program = own_program()?;
    drop_caches()?;
    let before = link_bytes(plan);
    let start = Instant::now();
    let mut c = crate::exec(&plan.spec.name, "n1")?;
    c.arg("env")
        .arg(format!("HOMING_RUNS={RUNS}"))
        .arg(program)
        .args(["run", "--on", "ssh", "--hosts"])
        .arg(plan.names());
    c.arg("-j").arg(args.jobs.to_string()).args(options).arg("md5sum {}").arg(":::").args(files);
    let status = c.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|e| Failure::system(format!("starting homing run on n1: {e}")))?;
    let measured = DemoCost { took: start.elapsed(), link_bytes: link_bytes(plan).saturating_sub(before) };
    keep_journals(args, plan)?;
    Ok((status.code().unwrap_or(homing_model::exit::SYSTEM), measured))
}

/// Copies the journals of n1's runs to the caller's own, where `homing report` looks for the run that was just named.
/// The home of n1 is removed with the lab.
fn keep_journals(args: &Demo, plan: &LabPlan) -> Result<(), Failure> {
    let own = &args.journals;
    let doing = |e: std::io::Error| Failure::system(format!("copying the journal from n1 to {}: {e}", own.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(own).map_err(doing)?;
    let mut there = crate::exec(&plan.spec.name, "n1")?;
    there.args(["tar", "--create", "--directory", RUNS, "."]);
    let mut there = there.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(doing)?;
    let mut here = Command::new("tar");
    here.args(["--extract", "--directory"]).arg(own);
    let unpacked = here.stdin(there.stdout.take().map_or(Stdio::null(), Stdio::from)).status().map_err(doing)?;
    let packed = there.wait().map_err(doing)?;
    if packed.success() && unpacked.success() {
        return Ok(());
    }
    Err(Failure::system(format!(
        "copying the journal from n1 to {}: tar ended with {packed} there, {unpacked} here",
        own.display()
    )))
}

/// Returns the path of this program. The hosts see the machine's files, so the program has the same path there.
fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::system(format!("finding homing's own program file: {e}")))
}

fn drop_caches() -> Result<(), Failure> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|e| Failure::system(format!("dropping caches by /proc/sys/vm/drop_caches: {e}")))
}

/// Returns the bytes that entered hosts over their links since they booted.
fn link_bytes(plan: &LabPlan) -> u64 {
    plan.hosts().iter().filter_map(crate::counters).map(|(rx, _)| rx).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_a_share_of_the_time_in_turn() {
        let of = |ms, link_bytes| DemoCost { took: Duration::from_millis(ms), link_bytes };
        let told = verdict(&of(8_000, 640_000_000), &of(2_000, 1_500_000));
        assert_eq!(
            told,
            "in turn 8.0 s, 640.0 MB over links; next to the data 2.0 s, 1.5 MB over links: 0.25 of the time"
        );
    }
}
