//! `homing nodeset`: ClusterShell's `nodeset`, for users who know it.

use crate::cluster::{Cluster, ClusterArgs};
use homing_cluster::algebra::{GroupHosts, SetOperation, SetTerms};
use homing_model::nodeset::FoldStyle;
use homing_model::{Failure, NodeSet, document};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::json;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

mod format;

use format::{Autostep, OutputFormat};

/// Arguments of `homing nodeset`.
#[derive(clap::Args)]
pub struct Args {
    /// Fold: n1 n2 n3 becomes n[1-3] (default)
    #[arg(short, long)]
    fold: bool,
    /// Expand: one name after the other
    #[arg(short, long, conflicts_with_all = ["fold", "count"])]
    expand: bool,
    /// Count the hosts
    #[arg(short, long, conflicts_with = "fold")]
    count: bool,
    /// List groups, or the groups of the hosts given; -ll: with their hosts, -lll: and how many
    #[arg(short, long, action = clap::ArgAction::Count)]
    list: u8,
    /// As -l, for all group sources
    #[arg(short = 'L', long, action = clap::ArgAction::Count)]
    list_all: u8,
    /// List the group sources
    #[arg(long, alias = "list-sources")]
    groupsources: bool,
    /// Leave out these nodes
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// Keep only these nodes
    #[arg(short = 'i', long, value_name = "NODESET")]
    intersection: Vec<String>,
    /// Nodes that are in exactly one of both sets
    #[arg(short = 'X', long, value_name = "NODESET")]
    xor: Vec<String>,
    /// All hosts of the groups or of the cluster file
    #[arg(short, long)]
    all: bool,
    /// Hosts of a group
    #[arg(short, long, value_name = "GROUP")]
    group: Vec<String>,
    /// Source of groups that name none
    #[arg(short = 's', long, value_name = "SOURCE")]
    groupsource: Option<String>,
    /// Read and print ranges of numbers, such as 1-4,7
    #[arg(short = 'R', long)]
    rangeset: bool,
    /// Print groups whose nodes are all in the result: @io,n9
    #[arg(short = 'r', long, conflicts_with_all = ["fold", "expand", "count", "rangeset"])]
    regroup: bool,
    /// Print groups without the name of their source
    #[arg(short = 'G', long)]
    groupbase: bool,
    /// Separator of --expand [default: a blank]
    #[arg(short = 'S', long)]
    separator: Option<String>,
    /// Format of each node (-e, -f) or of the result: %s is replaced
    #[arg(short = 'O', long, value_name = "FORMAT", allow_hyphen_values = true)]
    output_format: Option<String>,
    /// Only nodes at these positions, counted from 0
    #[arg(short = 'I', long, value_name = "RANGES")]
    slice: Option<String>,
    /// Fold as a-b/step where at least N nodes, P% of them, or all (auto) are at equal distances
    #[arg(long, value_name = "N|P%|auto")]
    autostep: Option<Autostep>,
    /// Fold these dimensions only, counted from 1; -1 is the last one
    #[arg(long, value_name = "RANGES", allow_hyphen_values = true)]
    axis: Option<String>,
    /// Pick N nodes at random
    #[arg(long, value_name = "N")]
    pick: Option<usize>,
    /// Split into N sets of equal size, one a line
    #[arg(long, value_name = "N")]
    split: Option<usize>,
    /// Split into sets without a gap in their numbers, one a line
    #[arg(long, conflicts_with = "split")]
    contiguous: bool,
    /// Print no warnings and no (default)
    #[arg(short, long)]
    quiet: bool,
    /// ClusterShell's file of groups
    #[arg(long, value_name = "FILE")]
    groupsconf: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Node sets, united; -x, -i and -X with a node set apply to all sets before them; - reads standard input
    nodesets: Vec<String>,
}

/// Prints the result of the sets.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    let operands = operands(&mut args)?;
    if args.separator.is_some() && !args.expand {
        return Err(Failure::usage("-S has no effect without -e").hint("homing nodeset -e -S, 'n[1-4]'"));
    }
    let cluster = args.cluster.load()?;
    args.groupsconf.as_deref().map_or(Ok(()), |file| cluster.read_groups_of(file))?;
    let told = |e: String| Failure::usage(e);
    if args.groupsources {
        for (nth, source) in cluster.shell().map_err(told)?.sources().into_iter().enumerate() {
            println!("{source}{}", if nth == 0 && !args.quiet { " (default)" } else { "" });
        }
        return Ok(0);
    }
    if args.groupsource.is_some() {
        cluster.shell().and_then(|shell| shell.source(args.groupsource.as_deref())).map_err(told)?;
    }
    let set = computed(&args, operands, cluster)?;
    if args.list + args.list_all > 0 {
        return list(&args, &set, cluster);
    }
    match args.regroup {
        true => println!("{}", cluster.regrouped(&set, args.groupsource.as_deref(), args.groupbase)?),
        false => print(&args, &set)?,
    }
    Ok(0)
}

/// Puts the options before the first operand, and `--` between them. -x, -i and -X behind an operand stay among the
/// operands, as two words each, since they act on all before them.
pub fn operands_last(words: Vec<OsString>) -> Vec<OsString> {
    let command = <Args as clap::Args>::augment_args(clap::Command::new("nodeset"));
    let takes_value = |short: Option<char>, long: &str| {
        let is_it = |arg: &&clap::Arg| match short {
            Some(short) => arg.get_short() == Some(short),
            None => arg.get_long() == Some(long),
        };
        command.get_arguments().find(is_it).is_some_and(|arg| arg.get_action().takes_values())
    };
    let (mut options, mut operands) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            operands.extend(words.by_ref());
        } else if text == "-" || !text.starts_with('-') {
            operands.push(word);
        } else if let Some((op, value)) = operation(&text).filter(|_| !operands.is_empty()) {
            operands.push(op.into());
            operands.extend(value.map(OsString::from).or_else(|| words.next()));
        } else if let Some(long) = text.strip_prefix("--") {
            let value = (!long.contains('=') && takes_value(None, long)).then(|| words.next()).flatten();
            options.extend([word].into_iter().chain(value));
        } else {
            let valued = text[1..].char_indices().find(|(_, short)| takes_value(Some(*short), ""));
            let last = valued.is_some_and(|(at, short)| at + short.len_utf8() == text.len() - 1);
            let value = last.then(|| words.next()).flatten();
            options.extend([word].into_iter().chain(value));
        }
    }
    if !operands.is_empty() {
        options.push("--".into());
    }
    [options, operands].concat()
}

/// Returns the long option of an operation in a word, and its operand if the word has it.
fn operation(word: &str) -> Option<(&'static str, Option<String>)> {
    const OPERATIONS: [(&str, &str); 3] = [("-x", "--exclude"), ("-i", "--intersection"), ("-X", "--xor")];
    OPERATIONS.iter().find_map(|(short, long)| {
        if let Some(rest) = word.strip_prefix(short) {
            return Some((*long, Some(rest.to_string()).filter(|rest| !rest.is_empty())));
        }
        let rest = word.strip_prefix(long)?;
        (rest.is_empty() || rest.starts_with('=')).then(|| (*long, rest.strip_prefix('=').map(String::from)))
    })
}

/// Returns the words after the options, in their order.
fn operands(args: &mut Args) -> Result<Vec<(SetOperation, String)>, Failure> {
    let mut found = Vec::new();
    let mut words = std::mem::take(&mut args.nodesets).into_iter();
    while let Some(word) = words.next() {
        let op = match word.as_str() {
            "--exclude" => SetOperation::Exclude,
            "--intersection" => SetOperation::Intersect,
            "--xor" => SetOperation::Xor,
            _ => {
                found.push((SetOperation::Union, word));
                continue;
            }
        };
        let operand = words.next().ok_or_else(|| Failure::usage(format!("{word} needs a node set")))?;
        found.push((op, operand));
    }
    Ok(found)
}

fn computed(args: &Args, operands: Vec<(SetOperation, String)>, cluster: &Cluster) -> Result<NodeSet, Failure> {
    let lists = args.list + args.list_all > 0;
    let said = lists || args.all || !args.group.is_empty() || !operands.is_empty();
    if !said && std::io::stdin().is_terminal() {
        return Err(Failure::usage("no hosts are named").hint("homing nodeset -e 'n[1-4]'; - reads standard input"));
    }
    let late = |op: SetOperation, texts: &[String]| texts.iter().map(|t| (op, t.clone())).collect::<Vec<_>>();
    let (late_i, late_x) =
        (late(SetOperation::Intersect, &args.intersection), late(SetOperation::Exclude, &args.exclude));
    let terms = SetTerms {
        all: args.all,
        groups: &args.group,
        leading: [late_i, late_x, late(SetOperation::Xor, &args.xor)].concat(),
        operands,
        source: args.groupsource.as_deref(),
        numbers: args.rangeset,
        input: &input,
        usual: if lists { None } else { Some("-") },
    };
    let set = cluster.computed(terms)?;
    let set = match &args.slice {
        Some(places) => set.slice(&ranges("-I", places)?),
        None => set,
    };
    match args.pick {
        Some(count) if count > 0 && count < set.len() => picked(&set, count),
        _ => Ok(set),
    }
}

fn ranges(option: &str, text: &str) -> Result<NodeSet, Failure> {
    NodeSet::parse_ranges(text).map_err(|e| Failure::usage(format!("{option} {text}: {e}")))
}

/// Returns `count` random names. All names are equally likely.
pub fn picked(set: &NodeSet, count: usize) -> Result<NodeSet, Failure> {
    let mut left: Vec<&str> = set.iter().collect();
    let mut chosen = Vec::new();
    for _ in 0..count {
        let mut bytes = [0; 8];
        getrandom(&mut bytes, GetRandomFlags::empty())
            .map_err(|e| Failure::system(format!("cannot read random numbers: {e}")))?;
        let at = u64::from_ne_bytes(bytes) % left.len() as u64;
        chosen.push(left.swap_remove(at as usize).to_string());
    }
    Ok(chosen.into_iter().collect())
}

fn input() -> Result<String, Failure> {
    std::io::read_to_string(std::io::stdin()).map_err(|e| Failure::usage(format!("reading standard input failed: {e}")))
}

/// Returns how a set of `count` nodes is folded.
fn style(args: &Args, count: usize) -> Result<FoldStyle, Failure> {
    let autostep = args.autostep.as_ref().map(|autostep| autostep.least(count));
    let axes = match args.axis.as_deref() {
        None => None,
        Some(_) if args.expand || args.count || args.rangeset => {
            return Err(Failure::usage("--axis works only when folding node sets")
                .hint("homing nodeset -f --axis 1 'r[1-2]n[1-2]'"));
        }
        Some(last) if last.starts_with('-') => {
            let wrong = |_| Failure::usage(format!("--axis {last}: a negative number cannot be part of a list"));
            Some(vec![last.parse().map_err(wrong)?])
        }
        // Counted from 1; 0 is no axis.
        Some(text) => Some(
            ranges("--axis", text)?
                .iter()
                .filter_map(|n| n.parse::<i64>().ok()?.checked_sub(1))
                .filter(|n| *n >= 0)
                .collect(),
        ),
    };
    Ok(FoldStyle { autostep, axes })
}

fn print(args: &Args, set: &NodeSet) -> Result<(), Failure> {
    let style = style(args, set.len())?;
    let format = match args.output_format.as_deref() {
        None | Some("%s") => None,
        Some(format) => Some(OutputFormat::read(format).map_err(Failure::usage)?),
    };
    let formatted = |text: &str| format.as_ref().map_or_else(|| text.to_string(), |format| format.of(text));
    let folded = |part: &NodeSet| {
        let bare = |text: &str| text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).map(String::from);
        match (args.rangeset, &format) {
            (true, _) => {
                let text = part.folded(&style);
                formatted(&bare(&text).unwrap_or(text))
            }
            (false, None) => part.folded(&style),
            (false, Some(_)) => part.iter().map(formatted).collect::<NodeSet>().folded(&style),
        }
    };
    let mut parts = if args.contiguous { set.contiguous() } else { set.split(args.split.unwrap_or(1)) };
    if parts.is_empty() {
        parts.push(NodeSet::default());
    }
    if args.json {
        let row = |part: &NodeSet| json!({ "folded": folded(part), "count": part.len(), "nodes": part.iter().collect::<Vec<_>>() });
        print!("{}", document::line(json!({ "sets": parts.iter().map(row).collect::<Vec<_>>() })));
        return Ok(());
    }
    let separator = args.separator.as_deref().unwrap_or(" ").replace("\\n", "\n").replace("\\t", "\t");
    for part in &parts {
        match () {
            () if args.count => println!("{}", formatted(&part.len().to_string())),
            () if args.expand => println!("{}", part.iter().map(formatted).collect::<Vec<_>>().join(&separator)),
            () => println!("{}", folded(part)),
        }
    }
    Ok(())
}

/// Prints groups, or the groups of the hosts of `set`, each with its hosts if an option requests them.
fn list(args: &Args, set: &NodeSet, cluster: &Cluster) -> Result<i32, Failure> {
    let source = args.groupsource.as_deref();
    let rows = cluster.groups_with(set, source, args.list_all > 0)?;
    if args.json {
        let row = |of: &GroupHosts| json!({ "group": of.group, "nodes": of.hosts.to_string(), "count": of.hosts.len(), "of": of.all });
        print!("{}", document::line(json!({ "groups": rows.iter().map(row).collect::<Vec<_>>() })));
        return Ok(0);
    }
    for GroupHosts { name, group, hosts: shown, all } in rows {
        let name = if args.groupbase { format!("@{group}") } else { name };
        match (args.list + args.list_all, set.is_empty()) {
            (1, _) => println!("{name}"),
            (2, _) => println!("{name} {shown}"),
            (_, true) => println!("{name} {shown} {all}"),
            (_, false) => println!("{name} {shown} {}/{all}", shown.len()),
        }
    }
    Ok(0)
}
