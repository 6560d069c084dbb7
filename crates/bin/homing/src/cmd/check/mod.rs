//! `homing check`: finds the faults of a cluster, each with the command that mends it.

mod deep;
mod gather;
mod mutes;
mod slurm;

use crate::cmd::snapshot;
use crate::cmd::targets::Targets;
use crate::cmd::tree::TreeArgs;
use crate::cmd::volume;
use crate::progress::{columns, has_colors};
use crate::switched;
use clap::builder::{PossibleValue, PossibleValuesParser};
use deep::DeepMeasurements;
use homing_check::mute::Mute;
use homing_check::prometheus::sought;
use homing_check::report::{
    CheckAnswers, Report, UnknownFacts, area_line, is_wanted, looked_at, painted_line, unknown_in,
};
use homing_check::{Answers, Area, HostCheck, HostFinding, all_codes};
use homing_model::Failure;
use homing_power::PowerFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::cmd::public_file::write_whole;

/// Arguments of `homing check`.
///
/// Exit status: 0: no findings; 1: warnings; 2: errors; 3: a host could not be
/// queried; 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Check this volume and its hosts
    #[arg(long, value_name = "VOLUME")]
    volume: Option<String>,
    /// Leave out slow checks: names from every host to every other, files hidden beneath mounts, volumes
    #[arg(long)]
    quick: bool,
    /// Put hosts under load instead, for this time in each of five parts, and compare them with others of their model
    /// and with their earlier results
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "30",
        value_parser = |text: &str| homing_batch::parse_seconds("--deep", text, 1..=3600), conflicts_with_all = ["quick", "volume", "slurm_health"])]
    deep: Option<u64>,
    /// Only these areas: names, clocks, ssh, users, mounts, disks, memory, network, services, volumes
    #[arg(long, value_name = "AREA", value_delimiter = ',', value_parser = areas(), hide_possible_values = true)]
    only: Vec<String>,
    /// Time limit for the answer of a host
    #[arg(long, default_value = "5", value_name = "TIME", value_parser = |text: &str| homing_batch::parse_duration_within("--deadline", text, f64::MIN_POSITIVE..=f64::INFINITY))]
    deadline: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the findings to a file for Prometheus's node exporter
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Explain a code; no host is contacted
    #[arg(long, value_name = "CODE", value_parser = codes(), ignore_case = true, hide_possible_values = true)]
    explain: Option<String>,
    /// Mute a code for a while (with -w: on these hosts)
    #[arg(long, value_name = "CODE", value_parser = codes(), ignore_case = true, hide_possible_values = true, requires = "because")]
    mute: Option<String>,
    /// Duration of the mute: 12h, 7d
    #[arg(long = "for", value_name = "TIME", default_value = "7d", requires = "mute", value_parser = |text: &str| homing_batch::parse_duration("--for", text))]
    span: Duration,
    /// Reason of the mute
    #[arg(long, value_name = "TEXT", requires = "mute")]
    because: Option<String>,
    /// Unmute a code
    #[arg(long, value_name = "CODE", value_parser = codes(), ignore_case = true, hide_possible_values = true)]
    unmute: Option<String>,
    /// Run as Slurm's HealthCheckProgram: check only this host, drain it if it has errors, and resume it when they are
    /// gone
    #[arg(long, conflicts_with_all = ["volume", "json", "mute"])]
    slurm_health: bool,
    #[command(flatten)]
    tree: TreeArgs,
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(all_codes().map(|code| code.name))
}

fn areas() -> PossibleValuesParser {
    let one = |area: Area| PossibleValue::new(area.name()).alias(area.name().trim_end_matches('s'));
    PossibleValuesParser::new(Area::ALL.map(one))
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    (homing_os::clock::system_ns() / 1_000_000_000) as u64
}

/// Queries all hosts, and reports faults.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(code) = args.explain.as_deref().and_then(homing_check::code) {
        return crate::cmd::runs::to_stdout(&homing_check::pages::explained(code));
    }
    if let Some(code) = &args.mute {
        let hosts = if args.targets.named() { args.targets.hosts()? } else { Vec::new() };
        return mutes::add(code, hosts, args.span.as_secs(), args.because.clone().unwrap_or_default());
    }
    if let Some(code) = &args.unmute {
        return mutes::remove(code);
    }
    let only: Vec<Area> = args.only.iter().filter_map(|name| Area::named(name)).collect();
    let deadline = args.deadline;
    if args.slurm_health {
        return slurm::run(&homing_check::chosen(&only, true), deadline);
    }
    let hosts = hosts(&args)?;
    let checks = match args.deep {
        Some(_) => homing_check::burn_in_of(&only),
        None => homing_check::chosen(&only, args.quick),
    };
    // Under load, twins are compared and must begin at the same time. Hosts behind a leader would begin only when it
    // has connected to them.
    let tree = if args.deep.is_some() { TreeArgs::none() } else { args.tree };
    let mut options = tree.of(args.targets.options()?);
    options.connect_timeout = options.connect_timeout.min(deadline);
    let load = Duration::from_secs(args.deep.map_or(0, homing_check::burn_in::longest));
    let deadline = deadline + load;
    options.command_timeout = Some(options.command_timeout.unwrap_or(deadline).min(deadline));
    let before = args.deep.map(homing_check::burn_in::words).unwrap_or_default();
    let muted = mutes::load()?;
    let mut early =
        Early { only: &only, checks: &checks, muted: &muted, lines: BTreeMap::new(), in_doubt: BTreeSet::new() };
    let mut tell = |known: &[Area], answers: &dyn Fn() -> Answers| early.print_areas(known, answers);
    let live = !args.json && args.deep.is_none() && std::io::stdout().is_terminal();
    let mut gathered =
        gather::query_hosts(options.clone(), &hosts, &before, &checks, deadline, live.then_some(&mut tell as _))?;
    part_off(&mut gathered, &switched::all())?;
    let early = early.lines;
    gather::once_more(options.clone(), &mut gathered.answers, &checks, deadline)?;
    if let Some(seconds) = args.deep {
        deep::send_around(options, &mut gathered.answers, seconds)?;
    }
    place(&mut gathered.answers, &args)?;
    let measured =
        if args.deep.is_some() { deep::measured(&mut gathered.answers)? } else { DeepMeasurements::default() };
    CheckSession { args: &args, only, checks, hosts, gathered, measured, muted, early }.print_report()
}

/// Parts the hosts that do not answer because homing has switched them off. The record of that is believed only about
/// such hosts: somebody may have pressed the power button.
fn part_off(gathered: &mut CheckAnswers, known: &PowerFacts) -> Result<(), Failure> {
    for (host, why) in std::mem::take(&mut gathered.silent) {
        match switched::off_reason(known, &host) {
            Some(reason) => gathered.off.push((host, reason)),
            None => gathered.silent.push((host, why)),
        }
    }
    match gathered.off.first().filter(|_| gathered.answers.hosts.is_empty() && gathered.silent.is_empty()) {
        Some((host, why)) => Err(Failure::system(format!("all of these hosts are switched off; {host}: {why}"))),
        None => Ok(()),
    }
}

/// Adds the places where hosts should be, from the last `homing topology` and from the cluster file.
fn place(answers: &mut Answers, args: &Args) -> Result<(), Failure> {
    for leaf in homing_bench::topology::known()?.values().flat_map(|tree| &tree.leaves) {
        for (chassis, place) in
            leaf.chassis.iter().flat_map(|chassis| leaf.hosts.iter().map(move |place| (chassis, place)))
        {
            answers.should_be(&place.host, chassis, place.port.as_deref(), "the last homing topology");
        }
    }
    let links = args.targets.cluster().load()?.links(Vec::new())?;
    let names: Vec<String> = answers.hosts.iter().map(|host| host.name.clone()).collect();
    for (host, at) in names.iter().filter_map(|host| Some((host, links.leaf(host)?))) {
        answers.should_be(host, links.name(at), None, "the cluster file");
    }
    Ok(())
}

/// The lines of areas that a terminal shows as soon as all hosts have completed them.
struct Early<'a> {
    only: &'a [Area],
    checks: &'a [&'a HostCheck],
    muted: &'a [Mute],
    lines: BTreeMap<Area, String>,
    /// Areas that are queried a second time when all hosts have ended. They are not shown before.
    in_doubt: BTreeSet<Area>,
}

impl Early<'_> {
    fn print_areas(&mut self, known: &[Area], answers: &dyn Fn() -> Answers) {
        let new = |area: &&Area| {
            !self.lines.contains_key(area) && is_wanted(self.only, **area) && !self.in_doubt.contains(area)
        };
        let mut new: Vec<Area> = known.iter().filter(new).copied().collect();
        if new.is_empty() {
            return;
        }
        let answers = answers();
        if answers.hosts.is_empty() {
            return;
        }
        self.in_doubt.extend(homing_check::doubts(&answers).areas().filter(|area| new.contains(area)));
        new.retain(|area| !self.in_doubt.contains(area));
        if new.is_empty() {
            return;
        }
        let found = homing_check::findings(self.checks, &answers);
        let (told, _) = homing_check::mute::sifted(found, self.muted, now());
        crate::progress::clear();
        for area in new {
            let unknown = unknown_in(area, self.checks, &answers);
            let line = area_line(area, &told, answers.hosts.len(), unknown);
            // If the screen is gone, the final output reports the error.
            let shown = painted_line(&line, area, &told, has_colors(std::io::stdout()));
            let _ = writeln!(std::io::stdout(), "{shown}");
            self.lines.insert(area, line);
        }
    }
}

/// Returns the named hosts, those of the volume, those of the cluster file, or this one.
fn hosts(args: &Args) -> Result<Vec<String>, Failure> {
    if args.targets.named() {
        return args.targets.hosts();
    }
    if let Some(volume) = &args.volume {
        return volume::hosts_of(args.targets.cluster(), volume);
    }
    let hosts = args.targets.cluster().load()?.hosts(None)?;
    Ok(if hosts.is_empty() { vec!["localhost".into()] } else { hosts })
}

/// All that is known when the hosts have answered.
struct CheckSession<'a> {
    args: &'a Args,
    only: Vec<Area>,
    checks: Vec<&'static HostCheck>,
    hosts: Vec<String>,
    gathered: CheckAnswers,
    measured: DeepMeasurements,
    muted: Vec<Mute>,
    /// The lines that the terminal already shows, by area.
    early: BTreeMap<Area, String>,
}

impl CheckSession<'_> {
    fn print_report(self) -> Result<i32, Failure> {
        let mut found = homing_check::findings(&self.checks, &self.gathered.answers);
        found.retain(|finding| is_wanted(&self.only, finding.code.area()));
        let (of_volumes, volumes, mut unasked) = self.volumes()?;
        let vaults = self.vaults()?;
        let mut sought = sought(&self.checks, &self.only, &self.gathered.answers);
        if self.looks_at_volumes() && unasked.is_empty() {
            sought.extend(homing_check::volume::codes_of_volumes());
        }
        if self.looks_at_vaults() && vaults.unasked().is_empty() {
            sought.extend(homing_check::volume::codes_of_vaults());
        }
        let faults = snapshot::section_faults(self.args.targets.cluster())?;
        let faults = faults.into_iter().map(|fault| ("cluster file".to_string(), fault));
        found.extend(of_volumes);
        found.extend(vaults.findings());
        unasked.extend(vaults.unasked());
        found.sort_by_key(|f| (f.code.severity, f.code.area()));
        let (told, quiet) = homing_check::mute::sifted(found, &self.muted, now());
        let measured = self.measured.unknown.iter().cloned();
        let lacking = |area: &Area| (*area, unknown_in(*area, &self.checks, &self.gathered.answers));
        let mut lacking: BTreeMap<Area, usize> = Area::ALL.iter().map(lacking).collect();
        *lacking.entry(Area::Volumes).or_default() += unasked.len();
        let unknown =
            self.gathered.unknown(&self.checks).into_iter().chain(unasked).chain(measured).chain(faults).collect();
        let report = Report {
            findings: told,
            quiet,
            areas: looked_at(&self.checks, &self.only, volumes + vaults.count()),
            early: &self.early,
            unknown,
            lacking,
            hosts: &self.hosts,
            gathered: &self.gathered,
            measured: &self.measured.rates,
            vaults: vaults.json(),
            unprivileged: self.gathered.unprivileged(&self.checks),
            way: self.args.targets.way_words(),
        };
        let status = report.status();
        if let Some(file) = &self.args.prometheus {
            let (answered, silent) = (self.gathered.answers.hosts.len(), self.gathered.silent.len());
            let text =
                homing_check::prometheus::text(&report.findings, &report.quiet, &sought, (answered, silent), now());
            write_whole(file, &(text + &vaults.prometheus()))?;
        }
        let text = match self.args.json {
            true => report.json(status),
            false => report.text(has_colors(std::io::stdout()), columns()),
        };
        crate::cmd::runs::to_stdout(&text)?;
        Ok(status)
    }

    fn looks_at_volumes(&self) -> bool {
        let left_out = self.args.quick || self.args.deep.is_some() || self.args.targets.named();
        self.args.volume.is_some() || (is_wanted(&self.only, Area::Volumes) && !left_out)
    }

    fn looks_at_vaults(&self) -> bool {
        let left_out = self.args.quick || self.args.targets.named();
        self.args.volume.is_none() && is_wanted(&self.only, Area::Volumes) && !left_out
    }

    /// Returns the findings of volumes, the number of checked volumes, and the volumes that could not be checked.
    fn volumes(&self) -> Result<(Vec<HostFinding>, usize, Vec<UnknownFacts>), Failure> {
        let names = match &self.args.volume {
            Some(name) => vec![name.clone()],
            None if !self.looks_at_volumes() => Vec::new(),
            None => homing_volume::VolumeRecord::names(&homing_volume::folder()),
        };
        let (mut found, mut unasked) = (Vec::new(), Vec::new());
        for name in &names {
            let silent: Vec<&str> = self.gathered.silent.iter().map(|(host, _)| host.as_str()).collect();
            match volume::checked(self.args.targets.cluster(), name, &silent) {
                Ok(findings) => found.extend(findings),
                Err(failure) => unasked.push((format!("volume {name}"), failure.message)),
            }
        }
        Ok((found, names.len(), unasked))
    }

    fn vaults(&self) -> Result<snapshot::Watched, Failure> {
        if self.looks_at_vaults() {
            snapshot::watched(self.args.targets.cluster())
        } else {
            Ok(snapshot::Watched::none())
        }
    }
}
