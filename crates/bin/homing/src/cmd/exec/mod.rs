//! `homing exec`: one command on many hosts, with clush's options and output.

mod json;
mod show;

use crate::cmd::targets::Targets;
use crate::cmd::tree;
use homing_exec::{Command, Input, Options, Remote, Spool, verdict};
use homing_model::Failure;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Arguments of `homing exec`.
///
/// Exit status: the largest that a host asks for. 0: all well; 1: a command
/// failed (with -S its own status); 124: it did not end in time; 254: a host
/// could not be reached or was lost. With -S the last two are 255, as clush's.
/// 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Gather equal output under one header
    #[arg(short = 'b', long = "dshbak", alias = "gather")]
    gather: bool,
    /// As -b, standard error included
    #[arg(short = 'B')]
    gather_all: bool,
    /// Lines in the order of hosts; with -b equal lines together
    #[arg(short = 'L')]
    line_mode: bool,
    /// Show what differs from what most hosts say
    #[arg(long, conflicts_with = "line_mode")]
    diff: bool,
    /// No headers and no host names
    #[arg(short = 'N')]
    no_label: bool,
    /// Do not say which commands failed
    #[arg(short, long)]
    quiet: bool,
    /// Exit with the largest status of the commands themselves
    #[arg(short = 'S', long)]
    maxrc: bool,
    /// Do not pass on standard input
    #[arg(short = 'n', long)]
    nostdin: bool,
    /// Write each host's standard output to DIR/HOST too
    #[arg(long, value_name = "DIR")]
    outdir: Option<PathBuf>,
    /// Write each host's standard error to DIR/HOST too
    #[arg(long, value_name = "DIR")]
    errdir: Option<PathBuf>,
    /// The words are a program and its arguments; no shell reads them
    #[arg(long)]
    argv: bool,
    /// As JSON, hosts in the order in which they finish
    #[arg(long, conflicts_with_all = ["gather", "gather_all", "line_mode", "diff"])]
    json: bool,
    /// Show what would run where, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// With more than N hosts, a few of them have the rest run it, over their own ssh; 0: all from here
    #[arg(help_heading = "Connections", long, default_value_t = 0, value_name = "N", value_parser = tree::width)]
    tree: usize,
    /// Command; several words are joined with blanks for the shell, as ssh does
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

impl Args {
    fn gathers(&self) -> bool {
        self.gather || self.gather_all || self.diff || self.line_mode
    }
}

/// Runs the command and prints its results.
pub fn run(args: Args) -> Result<i32, Failure> {
    let hosts = args.targets.hosts()?;
    let options = Options { tree: args.tree, ..args.targets.options()? };
    if args.dry_run {
        return dry_run(&args, &hosts);
    }
    let command = command(&args)?;
    let remote = Remote::new(options);
    if args.json {
        return json::run(&remote, &hosts, &command, args.maxrc);
    }
    show::Show::new(&args, &hosts)?.run(&remote, &command)
}

fn command(args: &Args) -> Result<Command, Failure> {
    let mut command = match args.argv {
        true => Command::argv(args.command.iter().cloned()),
        false => Command::shell(args.command.join(" ")),
    };
    if args.gather_all {
        command = command.merged();
    }
    if !args.nostdin && !std::io::stdin().is_terminal() {
        let spool = Spool::from_reader(std::io::stdin()).map_err(|e| {
            Failure::system(format!("cannot keep standard input for the hosts: {e}")).hint("-n, or TMPDIR")
        })?;
        command = command.input(Input::Spool(spool));
    }
    Ok(command)
}

fn dry_run(args: &Args, hosts: &[String]) -> Result<i32, Failure> {
    let mut out = std::io::stdout().lock();
    let line = if args.argv {
        shlex::try_join(args.command.iter().map(String::as_str)).unwrap_or_default()
    } else {
        args.command.join(" ")
    };
    let text = if args.json {
        serde_json::json!({ "hosts": hosts, "fanout": args.targets.fan_out(), "command": line }).to_string()
    } else {
        format!("{}: {line}", verdict::label(hosts.to_vec()))
    };
    let _ = writeln!(out, "{text}");
    Ok(0)
}
