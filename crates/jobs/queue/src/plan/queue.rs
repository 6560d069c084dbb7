//! A queue, as the cluster file has it.

use super::Windows;
use crate::require::Requirement;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A queue, as `[queue.NAME]` of the cluster file describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Queues of higher priority are served first. LSF's default is 1.
    pub priority: i32,
    /// Shown by `bqueues -l`.
    pub description: String,
    /// The queue that is used when none is named.
    pub default: bool,
    /// Whether it takes no jobs and starts none.
    pub closed: bool,
    /// Users who may use it, login names and `@group`; all when empty. Root always may.
    pub users: Vec<String>,
    /// Hosts that it may use, as a node set; all when empty.
    pub hosts: String,
    /// Slots that its jobs may have (QJOB_LIMIT).
    pub slots: Option<u32>,
    /// The same for one user (UJOB_LIMIT).
    pub per_user: Option<u32>,
    /// The same on one host (HJOB_LIMIT).
    pub per_host: Option<u32>,
    /// A folder on a volume that all hosts have. With it `slots` and `per_user` hold over all hosts together.
    #[serde(deserialize_with = "leases")]
    pub leases: Option<PathBuf>,
    /// Minutes that a job may run (RUNLIMIT).
    pub run_limit: Option<u64>,
    /// Minutes of processor time that each process of a job may use (CPULIMIT).
    pub cpu_limit: Option<u64>,
    /// MiB that the processes of a job may have together (MEMLIMIT).
    pub memory_limit: Option<u64>,
    /// Load thresholds, `bio = "1500/4000"`: no job starts above the first, and jobs are suspended above the second.
    pub load: BTreeMap<String, String>,
    /// The requirement on the host at the start, in LSF's words (RES_REQ); empty: none.
    #[serde(deserialize_with = "res_req")]
    pub res_req: String,
    /// When it starts jobs (DISPATCH_WINDOW).
    pub dispatch_window: Windows,
    /// The nice value of its jobs' processes, 0 to 19 (NICE).
    #[serde(deserialize_with = "nice")]
    pub nice: u8,
    /// A line for /bin/sh that runs before a job, as its user. If it fails, the job does not start (PRE_EXEC).
    pub pre_exec: String,
    /// A line that runs after the job, whether that failed or not (POST_EXEC).
    pub post_exec: String,
    /// A line for /bin/sh that starts the job's command. The command replaces `%USRCMD` or is appended (JOB_STARTER).
    pub job_starter: String,
}

impl Queue {
    /// Whether the load of the host decides about its jobs.
    pub fn asks_load(&self) -> bool {
        !self.load.is_empty() || !self.res_req.is_empty()
    }

    /// Whether a user of these groups may use it.
    pub fn admits(&self, user: &str, groups: impl FnOnce() -> Vec<String>) -> bool {
        if self.users.is_empty() || user == "root" || self.users.iter().any(|name| name == user) {
            return true;
        }
        let named: Vec<&str> = self.users.iter().filter_map(|name| name.strip_prefix('@')).collect();
        !named.is_empty() && groups().iter().any(|group| named.contains(&group.as_str()))
    }
}

fn nice<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let nice = i64::deserialize(from)?;
    let fits = u8::try_from(nice).ok().filter(|nice| *nice < 20);
    fits.ok_or_else(|| serde::de::Error::custom(format!("nice = {nice} is not in the range 0 to 19")))
}

fn leases<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let folder = Option::<PathBuf>::deserialize(from)?;
    if let Some(odd) = folder.iter().find(|folder| !folder.is_absolute() || folder.file_name().is_none()) {
        return Err(serde::de::Error::custom(format!(
            "leases = {odd:?} is not a folder on a volume, such as /data/.homing-leases"
        )));
    }
    Ok(folder)
}

fn res_req<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let bad = |why| serde::de::Error::custom(format!("res_req = {text:?} is not a requirement: {why}"));
    if !text.is_empty() {
        Requirement::all(&[&text]).map_err(bad)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_comes_back_as_it_was_written() {
        for leases in [None, Some("/data/l".into())] {
            let queue = Queue { leases, ..Queue::default() };
            let text = serde_json::to_string(&queue).unwrap();
            assert_eq!(serde_json::from_str::<Queue>(&text).unwrap(), queue, "{text}");
        }
        assert!(serde_json::from_str::<Queue>("{\"leases\": \"l\"}").unwrap_err().to_string().contains("not a folder"));
    }

    #[test]
    fn users_and_groups_are_admitted() {
        let queue = |users: &[&str]| Queue { users: users.iter().map(|u| u.to_string()).collect(), ..Queue::default() };
        let lab = || vec!["lab".to_string()];
        let never = || unreachable!("groups are asked for only where one is named");
        assert!(queue(&[]).admits("ann", never));
        assert!(queue(&["ann"]).admits("ann", never) && !queue(&["ann"]).admits("bob", never));
        assert!(queue(&["ann", "@lab"]).admits("bob", lab) && !queue(&["@wheel"]).admits("bob", lab));
        assert!(queue(&["ann"]).admits("root", never));
    }
}
