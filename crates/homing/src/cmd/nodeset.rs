//! `homing nodeset`: ClusterShell's `nodeset`, for those who know it.

use crate::failure::Failure;
use homing_model::NodeSet;

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
    #[arg(short, long)]
    count: bool,
    /// Leave these out
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// Keep only these
    #[arg(short = 'i', long, value_name = "NODESET")]
    intersection: Vec<String>,
    /// Separator of --expand
    #[arg(short = 'S', long, default_value = " ")]
    separator: String,
    /// In N sets of equal size, one a line
    #[arg(long, value_name = "N")]
    split: Option<usize>,
    /// Node sets; several are united
    nodesets: Vec<String>,
}

/// Prints what the sets come to.
pub fn run(args: Args) -> Result<i32, Failure> {
    let read = |texts: &[String]| -> Result<NodeSet, Failure> {
        let sets = texts.iter().map(|t| crate::hostlist::hosts_from(Some(t), None));
        let names: Vec<String> = sets.collect::<Result<Vec<_>, _>>()?.concat();
        Ok(names.into_iter().collect())
    };
    let mut set = read(&args.nodesets)?.difference(&read(&args.exclude)?);
    if !args.intersection.is_empty() {
        set = set.intersection(&read(&args.intersection)?);
    }
    let separator = args.separator.replace("\\n", "\n");
    for part in set.split(args.split.unwrap_or(1)) {
        match () {
            () if args.count => println!("{}", part.len()),
            () if args.expand => println!("{}", part.iter().collect::<Vec<_>>().join(&separator)),
            () => println!("{part}"),
        }
    }
    if set.is_empty() && args.count {
        println!("0");
    }
    Ok(0)
}
