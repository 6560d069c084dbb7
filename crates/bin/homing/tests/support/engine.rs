//! The contract suite of engines, as a program of its own: on this machine's queue and on a real Slurm.

use crate::support::EXE;
use homing_model::RawText;
use homing_queue::plan::{Config, Queue};
use homing_queue::{Embedded, Engine, JobSpec, Private, Slurm, contract};
use std::collections::BTreeMap;

/// The arguments of this test as a program of its own. The environment of its process chooses an engine.
pub const SUITE: &[&str] = &["engine::keeps_the_contract", "--exact", "--ignored", "--nocapture"];

/// Makes two slots and one queue without limits.
fn embedded() -> Embedded {
    let queues = BTreeMap::from([("normal".to_string(), Queue { default: true, ..Queue::default() })]);
    let config = Config { slots: 2, queues, ..Config::default() };
    Embedded::open(config, EXE.into(), &["queue-runner"]).unwrap()
}

/// Returns a request of this user for the working directory.
fn spec(engine: &dyn Engine) -> JobSpec {
    let config = engine.config().unwrap();
    let queue = config.queues.iter().find(|(_, queue)| queue.default).or(config.queues.iter().next()).unwrap().0;
    let text = serde_json::json!({
        "v": 1, "user": homing_queue::user_name(homing_queue::uid()), "submit_ns": homing_os::clock::system_ns(),
        "from": homing_queue::host_name(), "cwd": RawText::from(std::env::current_dir().unwrap().as_path()),
        "command": {"shell": "true"}, "name": "suite", "queue": queue, "slots": 1,
    });
    serde_json::from_value(text).unwrap()
}

#[test]
#[ignore = "needs an engine: the other tests here run it"]
fn keeps_the_contract() {
    let engine: Box<dyn Engine> = match std::env::var("HOMING_ENGINE").as_deref() {
        Ok("slurm") => Box::new(Slurm),
        _ => Box::new(embedded()),
    };
    let env = std::env::vars_os().map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()));
    let env = env.chain([("SUITE".into(), "of the suite".into())]).collect();
    let private = Private { env, umask: 0o022, ..Private::default() };
    contract::check(&*engine, &spec(&*engine), &private);
}
