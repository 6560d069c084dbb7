//! `homing plan`: does all that a run does before it starts a task, and prints the choices.

use super::args::Args;
use super::targets::Targets;
use homing_batch::Files;
use homing_dispatch::source::OfferStream;
use homing_dispatch::{Hosts, Incoming, Offer};
use homing_launch::{HostPlan, Via};
use homing_model::graph::in_order;
use homing_model::units::{bytes, count, percent};
use homing_model::{ClusterLinks, Command, Failure, HostFacts, RawText, Task, TaskId, alike, document};
use homing_place::{HostModel, Need, Params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufReader, IsTerminal};

/// Prints a note if the tasks of a storage server would wait now for those of other users.
fn tell_waits(server: &str, place: &homing_lease::LeaseFolder) {
    let place = place.clone();
    let seen = homing_os::threads::within(homing_mounts::FS_TIMEOUT, move || homing_lease::look(&place)).flatten();
    let Some((limit, seen)) = seen.and_then(|seen| Some((seen.limit?, seen))) else { return };
    let users: Vec<_> = seen.users.iter().map(|(uid, held)| (homing_queue::user_name(*uid), *held)).collect();
    if let Some(text) = super::listen::waits(server, limit, &users) {
        eprintln!("homing: {}", homing_model::text::shown(&text));
    }
}

/// Prints which task would run on which host, and why.
pub fn plan(args: Args) -> Result<i32, Failure> {
    if let Some(ended) = super::at_gateway(&args) {
        return ended;
    }
    if args.ppn.is_some() {
        return Err(Failure::usage(
            "--ppn: a plan cannot show the hosts of such a task, which the queue chooses when it starts",
        )
        .hint("homing run --dry-run lists the commands; homing jobs ID shows the hosts of a job"));
    }
    if args.json.as_ref().is_some_and(|file| file.as_os_str() != "-") {
        return Err(
            Failure::usage("--json=FILE works only for the evidence of a run").hint("homing plan --json ... > FILE")
        );
    }
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let finder = super::options::finder(&args)?;
    let Targets { hosts: targets, links, .. } = super::targets::targets(&args, &cwd, "plan", None)?;
    let mut inputs = Files::new(&cwd, Box::new(BufReader::new(io::stdin())));
    let batch = super::batch(&args, &cwd, "plan", &mut inputs, io::stdin().is_terminal())?;
    let (hosts, shapes) = there(&args, &targets, &links)?;
    let empty = batch.empty_note();
    let source = OfferStream::new(batch, super::options::sourcing(&args, &cwd, shapes.len())?, finder);
    let tasks = Tasks::read(source, &hosts, Rows::new(args.json.is_some()))?;
    let sums = args.json.is_none() && !args.quiet;
    if tasks.is_none() && !args.quiet {
        eprintln!("homing: {}", super::empty_note(&args, &empty));
    }
    tasks.print(sums, &hosts, &shapes, Params { locality: !args.no_locality, links, ..Default::default() })
}

/// Queries all hosts at the same time, and returns those that answer. The others are reported and take no part.
fn there(args: &Args, targets: &[HostPlan], links: &ClusterLinks) -> Result<(Hosts, Vec<HostModel>), Failure> {
    let slots = super::options::slots(args)?;
    let answers = homing_os::threads::each_of(targets, homing_launch::FAN_OUT, facts);
    let silent = targets.iter().zip(&answers).filter_map(|(target, answer)| Some((target, answer.as_ref().err()?)));
    let told = alike::folded(silent.map(|(target, why)| (target.name.as_str(), why.as_str())));
    if !told.is_empty() && (args.need_all_hosts || answers.iter().all(Result::is_err)) {
        return Err(Failure::system(told.join("; ")).hint("ssh to one of these hosts by hand, then `homing hosts`"));
    }
    told.iter().for_each(|line| eprintln!("homing: {line}; not in this plan"));
    let (mut hosts, mut shapes) = (Hosts::default(), Vec::new());
    for (target, facts) in targets.iter().zip(answers).filter_map(|(target, facts)| Some((target, facts.ok()?))) {
        let count = target.slots.unwrap_or_else(|| slots(facts.cores)).max(1);
        let nic_bytes_per_s = links.rate(&target.name, facts.nic_bytes_per_s);
        hosts.up(shapes.len(), &target.name, count, facts);
        shapes.push(HostModel { slots: count, nic_bytes_per_s, serving: 0.0, switch: links.leaf(&target.name) });
    }
    Ok((hosts, shapes))
}

fn facts(target: &HostPlan) -> Result<HostFacts, String> {
    match &target.via {
        Via::Local => Ok(homing_probe::facts()),
        // A plan allocates nothing. Of a node of a batch system it knows the name, and assumes the volumes of this machine.
        Via::Batch(_) => Ok(HostFacts {
            hostname: target.name.clone(),
            // A file system may name its servers by address.
            aliases: homing_os::names::addresses(&target.name),
            mounts: homing_probe::facts().mounts,
            ..HostFacts::default()
        }),
        via => {
            let opened = homing_launch::open(&target.name, via, &homing_launch::Options::default());
            opened.map(|channel| channel.facts).map_err(|e| e.to_string())
        }
    }
}

/// One task of a plan.
#[derive(Serialize)]
struct PlanRow {
    task: TaskId,
    /// None if no host is chosen for the task.
    host: Option<String>,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<RawText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<TaskId>,
}

/// The rows of a plan. They are printed line by line, or as one JSON document at the end.
#[derive(Default)]
struct Rows {
    document: Option<Vec<PlanRow>>,
}

impl Rows {
    fn new(json: bool) -> Rows {
        Rows { document: json.then(Vec::new) }
    }

    fn add(&mut self, row: PlanRow) {
        if let Some(document) = &mut self.document {
            return document.push(row);
        }
        let PlanRow { task, host, why, command, .. } = row;
        let command = command.map(|command| format!("\t{}", command.display())).unwrap_or_default();
        println!("{task}\t{}\t{why}{command}", host.as_deref().unwrap_or("-"));
    }

    fn end(self) {
        if let Some(tasks) = self.document {
            print!("{}", document::line(serde_json::json!({ "tasks": tasks })));
        }
    }
}

/// Returns the command line that a run of this task executes. The slot is known only then; this one has slot 1.
pub(super) fn command(task: &Task) -> RawText {
    let mut command = task.command.clone();
    homing_batch::fill_slot(&mut command, 1);
    RawText(homing_batch::command_line(&command))
}

/// Totals of a plan for its last line: tasks by host, and the bytes that are read locally or over the network.
#[derive(Default)]
struct PlanSum {
    hosts: BTreeMap<String, u64>,
    local: u64,
    remote: u64,
}

/// The most hosts that this line names.
const NAMED: usize = 8;

impl PlanSum {
    fn add(&mut self, host: &str, local: u64, remote: u64) {
        *self.hosts.entry(host.into()).or_default() += 1;
        (self.local, self.remote) = (self.local + local, self.remote + remote);
    }

    fn text(&self) -> Option<String> {
        let tasks = count(self.hosts.values().sum(), "task");
        let mut named: Vec<String> = self.hosts.iter().map(|(host, tasks)| format!("{host} {tasks}")).collect();
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        let more = if more > 0 { format!(" and {}", count(more as u64, "more host")) } else { String::new() };
        let all = self.local + self.remote;
        let home = match all {
            0 => "no input on a volume".into(),
            all => format!("{} of {} at home", percent(self.local, all), bytes(all)),
        };
        (!self.hosts.is_empty()).then(|| format!("{tasks}: {}{more}; {home}", named.join(", ")))
    }
}

/// The tasks of a batch: their needs, and the tasks for which no host is chosen.
#[derive(Default)]
struct Tasks {
    needs: Vec<(TaskId, Need)>,
    offers: BTreeMap<TaskId, Box<Offer>>,
    /// Tasks that do not run. They are reported already.
    others: Vec<TaskId>,
    /// Tasks that run after others.
    later: Vec<Task>,
    /// The number of tasks that a replacement string skipped.
    skipped: u64,
    rows: Rows,
}

impl Tasks {
    fn read(source: OfferStream, hosts: &Hosts, rows: Rows) -> Result<Tasks, Failure> {
        let mut tasks = Tasks { rows, ..Tasks::default() };
        for incoming in source {
            match incoming {
                Incoming::Task { offer, .. } => {
                    tasks.needs.push((offer.task.id, offer.need(hosts)));
                    tasks.offers.insert(offer.task.id, offer);
                }
                Incoming::Served(_) | Incoming::Again(_) => {}
                Incoming::SkipUnnumbered(skipped) => tasks.skipped += skipped,
                Incoming::Server(names, place) => place.iter().for_each(|place| tell_waits(&names[0], place)),
                Incoming::Unread { task, reason } => tasks.does_not_run(task.id, &reason),
                Incoming::Skip(skipped) => {
                    tasks.does_not_run(skipped.task, &format!("skipped: {}", skipped.reason.unwrap_or_default()));
                }
                Incoming::After(task) => tasks.later.push(*task),
                Incoming::Broken { text, .. } => return Err(Failure::usage(text)),
                Incoming::Note(text) => eprintln!("homing: {text}"),
            }
        }
        Ok(tasks)
    }

    fn is_none(&self) -> bool {
        self.needs.is_empty() && self.others.is_empty() && self.later.is_empty() && self.skipped == 0
    }

    fn does_not_run(&mut self, task: TaskId, why: &str) {
        self.rows.add(PlanRow { task, host: None, why: why.into(), command: None, after: Vec::new() });
        self.others.push(task);
    }

    fn print(mut self, sums: bool, hosts: &Hosts, shapes: &[HostModel], params: Params) -> Result<i32, Failure> {
        // The run time of a command is unknown: assume the time that reading its bytes takes.
        let bytes: BTreeMap<TaskId, u64> = self.needs.iter().map(|(task, need)| (*task, need.total)).collect();
        let rate = params.default_bytes_per_s;
        let work_us = |task: TaskId, _| (bytes[&task] as f64 / rate * 1e6) as u64;
        let mut sum = PlanSum::default();
        for planned in homing_place::simulate(params, shapes, &self.needs, work_us) {
            let (offer, host) = (&self.offers[&planned.task], hosts.name(planned.host));
            let read = offer.by_layout(planned.host, hosts, (planned.local, planned.remote)).unwrap_or_default();
            sum.add(host, read.0, read.1);
            let (why, command) = (offer.why(planned.host, hosts, &planned.why), Some(command(&offer.task)));
            self.rows.add(PlanRow { task: planned.task, host: Some(host.into()), why, command, after: Vec::new() });
        }
        self.others.extend(self.offers.keys());
        let first = self.others.into_iter().map(|id| Task { id, ..Task::of(Command::Argv(Vec::new())) });
        in_order(first.chain(self.later).map(Ok::<Task, Failure>), |task| {
            if !task.after.is_empty() {
                let after = task.after.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" ");
                let why = format!("after {after}, on a host that then holds its inputs");
                let command = Some(command(task));
                self.rows.add(PlanRow { task: task.id, host: None, why, command, after: task.after.clone() });
            }
            Ok(())
        })?;
        self.rows.end();
        if sums && let Some(text) = sum.text() {
            eprintln!("homing: {text}");
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_ends_with_the_tasks_of_each_host_and_the_bytes_at_home() {
        let mut sum = PlanSum::default();
        assert_eq!(sum.text(), None);
        sum.add("n1", 0, 0);
        assert_eq!(sum.text().unwrap(), "1 task: n1 1; no input on a volume");
        sum.add("n1", 3000, 0);
        sum.add("n2", 0, 1000);
        assert_eq!(sum.text().unwrap(), "3 tasks: n1 2, n2 1; 75 % of 4.0 kB at home");
        (3..20).for_each(|host| sum.add(&format!("n{host}"), 0, 0));
        assert!(sum.text().unwrap().contains(" and 11 more hosts; "), "{:?}", sum.text());
    }
}
