//! Which hosts a build has, and how their workers come to its coordinator.

use super::asked::News;
use crate::cluster::Cluster;
use homing_launch::{Heard, Options, Via};
use homing_remote::Remote;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A host of the build.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As the user names it.
    pub name: String,
    /// How to reach it.
    pub via: Via,
    /// Recipes at once, when that does not follow from its cores.
    pub slots: Option<u32>,
}

/// The hosts of the user's set; this machine by its own name is a child, not an ssh.
pub fn plans(names: Vec<String>, cluster: &Cluster) -> Vec<Plan> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plan = |name: String| {
        let here = name == own || own.split('.').next() == Some(name.as_str()) || name == "localhost";
        let via = if here { Via::Local } else { Via::Ssh { target: name.clone() } };
        Plan { slots: cluster.slots_of(&name), name, via }
    };
    names.into_iter().map(plan).collect()
}

/// Opens a channel and keeps reading from it. It goes over the connection that `homing exec` keeps too, so
/// that the second build of an afternoon does not exchange keys with each host again.
pub fn connect(at: usize, plan: Plan, news: Sender<News>) -> std::io::Result<()> {
    let target = match &plan.via {
        Via::Ssh { target } => Some(target.clone()),
        _ => None,
    };
    let options = move || {
        let kept = target.and_then(|target| Remote::new(homing_remote::Options::default()).way_to(&target));
        let usual = Options::default();
        Options { ssh: kept.unwrap_or(usual.ssh), ..usual }
    };
    homing_launch::attend(plan.name, plan.via, options, move |heard| {
        let told = match heard {
            Heard::Up { facts, to, keeper } => News::Up { at, facts, to, keeper },
            Heard::Refused(error) => News::Refused { at, why: error.to_string() },
            Heard::From(messages) => News::From { at, messages },
            Heard::Cut { reason } => News::Cut { at, why: reason },
            Heard::Gone { reason, .. } => News::Gone { at, why: reason },
        };
        news.send(told).is_ok()
    })
}

/// The sending half of a channel of news.
pub fn news() -> (Sender<News>, Receiver<News>) {
    channel()
}
