//! How the workers of a build come to its coordinator.

use crate::asked::News;
use homing_exec::Remote;
use homing_launch::{Heard, HostPlan, Options, Via};
use std::sync::mpsc::Sender;

/// Opens a channel and keeps reading from it. It goes over the connection that `homing exec` keeps too, so
/// that the second build of an afternoon does not exchange keys with each host again.
pub fn connect(at: usize, plan: HostPlan, news: Sender<News>) -> std::io::Result<()> {
    let target = match &plan.via {
        Via::Ssh { target } => Some(target.clone()),
        _ => None,
    };
    let options = move || {
        let kept = target.and_then(|target| Remote::new(homing_exec::Options::default()).way_to(&target));
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
