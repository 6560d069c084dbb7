//! `bgadd`: a job group exists with its first job, so that there is nothing to make.

use super::{Refusal, lsf_refusal, options, print};
use homing_lsf::choose::group;
use homing_lsf::grammar::BGADD;
use homing_lsf::options::text;
use homing_model::RawText;

/// Reports that a group may be used.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bgadd", &BGADD, words)? else { return Ok(0) };
    let [name] = parsed.operands.as_slice() else {
        return Err(lsf_refusal("bgadd: one job group name must be specified"));
    };
    let name = group(&text(name)).map_err(lsf_refusal)?;
    eprintln!("bgadd: a job group exists with its first job, bsub -g {name}; there is nothing to make");
    print(&format!("Job group <{name}> is added.\n"))
}
