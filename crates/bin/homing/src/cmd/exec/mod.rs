//! `homing exec`: one command on many hosts, with clush's options and output.

mod here;
mod json;
mod own;
mod password;
mod settings;
mod show;
mod table;

use crate::cluster::BatchHosts;
use crate::cmd::targets::Targets;
use crate::cmd::{nodeset, tree};
use homing_exec::{Command, CommandInput, InputSpool, Options, PoolEvents, Remote, verdict};
use homing_model::{Failure, NodeSet, document};
use homing_relay::{Passed, note};
use own::ClushOptions;
use settings::ExecSettings;
use std::io::{Cursor, IsTerminal, Read, Write};
use std::sync::Arc;

/// Arguments of `homing exec`.
///
/// Exit status: the largest of all hosts. 0: all well; 1: a command
/// failed (with -S its own status); 124: it did not end in time; 254: a host
/// could not be reached or was lost. With -S the last two are 255, as clush's.
/// 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    own: ClushOptions,
    /// Run the words as a program and its arguments, without a shell
    #[arg(long)]
    argv: bool,
    /// Print JSON, with hosts in the order in which they finish
    #[arg(long, conflicts_with_all = ["gather", "gather_all", "line_mode", "diff"])]
    json: bool,
    /// Show the hosts and the command, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// With more than N hosts, reach a few of them from here and the others through these, by ssh; 0: reach all from
    /// here
    #[arg(help_heading = "Connections", long, default_value_t = 0, value_name = "N", value_parser = tree::width)]
    tree: usize,
    /// Command; several words are joined with blanks for the shell, as ssh does
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// Runs the command and prints its results.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    if let Some(refused) = args.own.refused.take() {
        return Err(refused);
    }
    let settings = settings::read(&mut args.own)?;
    let mut options = Options { tree: args.tree, ..args.targets.options()? };
    settings.apply(&mut options)?;
    let hosts = hosts(&args)?;
    if let Some(prefix) = &settings.prefix {
        let words = shlex::split(prefix).filter(|_| args.argv);
        args.command.splice(0..0, words.unwrap_or_else(|| vec![prefix.clone()]));
    }
    if args.dry_run {
        return dry_run(&args, &hosts, options.fan_out);
    }
    let errand = Errand::new(&args, &settings, &hosts)?;
    let remote = Remote::new(options);
    if args.json {
        return json::run(&remote, &hosts, &errand, args.own.maxrc);
    }
    show::Show::new(&args, &hosts)?.run(&remote, &errand)
}

/// Returns the hosts, or some of them by `--pick`.
fn hosts(args: &Args) -> Result<Vec<String>, Failure> {
    let own = &args.own;
    own.groupsconf.as_deref().map_or(Ok(()), |file| args.targets.cluster().load()?.read_groups_of(file))?;
    let batch = if args.targets.are_unnamed() { BatchHosts::from_env()? } else { None };
    let hosts = batch.map_or_else(|| args.targets.hosts_by(own.groupsource.as_deref()), |batch| Ok(batch.names()))?;
    let Some(pick) = &own.pick else { return Ok(hosts) };
    let count: usize =
        pick.parse().map_err(|_| Failure::usage(format!("--pick {pick}: a number of hosts is needed")))?;
    if count == 0 || count >= hosts.len() {
        return Ok(hosts);
    }
    let picked = nodeset::picked(&hosts.into_iter().collect::<NodeSet>(), count)?;
    if own.verbose {
        eprintln!("homing: picked {picked}");
    }
    Ok(picked.iter().map(String::from).collect())
}

/// The command of all hosts, and the machine that runs it.
pub struct Errand {
    command: Command,
    /// The commands of `-R exec`, by the number of the host.
    here: Option<Arc<Vec<Command>>>,
}

impl Errand {
    fn new(args: &Args, settings: &ExecSettings, hosts: &[String]) -> Result<Errand, Failure> {
        let input = input(args, settings)?;
        let command = |words: &[String], shell: bool| {
            let command = match (args.argv, shell) {
                (true, _) => Command::argv(words.iter().cloned()),
                (false, true) => Command::argv(["/bin/sh".into(), "-c".into(), words.join(" ")]),
                (false, false) => Command::shell(words.join(" ")),
            };
            let command = if args.own.gather_all { command.merged() } else { command };
            input.iter().fold(command, |command, spool| command.input(CommandInput::Spool(spool.clone())))
        };
        let filled = |(rank, host): (usize, &String)| -> Result<Command, Failure> {
            let words: Result<Vec<String>, String> =
                args.command.iter().map(|word| here::filled(word, host, rank)).collect();
            Ok(command(&words.map_err(|e| Failure::usage(format!("-R exec: {e}")))?, true))
        };
        let here = match args.own.worker.as_deref() {
            None | Some("ssh") => None,
            Some("exec") => Some(Arc::new(hosts.iter().enumerate().map(filled).collect::<Result<_, _>>()?)),
            Some(other) => {
                return Err(Failure::usage(format!("-R {other}: homing reaches hosts by ssh"))
                    .hint("-R ssh, or -R exec for a command that runs here, once for each host"));
            }
        };
        Ok(Errand { command: command(&args.command, false), here })
    }

    /// Starts the command on all hosts.
    fn begin(&self, remote: &Remote, hosts: &[String]) -> PoolEvents {
        match self.here.clone() {
            Some(commands) => remote.stream_here(hosts, move |rank, _| commands[rank].clone()),
            None => remote.stream_tree(hosts, Passed::Run { command: self.command.clone(), again: false }, note()),
        }
    }
}

/// Returns the standard input of the commands, if they have any.
fn input(args: &Args, settings: &ExecSettings) -> Result<Option<Arc<InputSpool>>, Failure> {
    let password = if settings.password { password::read_password()? } else { Vec::new() };
    let passes = !args.own.nostdin && !std::io::stdin().is_terminal();
    let source: Box<dyn Read + Send> = match (passes, settings.password) {
        (false, false) => return Ok(None),
        (false, true) => Box::new(Cursor::new(password)),
        (true, _) => Box::new(Cursor::new(password).chain(std::io::stdin())),
    };
    let spool = InputSpool::from_reader(source);
    spool.map(Some).map_err(|e| {
        Failure::system(format!("cannot store standard input for the hosts: {e}"))
            .hint("-n, or TMPDIR=FOLDER on a disk with free space")
    })
}

fn dry_run(args: &Args, hosts: &[String], fan_out: usize) -> Result<i32, Failure> {
    let mut out = std::io::stdout().lock();
    let line = if args.argv {
        shlex::try_join(args.command.iter().map(String::as_str)).unwrap_or_default()
    } else {
        args.command.join(" ")
    };
    let text = if args.json {
        document::line(serde_json::json!({ "hosts": hosts, "fanout": fan_out, "command": line }))
    } else {
        format!("{}: {line}\n", verdict::label(hosts.to_vec()))
    };
    let _ = out.write_all(text.as_bytes());
    Ok(0)
}
