//! A job that is a script on standard input, with options in its `#HOMING` lines.

use super::input::piped;
use super::{Args, sbatch};
use clap::{Args as _, FromArgMatches};
use homing_model::{Failure, RawText};
use std::ffi::OsString;

/// The word that begins a line with options.
const MARK: &str = "#HOMING";

/// Merges the arguments with the options of the script, if there is one. The command line wins.
pub fn read(own: Args) -> Result<(Args, Option<RawText>), Failure> {
    if !own.words.is_empty() || !own.batch.is_empty() || !own.again.is_empty() {
        return Ok((own, None));
    }
    let Some(script) = piped()?.filter(|script| !script.0.trim_ascii().is_empty()) else { return Ok((own, None)) };
    let all = merge(own, options(&script)?);
    if let Some(host) = &all.host {
        let why = format!("--host {host}: a script from standard input runs only on this machine");
        return Err(Failure::usage(why).hint("homing sub --host HOST 'sh /path/of/the/script/there'"));
    }
    Ok((all, Some(script)))
}

/// Parses the options in the script's lines.
fn options(script: &RawText) -> Result<Args, Failure> {
    let words = homing_lsf::bsub::directives(&script.0, MARK).map_err(Failure::usage)?;
    let words: Vec<OsString> = words.into_iter().map(|w| w.as_os().to_os_string()).collect();
    let grammar = Args::augment_args(clap::Command::new("homing sub")).no_binary_name(true);
    let found = grammar.try_get_matches_from(words).and_then(|found| Args::from_arg_matches(&found));
    let told = |e: clap::Error| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("in the {MARK} lines of the script: {first}")).hint("homing sub --help")
    };
    let found = found.map_err(told)?;
    match found.words.is_empty() && found.batch.is_empty() && found.again.is_empty() {
        true => Ok(found),
        false => Err(Failure::usage(format!("the {MARK} lines of the script may hold only options of the job"))
            .hint("the script is the command; put --batch and --again on the command line")),
    }
}

fn merge(own: Args, script: Args) -> Args {
    let place = if own.place == Default::default() { script.place } else { own.place };
    let list = |own: Vec<String>, other: Vec<String>| if own.is_empty() { other } else { own };
    Args {
        name: own.name.or(script.name),
        queue: own.queue.or(script.queue),
        slots: own.slots.or(script.slots),
        ptile: own.ptile.or(script.ptile),
        net: own.net.or(script.net),
        nodes: own.nodes.or(script.nodes),
        ppn: own.ppn.or(script.ppn),
        after: list(own.after, script.after),
        output: own.output.or(script.output),
        error: own.error.or(script.error),
        stdin: own.stdin.or(script.stdin),
        near: if own.near.is_empty() { script.near } else { own.near },
        place,
        timeout: own.timeout.or(script.timeout),
        mem: own.mem.or(script.mem),
        gpus_per_task: own.gpus_per_task.or(script.gpus_per_task),
        on_exit: own.on_exit.or(script.on_exit),
        host: own.host.or(script.host),
        wait: own.wait || script.wait,
        quiet: own.quiet || script.quiet,
        slurm: sbatch::Words {
            account: own.slurm.account.or(script.slurm.account),
            qos: own.slurm.qos.or(script.slurm.qos),
            // sbatch uses the last of several.
            slurm_arg: [script.slurm.slurm_arg, own.slurm.slurm_arg].concat(),
        },
        engine: super::super::EngineArgs { engine: own.engine.engine.or(script.engine.engine) },
        cluster: own.cluster.or(script.cluster),
        ..own
    }
}
