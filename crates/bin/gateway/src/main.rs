//! `homing-client`: homing's commands for machines outside of the cluster, Linux or not. A member runs each of them.

use clap::Parser;
use homing_gateway::{ClusterMember, Program};
use homing_model::exit;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Commands about the cluster, which are the same wherever they are typed.
const COMMANDS: &[&str] = &[
    "run", "plan", "resume", "runs", "report", "usage", "top", "sub", "jobs", "kill", "peek", "wait", "where", "hosts",
    "exec", "check", "make", "volume", "topology", "nodeset",
];

/// Run homing on a member of the cluster from a machine outside of it: macOS, a BSD, any Unix with ssh.
///
/// The arguments are those of homing, which must be installed on that member. Files, folders and results are on the
/// member; standard input, output, exit status and Ctrl-C belong to this terminal.
#[derive(Parser)]
#[command(name = "homing-client", version, disable_help_subcommand = true, after_help = AFTER)]
struct Args {
    /// The member that runs the command, as ssh knows it
    #[arg(long, env = "HOMING_GATEWAY", value_name = "HOST")]
    gateway: String,
    /// The folder on the member [default: the path of the current folder]
    #[arg(long, env = "HOMING_GATEWAY_FOLDER", value_name = "DIR")]
    folder: Option<OsString>,
    /// A command of homing
    #[arg(value_name = "COMMAND")]
    command: String,
    /// The arguments of the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

const AFTER: &str = "\
Examples:
  homing-client --gateway n1 --folder /data run 'md5sum {}' ::: a.bin b.bin
  export HOMING_GATEWAY=n1 HOMING_GATEWAY_FOLDER=/data
  homing-client jobs
  homing-client exec -w 'n[1-8]' uptime

Commands: run, plan, resume, runs, report, usage, top, sub, jobs, kill, peek, wait, where, hosts, exec, check, make,
volume, topology, nodeset. The others read files of the machine on which you type them: log in to the member for them.

Exit status: that of the command; 254 if the member or homing on it is unreachable; 255 for a mistake in the arguments.";

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { exit::USAGE as u8 } else { 0 });
        }
    };
    match run(args) {
        Ok(status) => ExitCode::from(status.clamp(0, 255) as u8),
        Err((status, message)) => {
            let _ = writeln!(std::io::stderr(), "homing-client: {message}");
            ExitCode::from(status as u8)
        }
    }
}

/// Runs the command. Returns its exit status, or an exit status of this program with a line for the user.
fn run(args: Args) -> Result<i32, (i32, String)> {
    let (host, command) = (args.gateway, args.command);
    if !COMMANDS.contains(&&*command) {
        let message = format!(
            "a member cannot run {command:?} for this machine; log in there, or use one of: {}",
            COMMANDS.join(", ")
        );
        return Err((exit::USAGE, message));
    }
    if !homing_os::names::is_ssh_target(&host) {
        return Err((exit::USAGE, format!("{host:?} is not a host name for ssh")));
    }
    let folder = match args.folder {
        Some(folder) => folder,
        None => std::env::current_dir()
            .map_err(|e| (exit::SYSTEM, format!("reading the name of the current folder: {e}")))?
            .into(),
    };
    let words: Vec<OsString> = std::iter::once(command.into()).chain(args.words).collect();
    let member = ClusterMember { host, ssh: homing_os::names::ssh_words() };
    let ended = member.run(&Program::Installed, folder.as_bytes(), &words);
    let ended = ended.map_err(|e| (exit::SYSTEM, format!("host {}: starting ssh: {e}", member.host)))?;
    // ssh reports its own failure, status 255, itself.
    Ok(ended.unwrap_or(exit::SYSTEM))
}
