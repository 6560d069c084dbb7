//! `homing nodeset`: ClusterShell's `nodeset`, for those who know it.

use crate::cluster::{Cluster, ClusterArgs};
use homing_cluster::algebra::{Group, Op, Terms};
use homing_model::{Failure, NodeSet};
use serde_json::json;
use std::io::IsTerminal;

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
    /// List groups, or those that hosts are in; -ll their hosts too, -lll and how many
    #[arg(short, long, action = clap::ArgAction::Count)]
    list: u8,
    /// As -l, of all group sources
    #[arg(short = 'L', long, action = clap::ArgAction::Count)]
    list_all: u8,
    /// List the group sources
    #[arg(long, alias = "list-sources")]
    groupsources: bool,
    /// Leave these out
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// Keep only these
    #[arg(short = 'i', long, value_name = "NODESET")]
    intersection: Vec<String>,
    /// Those that are in one of both only
    #[arg(short = 'X', long, value_name = "NODESET")]
    xor: Vec<String>,
    /// All hosts that the groups or the cluster file know
    #[arg(short, long)]
    all: bool,
    /// Hosts of a group
    #[arg(short, long, value_name = "GROUP")]
    group: Vec<String>,
    /// Groups without a source are of this one
    #[arg(short = 's', long, value_name = "SOURCE")]
    groupsource: Option<String>,
    /// Numbers alone, such as 1-4,7
    #[arg(short = 'R', long)]
    rangeset: bool,
    /// Separator of --expand [default: a blank]
    #[arg(short = 'S', long)]
    separator: Option<String>,
    /// Only those at these places, counted from 0
    #[arg(short = 'I', long, value_name = "RANGES")]
    slice: Option<String>,
    /// In N sets of equal size, one a line
    #[arg(long, value_name = "N")]
    split: Option<usize>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Node sets, united; among them -x, -i and -X with a node set act on all
    /// before them; - reads standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    nodesets: Vec<String>,
}

/// Prints what the sets come to.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    let operands = operands(&mut args)?;
    if args.separator.is_some() && !args.expand {
        return Err(Failure::usage("-S does nothing without -e").hint("homing nodeset -e -S, 'n[1-4]'"));
    }
    let cluster = args.cluster.load()?;
    let told = |e: String| Failure::usage(e);
    if args.groupsources {
        for (nth, source) in cluster.shell().map_err(told)?.sources().into_iter().enumerate() {
            println!("{source}{}", if nth == 0 { " (default)" } else { "" });
        }
        return Ok(0);
    }
    let set = computed(&args, operands, cluster)?;
    if args.list + args.list_all > 0 {
        return list(&args, &set, cluster);
    }
    print(&args, &set);
    Ok(0)
}

/// The words after the first set, in their order; -f, -e and -c may stand there too.
fn operands(args: &mut Args) -> Result<Vec<(Op, String)>, Failure> {
    let mut found = Vec::new();
    let mut words = std::mem::take(&mut args.nodesets).into_iter();
    while let Some(word) = words.next() {
        let op = match word.as_str() {
            "-x" | "--exclude" => Op::Exclude,
            "-i" | "--intersection" => Op::Intersect,
            "-X" | "--xor" => Op::Xor,
            "-f" | "--fold" => {
                args.fold = true;
                continue;
            }
            "-e" | "--expand" => {
                args.expand = true;
                continue;
            }
            "-c" | "--count" => {
                args.count = true;
                continue;
            }
            "-" => {
                found.push((Op::Union, word));
                continue;
            }
            _ if word.starts_with('-') => {
                return Err(Failure::usage(format!("{word}: only -x, -i and -X may follow a node set")));
            }
            _ => {
                found.push((Op::Union, word));
                continue;
            }
        };
        let operand = words.next().ok_or_else(|| Failure::usage(format!("{word} needs a node set")))?;
        found.push((op, operand));
    }
    Ok(found)
}

fn computed(args: &Args, operands: Vec<(Op, String)>, cluster: &Cluster) -> Result<NodeSet, Failure> {
    let lists = args.list + args.list_all > 0;
    let said = lists || args.all || !args.group.is_empty() || !operands.is_empty();
    if !said && std::io::stdin().is_terminal() {
        return Err(Failure::usage("which hosts?").hint("homing nodeset -e 'n[1-4]'; - reads standard input"));
    }
    let late = |op: Op, texts: &[String]| texts.iter().map(|t| (op, t.clone())).collect::<Vec<_>>();
    let (late_i, late_x) = (late(Op::Intersect, &args.intersection), late(Op::Exclude, &args.exclude));
    let terms = Terms {
        all: args.all,
        groups: &args.group,
        leading: [late_i, late_x, late(Op::Xor, &args.xor)].concat(),
        operands,
        source: args.groupsource.as_deref(),
        numbers: args.rangeset,
        input: &input,
        usual: if lists { None } else { Some("-") },
    };
    let set = cluster.computed(terms)?;
    let Some(places) = &args.slice else { return Ok(set) };
    let wrong = |e| Failure::usage(format!("-I {places}: {e}"));
    Ok(set.slice(&NodeSet::parse_ranges(places).map_err(wrong)?))
}

fn input() -> Result<String, Failure> {
    std::io::read_to_string(std::io::stdin()).map_err(|e| Failure::usage(format!("reading standard input failed: {e}")))
}

fn print(args: &Args, set: &NodeSet) {
    let folded = |part: &NodeSet| {
        let text = part.to_string();
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        bare.filter(|_| args.rangeset).map_or(text.clone(), String::from)
    };
    let mut parts = set.split(args.split.unwrap_or(1));
    if parts.is_empty() {
        parts.push(NodeSet::default());
    }
    if args.json {
        let row = |part: &NodeSet| json!({ "folded": folded(part), "count": part.len(), "nodes": part.iter().collect::<Vec<_>>() });
        println!("{}", json!({ "sets": parts.iter().map(row).collect::<Vec<_>>() }));
        return;
    }
    let separator = args.separator.as_deref().unwrap_or(" ").replace("\\n", "\n").replace("\\t", "\t");
    for part in &parts {
        match () {
            () if args.count => println!("{}", part.len()),
            () if args.expand => println!("{}", part.iter().collect::<Vec<_>>().join(&separator)),
            () => println!("{}", folded(part)),
        }
    }
}

/// Groups, or those that the hosts of `set` are in, each with its hosts when asked.
fn list(args: &Args, set: &NodeSet, cluster: &Cluster) -> Result<i32, Failure> {
    let source = args.groupsource.as_deref();
    let rows = cluster.groups_with(set, source, args.list_all > 0)?;
    if args.json {
        let row = |of: &Group| json!({ "group": of.group, "nodes": of.hosts.to_string(), "count": of.hosts.len(), "of": of.all });
        println!("{}", json!({ "groups": rows.iter().map(row).collect::<Vec<_>>() }));
        return Ok(0);
    }
    for Group { name, hosts: shown, all, .. } in rows {
        match (args.list + args.list_all, set.is_empty()) {
            (1, _) => println!("{name}"),
            (2, _) => println!("{name} {shown}"),
            (_, true) => println!("{name} {shown} {all}"),
            (_, false) => println!("{name} {shown} {}/{all}", shown.len()),
        }
    }
    Ok(0)
}
