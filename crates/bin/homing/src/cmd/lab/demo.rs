//! `lab demo`: shows the effect of placement on one machine.

use homing_lab::demo::{Demo, run as demonstrate};
use homing_model::Failure;

/// Arguments of `lab demo`.
#[derive(clap::Args)]
pub struct DemoArgs {
    /// Name of the lab to raise; one that is up is refused
    #[arg(long, default_value = "demo")]
    name: String,
    /// Number of input files
    #[arg(long, default_value_t = 16)]
    files: u32,
    /// Size of each input file
    #[arg(long, default_value = "20M", value_parser = homing_lab::parse_size)]
    size: u64,
    /// Rate of each host's link
    #[arg(long, default_value = "200mbit", value_parser = homing_lab::parse_rate)]
    link: u64,
    /// Tasks at a time on each host
    #[arg(short, long, default_value_t = 2)]
    jobs: u32,
    /// Take the lab down at the end
    #[arg(long)]
    down: bool,
}

/// Runs the demonstration; the status is that of the batches.
pub fn run(args: DemoArgs) -> Result<i32, Failure> {
    let DemoArgs { name, files, size, link, jobs, down } = args;
    let demo = Demo { name, files, size, link, jobs, down, journals: homing_journal::root() };
    demonstrate(&demo, &|text| println!("{text}"))
}
