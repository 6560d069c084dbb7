//! `bugroup`: lists groups of users, which are those of the machine.

use super::{Refusal, lsf_refusal, options, print};
use homing_lsf::grammar::BUGROUP;
use homing_lsf::options::text;
use homing_model::RawText;

/// Lists groups with their users.
pub fn bugroup(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bugroup", &BUGROUP, words)? else { return Ok(0) };
    let known = homing_os::names::groups();
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    if let Some(odd) = asked.iter().find(|name| !known.iter().any(|(group, _)| group == *name)) {
        return Err(lsf_refusal(format!("{odd}: No such user/host group")));
    }
    let shown = known.iter().filter(|(name, _)| asked.is_empty() || asked.contains(name));
    let rows = shown.map(|(name, users)| format!("{name:<12}  {}\n", users.join(" ")));
    print(&format!("{:<12}  USERS\n{}", "GROUP_NAME", rows.collect::<String>()))
}
